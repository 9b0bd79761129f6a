//! What a round gives to its table, all of it made before the clock starts; and what the table has to give back.

use std::ops::Range;

use rand::RngExt;
use rand::seq::SliceRandom;
use rand_distr::{Distribution, Zipf};

use super::digest::{Digest, of_count, of_entry, of_value};
use crate::keys::{Keys, Source};
use crate::random::rng;
use crate::spec::{Access, Shape};
use crate::tables::Record;

/// Values are windows into so many random bytes: few enough to stay in a cache, so that tables only pay for their own misses.
const POOL: usize = 1 << 20;
/// The windows of neighbouring records begin so far apart.
const STRIDE: usize = 8;
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
    source: Source,
    access: Access,
    value_len: usize,
    keys: Keys,
    pool: Vec<u8>,
}

/// Keys to ask for, in order, and what the table finds.
#[derive(Debug)]
pub(super) struct Lookups {
    pub(super) keys: Keys,
    pub(super) expected: Digest,
}

/// Reads and writes by turns.
#[derive(Debug)]
pub(super) struct Mix {
    /// The key of each operation.
    pub(super) keys: Keys,
    /// Its record. Those from `first_write` on are written, the others are read.
    pub(super) records: Vec<usize>,
    pub(super) first_write: usize,
    /// What the reads find, and how many writes the table takes.
    pub(super) expected: Digest,
}

impl Input {
    pub(super) fn new(shape: &Shape) -> Self {
        let mut pool = vec![0; POOL + shape.value_len];
        rng(POOL_STREAM).fill(&mut pool[..]);
        let source = shape.source();
        let (access, value_len) = (shape.access, shape.value_len);
        Self { source, access, value_len, keys: source.stored(0..source.entries), pool }
    }

    /// The records that fill the table.
    pub(super) fn stored(&self) -> Range<usize> {
        0..self.source.entries
    }

    /// All records, including those that were written later.
    pub(super) fn all(&self) -> Range<usize> {
        0..self.keys.len()
    }

