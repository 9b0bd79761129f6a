//! Reads nodes and their links; and replaces the value of a node by that of a later write of the same key and version.
//!
//! I10 replacement: a replaceable node keeps its place in the list. The word before its link names the node that was written last for the same key
//! and version; 0 means the node itself. A replacing node is completely written, is never linked, and is never replaced itself. One swap of the word
//! commits a replacement, so the replacements of an entry are ordered by their swaps, and a reader sees either the old or the new node. Nothing else
//! in the list changes: neither its order nor its hints.

use core::marker::PhantomData;

use super::id::{Link, NodeId, Predecessor};
use super::write::{Kind, MAX_TAG, REPLACEABLE, Target};
use crate::key;
use crate::mem::storage::{Storage, WORD};
use crate::order::Order;
use crate::sync::{AtomicU64, Ordering, ord};

/// The difference between the two types of table below their API: the contents of a node other than its entry, and the order of equal keys.
pub trait Schema: Send + Sync + 'static {
    /// The order of keys.
    type Order: Order;

    /// The number of words between a node's link and its bytes.
    const META_WORDS: usize;

    /// Whether a key can have more than one node.
    const HAS_VERSIONS: bool;

    /// The initial values of the meta words.
    fn meta(version: u64) -> impl AsRef<[u64]>;

    /// The version of a node: among nodes with equal keys, greater versions come first.
    fn version(node: NodeRef<'_, Self>) -> u64
    where
        Self: Sized;
}

/// The contents of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Record<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) value: &'a [u8],
    pub(crate) kind: Kind,
    pub(crate) tag: u8,
}

/// Writes the head of an empty table: a link that ends the list.
pub(super) fn write_head(storage: &Storage) {
    // Word 0 stays poisoned.
    storage.unpoison(Predecessor::HEAD.to_stored(), WORD);
    // SAFETY: the link of the head of this storage.
    unsafe { link(storage, Predecessor::HEAD) }.store(Link::END.pack(), Ordering::Relaxed);
}

/// The word of the link of a node, or of the head.
///
/// # Safety
/// `at` is the head, or a node of this storage.
#[inline(always)]
pub(super) unsafe fn link(storage: &Storage, at: impl Into<Predecessor>) -> &AtomicU64 {
    // SAFETY: a node begins with its link, which is only ever an atomic.
    unsafe { storage.word(at.into().to_stored()) }
}

/// The link of a node, or of the head.
///
/// # Safety
/// `at` is the head, or a node of this storage that was linked.
#[inline(always)]
pub(super) unsafe fn next(storage: &Storage, at: impl Into<Predecessor>) -> Link {
    // SAFETY: the caller's promise.
    let link = unsafe { link(storage, at) };
    // ORDERING(link.next): Acquire; pairs with `link.commit`. Weaker: a reader could read the successor's bytes before they are written
    // (loom `publish`).
    let word = link.load(ord("link.next", Ordering::Acquire));
    // SAFETY: every link was made by `pack` from an id of this table, and this one was acquired.
    unsafe { Link::unpack(word) }
}

/// Prefetches the words that an iterator reads of a node at `off`, if there is one: the link, the key, and the first words of the value.
#[inline(always)]
pub(crate) fn prefetch_entry(storage: &Storage, off: u32) {
    storage.prefetch::<0>(off);
    storage.prefetch::<8>(off);
    storage.prefetch::<14>(off);
}

/// Sets the word at `off`, behind which a replaceable node will be written, to "no replacement yet". Returns the offset where the node begins.
///
/// # Safety
/// The word at `off` was allocated to the caller, and was used for nothing else.
#[inline]
pub(crate) unsafe fn write_latest(storage: &Storage, off: u32) -> u32 {
    storage.unpoison(off, WORD);
    // SAFETY: the word belongs to the caller, and is an atomic from the start. Relaxed: it is published together with the node.
    unsafe { storage.word(off) }.store(0, Ordering::Relaxed);
    off + 1
}

/// A node of a table with this schema, in the table's storage.
pub struct NodeRef<'a, S> {
    storage: &'a Storage,
    off: u32,
    schema: PhantomData<S>,
}

impl<S> Clone for NodeRef<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for NodeRef<'_, S> {}

impl<'a, S: Schema> NodeRef<'a, S> {
    /// # Safety
    /// `id` belongs to the table in `storage`, which has schema `S`.
    #[inline(always)]
    pub(crate) unsafe fn new(storage: &'a Storage, id: NodeId) -> Self {
        Self { storage, off: id.to_stored(), schema: PhantomData }
    }

