//! [`Sizes`]: the bytes of a log's entries, and of those that were purged since the last removal.

use std::collections::VecDeque;

/// Bytes of entries that are counted together: the counts take 16 bytes of memory for each part of this size.
const COUNTED_TOGETHER: usize = 1 << 20;

/// Counts bytes; the count of purged ones may be up to [`COUNTED_TOGETHER`] too low, and the other one too high.
#[derive(Debug, Default)]
pub(super) struct Sizes {
    /// The last index of some consecutive entries, and their bytes; in order.
    parts: VecDeque<(u64, usize)>,
    purged: usize,
}

impl Sizes {
    /// The sizes of a log that was just opened, with estimated `parts`. It is unknown how many purged entries are still stored: they count as `purged` bytes.
    pub(super) fn of_open(parts: VecDeque<(u64, usize)>, purged: usize) -> Self {
        Self { parts, purged }
    }

    /// The bytes of the entries from `index` on.
    pub(super) fn from(&self, index: u64) -> usize {
        self.parts.iter().rev().take_while(|(last, _)| *last >= index).map(|(_, bytes)| bytes).sum()
    }

    pub(super) fn append(&mut self, last: u64, bytes: usize) {
        match self.parts.back_mut().filter(|(_, part)| *part < COUNTED_TOGETHER) {
            Some(part) => *part = (last, part.1.saturating_add(bytes)),
            None => self.parts.push_back((last, bytes)),
        }
    }

    /// The log now ends at `last`. The bytes of the truncated entries are added to the last entry, because they too take space until a removal.
    pub(super) fn truncate(&mut self, last: u64) {
        let behind = self.parts.iter_mut().rev().take_while(|(index, _)| *index > last);
        behind.for_each(|(index, _)| *index = last);
    }

    pub(super) fn purge(&mut self, last: u64) {
        while let Some(&(_, bytes)) = self.parts.front().filter(|(index, _)| *index <= last) {
            self.parts.pop_front();
            self.purged = self.purged.saturating_add(bytes);
        }
    }

    /// Whether at least `bytes` were purged since this last returned true.
    pub(super) fn take_purged(&mut self, bytes: usize) -> bool {
        let is_enough = self.purged >= bytes;
        if is_enough {
            self.purged = 0;
        }
        is_enough
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    #[test]
    fn what_was_purged_counts_once_and_what_is_live_does_not() {
        // Catches a removal for each purge, a removal that waits for appends although much was purged, and bytes that count twice.
        let mut sizes = Sizes::default();
        for index in 0..100 {
            sizes.append(index, MIB);
        }
        sizes.purge(7);
        assert!(!sizes.take_purged(9 * MIB));
        assert!(sizes.take_purged(8 * MIB) && !sizes.take_purged(1));
        sizes.purge(98);
        assert!(sizes.take_purged(91 * MIB) && !sizes.take_purged(1));
    }

    #[test]
    fn small_entries_are_counted_together() {
        // Catches a record in memory for each entry.
        let mut sizes = Sizes::default();
        for index in 0..100_000 {
            sizes.append(index, 100);
        }
        assert!(sizes.parts.len() <= 100_000 * 100 / MIB + 1);
        sizes.purge(99_999);
        assert!(sizes.take_purged(100 * 100_000));
    }

    #[test]
    fn nothing_is_forgotten_by_an_open_or_a_truncation() {
        // Catches entries of an earlier process, and truncated ones, that are never removed.
        let mut sizes = Sizes::of_open(VecDeque::from([(4, MIB), (9, MIB)]), MIB);
        assert!(sizes.take_purged(MIB), "purged before");
        sizes.purge(3);
        assert!(!sizes.take_purged(1));
        sizes.append(10, 3 * MIB);
        sizes.append(20, 3 * MIB);
        assert_eq!((sizes.from(0), sizes.from(5), sizes.from(10), sizes.from(21)), (8 * MIB, 7 * MIB, 6 * MIB, 0));
        sizes.truncate(9);
        sizes.append(10, 1);
        sizes.purge(9);
        assert!(sizes.take_purged(8 * MIB) && sizes.from(0) == 1);
    }
}
