//! Reads nodes and their links; and replaces the value of a node by a later write of its key and version.
//!
//! I10 replacement: a replaceable node stays where it is in the list, and the word before its link names the node that was written last for
//! its key and version: 0 for itself. Such a node is written in full, is never linked, and is never replaced itself. One swap of the word
//! commits a replacement, so replacements of an entry have one order, that of the swaps, and a reader sees the one or the other. Nothing
//! else about the list changes: not its order, not its hints.

use super::id::{Link, NodeId, Predecessor};
use super::write::{Kind, MAX_TAG, REPLACEABLE};
use crate::mem::storage::{Storage, WORD};
use crate::sync::{AtomicU64, Ordering, ord};

/// What a node holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Record<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) value: &'a [u8],
    pub(crate) kind: Kind,
    pub(crate) tag: u8,
}

/// A node in its table's storage, or the head where a method allows it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Node<'a> {
    pub(super) storage: &'a Storage,
    pub(super) off: u32,
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

    /// Asks the processor for what a search reads: the link, meta words and the beginning of the key.
    #[inline(always)]
    pub(crate) fn prefetch_search(self) {
        self.storage.prefetch::<0>(self.off);
        self.storage.prefetch::<4>(self.off);
    }

    /// Asks the processor for what an iterator reads of a node at `off`, if there is one: the link, the key, and the beginning of the value.
    #[inline(always)]
    pub(crate) fn prefetch_entry(storage: &Storage, off: u32) {
        storage.prefetch::<0>(off);
        storage.prefetch::<8>(off);
        storage.prefetch::<14>(off);
    }

    /// Meta word `index`.
    ///
    /// # Safety
    /// A node, not the head, made with more than `index` meta words.
    #[inline(always)]
    pub(crate) unsafe fn meta(self, index: usize) -> &'a AtomicU64 {
        // SAFETY: the node has such a word, which has an offset.
        let off = unsafe { self.off.unchecked_add(1 + index as u32) };
        // SAFETY: it stands behind the link and is only ever an atomic.
        unsafe { self.storage.word(off) }
    }

    /// # Safety
    /// A node of this storage, not the head, and `at..at + len` are bytes that `NewNode::write` wrote.
    #[inline(always)]
    unsafe fn bytes(self, at: usize, len: usize) -> &'a [u8] {
        // SAFETY: I4; what made the id happened after the writing (see `NodeId`).
        unsafe { self.storage.read(self.off, at, len) }
    }

    /// The varint at `at`, and where it ends. One of two bytes, as for values of 64 bytes to 8 KiB, is as quick as one of one byte.
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
        // SAFETY: the first byte is not the last.
        let second = unsafe { self.bytes(at + 1, 1) }[0];
        let number = u32::from(first & 0x7f) | u32::from(second & 0x7f) << 7;
        if second < 0x80 {
            return (number, at + 2);
        }
        // SAFETY: the second byte is not the last.
        unsafe { self.long_varint(number, at + 2) }
    }

    /// The rest of a varint from its third byte, at `at`, on, and where it ends.
    ///
    /// # Safety
    /// As for [`varint`](Self::varint), whose first two bytes hold `number`, and are not the last.
    #[cold]
    unsafe fn long_varint(self, mut number: u32, mut at: usize) -> (u32, usize) {
        let mut shift = 14;
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

    /// What the latest write of its key and version stored.
    ///
    /// # Safety
    /// A linked node of this storage, not the head, made with `meta` meta words.
    #[inline(always)]
    pub(crate) unsafe fn record(self, meta: usize) -> Record<'a> {
        // SAFETY: the caller's promise.
        match unsafe { self.short_value(meta) } {
            Some((key, value)) => Record { key, value, kind: Kind::Value, tag: 0 },
            // SAFETY: the caller's promise.
            None => unsafe { self.latest_record(meta) },
        }
    }

    /// The key and the value, if this is a plain value, the length of the key takes one byte, and the head at most two.
    ///
    /// # Safety
    /// A node of this storage, not the head, made with `meta` meta words.
    #[inline(always)]
    unsafe fn short_value(self, meta: usize) -> Option<(&'a [u8], &'a [u8])> {
        let start = WORD * (1 + meta);
        // SAFETY: the key's length stands right behind the meta words.
        let key_len = unsafe { self.bytes(start, 1) }[0];
        let end = start + 1 + usize::from(key_len);
        if key_len >= 0x80 {
            return None;
        }
        // SAFETY: the head follows the key.
        let first = unsafe { self.bytes(end, 1) }[0];
        let (len, at) = if first < 0x80 {
            (usize::from(first >> 1), end + 1)
        } else {
            // SAFETY: the first byte of the head is not its last.
            let second = unsafe { self.bytes(end + 1, 1) }[0];
            if second >= 0x80 {
                return None;
            }
            (usize::from(first >> 1 & 0x3f) | usize::from(second) << 6, end + 2)
        };
        if first & 1 != 0 {
            return None;
        }
        // SAFETY: the key follows its length.
        let key = unsafe { self.bytes(start + 1, key_len.into()) };
        // SAFETY: the value follows the head, which says its length.
        Some((key, unsafe { self.bytes(at, len) }))
    }

    /// What it holds itself, whatever replaced that; and whether it is replaceable.
    ///
    /// # Safety
    /// A node of this storage, not the head, made with `meta` meta words.
    pub(crate) unsafe fn own_record(self, meta: usize) -> (Record<'a>, bool) {
        // SAFETY: the caller's promise.
        let (key, end) = unsafe { self.key_and_end(meta) };
        // SAFETY: the head follows the key.
        let (head, at) = unsafe { self.varint(end) };
        let (value_at, len, byte) = match (head & 1 == 0, head >> 1) {
            (true, len) => (at, len, 0),
            (false, 0) => return (Record { key, value: &[], kind: Kind::Tombstone, tag: 0 }, false),
            // SAFETY: such a head has a byte behind it.
            (false, more) => (at + 1, more - 1, unsafe { self.bytes(at, 1) }[0]),
        };
        // SAFETY: the value follows the head, which says its length, or that byte.
        let value = unsafe { self.bytes(value_at, len as usize) };
        let (kind, tag) = (if byte & 1 == 0 { Kind::Value } else { Kind::Tombstone }, byte >> 1);
        (Record { key, value, kind, tag: tag & MAX_TAG }, tag & REPLACEABLE != 0)
    }
}

