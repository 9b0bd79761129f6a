//! The keys of a group's records and entries.
//!
//! | bytes | contents |
//! |---|---|
//! | 0 to 3 | the number of the group, the most significant byte first |
//! | 4 | the kind: `v` the vote, `c` the last committed log id, `p` the last purged log id, `e` an entry |
//! | 5 to 12 | the index of an entry, the most significant byte first |
//!
//! So the entries of a group are adjacent and in order.

use std::ops::RangeInclusive;

const ENTRY: u8 = b'e';

/// A kind of record that a group has only once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Record {
    Vote = b'v',
    Committed = b'c',
    Purged = b'p',
}

/// The keys of one group.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keys {
    pub(super) group: u32,
}

impl Keys {
    pub(super) fn record(self, record: Record) -> [u8; 5] {
        let [a, b, c, d] = self.group.to_be_bytes();
        [a, b, c, d, record as u8]
    }

    pub(super) fn entry(self, index: u64) -> [u8; 13] {
        let mut key = [0; 13];
        let (group, rest) = key.split_at_mut(4);
        group.copy_from_slice(&self.group.to_be_bytes());
        let (kind, place) = rest.split_at_mut(1);
        kind.copy_from_slice(&[ENTRY]);
        place.copy_from_slice(&index.to_be_bytes());
        key
    }

    /// The keys of the entries with these indexes.
    pub(super) fn entries(self, indexes: RangeInclusive<u64>) -> RangeInclusive<[u8; 13]> {
        self.entry(*indexes.start())..=self.entry(*indexes.end())
    }

    /// The keys of everything that a group has, except the vote, which is the last one.
    pub(super) fn all_but_vote(self) -> RangeInclusive<[u8; 5]> {
        let [a, b, c, d] = self.group.to_be_bytes();
        [a, b, c, d, 0]..=[a, b, c, d, Record::Vote as u8 - 1]
    }

    /// The index of the entry with this key; `None` if the key is not one of an entry.
    pub(super) fn index(key: &[u8]) -> Option<u64> {
        let (_, rest) = key.split_at_checked(4)?;
        let (kind, index) = rest.split_first()?;
        let index = index.try_into().ok().map(u64::from_be_bytes)?;
        (*kind == ENTRY).then_some(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_a_group_lie_together_in_order() {
        // Catches a byte order in which 256 comes before 2, and groups whose keys interleave.
        let (one, two) = (Keys { group: 1 }, Keys { group: 256 });
        let ascending = [one.entry(0), one.entry(2), one.entry(256), one.entry(u64::MAX), two.entry(0), two.entry(1)];
        assert!(ascending.is_sorted());
        for key in [Record::Vote, Record::Committed, Record::Purged].map(|record| one.record(record)) {
            assert!(key[..] < one.entry(0)[..] || key[..] > one.entry(u64::MAX)[..]);
            assert_eq!(Keys::index(&key), None);
            assert!(one.all_but_vote().contains(&key) != (key == one.record(Record::Vote)));
            assert!(!two.all_but_vote().contains(&key));
        }
        let all = one.all_but_vote();
        assert!(all.start()[..] < one.entry(0)[..] && all.end()[..] > one.entry(u64::MAX)[..]);
        assert_eq!(Keys::index(&two.entry(300)), Some(300));
    }
}