    /// The records at `range` of the order of writes.
    pub(super) fn records(&self, range: Range<usize>) -> impl Iterator<Item = Record<'_>> {
        range.map(|index| self.record(index, self.keys.get(index)))
    }

    /// Record `index`, whose key the caller has at hand.
    pub(super) fn record<'a>(&'a self, index: usize, key: &'a [u8]) -> Record<'a> {
        Record { number: index as u64, key, value: self.value(index) }
    }

    fn value(&self, index: usize) -> &[u8] {
        let start = index * STRIDE % POOL;
        &self.pool[start..start + self.value_len]
    }

    /// The stored records in random order, each once.
    fn shuffled(&self, stream: u64) -> Vec<usize> {
        let mut order: Vec<usize> = self.stored().collect();
        order.shuffle(&mut rng(stream));
        order
    }

    /// The stored records in random order: each once, or a few of them most of the time.
    fn accessed(&self) -> Vec<usize> {
        let shuffled = self.shuffled(ORDER_STREAM);
        match self.access {
            Access::Uniform => shuffled,
            Access::Zipfian => {
                let zipf = Zipf::new(shuffled.len() as f64, THETA).expect("there is at least one entry");
                // Ranks begin at 1.
                let ranks = zipf.sample_iter(rng(ZIPF_STREAM)).map(|rank| rank as usize - 1);
                ranks.take(shuffled.len()).map(|rank| shuffled[rank]).collect()
            }
        }
    }

    /// As many lookups of stored keys as there are stored keys.
    pub(super) fn lookups(&self) -> Lookups {
        let order = self.accessed();
        let expected = order.iter().map(|&index| of_value(self.value(index))).sum();
        Lookups { keys: self.keys.pick(&order), expected }
    }

    /// As many lookups of keys that are not stored.
    pub(super) fn misses(&self) -> Lookups {
        Lookups { keys: self.source.absent(), expected: 0 }
    }

    /// `seeks` stored keys to go to, and what reading `most` entries from each of them yields.
    pub(super) fn seeks(&self, seeks: usize, most: usize) -> Lookups {
        let mut order = self.accessed();
        order.truncate(seeks);
        let sorted = self.sorted(self.stored());
        let mut position = vec![0; sorted.len()];
        sorted.iter().enumerate().for_each(|(at, &index)| position[index] = at);
        let mut sums = vec![0];
        for index in sorted {
            let before = sums.last().copied().unwrap_or_default();
            sums.push(before + of_entry(self.keys.get(index), self.value(index)));
        }
        let read = |&index: &usize| sums[(position[index] + most).min(sums.len() - 1)] - sums[position[index]];
        Lookups { expected: order.iter().map(read).sum(), keys: self.keys.pick(&order) }
    }

    /// As many operations as there are stored keys, `reads` in a hundred of them reads. Appends the records of the others.
    pub(super) fn mix(&mut self, reads: u32) -> Mix {
        let first_write = self.keys.len();
        let mut records = self.accessed();
        let mut random = rng(MIX_STREAM + u64::from(reads));
        let mut writes = 0;
        for record in &mut records {
            if random.random_range(0..100) >= reads {
                *record = first_write + writes;
                writes += 1;
            }
        }
        self.keys.append(&self.source.stored(first_write..first_write + writes));
        let read = records.iter().filter(|&&record| record < first_write);
        let found: Digest = read.map(|&record| of_value(self.value(record))).sum();
        let expected = found + of_count(writes);
        Mix { keys: self.keys.pick(&records), records, first_write, expected }
    }

    /// The stored keys in random order, each once.
    pub(super) fn deletes(&self) -> Keys {
        self.keys.pick(&self.shuffled(DELETE_STREAM))
    }

    /// The records at `range` in the order of their keys.
    pub(super) fn sorted(&self, range: Range<usize>) -> Vec<usize> {
        let mut order: Vec<usize> = range.collect();
        order.sort_unstable_by_key(|&index| self.keys.get(index));
        order
    }

    /// The key and the value of a record.
    pub(super) fn entry(&self, index: usize) -> (&[u8], &[u8]) {
        (self.keys.get(index), self.value(index))
    }

    /// What a scan of the filled table yields.
    pub(super) fn entries_digest(&self) -> Digest {
        self.records(self.stored()).map(|record| of_entry(record.key, record.value)).sum()
    }

    /// The bytes of all keys and values that fill the table.
    pub(super) fn payload(&self) -> u64 {
        self.records(self.stored()).map(|record| (record.key.len() + record.value.len()) as u64).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use super::super::digest::count;
    use super::*;
    use crate::keys::KeySet;
    use crate::random::SEED;

    fn input(keys: KeySet, entries: usize) -> Input {
        Input::new(&Shape::new(keys, entries))
    }

    fn zipfian(entries: usize) -> Input {
        Input::new(&Shape { access: Access::Zipfian, ..Shape::new(KeySet::Random, entries) })
    }

    #[test]
    fn sorted_records_and_uniform_lookups_are_all_records() {
        // Catches an expectation that is itself incomplete or unsorted, so that a wrong scan would pass, and searches that follow
        // the order of inserts, where caches answer.
        let input = input(KeySet::Paths, 3000);
        let sorted: Vec<_> = input.sorted(0..3000).into_iter().map(|index| input.entry(index)).collect();
        let mut records: Vec<_> = input.records(0..3000).map(|record| (record.key, record.value)).collect();
        let lookups = input.lookups();
        assert!(lookups.keys.iter().zip(&records).any(|(key, record)| key != record.0));
        records.sort_unstable();
        let mut keys: Vec<_> = lookups.keys.iter().collect();
        keys.sort_unstable();
        assert_eq!((&sorted, keys), (&records, records.iter().map(|record| record.0).collect()));
        assert_eq!(count(lookups.expected), 3000);
    }

    #[test]
    fn zipfian_lookups_repeat_a_few_keys_that_lie_apart() {
        // Catches hot keys that are neighbours, which one cache line would serve, a skew that is not there, ranks that are off
        // by one, and tables of a few keys that have no rank to draw.
        let lookups = zipfian(10_000).lookups();
        let mut times = HashMap::new();
        lookups.keys.iter().for_each(|key| *times.entry(key).or_insert(0) += 1);
        let mut hottest: Vec<_> = times.into_iter().map(|(key, times)| (times, key)).collect();
        hottest.sort_unstable_by(|a, b| b.cmp(a));
        assert!(hottest[0].0 > 700 && hottest.len() < 6000, "{} of {}", hottest[0].0, hottest.len());
        assert!([1, 2, 3].into_iter().all(|few| count(zipfian(few).lookups().expected) == few as u128));
        let first_bytes: HashSet<_> = hottest[..16].iter().map(|(_, key)| key[0]).collect();
        assert!(first_bytes.len() > 10, "{first_bytes:?} (seed {SEED:#x})");
    }

    #[test]
    fn seeks_expect_the_entries_from_their_key_on() {
        // Catches sums that are off by one entry, and seeks near the end that expect more than there is.
        let input = input(KeySet::Paths, 50);
        let (seeks, sorted) = (input.seeks(50, 7), input.sorted(0..50));
        let entries = || sorted.iter().map(|&index| input.entry(index));
        let read = |from: &[u8]| -> Digest {
            entries().filter(|entry| entry.0 >= from).take(7).map(|(key, value)| of_entry(key, value)).sum()
        };
        assert_eq!(seeks.expected, seeks.keys.iter().map(read).sum());
        assert_eq!(count(seeks.expected), 50 * 7 - (1..7).sum::<u128>());
        assert_eq!(input.seeks(3, 7).keys.len(), 3);
    }

    #[test]
    fn mixes_have_their_share_of_writes_each_of_a_new_key() {
        // Catches writes that overwrite, which some tables refuse, reads of what is not there yet, and a wrong share.
        for (reads, share) in [(50, 0.5), (95, 0.05)] {
            let mut input = zipfian(10_000);
            let mix = input.mix(reads);
            let writes: Vec<_> = mix.records.iter().copied().filter(|&record| record >= mix.first_write).collect();
            assert_eq!(writes, (10_000..10_000 + writes.len()).collect::<Vec<_>>());
            assert!((writes.len() as f64 / 10_000.0 - share).abs() < 0.01, "{reads}: {}", writes.len());
            assert_eq!((mix.records.len(), count(mix.expected)), (10_000, 10_000));
            assert!((0..10_000).all(|operation| mix.keys.get(operation) == input.entry(mix.records[operation]).0));
            assert_eq!(input.mix(reads).first_write, 10_000 + writes.len());
        }
    }

    #[test]
    fn a_digest_tells_a_lost_a_doubled_and_a_wrong_value() {
        // Catches a sum that a broken table could reach.
        let input = input(KeySet::Random, 100);
        let digest = |indices: &[usize]| -> Digest { indices.iter().map(|&i| of_value(input.value(i))).sum() };
        let all: Vec<usize> = (0..100).collect();
        assert_eq!(digest(&all), input.lookups().expected);
        for wrong in [&all[1..], &[&all[..], &[3]].concat(), &[&all[1..], &[8]].concat()] {
            assert_ne!(digest(wrong), input.lookups().expected);
        }
    }
}
