//! The keys that subjects store: each set maps an index to a key, and no key comes twice.
//!
//! Keys at even indices are stored, keys at odd indices are absent. So a search for an absent key can end anywhere among the stored keys, and the key
//! differs from its neighbours as late as a stored one. Keys that are written after the table is filled continue the stored ones.

mod paths;

use std::ops::Range;

use clap::ValueEnum;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

/// The seed of every input: all randomness is from it, so that every run has the same input.
pub const SEED: u64 = 0x5eed_fa57_5c1f_0001;

/// The least length of keys with which all of them can be distinct.
pub const SHORTEST_KEY: usize = 16;

/// The longest path of trees up to 200 million files, in bytes.
const LONGEST_PATH: usize = 128;

/// The first of descending keys: it has as many digits as the shortest key.
const LAST: u64 = 9_999_999_999_999_999;

/// Generator number `stream`. Different streams are independent of each other.
pub fn rng(stream: u64) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(SEED ^ stream)
}

/// The form of the keys, and the order in which they are generated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KeySet {
    /// Random bytes
    Random,
    /// Decimal digits with leading zeros, ascending
    Sequential,
    /// The same, descending
    Descending,
    /// File paths of 40 to 110 bytes with long shared prefixes, in random order
    Paths,
    /// Web addresses of 50 to 110 bytes: a few hosts, paths and queries, in random order
    Urls,
}

impl KeySet {
    /// Whether all keys of the set have one length, which arguments can choose.
    pub fn has_one_length(self) -> bool {
        !matches!(self, Self::Paths | Self::Urls)
    }

    /// The length of the longest key: `len` if the length can be chosen.
    pub fn longest(self, len: usize) -> usize {
        if self.has_one_length() { len } else { LONGEST_PATH }
    }
}

/// The stored keys at `range`, in the order of their inserts, as for a table of `entries`. They have `len` bytes if the length can be chosen.
pub fn stored(set: KeySet, len: usize, entries: usize, range: Range<usize>) -> Keys {
    made(set, len, entries, range, 0)
}

/// `entries` keys, none of which is stored.
pub fn absent(set: KeySet, len: usize, entries: usize) -> Keys {
    made(set, len, entries, 0..entries, 1)
}

fn made(set: KeySet, len: usize, entries: usize, range: Range<usize>, odd: u64) -> Keys {
    let mut keys = Keys::with_capacity(range.len(), range.len() * set.longest(len));
    let tree = paths::Tree::for_files(entries as u64);
    for index in range.map(|index| 2 * index as u64 + odd) {
        keys.push(|out| match set {
            KeySet::Random => {
                let start = out.len();
                out.resize(start + len, 0);
                rng(index).fill_bytes(&mut out[start..]);
            }
            KeySet::Sequential => out.extend_from_slice(format!("{index:0len$}").as_bytes()),
            KeySet::Descending => out.extend_from_slice(format!("{:0len$}", LAST - index).as_bytes()),
            KeySet::Paths => tree.push_path(index, out),
            KeySet::Urls => tree.push_url(index, out),
        });
    }
    keys
}

/// Keys stored one behind the other, so that reading the next one costs no cache miss while the clock runs.
#[derive(Debug, Default)]
pub struct Keys {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Keys {
    fn with_capacity(keys: usize, bytes: usize) -> Self {
        Self { bytes: Vec::with_capacity(bytes), ends: Vec::with_capacity(keys) }
    }

    fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.ends.push(self.bytes.len());
    }

    /// The number of keys.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The key at `index`.
    pub fn get(&self, index: usize) -> &[u8] {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[index]]
    }

    /// An iterator over all keys.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|index| self.get(index))
    }

    /// A copy of the keys at `indices`, in that order.
    pub fn pick(&self, indices: &[usize]) -> Self {
        let mut picked = Self::with_capacity(indices.len(), self.bytes.len());
        indices.iter().for_each(|&index| picked.push(|out| out.extend_from_slice(self.get(index))));
        picked
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use itertools::iproduct;

    use super::*;

    #[test]
    fn keys_are_distinct_and_the_same_each_time_and_have_the_length_and_order_of_their_set() {
        // Catches a generator that repeats keys (subjects would refuse the duplicate, and misses would hit), and one with hidden
        // state (rounds would not be comparable). Also catches keys longer than the estimate of memory assumes, padding that puts
        // decimals out of order, random inserts that all go to the end, and absent keys that all lie beyond one end.
        for (&set, len) in iproduct!(KeySet::value_variants(), [SHORTEST_KEY, 20, 64]) {
            let of = |range| super::stored(set, len, 20_000, range);
            let (stored, absent) = (of(0..30_000), super::absent(set, len, 20_000));
            let distinct: HashSet<_> = stored.iter().chain(absent.iter()).collect();
            assert_eq!(distinct.len(), 50_000, "{set:?} (seed {SEED:#x})");
            let is_long =
                |key: &[u8]| if set.has_one_length() { key.len() == len } else { key.len() <= set.longest(len) };
            assert!(distinct.into_iter().all(is_long), "{set:?}");
            assert_eq!(stored.iter().is_sorted(), set == KeySet::Sequential, "{set:?}");
            assert_eq!(stored.iter().is_sorted_by(|a, b| a > b), set == KeySet::Descending, "{set:?}");
            let (first, last) = (stored.iter().min(), stored.iter().max());
            let inside = absent.iter().filter(|key| (first..last).contains(&Some(*key))).count();
            assert!(inside >= 19_990, "{set:?}: {inside} of 20000");
            // Catches keys that are random only at their beginning.
            let ends: HashSet<_> = stored.iter().map(|key| &key[key.len() - 4..]).collect();
            assert!(set != KeySet::Random || ends.len() > 29_900, "{} of 30000 (seed {SEED:#x})", ends.len());
            // Catches sequences that end where later keys begin, and lookups whose keys and values do not match.
            let (first, rest) = (of(0..20_000), of(20_000..30_000));
            assert!(first.iter().chain(rest.iter()).eq(stored.iter()), "{set:?}");
            assert!(stored.pick(&[7, 0, 3]).iter().eq([7, 0, 3].map(|index| stored.get(index))));
        }
    }
}
