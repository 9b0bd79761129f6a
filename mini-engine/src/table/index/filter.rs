//! The filter: a Bloom filter in lines of 64 bytes, so that a probe touches one cache line (Putze, Sanders and Singler,
//! "Cache-, Hash- and Space-Efficient Bloom Filters", 2007).
//!
//! The upper 32 bits of a key's hash select the line by multiplication, the lower 32 the bits within it: `k` probes, each the top 9 bits of the lower
//! half times a growing power of an odd constant, as in RocksDB's filter. There are no false negatives; `theory.rs` has the expected rate of false
//! positives.
//!
//! ```text
//! filter   64-byte lines, probes k u8
//! ```
//!
//! A [`Filter`] reads the bytes in place, in a cached block, so a probe allocates nothing. Blocks are not aligned to cache lines, so a line of the
//! filter may touch two neighbouring cache lines. The first three bits of a key are tested without a branch, the others only if those are set. They
//! are nearly always set for a stored key and seldom for an absent one, so the branch is predicted well. A batch tests the first three bits of many
//! keys before the other bits of any, so that the cache misses of these loads overlap.

const LINE_LEN: usize = 64;
const LINE_BITS: f64 = 512.0;
const MAX_PROBES: usize = 16;
/// The number of lines of the largest filter that fits a block: 3 billion keys at 10 bits; with more keys, false positives increase.
const MAX_LINES: u64 = (u32::MAX as usize / LINE_LEN - 1) as u64;
/// The bits per key, in hundredths, from which one more probe is better in lines of 512 bits: 2 probes from 2.1 bits, 3 from 3.6. Computed from the
/// expected rate, see `theory.rs`. These are fewer probes than in an unblocked filter, because crowded lines determine the rate of false positives.
const NEXT_PROBE_FROM: [u32; 14] = [210, 360, 510, 665, 830, 1000, 1185, 1380, 1595, 1830, 2090, 2375, 2695, 3050];
/// The number of bits of a key that are tested first: if half of all bits are set, one in eight absent keys passes them.
const FIRST_PROBES: usize = 3;
/// The number of keys of a batch whose first bits are tested before the other bits of any.
const WINDOW: usize = 32;

/// 2^32 divided by the golden ratio, to the powers 1 to 16: products of a hash with these are spread over the range. With powers instead of a growing
/// product, the multiplications need not wait for each other.
static MULTIPLIERS: [u32; MAX_PROBES] = {
    let mut powers = [0x9e37_79b9u32; MAX_PROBES];
    let mut at = 1;
    while at < MAX_PROBES {
        powers[at] = powers[at - 1].wrapping_mul(powers[0]);
        at += 1;
    }
    powers
};

type Line = [u8; LINE_LEN];

/// Whether the bits of a key that these multipliers select are set in the key's line. No branch depends on a single bit.
#[inline]
fn has(line: &Line, hash: u64, multipliers: &[u32]) -> bool {
    let bit = |&multiplier: &u32| {
        let bit = (hash as u32).wrapping_mul(multiplier) >> 23;
        line[(bit >> 3) as usize] >> (bit & 7)
    };
    multipliers.iter().map(bit).fold(1, |all, bit| all & bit) & 1 != 0
}

/// The number of lines of a filter for `keys` keys.
fn line_count(keys: usize, bits_per_key: f64) -> usize {
    let lines = (keys as f64 * bits_per_key / LINE_BITS).ceil() as u64;
    lines.clamp(1, MAX_LINES) as usize
}

/// The length of the filter that [`Filter::build`] makes for `keys` keys.
pub(crate) fn encoded_len(keys: usize, bits_per_key: f64) -> usize {
    if bits_per_key > 0.0 { line_count(keys, bits_per_key) * LINE_LEN + 1 } else { 0 }
}

/// A set of key hashes. It may also contain hashes that were not added, but always contains all that were.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Filter<'a> {
    lines: &'a [Line],
    /// The number of probes, 1 to 16.
    probes: usize,
}

