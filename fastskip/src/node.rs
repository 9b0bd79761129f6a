//! How a node lies in the arena, and how a link is packed.
//!
//! ```text
//!            link h-1 | ... | link 1 | link 0 | meta ... | klen key vlen+kind value | padding
//! node offset ------------------------^       8 bytes each   lengths as varints        to 8 bytes
//! ```
//!
//! Links stand before the node (as in RocksDB's `InlineSkipList`), so its key is found without knowing its height, and
//! the height is stored nowhere. The last bit of the value's length tells a tombstone.
//!
//! I4 frozen bytes: everything right of the links is written before the node is linked and never again, except the meta
//! words of a list, which are its documented atomics (`stamp.rs`).

use crate::height::MAX_HEIGHT;
use crate::key::Piece;
use crate::storage::{GAP_WORDS, Storage, WORD};
use crate::sync::{AtomicU64, Ordering, ord};

/// The longest key: 64 KiB - 1.
pub const MAX_KEY_LEN: usize = u16::MAX as usize;
/// The longest value: 1 GiB.
pub const MAX_VALUE_LEN: usize = 1 << 30;

/// The offset that ends a level. No node lies there.
pub(crate) const NIL: u32 = 0;
/// The offset of the head, the tower before every key. Its links are the first words of the arena.
pub(crate) const HEAD: u32 = MAX_HEIGHT as u32;
/// The words before the first node.
pub(crate) const HEAD_WORDS: u32 = HEAD + 1;

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The key is deleted.
    Tombstone,
    /// The key has a value.
    Value,
}

/// A link: where the successor lies, and how it compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) piece: Piece,
    pub(crate) to: u32,
}

impl Link {
    pub(crate) const END: Self = Self { piece: Piece::END, to: NIL };

    #[inline(always)]
    pub(crate) fn pack(self) -> u64 {
        u64::from(self.piece.0) << 32 | u64::from(self.to)
    }

    #[inline(always)]
    pub(crate) fn unpack(word: u64) -> Self {
        Self { piece: Piece((word >> 32) as u32), to: word as u32 }
    }
}

/// The parts of a node that are known before it is allocated.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Draft<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) value: &'a [u8],
    pub(crate) kind: Kind,
    pub(crate) version: u64,
}

impl Draft<'_> {
    /// Whether key and value keep to the limits.
    #[inline]
    pub(crate) fn is_encodable(&self) -> bool {
        self.key.len() <= MAX_KEY_LEN && self.value.len() <= MAX_VALUE_LEN
    }

    fn value_head(&self) -> u32 {
        // Cannot overflow: `is_encodable`.
        (self.value.len() as u32) << 1 | u32::from(self.kind == Kind::Tombstone)
    }

    /// Words of the node with a tower of `height`, and with `meta` words between links and bytes.
    #[inline]
    pub(crate) fn words(&self, height: usize, meta: usize) -> u32 {
        (height + meta + self.bytes().div_ceil(WORD) + GAP_WORDS) as u32
    }

    /// Bytes behind links and meta words.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        let lengths = varint_len(self.key.len() as u32) + varint_len(self.value_head());
        lengths + self.key.len() + self.value.len()
    }

    /// Writes the bytes of the node at `off`.
    ///
    /// # Safety
    /// The words of this draft and its tower, whose last one is `off`, were allocated to the caller with `meta` meta words,
    /// and the node is not linked.
    #[inline]
    pub(crate) unsafe fn write(&self, storage: &Storage, off: u32, meta: usize) {
        let mut at = WORD * (1 + meta);
        let mut put = |bytes: &[u8]| {
            // SAFETY: `words` counts these bytes, and they are the caller's alone until it links the node.
            unsafe { storage.write(off, at, bytes) };
            at += bytes.len();
        };
        let (head, len) = varint(self.key.len() as u32);
        put(&head[..len]);
        put(self.key);
        let (head, len) = varint(self.value_head());
        put(&head[..len]);
        put(self.value);
    }
}

/// LEB128: seven bits a byte, the lowest first.
fn varint(mut number: u32) -> ([u8; 5], usize) {
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

fn varint_len(number: u32) -> usize {
    (number | 1).ilog2() as usize / 7 + 1
}

/// A linked node, or the head where a method allows it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Node<'a> {
    pub(crate) storage: &'a Storage,
    pub(crate) off: u32,
}

