//! Entries: their kinds, their limits, and the target of a search for one; and how a node is laid out and written.

use super::id::NodeId;
use crate::mem::storage::{REDZONE_WORDS, Storage, WORD};
use crate::sync::Ordering;

/// The longest key, in bytes: 64 KiB - 1 of a caller's own, and 8 for what an engine stores with it, such as the number of a column family.
pub const MAX_KEY_LEN: usize = u16::MAX as usize + 8;
/// The longest value: 1 GiB.
pub const MAX_VALUE_LEN: usize = 1 << 30;

/// The greatest tag: six bits.
pub const MAX_TAG: u8 = 63;

/// The kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// The key is deleted.
    Tombstone,
    /// The key has a value.
    Value,
}

/// The bit above a tag: the node has a word before its link, for the node that replaces it.
pub(super) const REPLACEABLE: u8 = MAX_TAG + 1;

/// The target of a search: the first entry with this key and a version not greater, or the first one after it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target<'k> {
    pub(crate) key: &'k [u8],
    pub(crate) version: u64,
}

/// The parts of a node that are known before it is allocated.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewNode<'a> {
    pub(crate) key: &'a [u8],
    value: &'a [&'a [u8]],
    pub(crate) value_len: usize,
    pub(crate) kind: Kind,
    tag: u8,
    pub(crate) version: u64,
}

impl<'k> NewNode<'k> {
    /// A node whose value comes in parts.
    #[inline]
    pub(crate) fn new(key: &'k [u8], value: &'k [&'k [u8]], kind: Kind, tag: u8, version: u64) -> Self {
        // Parts may lie in the same memory, and so be longer together than any memory is.
        let value_len = value.iter().fold(0, |len: usize, part| len.saturating_add(part.len()));
        Self { key, value, value_len, kind, tag, version }
    }

    /// The same, as one that a later write of its key and version may replace. [`words`](Self::words) does not count the word before its link.
    #[inline]
    pub(crate) fn replaceable(self) -> Self {
        Self { tag: self.tag | REPLACEABLE, ..self }
    }

    /// Where it belongs.
    #[inline]
    pub(crate) fn target(&self) -> Target<'k> {
        Target { key: self.key, version: self.version }
    }

    /// Whether key, value and tag keep to the limits. Only for a node that is not [replaceable](Self::replaceable) yet.
    #[inline]
    pub(crate) fn is_encodable(&self) -> bool {
        self.key.len() <= MAX_KEY_LEN && self.value_len <= MAX_VALUE_LEN && self.tag <= MAX_TAG
    }

    /// The head, and the byte behind it, if there is one: see the folder's header.
    #[inline]
    fn head(&self) -> (u32, Option<u8>) {
        // Cannot overflow: `is_encodable`.
        let len = self.value_len as u32;
        match (self.kind, self.tag) {
            (Kind::Value, 0) => (len << 1, None),
            (Kind::Tombstone, 0) if len == 0 => (1, None),
            (kind, tag) => ((len + 1) << 1 | 1, Some(tag << 1 | u8::from(kind == Kind::Tombstone))),
        }
    }

    /// Words of the node, with `meta` words between link and bytes.
    #[inline]
    pub(crate) fn words(&self, meta: usize) -> u32 {
        (1 + meta + self.bytes().div_ceil(WORD) + REDZONE_WORDS) as u32
    }

    /// Bytes behind link and meta words.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        let (head, byte) = self.head();
        let lengths = varint_len(self.key.len() as u32) + varint_len(head) + usize::from(byte.is_some());
        lengths + self.key.len() + self.value_len
    }

    /// Writes the node into the words from `off` on, with these meta words. Its link is left as it is.
    ///
    /// # Safety
    /// [`words`](Self::words) words of this node and its meta words were allocated to the caller from `off` on, behind the head, and
    /// used for nothing else.
    #[inline(always)]
    pub(crate) unsafe fn write(&self, storage: &Storage, off: u32, meta: &[u64]) -> NodeId {
        storage.unpoison(off, (1 + meta.len()) * WORD + self.bytes());
        for (index, word) in (off + 1..).zip(meta) {
            // SAFETY: allocated to the caller; meta words follow the link and are atomics from the start.
            unsafe { storage.word(index) }.store(*word, Ordering::Relaxed);
        }
        let mut at = WORD * (1 + meta.len());
        let mut put = |bytes: &[u8]| {
            // SAFETY: `words` counts these bytes, and they are the caller's alone until it links the node.
            unsafe { storage.write(off, at, bytes) };
            at += bytes.len();
        };
        let (head, byte) = self.head();
        put_varint(self.key.len() as u32, &mut put);
        put(self.key);
        put_varint(head, &mut put);
        if let Some(byte) = byte {
            put(&[byte]);
        }
        self.value.iter().for_each(|part| put(part));
        // SAFETY: just written, by this thread, and it lies behind the head.
        unsafe { NodeId::of_written(off) }
    }
}

/// LEB128: seven bits a byte, the lowest first. Nearly every number takes one byte or two.
#[inline(always)]
fn put_varint(number: u32, put: &mut impl FnMut(&[u8])) {
    match number {
        0..0x80 => put(&[number as u8]),
        0x80..0x4000 => put(&[number as u8 | 0x80, (number >> 7) as u8]),
        _ => {
            let (bytes, len) = long_varint(number);
            put(&bytes[..len]);
        }
    }
}

#[cold]
fn long_varint(mut number: u32) -> ([u8; 5], usize) {
    let mut bytes = [0; 5];
    let mut len = 0;
    while number >= 0x80 {
        bytes[len] = number as u8 | 0x80;
        number >>= 7;
        len += 1;
    }
    bytes[len] = number as u8;
    (bytes, len + 1)
}

#[inline(always)]
pub(super) fn varint_len(number: u32) -> usize {
    if number < 0x80 { 1 } else { number.ilog2() as usize / 7 + 1 }
}
