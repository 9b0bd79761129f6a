//! Integers and byte strings as they are encoded in files: little endian, varints in base 128, each byte string after its length.
//!
//! Every reader here takes untrusted bytes: a [`Reader`] returns `None` instead of panicking, compares a length with the remaining bytes before it
//! returns a slice, and never allocates. Checksums are xxh3. Their seed contains the position of the bytes, so that bytes copied to another position
//! do not pass.

mod file_header;
#[cfg(not(feature = "zstd"))]
#[path = "codec/without_zstd.rs"]
mod zstd_contexts;
#[cfg(feature = "zstd")]
mod zstd_contexts;

use std::path::Path;

use xxhash_rust::xxh3::{Xxh3, xxh3_64, xxh3_64_with_seed};

use crate::error::Error;

pub(crate) use file_header::FileHeader;
pub(crate) use zstd_contexts::{zstd_compress, zstd_decompress};

/// Whether this build compresses with Zstandard.
pub(crate) const HAS_ZSTD: bool = cfg!(feature = "zstd");
/// The feature named by [`Error::Unsupported`] when a build without Zstandard opens a file that uses it.
pub(crate) const ZSTD: &str = "a compression that the feature `zstd` adds to a build: number";

/// The maximum number of bytes of a 32-bit varint.
pub(crate) const MAX_VARINT32_LEN: usize = 5;

/// The hash of a user key for the filters. Part of the table format.
pub(crate) fn key_hash(key: &[u8]) -> u64 {
    xxh3_64(key)
}

/// The checksum of `bytes` with `seed`, which depends on their position; see [`seed`].
pub(crate) fn checksum(bytes: &[u8], seed: u64) -> u64 {
    xxh3_64_with_seed(bytes, seed)
}

/// The checksum of the concatenation of `parts`.
pub(crate) fn checksum_of<const N: usize>(parts: [&[u8]; N], seed: u64) -> u64 {
    let mut hash = Xxh3::with_seed(seed);
    parts.iter().for_each(|part| hash.update(part));
    hash.digest()
}

/// Combines the numbers of a position (file number, offset, salt) into the seed of a checksum.
pub(crate) fn seed<const N: usize>(place: [u64; N]) -> u64 {
    place.into_iter().fold(N as u64, next_seed)
}

/// A step of [`seed`]: mixes one more number into it.
#[inline]
pub(crate) fn next_seed(seed: u64, part: u64) -> u64 {
    xxh3_64_with_seed(&part.to_le_bytes(), seed)
}

pub(crate) fn put_u32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_le_bytes());
}

pub(crate) fn put_u64(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(&value.to_le_bytes());
}

pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

const CONTINUED: u64 = 0x8080_8080_8080_8080;

/// The length of the varint at the start of `bytes`, if the varint ends within them.
#[inline]
pub(crate) fn short_varint_len(bytes: [u8; 8]) -> Option<usize> {
    let ends = !u64::from_le_bytes(bytes) & CONTINUED;
    (ends != 0).then_some((ends.trailing_zeros() / 8 + 1) as usize)
}

/// The varint at the start of `bytes` and its length, if the varint ends within them. No branch depends on its length.
#[inline]
pub(crate) fn short_varint(bytes: [u8; 8]) -> Option<(u64, usize)> {
    let len = short_varint_len(bytes)?;
    let word = u64::from_le_bytes(bytes);
    let ends = !word & CONTINUED;
    // Keeps the bytes up to the first one without the continuation bit; then groups of 7, 14 and 28 bits are shifted together.
    let word = word & (ends ^ (ends - 1)) & !CONTINUED;
    let word = word & 0x007f_007f_007f_007f | (word & 0x7f00_7f00_7f00_7f00) >> 1;
    let word = word & 0x0000_3fff_0000_3fff | (word & 0x3fff_0000_3fff_0000) >> 2;
    let word = word & 0x0000_0000_0fff_ffff | (word & 0x0fff_ffff_0000_0000) >> 4;
    Some((word, len))
}

/// Appends a varint length and the bytes. The caller has checked the length against its limit.
pub(crate) fn put_prefixed(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// An error of decoding: the offset of the fault, and what was expected there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed {
    /// Offset within the decoded bytes.
    pub(crate) offset: usize,
    pub(crate) expected: &'static str,
}

impl Malformed {
    /// The same fault as a corruption of `file`; the decoded bytes started at offset `base`.
    pub(crate) fn in_file(self, file: &Path, base: u64) -> Error {
        let Self { offset, expected } = self;
        Error::corruption(file, base, format!("expected {expected} at byte {offset} of the decoded bytes"))
    }
}

