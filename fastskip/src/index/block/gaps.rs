//! The gaps between neighbouring partial keys of a block: they tell where to cut it, whether its prefix is too short, and whether its slots tie.

use core::ops::Range;

use super::locked::Locked;

/// Where neighbouring slots of a block have partial keys that hardly differ. Bit `slot` is for that slot and the one before.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gaps {
    /// Partial keys differ by less than 16.
    narrow: u32,
    /// They are equal.
    none: u32,
}

impl Gaps {
    pub(crate) fn of(block: &Locked<'_>) -> Self {
        let (mut narrow, mut none) = (0, 0);
        let mut before = block.block().partial(0);
        for slot in 1..block.count() {
            let partial = block.block().partial(slot);
            // They are in order, if no writer was misled.
            let gap = partial.wrapping_sub(before) as u32;
            narrow |= u32::from(gap < 16) << slot;
            none |= u32::from(gap == 0) << slot;
            before = partial;
        }
        Self { narrow, none }
    }

    /// Whether the gaps before more than an eighth of some slots are narrow.
    pub(crate) fn are_narrow(self, slots: Range<usize>) -> bool {
        let of_slots = !(!0 << slots.end) & !0 << slots.start;
        (self.narrow & of_slots).count_ones() as usize * 8 > slots.len() + 1
    }

    /// The slots whose partial keys are those of the slots before.
    pub(crate) fn ties(self) -> u32 {
        self.none
    }
}