impl<'a> Filter<'a> {
    /// The bytes of a filter of these hashes at `bits_per_key`, which need not be whole; empty at 0 bits.
    pub(crate) fn build(hashes: &[u64], bits_per_key: f64) -> Vec<u8> {
        if bits_per_key <= 0.0 {
            return Vec::new();
        }
        let hundredths = (bits_per_key * 100.0) as u32;
        let probes = 1 + NEXT_PROBE_FROM.iter().take_while(|&&from| from <= hundredths).count();
        let lines = line_count(hashes.len(), bits_per_key);
        let mut out = vec![0; lines * LINE_LEN];
        for &hash in hashes {
            let start = line_of(hash, lines) * LINE_LEN;
            for multiplier in MULTIPLIERS.iter().take(probes) {
                let bit = (hash as u32).wrapping_mul(*multiplier) >> 23;
                out[start + (bit >> 3) as usize] |= 1 << (bit & 7);
            }
        }
        out.push(probes as u8);
        out
    }

    /// Decodes a filter that [`Filter::build`] has made. The error says which part was expected.
    pub(crate) fn decode(contents: &'a [u8]) -> Result<Self, &'static str> {
        let Some((&probes, lines)) = contents.split_last() else { return Err("a number of probes") };
        let probes = usize::from(probes);
        if !(1..=MAX_PROBES).contains(&probes) {
            return Err("1 to 16 probes");
        }
        let (lines, rest) = lines.as_chunks::<LINE_LEN>();
        if lines.is_empty() || !rest.is_empty() || lines.len() as u64 > MAX_LINES {
            return Err("filter lines of 64 bytes");
        }
        Ok(Self { lines, probes })
    }

    /// The filter with these contents, which [`Filter::decode`] has checked, and with `probes` probes.
    #[inline]
    pub(crate) fn of(contents: &'a [u8], probes: usize) -> Self {
        Self { lines: contents.as_chunks().0, probes }
    }

    pub(crate) fn probes(&self) -> usize {
        self.probes
    }

    /// Whether the key with this hash may be in the set; if this is false, it is not.
    #[inline(always)]
    pub(crate) fn may_contain(&self, hash: u64) -> bool {
        let line = self.line(hash);
        let multipliers = MULTIPLIERS.split_at(self.probes).0;
        match multipliers.split_first_chunk::<FIRST_PROBES>() {
            Some((first, rest)) => has(line, hash, first) && has(line, hash, rest),
            None => has(line, hash, multipliers),
        }
    }

    /// Appends to `passing` the position in `hashes` of each key that may be in the set.
    pub(crate) fn may_contain_many(&self, hashes: &[u64], passing: &mut Vec<usize>) {
        let (first, rest) = self.multipliers();
        for (window, start) in hashes.chunks(WINDOW).zip((0..).step_by(WINDOW)) {
            // No branch and no address depends on a loaded value here, so that no load waits for an earlier one.
            let mut passed = [false; WINDOW];
            for (passed, &hash) in passed.iter_mut().zip(window) {
                *passed = has(self.line(hash), hash, first);
            }
            let (mut left, mut len) = ([0; WINDOW], 0);
            for (at, &passed) in passed.iter().enumerate() {
                left[len] = at;
                len += usize::from(passed);
            }
            for &at in left.iter().take(len) {
                let hash = window[at];
                if has(self.line(hash), hash, rest) {
                    passing.push(start + at);
                }
            }
        }
    }

    /// The multipliers of the first probes, and those of the other probes.
    fn multipliers(&self) -> (&'static [u32], &'static [u32]) {
        MULTIPLIERS.split_at(self.probes).0.split_at(self.probes.min(FIRST_PROBES))
    }

    #[inline]
    fn line(&self, hash: u64) -> &'a Line {
        &self.lines[line_of(hash, self.lines.len())]
    }
}

/// A 32-bit number times `lines`, divided by 2^32: the result is less than `lines`.
fn line_of(hash: u64, lines: usize) -> usize {
    (((hash >> 32) * lines as u64) >> 32) as usize
}
