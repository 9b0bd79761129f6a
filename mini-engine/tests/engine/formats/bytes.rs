//! Integers, strings, checksums and entries, as described in "Words and conventions" of the page `formats.md`.

use std::cmp::Reverse;

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// A decoded value, or the rule of the page that the bytes break.
pub(crate) type Read<T = ()> = Result<T, String>;

/// The longest stored key: a user's key of 65,535 bytes with the longest prefix of a keyspace.
const MAX_KEY: usize = 65_541;
const MAX_VALUE: usize = 1 << 30;
const MAX_SEQNO: u64 = (1 << 56) - 1;

/// Fails with the message `what` unless `holds` is true.
pub(crate) fn need(holds: bool, what: impl Into<String>) -> Read {
    if holds { Ok(()) } else { Err(what.into()) }
}

pub(crate) fn checksum(bytes: &[u8], seed: u64) -> u64 {
    xxh3_64_with_seed(bytes, seed)
}

pub(crate) fn seed(numbers: &[u64]) -> u64 {
    numbers.iter().fold(numbers.len() as u64, |seed, number| xxh3_64_with_seed(&number.to_le_bytes(), seed))
}

/// Bytes that are read from the front.
#[derive(Clone)]
pub(crate) struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.0
    }

    pub(crate) fn take(&mut self, len: usize) -> Read<&'a [u8]> {
        let cut_off = || format!("expected {len} bytes, found {}", self.0.len());
        let (taken, rest) = self.0.split_at_checked(len).ok_or_else(cut_off)?;
        self.0 = rest;
        Ok(taken)
    }

    /// A little-endian integer of `len` bytes.
    fn integer(&mut self, len: usize) -> Read<u64> {
        Ok(self.take(len)?.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    pub(crate) fn u8(&mut self) -> Read<u8> {
        Ok(self.take(1)?[0])
    }

    pub(crate) fn u32(&mut self) -> Read<u32> {
        self.integer(4).map(|value| value as u32)
    }

    pub(crate) fn u64(&mut self) -> Read<u64> {
        self.integer(8)
    }

    pub(crate) fn varint(&mut self) -> Read<u64> {
        let mut value = 0u128;
        for at in 0..10 {
            let byte = self.u8()?;
            value |= u128::from(byte & 0x7f) << (7 * at);
            if byte < 0x80 {
                return u64::try_from(value).map_err(|_| "a varint of more than 64 bits".to_owned());
            }
        }
        Err("a varint of more than 10 bytes".to_owned())
    }

    /// The number of a table's entries that expire, and the instants at which one to eight eighths of them have expired.
    pub(crate) fn expiring(&mut self) -> Read<(u64, [u64; 8])> {
        let (count, mut instants, mut before) = (self.varint()?, [0; 8], 0u64);
        for at in &mut instants {
            *at = before.checked_add(self.varint()?).ok_or("an instant past 64 bits")?;
            before = *at;
        }
        Ok((count, instants))
    }

    pub(crate) fn prefixed(&mut self) -> Read<&'a [u8]> {
        let len = self.varint()?;
        self.take(usize::try_from(len).map_err(|error| error.to_string())?)
    }
}

/// A version of a key: a value, or none for a tombstone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) key: Vec<u8>,
    pub(crate) seqno: u64,
    pub(crate) value: Option<Vec<u8>>,
    /// The time, in milliseconds since 1970, from which on the version counts as a tombstone.
    pub(crate) expires: Option<u64>,
    /// The end of a range tombstone that begins at `key`; empty if the range has no end.
    pub(crate) end: Option<Vec<u8>>,
}

impl Entry {
    pub(crate) fn new(key: &[u8], seqno: u64, value: Option<&[u8]>) -> Read<Entry> {
        need(key.len() <= MAX_KEY && value.is_none_or(|value| value.len() <= MAX_VALUE), "a key or value too long")?;
        need(seqno <= MAX_SEQNO, "a seqno of more than 56 bits")?;
        Ok(Entry { key: key.to_vec(), seqno, value: value.map(<[u8]>::to_vec), expires: None, end: None })
    }

    /// An entry that expires, with its stored value.
    pub(crate) fn expiring(key: &[u8], seqno: u64, stored: &[u8]) -> Read<Entry> {
        need(stored.len() <= MAX_VALUE, "a value too long")?;
        let mut bytes = Bytes::new(stored);
        let expires = Some(bytes.u64()?);
        Ok(Entry { expires, ..Entry::new(key, seqno, Some(bytes.rest()))? })
    }

    /// A range tombstone.
    pub(crate) fn range(key: &[u8], end: &[u8], seqno: u64) -> Read<Entry> {
        let is_place = end.len() <= MAX_KEY || end.len() == MAX_KEY + 1 && end.last() == Some(&0);
        need(is_place && (end.is_empty() || key < end), "a range that does not end behind its first key")?;
        Ok(Entry { end: Some(end.to_vec()), ..Entry::new(key, seqno, None)? })
    }

    /// Whether it is a version of `key`.
    pub(crate) fn is_of(&self, key: &[u8]) -> bool {
        match &self.end {
            None => self.key == key,
            Some(end) => *self.key <= *key && (end.is_empty() || *key < **end),
        }
    }

    /// The parts of a version that the order of entries compares.
    pub(crate) fn place(&self) -> Place<'_> {
        (&self.key[..], Reverse(self.seqno))
    }
}

pub(crate) type Place<'a> = (&'a [u8], Reverse<u64>);
