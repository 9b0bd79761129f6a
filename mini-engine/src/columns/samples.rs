//! [`KeySamples`]: where in a block a search begins.
//!
//! If the block cache is larger than the processor's cache, each key that a search compares is a cache miss, and each waits for the one before. So the
//! cache keeps 16 bits of up to 32 keys of a block, in one cache line beside the pointer to the block. A search counts those that are less than its
//! own, without a branch, and so knows the few entries among which its key is, and can load their keys and values at once. A wrong answer, as for keys
//! that differ only later, costs steps and nothing else. Prefixes that are stored apart from their keys are Graefe and Larson's *poor man's normalized
//! keys* ("B-tree indexes and CPU caches", 2001).

use super::Columns;
use crate::codec::head;

/// The number of samples.
const SAMPLES: usize = 32;

/// Samples of the keys of a block that has at most one bundle; none of any other block.
#[derive(Debug, Default)]
pub(crate) struct KeySamples {
    /// The first eight bytes of the first key behind the prefix, and the shift of the difference from it that leaves 16 bits.
    first: u64,
    shift: u32,
    /// The number of entries from one sample to the next; 0 if there are no samples.
    every: usize,
    samples: [u16; SAMPLES],
}

impl KeySamples {
    pub(crate) fn of(columns: &Columns, contents: &[u8]) -> Self {
        let last = columns.len() - 1;
        let head = |at: usize| head(contents.get(columns.suffix(contents, at)).unwrap_or_default());
        let (first, every) = (head(0), columns.len().div_ceil(SAMPLES));
        if columns.bundle(last) > 0 || head(last) <= first {
            return Self::default();
        }
        let shift = 48u32.saturating_sub((head(last) - first).leading_zeros());
        let mut samples = Self { first, shift, every, samples: [u16::MAX; SAMPLES] };
        for (nth, at) in (every - 1..=last).step_by(every).enumerate() {
            samples.samples[nth] = samples.sample(head(at));
        }
        samples
    }

    #[inline(always)]
    fn sample(&self, head: u64) -> u16 {
        u16::try_from(head.saturating_sub(self.first) >> self.shift).unwrap_or(u16::MAX)
    }

    /// The entries among which `key` probably is; none without samples.
    #[inline(always)]
    pub(crate) fn near(&self, columns: &Columns, contents: &[u8], key: &[u8]) -> Option<(usize, usize)> {
        if self.every == 0 {
            return None;
        }
        let own = self.sample(head(key.get(columns.prefix(contents, 0).len()..).unwrap_or_default()));
        let before = self.samples.iter().fold(0u16, |count, sample| count + u16::from(*sample < own));
        let first = (usize::from(before) * self.every).min(columns.len() - 1);
        Some((first, (first + self.every).min(columns.len() - 1)))
    }
}
