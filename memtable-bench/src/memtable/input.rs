//! What a round gives to its table, all of it made before the clock starts; and what the table has to give back.

use std::ops::Range;

use super::subjects::Record;
use crate::keys::{KeySet, Keys};
use crate::random::{SEED, number, shuffle};

/// The length of every value in bytes.
pub(crate) const VALUE_LEN: usize = 100;
/// Values are windows into so many random bytes: few enough to stay in a cache, so that tables pay for their own misses only.
const POOL: usize = 1 << 20;
/// Windows of neighbouring records begin so far apart.
const STRIDE: usize = 8;

/// The records of a round.
#[derive(Debug)]
pub(crate) struct Input {
    keys: Keys,
    pool: Vec<u8>,
}

impl Input {
    pub(crate) fn new(keys: KeySet, entries: usize) -> Self {
        let words = (POOL + VALUE_LEN).div_ceil(8) as u64;
        let pool = (0..words).flat_map(|index| number(!SEED, index).to_le_bytes()).collect();
        Self { keys: keys.stored(entries), pool }
    }

    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    /// The records at `range` of the order of inserts.
    pub(crate) fn records(&self, range: Range<usize>) -> impl Iterator<Item = Record<'_>> {
        range.map(|index| Record { number: index as u64, key: self.keys.get(index), value: self.value(index) })
    }

    fn value(&self, index: usize) -> &[u8] {
        let start = index * STRIDE % POOL;
        &self.pool[start..start + VALUE_LEN]
    }

    /// The stored keys in another, random order.
    pub(crate) fn lookups(&self) -> Keys {
        let mut order: Vec<usize> = (0..self.len()).collect();
        shuffle(SEED, &mut order);
        self.keys.pick(&order)
    }

    /// The records in the order of their keys.
    pub(crate) fn sorted(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let mut order: Vec<usize> = (0..self.len()).collect();
        order.sort_unstable_by_key(|&index| self.keys.get(index));
        order.into_iter().map(|index| (self.keys.get(index), self.value(index)))
    }

    /// What looking up every key finds.
    pub(crate) fn values_digest(&self) -> Digest {
        self.records(0..self.len()).map(|record| Digest::of_value(record.value)).sum()
    }

    /// What a scan yields.
    pub(crate) fn entries_digest(&self) -> Digest {
        self.records(0..self.len()).map(|record| Digest::of_entry(record.key, record.value)).sum()
    }
}

/// A count and a sum over what a table gave back, in any order: cheap enough for the clock, and it makes the table show the
/// bytes, as a reader would want them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Digest {
    pub(crate) count: u64,
    sum: u64,
}

impl Digest {
    #[inline]
    pub(crate) fn of_value(value: &[u8]) -> Self {
        Self { count: 1, sum: value.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes)) }
    }

    #[inline]
    pub(crate) fn of_entry(key: &[u8], value: &[u8]) -> Self {
        let last = key.last().map_or(0, |byte| u64::from(*byte));
        Self { count: 1, sum: Self::of_value(value).sum.wrapping_add(last) }
    }
}

impl std::ops::AddAssign for Digest {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        self.count += other.count;
        self.sum = self.sum.wrapping_add(other.sum);
    }
}

impl std::iter::Sum for Digest {
    fn sum<I: Iterator<Item = Self>>(digests: I) -> Self {
        digests.fold(Self::default(), |mut sum, digest| {
            sum += digest;
            sum
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorted_records_are_all_records_in_order() {
        // Catches an expectation that is itself incomplete or unsorted: a wrong scan would pass.
        let input = Input::new(KeySet::Paths, 3000);
        let sorted: Vec<_> = input.sorted().collect();
        assert!(sorted.is_sorted() && sorted.len() == 3000);
        let mut records: Vec<_> = input.records(0..3000).map(|record| (record.key, record.value)).collect();
        records.sort_unstable();
        assert_eq!(sorted, records);
    }

    #[test]
    fn lookups_are_every_key_in_another_order() {
        // Catches searches that follow the order of inserts, where caches answer.
        let input = Input::new(KeySet::Sequential, 1000);
        let lookups = input.lookups();
        let mut keys: Vec<_> = (0..lookups.len()).map(|index| lookups.get(index)).collect();
        assert!(!keys.is_sorted());
        keys.sort_unstable();
        assert_eq!(keys, input.records(0..1000).map(|record| record.key).collect::<Vec<_>>());
    }

    #[test]
    fn a_digest_tells_a_lost_a_doubled_and_a_wrong_value() {
        // Catches a sum that a broken table could reach.
        let input = Input::new(KeySet::Random, 100);
        let digest = |indices: &[usize]| -> Digest { indices.iter().map(|&i| Digest::of_value(input.value(i))).sum() };
        let all: Vec<usize> = (0..100).collect();
        let mut swapped = all.clone();
        swapped[7] = 8;
        assert_eq!(digest(&all), input.values_digest());
        for wrong in [&all[1..], &[&all[..], &[3]].concat(), &swapped] {
            assert_ne!(digest(wrong), input.values_digest());
        }
    }
}
