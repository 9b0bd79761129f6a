//! Entries: their kinds, their limits, and the targets of searches for them; and the layout and writing of nodes.

use super::id::NodeId;
use crate::mem::storage::{REDZONE_WORDS, Storage, WORD};
use crate::sync::Ordering;

/// The maximum length of a key, in bytes: 64 KiB - 1 for the caller's key, and 8 that an engine adds, such as the number of a column family.
pub const MAX_KEY_LEN: usize = u16::MAX as usize + 8;
/// The maximum length of a value: 1 GiB.
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

/// The bit above a tag: the node has a word before its link, which names the node that replaces it.
pub(super) const REPLACEABLE: u8 = MAX_TAG + 1;

/// The target of a search: the first entry that has this key and a version not greater than this one, or else the first entry after that position.
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
    /// A node whose value is given in parts.
    #[inline]
    pub(crate) fn new(key: &'k [u8], value: &'k [&'k [u8]], kind: Kind, tag: u8, version: u64) -> Self {
        // The parts may overlap in memory, so their total length may exceed the size of any memory.
        let value_len = value.iter().fold(0, |len: usize, part| len.saturating_add(part.len()));
        Self { key, value, value_len, kind, tag, version }
    }

    /// The same node, as one that a later write of its key and version can replace. [`words`](Self::words) does not count the word before the link.
    #[inline]
    pub(crate) fn replaceable(self) -> Self {
        Self { tag: self.tag | REPLACEABLE, ..self }
    }

    /// The target of a search for the place of this node.
    #[inline]
    pub(crate) fn target(&self) -> Target<'k> {
        Target { key: self.key, version: self.version }
    }

    /// Whether key, value and tag are within the limits. May be called only for a node that is not [replaceable](Self::replaceable) yet.
    #[inline]
    pub(crate) fn is_encodable(&self) -> bool {
        self.key.len() <= MAX_KEY_LEN && self.value_len <= MAX_VALUE_LEN && self.tag <= MAX_TAG
    }

    /// The header, and the byte after it, if there is one: see the header of `node/mod.rs`.
    #[inline]
    fn head(&self) -> (u32, Option<u8>) {
        // Cannot overflow: see `is_encodable`.
        let len = self.value_len as u32;
        match (self.kind, self.tag) {
            (Kind::Value, 0) => (len << 1, None),
            (Kind::Tombstone, 0) if len == 0 => (1, None),
            (kind, tag) => ((len + 1) << 1 | 1, Some(tag << 1 | u8::from(kind == Kind::Tombstone))),
        }
    }

    /// The number of words of the node, with `meta` words between the link and the bytes.
    #[inline]
    pub(crate) fn words(&self, meta: usize) -> u32 {
        (1 + meta + self.bytes().div_ceil(WORD) + REDZONE_WORDS) as u32
    }

    /// The number of bytes after the link and the meta words.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        let (head, byte) = self.head();
        let lengths = varint_len(self.key.len() as u32) + varint_len(head) + usize::from(byte.is_some());
        lengths + self.key.len() + self.value_len
    }

    /// Writes the node, with these meta words, into the words from `off` on. The link of the node is left unchanged.
    ///
    /// # Safety
    /// [`words`](Self::words) words from `off` on, for this node and its meta words, were allocated to the caller. They lie behind the head, and were
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
            // SAFETY: `words` counts these bytes, and they belong to the caller alone until it links the node.
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
        // SAFETY: this thread has just written the node, and it lies behind the head.
        unsafe { NodeId::of_written(off) }
    }
}

/// LEB128: seven bits in each byte, the lowest first. Nearly every number takes one or two bytes.
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
