//! What a round gives to its table, all of it made before the clock starts; and what the table has to give back.

use std::ops::Range;

use rand::RngExt;
use rand::seq::SliceRandom;
use rand_distr::{Distribution, Zipf};

use super::digest::{Digest, of_count, of_entry, of_value};
use crate::keys::{self, Keys};
use crate::random::rng;
use crate::spec::{Access, Shape, Workload};
use crate::tables::Record;

/// Values are windows into so many random bytes: few enough to stay in a cache, so that tables only pay for their own misses.
const POOL: usize = 1 << 20;
/// The windows of neighbouring records begin so far apart.
const STRIDE: usize = 8;
/// Keys to a seek: each of them reads a hundred entries.
const KEYS_PER_SEEK: usize = 10;
/// The skew of zipfian access: that of YCSB.
const THETA: f64 = 0.99;

/// Streams of random numbers, apart from those of the keys.
const POOL_STREAM: u64 = 1 << 63;
const ORDER_STREAM: u64 = POOL_STREAM + 1;
const ZIPF_STREAM: u64 = POOL_STREAM + 2;
const DELETE_STREAM: u64 = POOL_STREAM + 3;
const MIX_STREAM: u64 = POOL_STREAM + 100;

/// The records of a round: those that fill the table, then those that are written later.
#[derive(Debug)]
pub(super) struct Input {
    shape: Shape,
    keys: Keys,
    pool: Vec<u8>,
}

/// The operations of a workload.
#[derive(Debug, Default)]
pub(super) struct Operations {
    pub(super) count: usize,
    /// The key of each, in order. Scans have none.
    pub(super) keys: Keys,
    /// The record of each key, if it has one.
    pub(super) records: Vec<usize>,
    /// What reads find, and how many writes and deletes the table takes.
    pub(super) expected: Digest,
}

/// The entries that a seek of this workload reads.
pub(super) fn seek_reads(workload: Workload) -> usize {
    if workload == Workload::SeekOne { 1 } else { 100 }
}

impl Input {
    pub(super) fn new(shape: &Shape) -> Self {
        Self::with_later(shape, 0)
    }

    /// With so many records that are written later.
    pub(super) fn with_later(shape: &Shape, later: usize) -> Self {
        let mut pool = vec![0; POOL + shape.value_len];
        rng(POOL_STREAM).fill(&mut pool[..]);
        Self { shape: *shape, keys: keys::stored(shape, 0..shape.entries + later), pool }
    }

    pub(super) fn shape(&self) -> &Shape {
        &self.shape
    }

    pub(super) fn key(&self, index: usize) -> &[u8] {
        self.keys.get(index)
    }

    /// A copy of the keys at `indices`, in that order.
    pub(super) fn pick(&self, indices: &[usize]) -> Keys {
        self.keys.pick(indices)
    }

    /// The records that fill the table.
    pub(super) fn stored(&self) -> Range<usize> {
        0..self.shape.entries
    }

    /// All records, including those that were written later.
    pub(super) fn all(&self) -> Range<usize> {
        0..self.keys.len()
    }

