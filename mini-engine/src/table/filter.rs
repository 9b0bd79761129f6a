//! The filter: a Bloom filter in blocks of 64 bytes, so that a probe touches one cache line.
//!
//! The upper 32 bits of a key's hash choose the block by multiplication, the lower 32 the bits within it: `k` probes,
//! each the top 9 bits of the lower half times a growing power of an odd constant. No false negatives; with 10 bits a
//! key about 1 % false positives.
//!
//! ```text
//! filter   64-byte blocks, probes k u8
//! ```

use crate::codec::Malformed;

use super::frame::MAX_CONTENTS_LEN;

const LINE_LEN: usize = 64;
const MAX_PROBES: u32 = 16;
/// The lines of the largest filter that is a block: 3 billion keys at 10 bits; past that, false positives rise.
const MAX_LINES: u64 = (MAX_CONTENTS_LEN / LINE_LEN - 1) as u64;
/// 2^32 divided by the golden ratio: spreads consecutive products over the range.
const MULTIPLIER: u32 = 0x9e37_79b9;

#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Line([u8; LINE_LEN]);

/// A set of key hashes that may contain more than was put in, never less.
#[derive(Debug)]
pub(super) struct Filter {
    lines: Vec<Line>,
    probes: u32,
}

impl Filter {
    /// The filter of these hashes at `bits_per_key`; `None` at 0 bits.
    pub(super) fn build(hashes: &[u64], bits_per_key: u32) -> Option<Self> {
        if bits_per_key == 0 {
            return None;
        }
        let bits = hashes.len() as u64 * u64::from(bits_per_key);
        let lines = bits.div_ceil(8 * LINE_LEN as u64).clamp(1, MAX_LINES) as usize;
        // The number of probes that is best for an ideal Bloom filter: bits times ln 2.
        let probes = (bits_per_key * 69 / 100).clamp(1, MAX_PROBES);
        let mut filter = Self { lines: vec![Line([0; LINE_LEN]); lines], probes };
        for &hash in hashes {
            let line = filter.line_of(hash);
            for bit in bits_of(hash, probes) {
                filter.lines[line].0[bit / 8] |= 1 << (bit % 8);
            }
        }
        Some(filter)
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.lines.len() * LINE_LEN + 1);
        for line in &self.lines {
            out.extend_from_slice(&line.0);
        }
        out.push(self.probes as u8);
        out
    }

    pub(super) fn decode(contents: &[u8]) -> Result<Self, Malformed> {
        let malformed = |expected| Malformed { offset: contents.len(), expected };
        let Some((&probes, lines)) = contents.split_last() else { return Err(malformed("a number of probes")) };
        let probes = u32::from(probes);
        if !(1..=MAX_PROBES).contains(&probes) {
            return Err(malformed("1 to 16 probes"));
        }
        let (lines, rest) = lines.as_chunks::<LINE_LEN>();
        if lines.is_empty() || !rest.is_empty() || lines.len() as u64 > MAX_LINES {
            return Err(malformed("filter blocks of 64 bytes"));
        }
        Ok(Self { lines: lines.iter().map(|&line| Line(line)).collect(), probes })
    }

    /// Whether the key with this hash may be in the set; false is certain.
    pub(super) fn may_contain(&self, hash: u64) -> bool {
        let line = &self.lines[self.line_of(hash)].0;
        bits_of(hash, self.probes).all(|bit| line[bit / 8] & (1 << (bit % 8)) != 0)
    }

    fn line_of(&self, hash: u64) -> usize {
        // Less than the number of lines: a 32-bit number times it, divided by 2^32.
        (((hash >> 32) * self.lines.len() as u64) >> 32) as usize
    }
}

/// The bits of a key within its line, each less than 512.
fn bits_of(hash: u64, probes: u32) -> impl Iterator<Item = usize> {
    let mut h = hash as u32;
    (0..probes).map(move |_| {
        h = h.wrapping_mul(MULTIPLIER);
        (h >> 23) as usize
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::codec::key_hash;

    #[test]
    fn false_positives_stay_within_their_bound_at_each_size() {
        // Catches probes that repeat bits, or use bits of the hash that chose the line already.
        for (bits_per_key, bound) in [(4, 0.20), (10, 0.015), (20, 0.002)] {
            let hashes: Vec<u64> = (0..50_000u64).map(|i| key_hash(&i.to_be_bytes())).collect();
            let filter = Filter::build(&hashes, bits_per_key).expect("bits");
            let absent = 1_000_000..1_200_000u64;
            let total = absent.clone().count() as f64;
            let hits = absent.filter(|i| filter.may_contain(key_hash(&i.to_be_bytes()))).count() as f64;
            assert!(hits / total < bound, "{bits_per_key} bits: {} false positives", hits / total);
            assert!(filter.encode().len() as u64 <= 50_000 * u64::from(bits_per_key) / 8 + 65);
        }
    }

    #[test]
    fn no_bits_is_no_filter() {
        // Catches a filter of zero bits that denies every key.
        assert!(Filter::build(&[1, 2], 0).is_none());
    }

    proptest! {
        #[test]
        fn a_key_that_was_put_in_is_always_found(
            hashes in prop::collection::vec(any::<u64>(), 0..400), bits in 1u32..=32,
        ) {
            // Catches a false negative, also through the encoding: it would hide a stored key.
            let filter = Filter::build(&hashes, bits).expect("bits");
            let decoded = Filter::decode(&filter.encode()).expect("own encoding");
            for &hash in &hashes {
                prop_assert!(filter.may_contain(hash) && decoded.may_contain(hash));
            }
        }

        #[test]
        fn random_bytes_never_panic_the_filter(
            bytes in prop::collection::vec(any::<u8>(), 0..400), hash in any::<u64>(),
        ) {
            // Catches an empty set of lines, or probes past the end of one.
            if let Ok(filter) = Filter::decode(&bytes) {
                prop_assert_eq!(filter.encode(), bytes);
                prop_assert!(!filter.lines.is_empty());
                filter.may_contain(hash);
            }
        }
    }
}
