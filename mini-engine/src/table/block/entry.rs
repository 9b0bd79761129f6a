//! Entries of a data block in their stored form, decoded in place. The layout is described in [`block`](crate::table::block::cursor).
//!
//! The bytes have the right checksum, but are not trusted otherwise: each length is checked, and each entry has at least one byte, so a block with
//! false contents causes an error and not a panic or a loop. Nearly every entry has lengths of one byte and a tag of at most eight bytes; this common
//! form is decoded with one check of the remaining length. All other entries are decoded field by field.

use crate::codec::{self, Malformed, Reader};
use crate::iter::Next;
use crate::types::{EXPIRY_LEN, Kind, MAX_SEQNO, MAX_STORED_KEY_LEN, MAX_VALUE_LEN, SeqNo};

pub(crate) type Decoded<T = ()> = Result<T, Malformed>;

/// The number of entries from one restart to the next.
pub(crate) const RESTART_INTERVAL: usize = 16;

/// The bit in the number of restarts that is set if every entry of the block has a value length, since some entries expire.
pub(crate) const ALL_HAVE_VALUES: u32 = 1 << 31;

/// The parts of a block's contents.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parts {
    /// The offset at which the entries end and the restarts begin.
    pub(crate) entries_end: usize,
    /// The number of restarts, at least one.
    pub(crate) restarts: usize,
    /// Whether tombstones have values too; a tombstone whose value is not empty is an entry that expires.
    pub(crate) all_have_values: bool,
}

impl Parts {
    pub(crate) fn of(contents: &[u8]) -> Decoded<Self> {
        let malformed = |expected| Malformed { offset: contents.len(), expected };
        let Some((body, count)) = contents.split_last_chunk::<4>() else {
            return Err(malformed("a number of restarts"));
        };
        let count = u32::from_le_bytes(*count);
        let (restarts, all_have_values) = ((count & !ALL_HAVE_VALUES) as usize, count & ALL_HAVE_VALUES != 0);
        let entries_end = restarts.checked_mul(4).and_then(|len| body.len().checked_sub(len));
        let entries_end = entries_end.ok_or(malformed("a number of restarts that fits the block"))?;
        if restarts == 0 || entries_end == 0 {
            return Err(malformed("an entry and a restart"));
        }
        Ok(Self { entries_end, restarts, all_have_values })
    }

    /// The offset of the `index`-th restart; it must lie within the entries.
    #[inline]
    pub(crate) fn restart(&self, contents: &[u8], index: usize) -> Decoded<usize> {
        let at = self.entries_end + 4 * index;
        let bytes = contents.get(at..).and_then(<[u8]>::first_chunk::<4>);
        let offset = bytes.map(|bytes| u32::from_le_bytes(*bytes) as usize);
        let malformed = Malformed { offset: at, expected: "a restart within the entries" };
        offset.filter(|&offset| offset < self.entries_end).ok_or(malformed)
    }

    /// The entry at `offset`; the previous key has `last_key_len` bytes.
    #[inline]
    pub(crate) fn entry<'a>(&self, contents: &'a [u8], offset: usize, last_key_len: usize) -> Decoded<Entry<'a>> {
        match self.short_entry(contents, offset, last_key_len) {
            Some(entry) => Ok(entry),
            None => self.long_entry(contents, offset, last_key_len),
        }
    }

    /// Like `entry`, but decoded field by field.
    #[cold]
    pub(crate) fn long_entry<'a>(&self, contents: &'a [u8], offset: usize, last_key_len: usize) -> Decoded<Entry<'a>> {
        let mut reader = Reader::new(self.rest(contents, offset));
        match decode(&mut reader, last_key_len, self.all_have_values) {
            Some(entry) => Ok(Entry { end: offset + reader.position(), ..entry }),
            None => Err(Malformed { offset: offset + reader.position(), expected: "an entry" }),
        }
    }

    /// The entry at `offset`, if there is one and it has the common form; then no field can exceed its limit.
    #[inline]
    pub(crate) fn short_entry<'a>(&self, contents: &'a [u8], offset: usize, last_key_len: usize) -> Option<Entry<'a>> {
        let bytes = self.rest(contents, offset);
        let header = EntryHeader::read(bytes, last_key_len, self.all_have_values)?;
        Some(header.entry(bytes, offset))
    }

    /// The lengths of the entry at `offset`, if it has the common form.
    #[inline]
    pub(crate) fn header<'a>(
        &self,
        contents: &'a [u8],
        offset: usize,
        last_key_len: usize,
    ) -> Option<(EntryHeader, &'a [u8])> {
        let bytes = self.rest(contents, offset);
        Some((EntryHeader::read(bytes, last_key_len, self.all_have_values)?, bytes))
    }

    #[inline]
    fn rest<'a>(&self, contents: &'a [u8], offset: usize) -> &'a [u8] {
        contents.get(offset..self.entries_end).unwrap_or_default()
    }
}

