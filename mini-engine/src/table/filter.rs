//! The filter: a Bloom filter in lines of 64 bytes, so that a probe touches one cache line (Putze, Sanders and Singler,
//! "Cache-, Hash- and Space-Efficient Bloom Filters", 2007).
//!
//! The upper 32 bits of a key's hash choose the line by multiplication, the lower 32 the bits within it: `k` probes,
//! each the top 9 bits of the lower half times a growing power of an odd constant, as in RocksDB's filter. No false
//! negatives; `theory.rs` has the expected rate of false positives.
//!
//! ```text
//! filter   64-byte lines, probes k u8
//! ```
//!
//! Uses nothing of the crate, so that `benches/filter.rs` compiles this very file.
//!
//! A probe has no branch that depends on a bit, so that nothing is mispredicted; a batch looks at the first bit of many
//! lines before it looks at the rest of any, so that the cache misses of those loads overlap.

const LINE_LEN: usize = 64;
const LINE_BITS: f64 = 512.0;
const MAX_PROBES: usize = 16;
/// The lines of the largest filter whose length fits a block's: 3 billion keys at 10 bits; past that, false positives
/// rise.
const MAX_LINES: u64 = (u32::MAX as usize / LINE_LEN - 1) as u64;
/// Bits per key, in hundredths, from which on one more probe is best in lines of 512 bits: 2 probes from 2.1 bits, 3
/// from 3.6. From the expected rate, see `theory.rs`. Fewer than an unblocked filter wants: crowded lines set the rate.
const NEXT_PROBE_FROM: [u32; 14] = [210, 360, 510, 665, 830, 1000, 1185, 1380, 1595, 1830, 2090, 2375, 2695, 3050];
/// Keys of a batch whose lines are asked for before the first is waited for: as many as the loads that a core has room for.
const WINDOW: usize = 16;

/// 2^32 divided by the golden ratio, to the powers 1 to 16: multiples of a hash by them spread over the range. Powers
/// instead of a product that grows: the multiplications need not wait for each other.
const MULTIPLIERS: [u32; MAX_PROBES] = {
    let mut powers = [0x9e37_79b9u32; MAX_PROBES];
    let mut at = 1;
    while at < MAX_PROBES {
        powers[at] = powers[at - 1].wrapping_mul(powers[0]);
        at += 1;
    }
    powers
};

#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Line([u64; LINE_LEN / 8]);

impl Line {
    /// The probe's bit, as the lowest of the result; the others mean nothing.
    fn bit(&self, hash: u32, multiplier: u32) -> u64 {
        let bit = hash.wrapping_mul(multiplier) >> 23;
        self.0[(bit >> 6) as usize] >> (bit & 63)
    }

    fn set(&mut self, hash: u32, multiplier: u32) {
        let bit = hash.wrapping_mul(multiplier) >> 23;
        self.0[(bit >> 6) as usize] |= 1 << (bit & 63);
    }
}

/// A set of key hashes that may contain more than was put in, never less.
#[derive(Debug)]
pub(super) struct Filter {
    lines: Vec<Line>,
    /// 1 to 16.
    probes: usize,
}

impl Filter {
    /// The filter of these hashes at `bits_per_key`, which need not be whole; `None` at 0 bits.
    pub(super) fn build(hashes: &[u64], bits_per_key: f64) -> Option<Self> {
        if bits_per_key <= 0.0 {
            return None;
        }
        let lines = (hashes.len() as f64 * bits_per_key / LINE_BITS).ceil() as u64;
        let lines = lines.clamp(1, MAX_LINES) as usize;
        let hundredths = (bits_per_key * 100.0) as u32;
        let probes = 1 + NEXT_PROBE_FROM.iter().take_while(|&&from| from <= hundredths).count();
        let mut filter = Self { lines: vec![Line([0; LINE_LEN / 8]); lines], probes };
        for &hash in hashes {
            let at = filter.line_of(hash);
            MULTIPLIERS.iter().take(probes).for_each(|&multiplier| filter.lines[at].set(hash as u32, multiplier));
        }
        Some(filter)
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.memory_len() + 1);
        for word in self.lines.iter().flat_map(|line| line.0) {
            out.extend_from_slice(&word.to_le_bytes());
        }
        out.push(self.probes as u8);
        out
    }

    /// Decodes what [`Filter::encode`] made; or what was expected of other bytes.
    pub(super) fn decode(contents: &[u8]) -> Result<Self, &'static str> {
        let Some((&probes, lines)) = contents.split_last() else { return Err("a number of probes") };
        let probes = usize::from(probes);
        if !(1..=MAX_PROBES).contains(&probes) {
            return Err("1 to 16 probes");
        }
        let (lines, rest) = lines.as_chunks::<LINE_LEN>();
        if lines.is_empty() || !rest.is_empty() || lines.len() as u64 > MAX_LINES {
            return Err("filter lines of 64 bytes");
        }
        let line = |bytes: &[u8; LINE_LEN]| {
            let mut words = [0; LINE_LEN / 8];
            let (chunks, _) = bytes.as_chunks::<8>();
            words.iter_mut().zip(chunks).for_each(|(word, chunk)| *word = u64::from_le_bytes(*chunk));
            Line(words)
        };
        Ok(Self { lines: lines.iter().map(line).collect(), probes })
    }

    /// Whether the key with this hash may be in the set; false is certain.
    pub(super) fn may_contain(&self, hash: u64) -> bool {
        self.passes(hash, 1)
    }

    /// Appends to `passing` the position in `hashes` of each key that may be in the set.
    pub(super) fn may_contain_many(&self, hashes: &[u64], passing: &mut Vec<usize>) {
        for (window, start) in hashes.chunks(WINDOW).zip((0..).step_by(WINDOW)) {
            let mut first = [0; WINDOW];
            for (bit, &hash) in first.iter_mut().zip(window) {
                *bit = self.lines[self.line_of(hash)].bit(hash as u32, MULTIPLIERS[0]);
            }
            for (at, (&bit, &hash)) in first.iter().zip(window).enumerate() {
                if self.passes(hash, bit) {
                    passing.push(start + at);
                }
            }
        }
    }

    /// Bytes of memory that the lines take.
    pub(super) fn memory_len(&self) -> usize {
        self.lines.len() * LINE_LEN
    }

    /// Whether the lowest bit of `so_far` and all of the key's are set.
    fn passes(&self, hash: u64, so_far: u64) -> bool {
        let line = &self.lines[self.line_of(hash)];
        let probes = MULTIPLIERS.iter().take(self.probes);
        probes.fold(so_far, |all, &multiplier| all & line.bit(hash as u32, multiplier)) & 1 != 0
    }

    fn line_of(&self, hash: u64) -> usize {
        // Less than the number of lines: a 32-bit number times it, divided by 2^32.
        (((hash >> 32) * self.lines.len() as u64) >> 32) as usize
    }
}
