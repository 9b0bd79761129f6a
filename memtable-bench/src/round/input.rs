//! The records of a round, all of them made before the clock starts.

use std::ops::Range;

use bench_keys::{Keys, rng};
use rand::RngExt;
use rand::seq::SliceRandom;
use rand_distr::{Distribution, Zipf};

use crate::spec::{Access, Shape};
use crate::subjects::store::Record;

/// The size of the pool of random bytes into which values are windows. It stays in a cache, so that tables only pay for their own misses.
const POOL: usize = 1 << 20;
/// The distance between the windows of neighbouring records.
const STRIDE: usize = 8;
/// The skew of zipfian access, as in YCSB.
const THETA: f64 = 0.99;

/// Streams of random numbers, apart from those of the keys.
const POOL_STREAM: u64 = 1 << 63;
const ORDER_STREAM: u64 = POOL_STREAM + 1;
const ZIPF_STREAM: u64 = POOL_STREAM + 2;

/// The records of a round: those that fill the subject, then those that are written later.
#[derive(Debug)]
pub(super) struct Input {
    pub(super) shape: Shape,
    pub(super) keys: Keys,
    /// The index of each key, in the order of the keys.
    pub(super) sorted: Vec<usize>,
    /// The position of each key in that order.
    place: Vec<usize>,
    pool: Vec<u8>,
}

impl Input {
    /// The input with `later` records that are written later.
    pub(super) fn new(shape: &Shape, later: usize) -> Self {
        let mut pool = vec![0; POOL + shape.value_len];
        rng(POOL_STREAM).fill(&mut pool[..]);
        let keys = bench_keys::stored(shape.keys, shape.key_len, shape.entries, 0..shape.entries + later);
        let mut sorted: Vec<_> = (0..keys.len()).collect();
        sorted.sort_unstable_by_key(|&index| keys.get(index));
        let mut place = vec![0; sorted.len()];
        sorted.iter().enumerate().for_each(|(at, &index)| place[index] = at);
        Self { shape: *shape, keys, sorted, place, pool }
    }

    /// The records that fill the subject.
    pub(super) fn stored(&self) -> Range<usize> {
        0..self.shape.entries
    }

    /// The indices of all keys from the key of `index` on, in key order.
    pub(super) fn sorted_from(&self, index: usize) -> &[usize] {
        &self.sorted[self.place[index]..]
    }

    /// Record `index`, whose key the caller passes.
    pub(super) fn record<'a>(&'a self, index: usize, key: &'a [u8]) -> Record<'a> {
        Record { number: index as u64, key, value: self.value(index) }
    }

    /// The value of record `index`, which may be any number.
    pub(super) fn value(&self, index: usize) -> &[u8] {
        let start = index * STRIDE % POOL;
        &self.pool[start..start + self.shape.value_len]
    }

    /// The bytes of all keys and values that fill the subject.
    pub(super) fn payload(&self) -> u64 {
        self.stored().map(|index| (self.keys.get(index).len() + self.shape.value_len) as u64).sum()
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

    /// Ranks of stored records; low ranks are more frequent than others.
    pub(super) fn skewed(&self, count: usize, stream: u64) -> impl Iterator<Item = usize> + use<> {
        let zipf = Zipf::new(self.shape.entries as f64, THETA).expect("there is at least one entry");
        // The distribution's ranks begin at 1.
        zipf.sample_iter(rng(stream)).map(|rank| rank as usize - 1).take(count)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use super::*;
    use crate::matrix::Matrix;

    #[test]
    fn zipfian_lookups_repeat_a_few_keys_that_lie_apart() {
        // Catches neighbouring hot keys (which would share a cache line), a missing skew, ranks that are off by one, and a
        // failure for tables of a few keys.
        let zipfian = |entries: usize| {
            let matrix = format!(r#"{{"access": ["zipfian"], "entries": [{entries}]}}"#);
            Input::new(&serde_json::from_str::<Matrix>(&matrix).expect("a matrix").shapes()[0], 0)
        };
        let input = zipfian(10_000);
        let mut times = HashMap::new();
        input.accessed().into_iter().for_each(|index| *times.entry(input.keys.get(index)).or_insert(0) += 1);
        let mut hottest: Vec<_> = times.into_iter().map(|(key, times)| (times, key)).collect();
        hottest.sort_unstable_by(|a, b| b.cmp(a));
        assert!(hottest[0].0 > 700 && hottest.len() < 6000, "{} of {}", hottest[0].0, hottest.len());
        assert!([1, 2, 3].into_iter().all(|few| zipfian(few).accessed().len() == few));
        let first_bytes: HashSet<_> = hottest[..16].iter().map(|(_, key)| key[0]).collect();
        assert!(first_bytes.len() > 10, "{first_bytes:?}");
    }
}
