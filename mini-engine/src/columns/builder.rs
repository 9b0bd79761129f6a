//! [`BlockBuilder`]: collects the entries of a block and lays out its columns.

use std::ops::Range;

use super::layout::{FOOTER_LEN, ONE_BUNDLE, PLAIN, SHORT_BUNDLES, WIDE};
use crate::codec::{self, shared_len};
use crate::types::{Kind, SeqNo};

/// The maximum memory that a builder keeps for the next block, in bytes.
const KEPT_LEN: usize = 1 << 20;

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
struct Sizes {
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
    is_plain: bool,
}

impl Sizes {
    /// The sizes with one more entry, whose key shares bytes with the first key and that of the last bundle.
    fn with(&self, key: &[u8], shared: (usize, usize), tag: u64, value_len: usize) -> Self {
        let mut next = self.clone();
        if next.entries == 0 {
            (next.shared, next.tags, next.is_plain) = (key.len(), (tag, tag), true);
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

    /// The shift of the shorter form, and the length of its contents.
    fn shortest(&self) -> (u8, usize) {
        let lens = [
            (ONE_BUNDLE, 1, self.keys - (self.entries - 1) * self.shared),
            (SHORT_BUNDLES, self.entries.div_ceil(1 << SHORT_BUNDLES), self.in_bundles + self.last_bundle_len()),
        ];
        let len = |(shift, bundles, keys): (u8, usize, usize)| {
            let offsets = self.offset_len(keys) * (2 * self.entries + bundles + 2);
            (shift, self.values + keys + offsets + self.tag_len() * self.entries + FOOTER_LEN)
        };
        let [one, short] = lens.map(len);
        if short.1 < one.1 { short } else { one }
    }

    /// The length of an offset.
    fn offset_len(&self, keys: usize) -> usize {
        if keys.max(self.values) > usize::from(u16::MAX) { 4 } else { 2 }
    }

    /// The length of a tag.
    fn tag_len(&self) -> usize {
        (u64::BITS - (self.tags.1 - self.tags.0).leading_zeros()).div_ceil(8) as usize
    }
}

impl BlockBuilder {
    /// The number of bytes that the contents would have with another entry, which must come after all earlier ones. O(length of the key).
    pub(crate) fn len_with(&self, key: &[u8], seqno: SeqNo, kind: Kind, value: &[u8]) -> usize {
        self.sizes_with(key, tag(seqno, kind), value.len()).shortest().1
    }

    fn sizes_with(&self, key: &[u8], tag: u64, value_len: usize) -> Sizes {
        let first_of_bundle = self.entries.len() >> SHORT_BUNDLES << SHORT_BUNDLES;
        let shared_with = |at: usize| match at < self.entries.len() {
            true => shared_len(self.key(at), key),
            false => key.len(),
        };
        self.sizes.with(key, (shared_with(0), shared_with(first_of_bundle)), tag, value_len)
    }

    /// Adds an entry, which must come after all earlier ones.
    pub(crate) fn add(&mut self, key: &[u8], seqno: SeqNo, kind: Kind, value: &[u8]) {
        let value = if kind == Kind::Tombstone { &[] } else { value };
        let (tag, last) = (tag(seqno, kind), self.entries.len().checked_sub(1));
        let repeats = last.is_some_and(|last| self.key(last) == key);
        self.sizes = self.sizes_with(key, tag, value.len());
        self.sizes.is_plain &= kind == Kind::Value && !repeats;
        self.keys.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        self.entries.push(Added { tag, key_end: self.keys.len() as u32, value_end: self.bytes.len() as u32 });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The length of the contents so far, in bytes.
    pub(crate) fn len(&self) -> usize {
        if self.is_empty() { 0 } else { self.sizes.shortest().1 }
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
        let (shift, len) = self.sizes.shortest();
        let mut bytes = std::mem::take(&mut self.bytes);
        let keys_at = bytes.len();
        bytes.reserve_exact(len.saturating_sub(keys_at));
        // The ends of the parts of keys, the first of which is that of a prefix.
        let mut key_ends: Vec<u32> = Vec::with_capacity(self.entries.len() + self.entries.len().div_ceil(16));
        for first in (0..self.entries.len()).step_by(1 << shift) {
            let last = self.entries.len().min(first + (1 << shift)) - 1;
            let (start, prefix) = (self.key(first), shared_len(self.key(first), self.key(last)));
            bytes.extend_from_slice(&start[..prefix]);
            key_ends.push((bytes.len() - keys_at) as u32);
            for at in first..=last {
                bytes.extend_from_slice(&self.key(at)[prefix..]);
                key_ends.push((bytes.len() - keys_at) as u32);
            }
        }
        let (tag_len, smallest) = (self.sizes.tag_len(), self.sizes.tags.0);
        for entry in &self.entries {
            bytes.extend_from_slice(&(entry.tag - smallest).to_le_bytes()[..tag_len]);
        }
        let is_wide = self.sizes.offset_len(key_ends.last().map_or(0, |end| *end as usize)) == 4;
        let value_ends = self.entries.iter().map(|entry| entry.value_end);
        for offset in std::iter::once(0).chain(value_ends).chain([0]).chain(key_ends) {
            bytes.extend_from_slice(&offset.to_le_bytes()[..if is_wide { 4 } else { 2 }]);
        }
        codec::put_u32(&mut bytes, self.entries.len() as u32);
        let form = tag_len as u8 | if is_wide { WIDE } else { 0 } | if self.sizes.is_plain { PLAIN } else { 0 };
        bytes.extend_from_slice(&[shift, form]);
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

fn tag(seqno: SeqNo, kind: Kind) -> u64 {
    seqno << 1 | u64::from(kind == Kind::Value)
}