impl<'a> Node<'a> {
    /// The link at `level`.
    ///
    /// # Safety
    /// The node (or head) was reached through links of this storage, and at `level` or a higher one.
    #[inline(always)]
    pub(crate) unsafe fn link(self, level: usize) -> &'a AtomicU64 {
        // SAFETY: reached at `level`, so its tower has that many words before it (I2); towers are only ever atomics.
        unsafe { self.storage.word(self.off - level as u32) }
    }

    /// The successor at `level`.
    ///
    /// # Safety
    /// As for [`link`](Self::link).
    #[inline(always)]
    pub(crate) unsafe fn next(self, level: usize) -> Link {
        // SAFETY: the caller's promise.
        let link = unsafe { self.link(level) };
        // ORDERING(link.next): Acquire; pairs with `link.commit` and `link.raise`. Weaker: the successor's bytes could be
        // read before they are written (loom `publish`).
        Link::unpack(link.load(ord("link.next", Ordering::Acquire)))
    }

    /// Meta word `index`.
    ///
    /// # Safety
    /// A node, not the head, made with more than `index` meta words.
    #[inline(always)]
    pub(crate) unsafe fn meta(self, index: usize) -> &'a AtomicU64 {
        // SAFETY: it stands behind link 0 and is only ever an atomic.
        unsafe { self.storage.word(self.off + 1 + index as u32) }
    }

    /// # Safety
    /// Reached through links, not the head, and `at..at + len` are bytes that `Draft::write` wrote.
    #[inline(always)]
    unsafe fn bytes(self, at: usize, len: usize) -> &'a [u8] {
        // SAFETY: I4, and the link that led here was acquired.
        unsafe { self.storage.read(self.off, at, len) }
    }

    /// The varint at `at`, and where it ends.
    ///
    /// # Safety
    /// As for [`bytes`](Self::bytes), and `Draft::write` wrote a varint there.
    #[inline(always)]
    unsafe fn varint(self, at: usize) -> (u32, usize) {
        // SAFETY: a varint has at least one byte.
        let first = unsafe { self.bytes(at, 1) }[0];
        if first < 0x80 {
            return (first.into(), at + 1);
        }
        // SAFETY: the caller's promise.
        unsafe { self.long_varint(at) }
    }

    /// # Safety
    /// As for [`varint`](Self::varint).
    unsafe fn long_varint(self, mut at: usize) -> (u32, usize) {
        let (mut number, mut shift) = (0, 0);
        loop {
            // SAFETY: the last byte, which ends the loop, is not reached yet.
            let byte = unsafe { self.bytes(at, 1) }[0];
            number |= u32::from(byte & 0x7f) << shift;
            at += 1;
            shift += 7;
            if byte < 0x80 {
                return (number, at);
            }
        }
    }

    /// The key, and where it ends.
    ///
    /// # Safety
    /// Reached through links, not the head, made with `meta` meta words.
    #[inline(always)]
    unsafe fn key_and_end(self, meta: usize) -> (&'a [u8], usize) {
        // SAFETY: the key's length stands right behind the meta words.
        let (len, at) = unsafe { self.varint(WORD * (1 + meta)) };
        // SAFETY: the key follows its length.
        (unsafe { self.bytes(at, len as usize) }, at + len as usize)
    }

    /// The key; empty for the head.
    ///
    /// # Safety
    /// Reached through links, or the head; made with `meta` meta words.
    #[inline(always)]
    pub(crate) unsafe fn key(self, meta: usize) -> &'a [u8] {
        if self.off == HEAD {
            return &[];
        }
        // SAFETY: not the head; the rest is the caller's promise.
        unsafe { self.key_and_end(meta) }.0
    }

    /// Key, value and kind.
    ///
    /// # Safety
    /// Reached through links, not the head, made with `meta` meta words.
    #[inline]
    pub(crate) unsafe fn entry(self, meta: usize) -> (&'a [u8], &'a [u8], Kind) {
        // SAFETY: the caller's promise.
        let (key, end) = unsafe { self.key_and_end(meta) };
        // SAFETY: the value's length follows the key.
        let (head, at) = unsafe { self.varint(end) };
        // SAFETY: the value follows its length.
        let value = unsafe { self.bytes(at, (head >> 1) as usize) };
        (key, value, if head & 1 == 0 { Kind::Value } else { Kind::Tombstone })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a length that is cut or grows on its way through the arena, at every size where its encoding changes.
    #[test]
    fn entries_come_back_as_written() {
        let storage = Storage::reserve(1 << 20, 1 << 20).unwrap();
        let long = vec![42; 70_000];
        for (meta, off) in [(1, 100), (2, 50_000)] {
            for key in [0, 1, 127, 128, 16_383, 16_384, MAX_KEY_LEN] {
                for value in [0, 1, 63, 64, 8191, 8192, 70_000] {
                    for kind in [Kind::Value, Kind::Tombstone] {
                        let draft = Draft { key: &long[..key], value: &long[..value], kind, version: 0 };
                        assert!(draft.is_encodable());
                        // SAFETY: the storage is this test's alone and large enough.
                        unsafe { draft.write(&storage, off, meta) };
                        let node = Node { storage: &storage, off };
                        // SAFETY: written just above, by this thread.
                        assert_eq!(unsafe { node.entry(meta) }, (draft.key, draft.value, kind));
                        let lengths = varint_len(key as u32) + varint_len((value as u32) << 1);
                        let words = 1 + meta + (lengths + key + value).div_ceil(8) + GAP_WORDS;
                        assert_eq!(draft.words(1, meta) as usize, words);
                    }
                }
            }
        }
    }

    /// Catches a link that loses bits of either half.
    #[test]
    fn links_come_back_as_packed() {
        for link in [Link::END, Link { piece: Piece(0x0102_0304), to: u32::MAX }] {
            assert_eq!(Link::unpack(link.pack()), link);
        }
    }
}
