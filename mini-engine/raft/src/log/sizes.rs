//! [`Sizes`]: the bytes of entries that were purged since the last removal.

use std::collections::VecDeque;

/// Bytes of entries that are counted together: the counts take 16 bytes of memory for each part of this size.
const COUNTED_TOGETHER: usize = 1 << 20;

/// Counts purged bytes; the count may be up to [`COUNTED_TOGETHER`] too low.
#[derive(Debug)]
pub(super) struct Sizes {
    /// The last index of some consecutive entries, and their bytes; in order.
    parts: VecDeque<(u64, usize)>,
    purged: usize,
}

impl Sizes {
    /// The sizes of a log that was just opened; its last index is `last`. The size of its entries is unknown: all purged entries count as `assumed`
    /// bytes, and so do all others, so that both are removed.
    pub(super) fn of_open(last: Option<u64>, assumed: usize) -> Self {
        match last {
            Some(last) => Self { parts: VecDeque::from([(last, assumed)]), purged: assumed },
            None => Self { parts: VecDeque::new(), purged: 0 },
        }
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
        let mut sizes = Sizes::of_open(None, MIB);
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
        let mut sizes = Sizes::of_open(None, MIB);
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
        let mut sizes = Sizes::of_open(Some(9), MIB);
        assert!(sizes.take_purged(MIB), "purged before");
        sizes.purge(8);
        assert!(!sizes.take_purged(1));
        sizes.append(10, 3 * MIB);
        sizes.append(20, 3 * MIB);
        sizes.truncate(9);
        sizes.append(10, 1);
        sizes.purge(9);
        assert!(sizes.take_purged(7 * MIB));
    }
}
