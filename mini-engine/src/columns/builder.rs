//! [`BlockBuilder`]: collects the entries of a block and lays out its columns.

use std::ops::Range;

use super::layout::{FOOTER_LEN, ONE_BUNDLE, PLAIN, SHORT_BUNDLES, WHOLE};
use crate::codec::{self, shared_len};
use crate::types::{Kind, SeqNo};

/// The maximum memory that a builder keeps for the next block, in bytes.
const KEPT_LEN: usize = 1 << 20;

/// The most bytes that an entry takes beside its key and its value: a tag, the offsets of both, and that of a prefix.
const MOST_BESIDES: usize = 8 + 3 * 4;
/// Keys share prefixes if that saves at least this fraction of the block: whole keys need not be put together by readers.
const LEAST_SAVING: usize = 32;

/// Builds the contents of one block.
#[derive(Debug, Default)]
pub(crate) struct BlockBuilder {
    /// The values, at first.
    bytes: Vec<u8>,
    /// The keys, one behind the other.
    keys: Vec<u8>,
    entries: Vec<Added>,
    sizes: Sizes,
}

#[derive(Debug)]
struct Added {
    tag: u64,
    /// The ends of the key in `keys` and of the value in `bytes`.
    key_end: u32,
    value_end: u32,
}

/// The measures of a block that determine the length of its contents.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sizes {
    entries: usize,
    values: usize,
    /// The keys, and the prefixes that they share, as one bundle.
    keys: usize,
    shared: usize,
    /// The bytes of the keys in bundles that are complete, less those that their prefixes save; then the keys of the last one, and their prefix.
    in_bundles: usize,
    last_bundle: usize,
    shared_in_last: usize,
    tags: (u64, u64),
    /// The lengths of key and value, as long as all entries have the same.
    key_len: Option<usize>,
    value_len: Option<usize>,
    is_plain: bool,
}

/// How a block is stored.
#[derive(Clone, Copy, Debug)]
struct Form {
    bundle_shift: u8,
    key_offset_len: u8,
    value_offset_len: u8,
    /// The length of the contents.
    len: usize,
}

impl Sizes {
    /// The sizes with one more entry, whose key shares bytes with the first key and that of the last bundle.
    fn with(&self, key: &[u8], shared: (usize, usize), tag: u64, value_len: usize) -> Self {
        let mut next = self.clone();
        if next.entries == 0 {
            (next.shared, next.tags, next.is_plain) = (key.len(), (tag, tag), true);
            (next.key_len, next.value_len) = (Some(key.len()), Some(value_len));
        }
        if next.entries.is_multiple_of(1 << SHORT_BUNDLES) {
            next.in_bundles += next.last_bundle_len();
            (next.last_bundle, next.shared_in_last) = (0, key.len());
        }
        next.entries += 1;
        next.keys += key.len();
        next.last_bundle += key.len();
        next.values += value_len;
        (next.shared, next.shared_in_last) = (next.shared.min(shared.0), next.shared_in_last.min(shared.1));
        next.tags = (next.tags.0.min(tag), next.tags.1.max(tag));
        next.key_len = next.key_len.filter(|len| *len == key.len());
        next.value_len = next.value_len.filter(|len| *len == value_len);
        next
    }

    /// The bytes of the last bundle in the column.
    fn last_bundle_len(&self) -> usize {
        match self.entries % (1 << SHORT_BUNDLES) {
            0 if self.entries == 0 => 0,
            0 => self.last_bundle - ((1 << SHORT_BUNDLES) - 1) * self.shared_in_last,
            count => self.last_bundle - (count - 1) * self.shared_in_last,
        }
    }

    /// The length of the contents.
    pub(crate) fn len(&self) -> usize {
        self.form().len
    }

    /// The form that is stored: one that shares prefixes, if that saves enough.
    fn form(&self) -> Form {
        let one = self.form_with(ONE_BUNDLE, 1, self.keys - (self.entries - 1) * self.shared);
        let short = self.form_with(
            SHORT_BUNDLES,
            self.entries.div_ceil(1 << SHORT_BUNDLES),
            self.in_bundles + self.last_bundle_len(),
        );
        let whole = self.form_with(WHOLE, 0, self.keys);
        let shared = if short.len < one.len { short } else { one };
        if shared.len + whole.len / LEAST_SAVING > whole.len { whole } else { shared }
    }

    fn form_with(&self, bundle_shift: u8, bundles: usize, keys: usize) -> Form {
        let key_offset_len = offset_len(keys, if bundles == 0 { self.key_len } else { None });
        let value_offset_len = offset_len(self.values, self.value_len);
        let column = |len: u8, parts: usize| if len == 0 { 4 } else { usize::from(len) * (parts + 1) };
        let offsets = column(key_offset_len, self.entries + bundles) + column(value_offset_len, self.entries);
        let len = self.values + keys + self.tag_len() * self.entries + offsets + FOOTER_LEN;
        Form { bundle_shift, key_offset_len, value_offset_len, len }
    }

    /// The length of a tag.
    fn tag_len(&self) -> usize {
        (u64::BITS - (self.tags.1 - self.tags.0).leading_zeros()).div_ceil(8) as usize
    }
}