impl<'a> Node<'a> {
    /// The word before the link.
    ///
    /// # Safety
    /// A replaceable node of this storage.
    #[inline]
    unsafe fn latest_word(self) -> &'a AtomicU64 {
        // SAFETY: such a node was allocated with a word before its link, which is only ever an atomic.
        unsafe { self.storage.word(self.off - 1) }
    }

    /// Makes the word at `off`, behind which a replaceable node is to be written, say that nothing replaced it yet. Returns
    /// where the node begins.
    ///
    /// # Safety
    /// The word at `off` was allocated to the caller, and used for nothing else.
    pub(crate) unsafe fn write_latest(storage: &Storage, off: u32) -> u32 {
        storage.unpoison(off, WORD);
        // SAFETY: the caller's, and an atomic from the start. Relaxed: published with the node.
        unsafe { storage.word(off) }.store(0, Ordering::Relaxed);
        off + 1
    }

    /// The node that was written last for this one's key and version, unless that is this one.
    ///
    /// # Safety
    /// A replaceable node of this storage that was linked.
    #[inline]
    pub(crate) unsafe fn latest(self) -> Option<NodeId> {
        // SAFETY: the caller's promise.
        let word = unsafe { self.latest_word() };
        // ORDERING(latest.read): Acquire; pairs with `latest.swap`. Weaker: the new value could be read before it is written (loom
        // `replaced_value_is_seen_whole`).
        let latest = word.load(ord("latest.read", Ordering::Acquire));
        // SAFETY: 0, or what `replace` stored of an id of this table, and acquired.
        unsafe { NodeId::from_stored(latest as u32) }
    }

    /// Makes `by` the latest node, and returns what was it before, unless that is this one.
    ///
    /// # Safety
    /// A replaceable node of this storage that was linked; `by` is another one with its key and version that was not.
    pub(crate) unsafe fn replace(self, by: NodeId) -> Option<NodeId> {
        // SAFETY: the caller's promise.
        let word = unsafe { self.latest_word() };
        // ORDERING(latest.swap): Release; pairs with `latest.read`, see there. And Acquire; pairs with itself. Weaker: the length of what is
        // replaced, which is counted, could be read before it is written (loom `last_of_two_replacements_stays`).
        let before = word.swap(by.to_stored().into(), ord("latest.swap", Ordering::AcqRel));
        // SAFETY: 0, or what `replace` stored of an id of this table, and acquired.
        unsafe { NodeId::from_stored(before as u32) }
    }

    /// What the latest write of its key and version stored, whatever that is.
    ///
    /// # Safety
    /// A linked node of this storage, not the head, made with `meta` meta words.
    #[inline(never)]
    pub(super) unsafe fn latest_record(self, meta: usize) -> Record<'a> {
        // SAFETY: the caller's promise.
        let (own, is_replaceable) = unsafe { self.own_record(meta) };
        if !is_replaceable {
            return own;
        }
        // SAFETY: replaceable, as was just read.
        match unsafe { self.latest() } {
            None => own,
            // SAFETY: of this table, and made as this one was.
            Some(latest) => unsafe { Node::new(self.storage, latest).own_record(meta) }.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mem::storage::REDZONE_WORDS;
    use crate::node::write::varint_len;
    use crate::node::{MAX_KEY_LEN, MAX_TAG, MAX_VALUE_LEN, NewNode};

    /// Catches a length, kind or tag that is cut or grows on its way through the arena, at every size where its encoding changes, and
    /// plain entries that take more room than they did without tags.
    #[test]
    fn entries_come_back_as_written() {
        let storage = Storage::reserve(1 << 20, 1 << 20, false, None).unwrap();
        // No two pieces of one length are alike.
        let long: Vec<_> = (0..70_000_u32).map(|at| (at.wrapping_mul(0x9e37_79b1) >> 24) as u8).collect();
        let kinds = [Kind::Value, Kind::Tombstone].into_iter().flat_map(|kind| [0, 1, MAX_TAG].map(|tag| (kind, tag)));
        for ((kind, tag), (meta, off)) in kinds.flat_map(|kind| [(kind, (1, 100)), (kind, (2, 50_000))]) {
            for key in [0, 1, 6, 15, 16, 17, 31, 32, 33, 127, 128, 16_383, 16_384, MAX_KEY_LEN] {
                for value in [0, 1, 62, 63, 64, 8190, 8191, 8192, 70_000] {
                    let (key, value) = (&long[..key], &long[..value]);
                    let parts = [&value[..value.len() / 3], &value[value.len() / 3..]];
                    let new = NewNode::new(key, &parts, kind, tag, 0);
                    assert!(new.is_encodable());
                    // SAFETY: the storage is this test's alone and large enough.
                    let id = unsafe { new.write(&storage, off, &[0; 2][..meta]) };
                    let node = Node::new(&storage, id);
                    // SAFETY: written just above, by this thread.
                    assert_eq!(unsafe { node.record(meta) }, Record { key, value, kind, tag });
                    let head = match (kind, tag, value.len()) {
                        (Kind::Value, 0, len) => varint_len((len as u32) << 1),
                        (Kind::Tombstone, 0, 0) => 1,
                        (.., len) => varint_len((len as u32 + 1) << 1) + 1,
                    };
                    let bytes = varint_len(key.len() as u32) + head + key.len() + value.len();
                    assert_eq!(new.words(meta) as usize, 1 + meta + bytes.div_ceil(8) + REDZONE_WORDS);
                }
            }
        }
    }

    /// Catches a limit that is off by one, or that parts get round.
    #[test]
    fn what_passes_a_limit_is_not_encodable() {
        let long = vec![0; MAX_KEY_LEN + 1];
        let many = vec![&long[..1 << 15]; MAX_VALUE_LEN >> 15];
        let is_encodable =
            |key: usize, value: &[&[u8]], tag| NewNode::new(&long[..key], value, Kind::Value, tag, 0).is_encodable();
        assert!(is_encodable(MAX_KEY_LEN, &many, MAX_TAG));
        assert!(!is_encodable(MAX_KEY_LEN + 1, &[], 0));
        assert!(!is_encodable(0, &[&many[..], &[&[0]]].concat(), 0));
        assert!(!is_encodable(0, &[], MAX_TAG + 1));
    }
}