    /// The records at `indices` of the order of writes.
    pub(super) fn records(&self, indices: impl IntoIterator<Item = usize>) -> impl Iterator<Item = Record<'_>> {
        indices.into_iter().map(|index| self.record(index, self.keys.get(index)))
    }

    /// Record `index`, whose key the caller has at hand.
    pub(super) fn record<'a>(&'a self, index: usize, key: &'a [u8]) -> Record<'a> {
        Record { number: index as u64, key, value: self.value(index) }
    }

    /// The value of record `index`: any number has one.
    pub(super) fn value(&self, index: usize) -> &[u8] {
        let start = index * STRIDE % POOL;
        &self.pool[start..start + self.shape.value_len]
    }

    /// The records at `range` in the order of their keys.
    pub(super) fn sorted(&self, range: Range<usize>) -> Vec<usize> {
        let mut order: Vec<usize> = range.collect();
        order.sort_unstable_by_key(|&index| self.keys.get(index));
        order
    }

    /// What a scan of the filled table yields.
    pub(super) fn entries_digest(&self) -> Digest {
        self.records(self.stored()).map(|record| of_entry(record.key, record.value)).sum()
    }

    /// The bytes of all keys and values that fill the table.
    pub(super) fn payload(&self) -> u64 {
        self.records(self.stored()).map(|record| (record.key.len() + record.value.len()) as u64).sum()
    }

    /// The stored records in random order, each once.
    pub(super) fn shuffled(&self, stream: u64) -> Vec<usize> {
        let mut order: Vec<usize> = self.stored().collect();
        order.shuffle(&mut rng(stream));
        order
    }

    /// The stored records in random order: each once, or a few of them most of the time.
    pub(super) fn accessed(&self) -> Vec<usize> {
        let shuffled = self.shuffled(ORDER_STREAM);
        if self.shape.access == Access::Uniform {
            return shuffled;
        }
        self.skewed(shuffled.len(), ZIPF_STREAM).map(|rank| shuffled[rank]).collect()
    }

    /// Ranks of stored records, low ones more often than others.
    pub(super) fn skewed(&self, count: usize, stream: u64) -> impl Iterator<Item = usize> + use<> {
        let zipf = Zipf::new(self.shape.entries as f64, THETA).expect("there is at least one entry");
        // They begin at 1.
        zipf.sample_iter(rng(stream)).map(|rank| rank as usize - 1).take(count)
    }

    /// The operations of a workload, in all threads together. Mixed workloads append the records that they write.
    pub(super) fn operations(&mut self, workload: Workload, threads: usize) -> Operations {
        let count = self.shape.entries;
        match workload {
            Workload::Sort => Operations { count, ..Operations::default() },
            // Each thread reads everything.
            Workload::Scan | Workload::Reverse => {
                let expected = self.entries_digest() * threads as Digest;
                Operations { count: count * threads, expected, ..Operations::default() }
            }
            Workload::Miss => Operations { count, keys: keys::absent(&self.shape), ..Operations::default() },
            Workload::Seek => self.seeks((count / KEYS_PER_SEEK).max(1), seek_reads(workload)),
            Workload::SeekOne => self.seeks(count, seek_reads(workload)),
            Workload::Mixed => self.mix(50),
            Workload::Mixed95 => self.mix(95),
            Workload::Delete => self.by_key(self.shuffled(DELETE_STREAM), |_| of_count(1)),
            _ => self.mix(100),
        }
    }

    fn by_key(&self, records: Vec<usize>, expected: impl Fn(usize) -> Digest) -> Operations {
        let expected = records.iter().map(|&record| expected(record)).sum();
        Operations { count: records.len(), keys: self.keys.pick(&records), records, expected }
    }

    /// Goes to `seeks` stored keys and reads `most` entries from each of them.
    fn seeks(&self, seeks: usize, most: usize) -> Operations {
        let sorted = self.sorted(self.stored());
        let (mut position, mut sums) = (vec![0; sorted.len()], vec![0]);
        for (at, record) in self.records(sorted).enumerate() {
            position[record.number as usize] = at;
            sums.push(sums[at] + of_entry(record.key, record.value));
        }
        let mut records = self.accessed();
        records.truncate(seeks);
        self.by_key(records, |index| sums[(position[index] + most).min(sums.len() - 1)] - sums[position[index]])
    }

    /// Reads stored keys with `reads` in a hundred operations, and writes new ones with the others.
    fn mix(&mut self, reads: u32) -> Operations {
        let first_new = self.keys.len();
        let mut records = self.accessed();
        let mut random = rng(MIX_STREAM + u64::from(reads));
        let mut new = first_new..;
        for record in &mut records {
            if random.random_range(0..100) >= reads {
                *record = new.next().unwrap_or_default();
            }
        }
        self.keys.append(&keys::stored(&self.shape, first_new..new.start));
        self.by_key(records, |record| if record < first_new { of_value(self.value(record)) } else { of_count(1) })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use super::super::digest::count;
    use super::*;
    use crate::random::SEED;
    use crate::spec::KeySet;

    fn zipfian(entries: usize) -> Input {
        Input::new(&Shape { access: Access::Zipfian, ..Shape::new(KeySet::Random, entries) })
    }

    #[test]
    fn lookups_are_all_keys_in_another_order() {
        // Catches searches that follow the order of inserts, where caches answer, and an expectation that is itself incomplete.
        let mut input = Input::new(&Shape::new(KeySet::Paths, 3000));
        let mut gets = input.operations(Workload::Get, 1);
        assert!(gets.keys.iter().eq(gets.records.iter().map(|&record| input.keys.get(record))));
        assert!(!gets.records.is_sorted());
        gets.records.sort_unstable();
        assert!(gets.records.into_iter().eq(0..3000));
        assert_eq!((count(gets.expected), input.operations(Workload::Seek, 1).keys.len()), (3000, 300));
    }

    #[test]
    fn zipfian_lookups_repeat_a_few_keys_that_lie_apart() {
        // Catches hot keys that are neighbours, which one cache line would serve, a skew that is not there, ranks that are off
        // by one, and tables of a few keys that have no rank to draw.
        let lookups = zipfian(10_000).operations(Workload::Get, 1);
        let mut times = HashMap::new();
        lookups.keys.iter().for_each(|key| *times.entry(key).or_insert(0) += 1);
        let mut hottest: Vec<_> = times.into_iter().map(|(key, times)| (times, key)).collect();
        hottest.sort_unstable_by(|a, b| b.cmp(a));
        assert!(hottest[0].0 > 700 && hottest.len() < 6000, "{} of {}", hottest[0].0, hottest.len());
        assert!([1, 2, 3].into_iter().all(|few| zipfian(few).operations(Workload::Get, 1).keys.len() == few));
        let first_bytes: HashSet<_> = hottest[..16].iter().map(|(_, key)| key[0]).collect();
        assert!(first_bytes.len() > 10, "{first_bytes:?} (seed {SEED:#x})");
    }

    #[test]
    fn mixes_have_their_share_of_writes_each_of_a_new_key() {
        // Catches writes that overwrite, which some tables refuse, reads of what is not there yet, and a wrong share.
        for (workload, share) in [(Workload::Mixed, 0.5), (Workload::Mixed95, 0.05)] {
            let mut input = zipfian(10_000);
            let mix = input.operations(workload, 1);
            let writes: Vec<_> = mix.records.iter().copied().filter(|&record| record >= 10_000).collect();
            assert_eq!(writes, (10_000..10_000 + writes.len()).collect::<Vec<_>>());
            assert!((writes.len() as f64 / 10_000.0 - share).abs() < 0.01, "{workload:?}: {}", writes.len());
            assert_eq!((mix.records.len(), count(mix.expected)), (10_000, 10_000));
            assert!((0..10_000).all(|operation| mix.keys.get(operation) == input.keys.get(mix.records[operation])));
            input.operations(workload, 1);
            assert!(input.keys.iter().collect::<HashSet<_>>().len() == 10_000 + 2 * writes.len());
        }
    }
}