impl BlockBuilder {
    /// The sizes with another entry, which must come after all earlier ones. O(length of the key).
    pub(crate) fn sizes_with(&self, key: &[u8], seqno: SeqNo, kind: Kind, value: &[u8]) -> Sizes {
        let first_of_bundle = self.entries.len() >> SHORT_BUNDLES << SHORT_BUNDLES;
        let shared_with = |at: usize| match at < self.entries.len() {
            true => shared_len(self.key(at), key),
            false => key.len(),
        };
        let value_len = if kind == Kind::Tombstone { 0 } else { value.len() };
        let mut next =
            self.sizes.with(key, (shared_with(0), shared_with(first_of_bundle)), tag(seqno, kind), value_len);
        let repeats = self.entries.len().checked_sub(1).is_some_and(|last| self.key(last) == key);
        next.is_plain &= kind == Kind::Value && !repeats;
        next
    }

    /// Adds an entry, which must come after all earlier ones.
    #[cfg(test)]
    pub(crate) fn add(&mut self, key: &[u8], seqno: SeqNo, kind: Kind, value: &[u8]) {
        self.add_sized(self.sizes_with(key, seqno, kind, value), (key, seqno, kind, value));
    }

    /// Adds an entry with which the block has these sizes.
    pub(crate) fn add_sized(&mut self, sizes: Sizes, (key, seqno, kind, value): (&[u8], SeqNo, Kind, &[u8])) {
        let value = if kind == Kind::Tombstone { &[] } else { value };
        self.sizes = sizes;
        self.keys.extend_from_slice(key);
        // Includes room for the other columns; otherwise a long value would be copied into memory of twice its size.
        self.bytes.reserve(value.len() + self.keys.len() + MOST_BESIDES * (self.entries.len() + 2) + FOOTER_LEN);
        self.bytes.extend_from_slice(value);
        let (key_end, value_end) = (self.keys.len() as u32, self.bytes.len() as u32);
        self.entries.push(Added { tag: tag(seqno, kind), key_end, value_end });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The length of the contents so far, in bytes.
    pub(crate) fn len(&self) -> usize {
        if self.is_empty() { 0 } else { self.sizes.len() }
    }

    fn key_range(&self, at: usize) -> Range<usize> {
        let start = at.checked_sub(1).map_or(0, |before| self.entries[before].key_end as usize);
        start..self.entries[at].key_end as usize
    }

    fn key(&self, at: usize) -> &[u8] {
        &self.keys[self.key_range(at)]
    }

    /// Passes the finished contents to `take` and starts the next block in the same memory.
    pub(crate) fn finish<T>(&mut self, take: impl FnOnce(&[u8]) -> T) -> T {
        let Form { bundle_shift, key_offset_len, value_offset_len, .. } = self.sizes.form();
        let mut bytes = std::mem::take(&mut self.bytes);
        let keys_at = bytes.len();
        // The ends of the parts of the column of keys.
        let mut key_ends: Vec<u32> =
            Vec::with_capacity(self.entries.len() + self.entries.len().div_ceil(1 << SHORT_BUNDLES));
        if bundle_shift == WHOLE {
            bytes.extend_from_slice(&self.keys);
            key_ends.extend(self.entries.iter().map(|entry| entry.key_end));
        } else {
            for first in (0..self.entries.len()).step_by(1 << bundle_shift) {
                let last = self.entries.len().min(first + (1 << bundle_shift)) - 1;
                let prefix = shared_len(self.key(first), self.key(last));
                bytes.extend_from_slice(&self.key(first)[..prefix]);
                key_ends.push((bytes.len() - keys_at) as u32);
                for at in first..=last {
                    bytes.extend_from_slice(&self.key(at)[prefix..]);
                    key_ends.push((bytes.len() - keys_at) as u32);
                }
            }
        }
        let (tag_len, smallest) = (self.sizes.tag_len(), self.sizes.tags.0);
        for entry in &self.entries {
            bytes.extend_from_slice(&(entry.tag - smallest).to_le_bytes()[..tag_len]);
        }
        put_offsets(&mut bytes, value_offset_len, self.entries.iter().map(|entry| entry.value_end));
        put_offsets(&mut bytes, key_offset_len, key_ends.into_iter());
        codec::put_u32(&mut bytes, self.entries.len() as u32);
        let plain = if self.sizes.is_plain { PLAIN } else { 0 };
        bytes.extend_from_slice(&[bundle_shift, key_offset_len, value_offset_len, tag_len as u8 | plain]);
        codec::put_u64(&mut bytes, smallest);
        let taken = take(&bytes);
        bytes.clear();
        bytes.shrink_to(KEPT_LEN);
        self.bytes = bytes;
        self.keys.clear();
        self.keys.shrink_to(KEPT_LEN);
        self.entries.clear();
        self.sizes = Sizes::default();
        taken
    }
}

/// The length of an offset in a column of this length, whose parts may all have one length.
fn offset_len(column: usize, common: Option<usize>) -> u8 {
    match common {
        Some(_) => 0,
        None if column <= usize::from(u16::MAX) => 2,
        None => 4,
    }
}

/// Appends a column of offsets: 0 and the ends of the parts, or the common length of all parts.
fn put_offsets(bytes: &mut Vec<u8>, len: u8, mut ends: impl Iterator<Item = u32>) {
    match len {
        0 => codec::put_u32(bytes, ends.next().unwrap_or(0)),
        2 => std::iter::once(0).chain(ends).for_each(|end| bytes.extend_from_slice(&(end as u16).to_le_bytes())),
        _ => std::iter::once(0).chain(ends).for_each(|end| codec::put_u32(bytes, end)),
    }
}

fn tag(seqno: SeqNo, kind: Kind) -> u64 {
    seqno << 1 | u64::from(kind == Kind::Value)
}