    /// Meta word `index`, which must be less than `S::META_WORDS`.
    #[inline(always)]
    pub(crate) fn meta(self, index: usize) -> &'a AtomicU64 {
        assert!(index < S::META_WORDS);
        // SAFETY: a node of schema `S` (`new`) has this meta word, so its offset does not overflow.
        let off = unsafe { self.off.unchecked_add(1 + index as u32) };
        // SAFETY: the word follows the link and is only ever an atomic.
        unsafe { self.storage.word(off) }
    }

    #[inline(always)]
    pub(crate) fn version(self) -> u64 {
        S::version(self)
    }

    /// The target of a search for exactly this node.
    #[inline(always)]
    pub(crate) fn target(self) -> Target<'a> {
        Target { key: self.key(), version: self.version() }
    }

    /// # Safety
    /// `at..at + len` are bytes of this node that `NewNode::write` wrote.
    #[inline(always)]
    unsafe fn bytes(self, at: usize, len: usize) -> &'a [u8] {
        // SAFETY: I4; the writes happened before the id was made (see `NodeId`).
        unsafe { self.storage.read(self.off, at, len) }
    }

    /// The varint at `at`, and the position after it. Varints of two bytes, as for values of 64 bytes to 8 KiB, are decoded as fast as others.
    ///
    /// # Safety
    /// The same conditions as for [`bytes`](Self::bytes), and `NewNode::write` wrote a varint there.
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

    /// The rest of a varint, from its third byte at `at` on, and the position after it.
    ///
    /// # Safety
    /// The same conditions as for [`varint`](Self::varint); the first two bytes hold `number`, and are not the last.
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

    /// The key, and the position after it.
    #[inline(always)]
    fn key_and_end(self) -> (&'a [u8], usize) {
        // SAFETY: in a node of schema `S` (`new`), the key's length follows the meta words.
        let (len, at) = unsafe { self.varint(WORD * (1 + S::META_WORDS)) };
        // SAFETY: the key follows its length.
        (unsafe { self.bytes(at, len as usize) }, at + len as usize)
    }

    #[inline(always)]
    pub(crate) fn key(self) -> &'a [u8] {
        self.key_and_end().0
    }

    #[inline(always)]
    pub(crate) fn sort_key(self) -> <S::Order as Order>::SortKey<'a> {
        S::Order::sort_key(self.key())
    }

    /// Whether the node has this key.
    #[inline(always)]
    pub(crate) fn has_key(self, key: &[u8]) -> bool {
        key::is_same::<S::Order>(self.key(), key)
    }

    /// The record that was stored by the latest write of the key and version of this linked node.
    #[inline(always)]
    pub(crate) fn record(self) -> Record<'a> {
        match self.short_value() {
            Some((key, value)) => Record { key, value, kind: Kind::Value, tag: 0 },
            None => self.latest_record(),
        }
    }

    /// The key and the value, if the entry is a plain value, the key's length takes one byte, and the header at most two.
    #[inline(always)]
    fn short_value(self) -> Option<(&'a [u8], &'a [u8])> {
        let start = WORD * (1 + S::META_WORDS);
        // SAFETY: in a node of schema `S` (`new`), the key's length follows the meta words.
        let key_len = unsafe { self.bytes(start, 1) }[0];
        let end = start + 1 + usize::from(key_len);
        if key_len >= 0x80 {
            return None;
        }
        // SAFETY: the header follows the key.
        let first = unsafe { self.bytes(end, 1) }[0];
        let (len, at) = if first < 0x80 {
            (usize::from(first >> 1), end + 1)
        } else {
            // SAFETY: the first byte of the header is not its last.
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
        // SAFETY: the value follows the header, which has its length.
        Some((key, unsafe { self.bytes(at, len) }))
    }

    /// The record of the node itself, even if it was replaced; and the word that names its latest replacement, if it is replaceable.
    pub(crate) fn own_record(self) -> (Record<'a>, Option<&'a AtomicU64>) {
        let (key, end) = self.key_and_end();
        // SAFETY: the header follows the key.
        let (head, at) = unsafe { self.varint(end) };
        let (value_at, len, byte) = match (head & 1 == 0, head >> 1) {
            (true, len) => (at, len, 0),
            (false, 0) => return (Record { key, value: &[], kind: Kind::Tombstone, tag: 0 }, None),
            // SAFETY: a header of this form is followed by one more byte.
            (false, more) => (at + 1, more - 1, unsafe { self.bytes(at, 1) }[0]),
        };
        // SAFETY: the value follows the header, which has its length, or that byte.
        let value = unsafe { self.bytes(value_at, len as usize) };
        let (kind, tag) = (if byte & 1 == 0 { Kind::Value } else { Kind::Tombstone }, byte >> 1);
        // SAFETY: a replaceable node was allocated with a word before its link, which is only ever an atomic.
        let latest = (tag & REPLACEABLE != 0).then(|| unsafe { self.storage.word(self.off - 1) });
        (Record { key, value, kind, tag: tag & MAX_TAG }, latest)
    }

    /// The node that was written last for the key and version of this linked node; `None` if that is this node.
    pub(crate) fn latest(self) -> Option<NodeId> {
        Self::read_latest(self.own_record().1?)
    }

    fn read_latest(word: &AtomicU64) -> Option<NodeId> {
        // ORDERING(latest.read): Acquire; pairs with `latest.swap`. Weaker: a reader could read the new value before it is written
        // (loom `replaced_value_is_seen_whole`).
        let latest = word.load(ord("latest.read", Ordering::Acquire));
        // SAFETY: 0, or an id of this table that `replace` stored; the load acquired it.
        unsafe { NodeId::from_stored(latest as u32) }
    }

    /// Makes `by` replace the contents of this linked node, and returns the node that had replaced them before, if any. `by` has the same key and
    /// version, and was not linked.
    ///
    /// # Panics
    /// Panics if this node is not replaceable.
    pub(crate) fn replace(self, by: NodeId) -> Option<NodeId> {
        let word = self.own_record().1.expect("I10 broken: a node that is not replaceable");
        // ORDERING(latest.swap): Release; pairs with `latest.read`, see there. And Acquire; pairs with itself. Weaker: the length of the replaced
        // value, which is subtracted from the counts, could be read before it is written (loom `last_of_two_replacements_stays`).
        let before = word.swap(by.to_stored().into(), ord("latest.swap", Ordering::AcqRel));
        // SAFETY: 0, or an id of this table that `replace` stored; the swap acquired it.
        unsafe { NodeId::from_stored(before as u32) }
    }

    /// The latest record of a node of any form. The key keeps the bytes of the first write, should an order not distinguish them.
    #[inline(never)]
    fn latest_record(self) -> Record<'a> {
        let (own, word) = self.own_record();
        match word.and_then(Self::read_latest) {
            None => own,
            // SAFETY: the node belongs to this table.
            Some(latest) => Record { key: own.key, ..unsafe { Self::new(self.storage, latest) }.own_record().0 },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mem::storage::REDZONE_WORDS;
    use crate::node::write::varint_len;
    use crate::node::{MAX_KEY_LEN, MAX_TAG, MAX_VALUE_LEN, NewNode};
    use crate::order::Bytewise;

    struct Meta<const WORDS: usize>;

    impl<const WORDS: usize> Schema for Meta<WORDS> {
        type Order = Bytewise;

        const META_WORDS: usize = WORDS;
        const HAS_VERSIONS: bool = false;

        fn meta(_: u64) -> impl AsRef<[u64]> {
            [0; WORDS]
        }

        fn version(_: NodeRef<'_, Self>) -> u64 {
            0
        }
    }

    /// Catches a length, kind or tag that is read back wrongly, at every size where its encoding changes, and plain entries that take more room than
    /// without support for tags.
    #[test]
    fn entries_come_back_as_written() {
        let storage = Storage::reserve(1 << 20, 1 << 20, false, None).unwrap();
        // No two pieces of the same length are equal.
        let long: Vec<_> = (0..70_000_u32).map(|at| (at.wrapping_mul(0x9e37_79b1) >> 24) as u8).collect();
        let kinds = [Kind::Value, Kind::Tombstone].into_iter().flat_map(|kind| [0, 1, MAX_TAG].map(|tag| (kind, tag)));
        for ((kind, tag), (meta, off)) in kinds.flat_map(|kind| [(kind, (1, 100)), (kind, (2, 50_000))]) {
            for key in [0, 1, 6, 15, 16, 17, 31, 32, 33, 127, 128, 16_383, 16_384, MAX_KEY_LEN] {
                for value in [0, 1, 62, 63, 64, 8190, 8191, 8192, 70_000] {
                    let (key, value) = (&long[..key], &long[..value]);
                    let parts = [&value[..value.len() / 3], &value[value.len() / 3..]];
                    let new = NewNode::new(key, &parts, kind, tag, 0);
                    assert!(new.is_encodable());
                    // SAFETY: the storage belongs to this test alone and is large enough.
                    let id = unsafe { new.write(&storage, off, &[0; 2][..meta]) };
                    let record = match meta {
                        // SAFETY: written just above, by this thread.
                        1 => unsafe { NodeRef::<Meta<1>>::new(&storage, id) }.record(),
                        // SAFETY: as above.
                        _ => unsafe { NodeRef::<Meta<2>>::new(&storage, id) }.record(),
                    };
                    assert_eq!(record, Record { key, value, kind, tag });
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

    /// Catches a limit that is off by one, or that values given in parts can exceed.
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
