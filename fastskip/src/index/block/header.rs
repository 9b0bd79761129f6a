//! The first word of a block.

use crate::key::four_bytes;
use crate::mem::lanes::ROW_WORDS;
use crate::order::Order;
use crate::tuning::SLOTS;

/// The number of rows of a block: two or three in a leaf, two or four in any other block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rows {
    Two,
    Three,
    Four,
}

impl Rows {
    /// The number of words of a block with this number of rows.
    pub(crate) fn words(self) -> u32 {
        (self as u32 + 2) * ROW_WORDS
    }
}

/// The first word of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header(pub(super) u64);

impl Header {
    pub(super) const TIED: u64 = 1 << 22;
    pub(super) const LOCKED: u64 = 1 << 24;
    /// The counter of looks at a taken lock, three bits wide.
    pub(super) const LOOK: u64 = 1 << 25;
    pub(super) const LOOKS: u64 = 7 * Self::LOOK;
    pub(super) const VERSION: u64 = 1 << 28;

    pub(crate) fn new(level: u32, prefix: u32, rows: Rows) -> Self {
        Self(u64::from(prefix) << 8 | u64::from(level) << 16 | (rows as u64) << 20)
    }

    /// Slots in use.
    #[inline(always)]
    pub(crate) fn count(self) -> usize {
        // No published header has a greater count; the bound spares the callers a bounds check.
        (self.0 as u8 as usize).min(SLOTS)
    }

    /// The number of bytes that all keys under this block share. The block's partial keys leave these bytes out.
    #[inline(always)]
    pub(crate) fn prefix(self) -> u32 {
        (self.0 >> 8) as u8 as u32
    }

    /// The partial key of `sort_key` in this block.
    #[inline(always)]
    pub(crate) fn partial_of(self, sort_key: &[u8]) -> i32 {
        bias(four_bytes(sort_key, self.prefix() as usize))
    }

    /// The partial key of the sort key of `key` in this block.
    #[inline(always)]
    pub(crate) fn partial_in<O: Order>(self, key: &[u8]) -> i32 {
        self.partial_of(O::sort_key(key).as_ref())
    }

    /// The level; 0 for a leaf.
    #[inline(always)]
    pub(crate) fn level(self) -> u32 {
        (self.0 >> 16) as u32 & 0xf
    }

    /// The number of rows of the block, which never changes.
    pub(crate) fn rows(self) -> Rows {
        match self.0 >> 20 & 3 {
            0 => Rows::Two,
            1 => Rows::Three,
            _ => Rows::Four,
        }
    }

    /// Whether row 2 is maintained.
    #[inline(always)]
    pub(crate) fn is_tied(self) -> bool {
        self.0 & Self::TIED != 0
    }

    #[inline(always)]
    pub(crate) fn is_locked(self) -> bool {
        self.0 & Self::LOCKED != 0
    }

    /// Whether all slots are in use.
    #[inline(always)]
    pub(crate) fn is_full(self) -> bool {
        self.count() == SLOTS
    }
}

/// Biases a partial key so that the signed order of the results is the unsigned order of the arguments.
#[inline(always)]
pub(crate) fn bias(partial: u32) -> i32 {
    (partial ^ 1 << 31) as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches blocks larger than their rows, which would waste memory.
    #[test]
    fn a_block_has_the_words_of_its_rows() {
        assert_eq!([Rows::Two, Rows::Three, Rows::Four].map(Rows::words), [2, 3, 4].map(|rows| rows * ROW_WORDS));
    }
}
