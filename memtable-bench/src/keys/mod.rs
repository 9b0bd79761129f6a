//! The keys that subjects store: each set is a function from an index to a key that gives no key twice.
//!
//! Keys at even indices are stored; those at odd ones are what a search misses. So misses end anywhere among the stored keys,
//! not past one end, and differ from their neighbours as late as hits do. What is written after the table is filled goes on
//! where the stored keys ended.

mod paths;

use std::ops::Range;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::random::{SEED, mix, number};

/// How keys look, and in which order they come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum KeySet {
    /// Random bytes
    Random,
    /// Decimal digits with leading zeros, ascending
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

    /// Whether the length of its keys can be chosen.
    pub(crate) fn has_one_length(self) -> bool {
        self != Self::Paths
    }
}

/// A key set whose keys have their length, and the number of keys it is for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source {
    pub(crate) set: KeySet,
    /// The length of each key in bytes, where the set leaves that open.
    pub(crate) len: usize,
    /// The keys that are stored at first.
    pub(crate) entries: usize,
}

impl Source {
    /// The length of its longest key in bytes, for tables that fit in memory.
    pub(crate) fn longest(&self) -> usize {
        if self.set.has_one_length() { self.len } else { paths::LONGEST }
    }

    /// The keys that are stored, in the order of their inserts. Those from `entries` on are the ones written later.
    pub(crate) fn stored(&self, range: Range<usize>) -> Keys {
        self.keys(range, 0)
    }

    /// `entries` keys that are not stored.
    pub(crate) fn absent(&self) -> Keys {
        self.keys(0..self.entries, 1)
    }

    fn keys(&self, range: Range<usize>, odd: u64) -> Keys {
        let mut keys = Keys::with_capacity(range.len(), self.longest());
        let tree = paths::Tree::for_files(self.entries as u64);
        for index in range.map(|index| 2 * index as u64 + odd) {
            match self.set {
                KeySet::Random => keys.push(|out| push_random(index, self.len, out)),
                KeySet::Sequential => keys.push(|out| push_decimal(index, self.len, out)),
                KeySet::Paths => keys.push(|out| tree.push_path(index, out)),
            }
        }
        keys
    }
}

/// The shortest keys that can all be distinct.
pub(crate) const SHORTEST: usize = 16;

fn push_random(index: u64, len: usize, out: &mut Vec<u8>) {
    let end = out.len() + len;
    // The first eight bytes alone are distinct.
    let mut word = number(SEED, index);
    while out.len() < end {
        let bytes = word.to_be_bytes();
        out.extend_from_slice(&bytes[..bytes.len().min(end - out.len())]);
        word = mix(word ^ SEED);
    }
}

fn push_decimal(index: u64, len: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("{index:0len$}").as_bytes());
}

/// Keys one behind the other, so that reading the next one costs the clock no cache miss.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Keys {
    fn with_capacity(keys: usize, longest: usize) -> Self {
        Self { bytes: Vec::with_capacity(keys * longest), ends: Vec::with_capacity(keys) }
    }

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

    /// Puts `more` behind these.
    pub(crate) fn append(&mut self, more: &Self) {
        (0..more.len()).for_each(|index| self.push(|out| out.extend_from_slice(more.get(index))));
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

    fn source(set: KeySet, entries: usize) -> Source {
        Source { set, len: 16, entries }
    }

    fn stored(set: KeySet, entries: usize) -> Keys {
        source(set, entries).stored(0..entries)
    }

    fn list(keys: &Keys) -> Vec<&[u8]> {
        (0..keys.len()).map(|index| keys.get(index)).collect()
    }

    #[test]
    fn stored_and_absent_keys_are_all_distinct() {
        // Catches a generator that repeats itself: subjects would refuse the duplicate, and misses would hit.
        for set in SETS {
            let source = source(set, 20_000);
            let (stored, absent) = (source.stored(0..30_000), source.absent());
            let distinct: HashSet<_> = list(&stored).into_iter().chain(list(&absent)).collect();
            assert_eq!(distinct.len(), 50_000, "{set:?} (seed {SEED:#x})");
        }
    }

    #[test]
    fn keys_are_the_same_each_time() {
        // Catches a generator with state of its own: the rounds would not be comparable.
        for set in SETS {
            assert_eq!(list(&stored(set, 500)), list(&stored(set, 500)), "{set:?}");
        }
    }

    #[test]
    fn only_sequential_keys_come_in_order() {
        // Catches decimals without leading zeros, and random inserts that all go to the end.
        for set in SETS {
            let keys = stored(set, 11_000);
            assert_eq!(list(&keys).is_sorted(), set == KeySet::Sequential, "{set:?}");
        }
    }

    #[test]
    fn misses_end_between_stored_keys() {
        // Catches absent keys that all lie behind one end, where a search is cheap.
        for set in SETS {
            let (stored, absent) = (stored(set, 1000), source(set, 1000).absent());
            let (first, last) = (list(&stored).into_iter().min(), list(&stored).into_iter().max());
            let inside = list(&absent).into_iter().filter(|key| (first..last).contains(&Some(*key))).count();
            assert!(inside >= 990, "{set:?}: {inside} of 1000");
        }
    }

    #[test]
    fn no_key_is_longer_than_its_set_says() {
        // Catches an estimate of memory that is too low.
        for set in SETS {
            let longest = list(&stored(set, 5000)).iter().map(|key| key.len()).max();
            assert!(longest <= Some(source(set, 5000).longest()), "{set:?}: {longest:?}");
        }
    }

    #[test]
    fn keys_are_as_long_as_asked_for_and_keep_their_order() {
        // Catches padding that puts decimals out of order, and random keys that are random at their beginning only.
        for len in [SHORTEST, 20, 64] {
            let [random, decimals] =
                [KeySet::Random, KeySet::Sequential].map(|set| Source { set, len, entries: 1000 }.stored(0..1000));
            assert!(list(&random).iter().chain(&list(&decimals)).all(|key| key.len() == len));
            assert!(list(&decimals).is_sorted());
            let ends: HashSet<_> = list(&random).iter().map(|key| key[len - 4..].to_vec()).collect();
            assert!(ends.len() > 990, "{} of 1000 (seed {SEED:#x})", ends.len());
        }
    }

    #[test]
    fn keys_written_later_go_on_where_the_stored_ones_ended() {
        // Catches keys that are written twice, and sequences that do not go on.
        for set in SETS {
            let source = source(set, 10);
            let mut keys = source.stored(0..10);
            keys.append(&source.stored(10..15));
            assert_eq!(list(&keys), list(&source.stored(0..15)), "{set:?}");
        }
    }

    #[test]
    fn picked_keys_are_in_the_order_asked_for() {
        // Catches lookups whose keys and expected values drift apart.
        let keys = stored(KeySet::Paths, 10);
        assert_eq!(list(&keys.pick(&[7, 0, 3])), [keys.get(7), keys.get(0), keys.get(3)]);
    }
}