/// The first entry of the bytes `rest`, for a batch of versions `below` a number, and its length, if it has the common form. The previous key has
/// `last_key_len` bytes. The entry begins at `offset` of the contents, in which all entries may have values.
#[inline(always)]
pub(crate) fn next_of_batch<'a>(
    (rest, offset): (&'a [u8], usize),
    last_key_len: usize,
    below: SeqNo,
    all_have_values: bool,
) -> Option<(Next<'a>, usize)> {
    let EntryHeader { shared, unshared, tag, key_at, len } = EntryHeader::read(rest, last_key_len, all_have_values)?;
    let is_older = || codec::short_varint(tag).is_some_and(|(tag, _)| tag >> 1 < below);
    let is_plain = u64::from_le_bytes(tag) & 1 == Kind::Value as u64 && (below > MAX_SEQNO || is_older());
    // A restart stores the whole key, even if the previous entry has the same one.
    let may_repeat = shared + unshared == last_key_len && (unshared == 0 || shared == 0);
    let value = offset + key_at + unshared..offset + len;
    Some((Next { shared, unshared, rest: rest.get(key_at..)?, value, is_plain, may_repeat }, len))
}

/// An entry in its stored form.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry<'a> {
    /// The number of leading bytes that the key shares with the previous key.
    pub(crate) shared: usize,
    /// The rest of the key.
    pub(crate) unshared: &'a [u8],
    pub(crate) seqno: SeqNo,
    pub(crate) kind: Kind,
    pub(crate) value: &'a [u8],
    /// The offset in the contents at which the entry and its value end.
    pub(crate) end: usize,
}

impl Entry<'_> {
    pub(crate) fn key_len(&self) -> usize {
        self.shared + self.unshared.len()
    }

    /// The range of the value in the contents.
    pub(crate) fn value_range(&self) -> std::ops::Range<usize> {
        self.end - self.value.len()..self.end
    }
}

/// The lengths and the tag at the beginning of an entry of the common form. The lengths lie within the bytes from which the header was decoded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntryHeader {
    pub(crate) shared: usize,
    unshared: usize,
    tag: [u8; 8],
    /// The offset of the unshared bytes in the entry.
    key_at: usize,
    /// The length of the whole entry.
    pub(crate) len: usize,
}

impl EntryHeader {
    #[inline(always)]
    fn read(bytes: &[u8], last_key_len: usize, all_have_values: bool) -> Option<Self> {
        let ([shared, unshared, tag @ ..], _) = bytes.split_first_chunk::<10>()?;
        let tag_len = codec::short_varint_len(*tag)?;
        let (shared, unshared) = (usize::from(*shared), usize::from(*unshared));
        if (shared | unshared) >= 0x80 || shared > last_key_len {
            return None;
        }
        let (mut key_at, mut value_len) = (2 + tag_len, 0);
        // All bytes of the tag are used, because the first byte alone would be loaded separately.
        let is_value = u64::from_le_bytes(*tag) & 1 == Kind::Value as u64;
        if is_value || all_have_values {
            let low = *bytes.get(key_at)?;
            value_len = usize::from(low);
            key_at += 1;
            if low >= 0x80 {
                let high = *bytes.get(key_at).filter(|high| **high < 0x80)?;
                value_len = usize::from(low & 0x7f) | usize::from(high) << 7;
                key_at += 1;
            }
            if !is_value && !is_expiry(value_len) {
                return None;
            }
        }
        let len = key_at + unshared + value_len;
        (len <= bytes.len()).then_some(Self { shared, unshared, tag: *tag, key_at, len })
    }

    /// The unshared bytes of the key; `bytes` are those from which the header was decoded.
    #[inline]
    pub(crate) fn unshared<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        bytes.get(self.key_at..self.key_at + self.unshared).unwrap_or_default()
    }

    pub(crate) fn key_len(&self) -> usize {
        self.shared + self.unshared
    }

    /// The whole entry, which begins at `offset` of the block.
    #[inline(always)]
    pub(crate) fn entry<'a>(&self, bytes: &'a [u8], offset: usize) -> Entry<'a> {
        let tag = codec::short_varint(self.tag).map_or(0, |(tag, _)| tag);
        let value = bytes.get(self.key_at + self.unshared..self.len).unwrap_or_default();
        let kind = kind(tag, value.len());
        let (shared, unshared, end) = (self.shared, self.unshared(bytes), offset + self.len);
        Entry { shared, unshared, seqno: tag >> 1, kind, value, end }
    }
}

