//! Reads nodes and their links.

use super::Kind;
use super::id::Predecessor;
use super::link::Link;
use crate::mem::storage::{Storage, WORD};
use crate::sync::{AtomicU64, Ordering, ord};

/// A node in its table's storage, or the head where a method allows it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Node<'a> {
    storage: &'a Storage,
    off: u32,
}

impl<'a> Node<'a> {
    /// The node or head `at`, of the table that lies in `storage`.
    #[inline(always)]
    pub(crate) fn new(storage: &'a Storage, at: impl Into<Predecessor>) -> Self {
        Self { storage, off: at.into().offset() }
    }

    /// Makes the head of an empty table: a link that ends the list.
    pub(crate) fn write_head(storage: &'a Storage) {
        let head = Self::new(storage, Predecessor::HEAD);
        // Word 0 stays poisoned.
        storage.unpoison(head.off, WORD);
        // SAFETY: the head of this storage.
        unsafe { head.link() }.store(Link::END.pack(), Ordering::Relaxed);
    }

    /// The link.
    ///
    /// # Safety
    /// The head, or a node of this storage.
    #[inline(always)]
    pub(crate) unsafe fn link(self) -> &'a AtomicU64 {
        // SAFETY: a node begins with its link, which is only ever an atomic.
        unsafe { self.storage.word(self.off) }
    }

    /// The successor.
    ///
    /// # Safety
    /// The head, or a node of this storage that was linked.
    #[inline(always)]
    pub(crate) unsafe fn next(self) -> Link {
        // SAFETY: the caller's promise.
        let link = unsafe { self.link() };
        // ORDERING(link.next): Acquire; pairs with `link.commit`. Weaker: the successor's bytes could be read before they are
        // written (loom `publish`).
        let word = link.load(ord("link.next", Ordering::Acquire));
        // SAFETY: links hold what `pack` made of an id of this table, and were acquired.
        unsafe { Link::unpack(word) }
    }

    /// Asks the processor for the link.
    #[inline(always)]
    pub(crate) fn prefetch_link(self) {
        self.storage.prefetch(self.off);
    }

    /// Asks the processor for what a search reads: the link, meta words and the beginning of the key.
    #[inline(always)]
    pub(crate) fn prefetch_search(self) {
        self.storage.prefetch(self.off);
        // The last nodes of the widest range have no line behind theirs; it is only a hint.
        self.storage.prefetch(self.off.saturating_add(4));
    }

    /// Asks the processor for what an iterator reads: the link, the key, and the beginning of the value.
    #[inline(always)]
    pub(crate) fn prefetch_entry(self) {
        for words in [0, 8, 14] {
            self.storage.prefetch(self.off.saturating_add(words));
        }
    }

    /// Meta word `index`.
    ///
    /// # Safety
    /// A node, not the head, made with more than `index` meta words.
    #[inline(always)]
    pub(crate) unsafe fn meta(self, index: usize) -> &'a AtomicU64 {
        // SAFETY: it stands behind the link and is only ever an atomic.
        unsafe { self.storage.word(self.off + 1 + index as u32) }
    }

    /// # Safety
    /// A node of this storage, not the head, and `at..at + len` are bytes that `NewNode::write` wrote.
    #[inline(always)]
    unsafe fn bytes(self, at: usize, len: usize) -> &'a [u8] {
        // SAFETY: I4; what made the id happened after the writing (see `NodeId`).
        unsafe { self.storage.read(self.off, at, len) }
    }

    /// The varint at `at`, and where it ends.
    ///
    /// # Safety
    /// As for [`bytes`](Self::bytes), and `NewNode::write` wrote a varint there.
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
    /// A node of this storage, not the head, made with `meta` meta words.
    #[inline(always)]
    unsafe fn key_and_end(self, meta: usize) -> (&'a [u8], usize) {
        // SAFETY: the key's length stands right behind the meta words.
        let (len, at) = unsafe { self.varint(WORD * (1 + meta)) };
        // SAFETY: the key follows its length.
        (unsafe { self.bytes(at, len as usize) }, at + len as usize)
    }

    /// The key.
    ///
    /// # Safety
    /// A node of this storage, not the head, made with `meta` meta words.
    #[inline(always)]
    pub(crate) unsafe fn key(self, meta: usize) -> &'a [u8] {
        // SAFETY: the caller's promise.
        unsafe { self.key_and_end(meta) }.0
    }

    /// Key, value and kind.
    ///
    /// # Safety
    /// A node of this storage, not the head, made with `meta` meta words.
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
    use crate::mem::storage::REDZONE_WORDS;
    use crate::node::write::varint_len;
    use crate::node::{MAX_KEY_LEN, NewNode};

    /// Catches a length that is cut or grows on its way through the arena, at every size where its encoding changes.
    #[test]
    fn entries_come_back_as_written() {
        let storage = Storage::reserve(1 << 20, 1 << 20).unwrap();
        let long = vec![42; 70_000];
        for (meta, off) in [(1, 100), (2, 50_000)] {
            for key in [0, 1, 127, 128, 16_383, 16_384, MAX_KEY_LEN] {
                for value in [0, 1, 63, 64, 8191, 8192, 70_000] {
                    for kind in [Kind::Value, Kind::Tombstone] {
                        let new = NewNode { key: &long[..key], value: &long[..value], kind, version: 0 };
                        assert!(new.is_encodable());
                        // SAFETY: the storage is this test's alone and large enough.
                        let id = unsafe { new.write(&storage, off, &[0; 2][..meta]) };
                        let node = Node::new(&storage, id);
                        // SAFETY: written just above, by this thread.
                        assert_eq!(unsafe { node.entry(meta) }, (new.key, new.value, kind));
                        let lengths = varint_len(key as u32) + varint_len((value as u32) << 1);
                        let words = 1 + meta + (lengths + key + value).div_ceil(8) + REDZONE_WORDS;
                        assert_eq!(new.words(meta) as usize, words);
                    }
                }
            }
        }
    }
}