/// A cursor over untrusted bytes. A getter that returns `None` may have consumed part of the bytes.
#[derive(Clone, Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
    len: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, len: bytes.len() }
    }

    /// The number of bytes consumed.
    pub(crate) fn position(&self) -> usize {
        self.len - self.rest.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The bytes not consumed yet.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The error for bytes at this position that are not `expected`.
    pub(crate) fn malformed(&self, expected: &'static str) -> Malformed {
        Malformed { offset: self.position(), expected }
    }

    #[inline]
    pub(crate) fn bytes(&mut self, len: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(head)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        Some(*head)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// A varint of at most 64 bits; `None` if it is cut off or larger.
    #[inline]
    pub(crate) fn varint(&mut self) -> Option<u64> {
        match self.rest {
            [byte @ ..0x80, rest @ ..] => {
                self.rest = rest;
                Some(u64::from(*byte))
            }
            _ => self.long_varint(),
        }
    }

    fn long_varint(&mut self) -> Option<u64> {
        if let Some((value, len)) = self.rest.first_chunk().and_then(|bytes| short_varint(*bytes)) {
            self.rest = self.rest.split_at(len).1;
            return Some(value);
        }
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            // The tenth byte has room for one bit.
            if shift == 63 && bits > 1 {
                return None;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    /// A byte string after its varint length, which may be at most `max`.
    #[inline]
    pub(crate) fn prefixed(&mut self, max: usize) -> Option<&'a [u8]> {
        let len = usize::try_from(self.varint()?).ok()?;
        if len > max {
            return None;
        }
        self.bytes(len)
    }
}

/// Whether the compression from `len` bytes to `compressed_len` saves at least 12 %; a smaller saving is not worthwhile.
pub(crate) fn is_worth_compressing(len: usize, compressed_len: usize) -> bool {
    compressed_len as u64 * 100 <= len as u64 * 88
}

/// The first 8 bytes of a key as a number, with zeros behind a shorter key. The numbers are ordered as the keys are, except for ties.
#[inline]
pub(crate) fn head(key: &[u8]) -> u64 {
    if let Some(bytes) = key.first_chunk() {
        return u64::from_be_bytes(*bytes);
    }
    let mut bytes = [0; 8];
    bytes.split_at_mut(key.len()).0.copy_from_slice(key);
    u64::from_be_bytes(bytes)
}

/// `key` without `prefix`, if it starts with it. Most prefixes have a few bytes; a call of `memcmp` would cost more than this loop.
#[inline(always)]
pub(crate) fn strip_prefix<'a>(key: &'a [u8], prefix: &[u8]) -> Option<&'a [u8]> {
    let (start, rest) = key.split_at_checked(prefix.len())?;
    let is_same = match prefix.len() {
        0..=3 => start.iter().zip(prefix).all(|(a, b)| a == b),
        _ => start == prefix,
    };
    is_same.then_some(rest)
}

/// The number of leading bytes that `a` and `b` share.
#[inline]
pub(crate) fn shared_len(a: &[u8], b: &[u8]) -> usize {
    let mut rest = (a, b);
    while let (Some((x, after_x)), Some((y, after_y))) = (rest.0.split_first_chunk(), rest.1.split_first_chunk()) {
        let different = u64::from_le_bytes(*x) ^ u64::from_le_bytes(*y);
        if different != 0 {
            return a.len() - rest.0.len() + different.trailing_zeros() as usize / 8;
        }
        rest = (after_x, after_y);
    }
    a.len() - rest.0.len() + rest.0.iter().zip(rest.1).take_while(|(x, y)| x == y).count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn varints_end_where_they_should_at_each_length() {
        // Catches an off-by-one in the shift, and an eleventh byte or 65th bit accepted.
        for bits in 0..=64u32 {
            let value = if bits == 64 { u64::MAX } else { (1u64 << bits) - 1 };
            let mut out = Vec::new();
            put_varint(&mut out, value);
            assert_eq!(out.len(), (bits.max(1) as usize).div_ceil(7));
            assert_eq!(Reader::new(&out).varint(), Some(value));
            let len = out.len();
            out.resize(len.max(8), 0xff);
            let whole = out.first_chunk().and_then(|bytes| short_varint(*bytes));
            assert_eq!(whole, (len <= 8).then_some((value, len)));
            assert_eq!(Reader::new(&out).varint(), Some(value));
            out.truncate(len);
            assert_eq!(Reader::new(&out[..out.len() - 1]).varint(), None);
        }
        assert_eq!(Reader::new(&[0xff; 10]).varint(), None);
        assert_eq!(Reader::new(&[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 2]).varint(), None);
    }

    #[test]
    fn a_prefixed_string_past_its_limit_or_its_bytes_is_refused() {
        // Catches a length that is used before it is compared with the remaining bytes.
        let mut out = Vec::new();
        put_prefixed(&mut out, b"abc");
        assert_eq!(Reader::new(&out).prefixed(3), Some(&b"abc"[..]));
        assert_eq!(Reader::new(&out).prefixed(2), None);
        assert_eq!(Reader::new(&out[..3]).prefixed(3), None);
        put_varint(&mut out, u64::MAX);
        let mut reader = Reader::new(&out[4..]);
        assert_eq!(reader.prefixed(usize::MAX), None);
    }

    #[test]
    fn equal_bytes_in_different_places_have_different_checksums() {
        // Catches a seed that ignores one of the numbers, or the order of the numbers.
        let sums = [[1, 2, 3], [1, 2, 4], [1, 3, 3], [2, 2, 3], [2, 1, 3], [3, 2, 1], [0, 0, 0]]
            .map(|place| checksum(b"frame", seed(place)));
        for (i, a) in sums.iter().enumerate() {
            assert!(!sums[..i].contains(a));
        }
    }

    proptest! {
        #[test]
        fn mixed_fields_round_trip(
            a in any::<u32>(), b in any::<u64>(), c in any::<u64>(), d in any::<u8>(),
            bytes in prop::collection::vec(any::<u8>(), 0..300),
        ) {
            // Catches a writer and a reader that disagree on width, order or position.
            let mut out = vec![d];
            put_u32(&mut out, a);
            put_u64(&mut out, b);
            put_varint(&mut out, c);
            put_prefixed(&mut out, &bytes);
            let mut reader = Reader::new(&out);
            prop_assert_eq!(reader.u8(), Some(d));
            prop_assert_eq!(reader.u32(), Some(a));
            prop_assert_eq!(reader.u64(), Some(b));
            prop_assert_eq!(reader.varint(), Some(c));
            prop_assert_eq!(reader.prefixed(300), Some(&bytes[..]));
            prop_assert!(reader.is_empty() && reader.rest().is_empty());
            prop_assert_eq!(reader.position(), out.len());
            prop_assert_eq!(reader.u8(), None);
        }
    }
}
