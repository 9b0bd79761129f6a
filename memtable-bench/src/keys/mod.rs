//! The keys that subjects store: each set is a function from an index to a key that gives no key twice.
//!
//! Keys at even indices are stored; those at odd ones are what a search misses. So misses end anywhere among the stored keys,
//! not past one end, and differ from their neighbours as late as hits do.

mod paths;

use clap::ValueEnum;

use crate::random::{SEED, mix, number};

/// How keys look, and in which order they come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum KeySet {
    /// 16 random bytes
    Random,
    /// 16 decimal digits with leading zeros, ascending
    Sequential,
    /// File paths of 40 to 110 bytes with long shared prefixes, in random order
    Paths,
}

impl KeySet {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::Sequential => "sequential",
            Self::Paths => "paths",
        }
    }

    /// The length of its longest key in bytes, for tables that fit in memory.
    pub(crate) fn longest(self) -> usize {
        match self {
            Self::Random | Self::Sequential => 16,
            Self::Paths => paths::LONGEST,
        }
    }

    /// The `entries` keys to store, in the order of their inserts.
    pub(crate) fn stored(self, entries: usize) -> Keys {
        self.keys(entries, 0)
    }

    /// As many keys that are not stored.
    pub(crate) fn absent(self, entries: usize) -> Keys {
        self.keys(entries, 1)
    }

    fn keys(self, entries: usize, first: u64) -> Keys {
        let mut keys = Keys::default();
        let tree = paths::Tree::for_files(entries as u64);
        for index in (first..).step_by(2).take(entries) {
            match self {
                Self::Random => keys.push(|out| push_random(index, out)),
                Self::Sequential => keys.push(|out| out.extend_from_slice(format!("{index:016}").as_bytes())),
                Self::Paths => keys.push(|out| tree.push_path(index, out)),
            }
        }
        keys
    }
}

fn push_random(index: u64, out: &mut Vec<u8>) {
    // The first half alone is distinct.
    let first = number(SEED, index);
    out.extend_from_slice(&first.to_be_bytes());
    out.extend_from_slice(&mix(first ^ SEED).to_be_bytes());
}

/// Keys one behind the other, so that reading the next one costs the clock no cache miss.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Keys {
    fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.ends.push(self.bytes.len());
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The key at `index`.
    ///
    /// # Panics
    /// If there is none.
    pub(crate) fn get(&self, index: usize) -> &[u8] {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[index]]
    }

    /// A copy of the keys at `indices`, in their order.
    pub(crate) fn pick(&self, indices: &[usize]) -> Self {
        let mut picked = Self { bytes: Vec::with_capacity(self.bytes.len()), ends: Vec::with_capacity(indices.len()) };
        for &index in indices {
            picked.push(|out| out.extend_from_slice(self.get(index)));
        }
        picked
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    const SETS: [KeySet; 3] = [KeySet::Random, KeySet::Sequential, KeySet::Paths];

    fn list(keys: &Keys) -> Vec<&[u8]> {
        (0..keys.len()).map(|index| keys.get(index)).collect()
    }

    #[test]
    fn stored_and_absent_keys_are_all_distinct() {
        // Catches a generator that repeats itself: subjects would refuse the duplicate, and misses would hit.
        for set in SETS {
            let (stored, absent) = (set.stored(20_000), set.absent(20_000));
            let distinct: HashSet<_> = list(&stored).into_iter().chain(list(&absent)).collect();
            assert_eq!(distinct.len(), 40_000, "{set:?} (seed {SEED:#x})");
        }
    }

    #[test]
    fn keys_are_the_same_each_time() {
        // Catches a generator with state of its own: the rounds would not be comparable.
        for set in SETS {
            assert_eq!(list(&set.stored(500)), list(&set.stored(500)), "{set:?}");
        }
    }

    #[test]
    fn only_sequential_keys_come_in_order() {
        // Catches decimals without leading zeros, and random inserts that all go to the end.
        for set in SETS {
            let keys = set.stored(11_000);
            assert_eq!(list(&keys).is_sorted(), set == KeySet::Sequential, "{set:?}");
        }
    }

    #[test]
    fn misses_end_between_stored_keys() {
        // Catches absent keys that all lie behind one end, where a search is cheap.
        for set in SETS {
            let (stored, absent) = (set.stored(1000), set.absent(1000));
            let (first, last) = (list(&stored).into_iter().min(), list(&stored).into_iter().max());
            let inside = list(&absent).into_iter().filter(|key| (first..last).contains(&Some(*key))).count();
            assert!(inside >= 990, "{set:?}: {inside} of 1000");
        }
    }

    #[test]
    fn no_key_is_longer_than_its_set_says() {
        // Catches an estimate of memory that is too low.
        for set in SETS {
            let longest = list(&set.stored(5000)).iter().map(|key| key.len()).max();
            assert!(longest <= Some(set.longest()), "{set:?}: {longest:?}");
        }
    }

    #[test]
    fn picked_keys_are_in_the_order_asked_for() {
        // Catches lookups whose keys and expected values drift apart.
        let keys = KeySet::Paths.stored(10);
        assert_eq!(list(&keys.pick(&[7, 0, 3])), [keys.get(7), keys.get(0), keys.get(3)]);
    }
}