/// The kind of an entry with this tag and this length of its value.
#[inline]
fn kind(tag: u64, value_len: usize) -> Kind {
    match tag & 1 == Kind::Value as u64 {
        true => Kind::Value,
        false if value_len > 0 => Kind::Expiring,
        false => Kind::Tombstone,
    }
}

/// Whether a tombstone may have a value of this length: it is empty, or begins with an instant.
#[inline]
fn is_expiry(value_len: usize) -> bool {
    value_len == 0 || value_len >= EXPIRY_LEN
}

fn decode<'a>(reader: &mut Reader<'a>, last_key_len: usize, all_have_values: bool) -> Option<Entry<'a>> {
    let shared = reader.varint32()? as usize;
    let unshared_len = reader.varint32()? as usize;
    let tag = reader.varint()?;
    let is_value = tag & 1 == Kind::Value as u64;
    let value_len = if is_value || all_have_values { reader.varint32()? as usize } else { 0 };
    let kind = kind(tag, value_len);
    let key_len = shared.checked_add(unshared_len)?;
    let seqno = tag >> 1;
    if shared > last_key_len || key_len > MAX_STORED_KEY_LEN || value_len > MAX_VALUE_LEN || seqno > MAX_SEQNO {
        return None;
    }
    if !is_value && !is_expiry(value_len) {
        return None;
    }
    let unshared = reader.bytes(unshared_len)?;
    Some(Entry { shared, unshared, seqno, kind, value: reader.bytes(value_len)?, end: 0 })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn field_by_field(bytes: &[u8], last_key_len: usize, all_have_values: bool) -> Option<(usize, Entry<'_>)> {
        let mut reader = Reader::new(bytes);
        decode(&mut reader, last_key_len, all_have_values).map(|entry| (reader.position(), entry))
    }

    fn short_entry(bytes: &[u8], last_key_len: usize, all_have_values: bool) -> Option<(usize, Entry<'_>)> {
        let parts = Parts { entries_end: bytes.len(), restarts: 1, all_have_values };
        parts.short_entry(bytes, 0, last_key_len).map(|entry| (entry.end, entry))
    }

    fn fields<'a>((len, entry): (usize, Entry<'a>)) -> (usize, usize, &'a [u8], SeqNo, Kind, &'a [u8]) {
        (len, entry.shared, entry.unshared, entry.seqno, entry.kind, entry.value)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn the_common_form_is_read_as_any_other(
            lens in (0u64..300, 0u64..300, prop_oneof![0u64..20, 0u64..20_000]), tag in any::<u64>(), shift in 0u32..64,
            all_have_values in any::<bool>(),
            cut in 0usize..400, last_key_len in 0usize..300, noise in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            // Catches a shortcut that decodes other fields, or accepts entries that the check of each field rejects.
            let mut sound = Vec::new();
            codec::put_varint(&mut sound, lens.0);
            codec::put_varint(&mut sound, lens.1);
            codec::put_varint(&mut sound, tag >> shift);
            if tag >> shift & 1 == 1 || all_have_values {
                codec::put_varint(&mut sound, lens.2);
            }
            sound.resize(sound.len() + (lens.1 + lens.2) as usize, 7);
            sound.truncate(sound.len().saturating_sub(cut.saturating_sub(200)));
            for bytes in [sound, noise] {
                if let Some(read) = short_entry(&bytes, last_key_len, all_have_values) {
                    let expected = field_by_field(&bytes, last_key_len, all_have_values);
                    prop_assert_eq!(Some(fields(read)), expected.map(fields));
                }
            }
        }
    }

    #[test]
    fn entries_of_everyday_size_have_the_common_form() {
        // Catches a shortcut that is never taken.
        for (key_len, value_len, seqno) in [(0, 0, 0), (16, 100, 600_000), (127, 16_000, 1 << 54)] {
            let mut bytes = vec![0, key_len];
            codec::put_varint(&mut bytes, seqno << 1 | 1);
            codec::put_varint(&mut bytes, value_len);
            bytes.resize(bytes.len() + usize::from(key_len) + value_len as usize + 8, 7);
            assert!(
                short_entry(&bytes, 0, false).is_some_and(|(len, _)| len == bytes.len() - 8),
                "{key_len} {value_len}"
            );
        }
    }
}
