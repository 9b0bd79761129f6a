//! Entries of a [`ConcurrentSkipList`], as they appear to a reader, and the iterators and cursors over them.

use super::stamp::Stamped;
use super::table::ConcurrentSkipList;
use crate::iter::cursor::TableCursor;
use crate::iter::owned::OwnedItem;
use crate::iter::range::TableIter;
use crate::iter::source::{TableHandle, TableSource};
use crate::iter::walk::End;
use crate::list::List;
use crate::node::{Kind, NodeRef, Record, Target};
use crate::order::{Bytewise, Order};
use crate::sync::Arc;

/// The greatest possible stamp: a read up to it sees every entry.
pub(super) const LIVE: u64 = u64::MAX;

/// An entry of a list, borrowed from its arena.
// Unlike `Version`, not `#[non_exhaustive]`: programs destructure it by `Entry { key, value, is_tombstone }`, and construct one for comparisons. A
// list will always store exactly these three fields; a memtable may store more in the future, as happened with the tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The value. A tombstone keeps its old value.
    pub value: &'a [u8],
    /// Whether the key is deleted.
    pub is_tombstone: bool,
}

/// A point is a stamp: entries with a later one are hidden.
impl<O: Order> TableSource for ConcurrentSkipList<O> {
    type Item<'a> = Entry<'a>;
    /// Whether the key is deleted.
    type Rest = bool;
    type Point = u64;
    type Schema = Stamped<O>;

    #[inline(always)]
    fn list(&self) -> Option<&List<Stamped<O>>> {
        self.list.made()
    }

    /// Sets missing stamps of the node even if this reader needs none: otherwise an entry that was seen here could be missing from a later snapshot.
    #[inline(always)]
    fn show<'a>(&'a self, node: NodeRef<'a, Stamped<O>>, until: u64) -> Option<Entry<'a>> {
        // The record is read first, so that the compiler computes the address of the node only once.
        let Record { key, value, kind, .. } = node.record();
        let deleted = self.clock.shown(node, until)?;
        Some(Entry { key, value, is_tombstone: deleted || kind == Kind::Tombstone })
    }

    #[inline(always)]
    fn version(_: u64) -> Option<u64> {
        None
    }

    #[inline(always)]
    fn split(entry: Self::Item<'_>) -> ([&[u8]; 2], bool) {
        ([entry.key, entry.value], entry.is_tombstone)
    }

    #[inline(always)]
    fn join([key, value]: [&[u8]; 2], is_tombstone: bool) -> Entry<'_> {
        Entry { key, value, is_tombstone }
    }
}

/// A double-ended iterator over entries in key order, including tombstones.
///
/// It never misses a key that was stored before the iterator was created, and never yields a key twice. A key that was stored before a step is also
/// yielded if it lies ahead of the last key that this end has yielded, unless a snapshot hides it. Starting at either end costs O(log n); a forward
/// step is O(1) and a backward step amortised O(1), not counting entries that a snapshot hides.
pub type Entries<'a, O = Bytewise> = TableIter<&'a ConcurrentSkipList<O>, ConcurrentSkipList<O>>;

/// A double-ended iterator like [`Entries`](crate::Entries) that keeps its list alive. It is `'static` and [`Send`].
///
/// Each entry that it yields keeps the list alive too, and so increments the reference count. A loop that only reads each entry can borrow it
/// instead: `while let Some(entry) = entries.next_ref()`.
pub type OwnedEntries<O = Bytewise> = TableIter<Arc<ConcurrentSkipList<O>>, ConcurrentSkipList<O>>;

/// A cursor over a list that moves in both directions and can seek to any key.
///
/// The cursor of a [`Memtable`](crate::Memtable) has the same methods to move. A seek places the cursor on an entry; the first step in the direction
/// of the seek returns this entry without moving. So a loop over `next` reads on from a [`seek`](TableCursor::seek) or
/// [`seek_after`](TableCursor::seek_after), and a loop over [`prev`](TableCursor::prev) reads back from a
/// [`seek_for_prev`](TableCursor::seek_for_prev) or [`seek_before`](TableCursor::seek_before). A new cursor is on the first entry, like a cursor
/// after [`seek_to_first`](TableCursor::seek_to_first). A cursor that has moved past an end stays there: `next` then moves from before the first
/// entry to it, and `prev` moves from behind the last entry to it. Every step sees all entries that were stored before the step. A position is a key.
///
/// ```
/// use fastskip::ConcurrentSkipList;
///
/// let list = ConcurrentSkipList::new();
/// for key in ["a", "b", "d"] {
///     list.insert(key.as_bytes(), b"");
/// }
/// let mut cursor = list.cursor();
/// assert!(cursor.seek(b"c"));
/// assert_eq!(cursor.entry().unwrap().key, b"d");
/// assert_eq!(cursor.next_entry().unwrap().key, b"d");
/// assert_eq!(cursor.prev_entry().unwrap().key, b"b");
/// assert_eq!(cursor.next_entry().unwrap().key, b"d");
/// assert_eq!(cursor.next_entry(), None);
/// assert!(!cursor.valid());
/// assert_eq!(cursor.prev_entry().unwrap().key, b"d");
/// ```
pub type Cursor<'a, O = Bytewise> = TableCursor<&'a ConcurrentSkipList<O>, ConcurrentSkipList<O>>;

/// A [`Cursor`] that keeps its list alive. It is `'static` and [`Send`].
///
/// It is no [`Iterator`], because it lends each entry only until it moves: an iterator must count a reference for each entry, or borrow its list.
/// [`OwnedEntries`] is such an iterator; only a cursor can seek and change direction. A loop over it reads `while let Some(entry) = cursor.next()`.
///
/// After a seek, [`entry`](TableCursor::entry) returns the entry found; no step is necessary. The first step in the seek's direction returns it
/// again, so the same loop serves after a seek and from the first entry on.
///
/// ```
/// # use std::sync::Arc;
/// # use fastskip::ConcurrentSkipList;
/// let list = Arc::new(ConcurrentSkipList::new());
/// for key in ["a", "b", "c"] {
///     list.insert(key.as_bytes(), b"");
/// }
/// let mut cursor = list.owned_cursor();
/// drop(list);
/// assert!(cursor.seek(b"b"));
/// assert_eq!(cursor.entry().unwrap().key, b"b");
/// let mut keys = Vec::new();
/// while let Some(entry) = cursor.next() {
///     keys.extend_from_slice(entry.key);
/// }
/// assert_eq!(keys, b"bc");
/// ```
pub type OwnedCursor<O = Bytewise> = TableCursor<Arc<ConcurrentSkipList<O>>, ConcurrentSkipList<O>>;

/// The cursors of a list.
impl<O: Order, H: TableHandle<ConcurrentSkipList<O>>> TableCursor<H, ConcurrentSkipList<O>> {
    /// The entry that the cursor is on. O(1).
    #[must_use]
    pub fn entry(&self) -> Option<H::Item<'_>> {
        self.item()
    }

    /// The same as [`prev`](Self::prev).
    pub fn prev_entry(&mut self) -> Option<H::Item<'_>> {
        self.prev()
    }

    /// Moves to the first entry whose key is not less than `key`; the next call of `next` returns this entry. Returns false if there is none; then
    /// the cursor is behind the last entry. Expected O(log n), not counting entries that are hidden.
    pub fn seek(&mut self, key: &[u8]) -> bool {
        self.seek_from(Target { key, version: 0 }, End::Included)
    }

    /// Like [`seek`](Self::seek), but moves to the first entry whose key is greater.
    pub fn seek_after(&mut self, key: &[u8]) -> bool {
        self.seek_from(Target { key, version: 0 }, End::Excluded)
    }

    /// Moves to the last entry whose key is not greater than `key`; the next call of [`prev`](Self::prev) returns this entry. Returns false if there
    /// is none; then the cursor is before the first entry. Expected O(log n), not counting entries that are hidden.
    pub fn seek_for_prev(&mut self, key: &[u8]) -> bool {
        self.seek_back_from(Target { key, version: 0 }, End::Included)
    }

    /// Like [`seek_for_prev`](Self::seek_for_prev), but moves to the last entry whose key is less.
    pub fn seek_before(&mut self, key: &[u8]) -> bool {
        self.seek_back_from(Target { key, version: 0 }, End::Excluded)
    }
}

impl<'a, O: Order> Cursor<'a, O> {
    /// The same as `next`.
    pub fn next_entry(&mut self) -> Option<Entry<'a>> {
        self.next()
    }
}

impl<O: Order> OwnedCursor<O> {
    /// The entry that the cursor is on; it keeps the list alive, so it stays valid when the cursor moves on. O(1).
    #[must_use]
    pub fn entry_owned(&self) -> Option<OwnedEntry<O>> {
        OwnedEntry::attach(&self.table, |list| self.item_of(list))
    }
}

/// An [`Entry`] that keeps its list alive, by one counted reference. Nothing is copied. Its contents never change: if the key is deleted later, the
/// entry still shows the earlier state.
///
/// While such an entry exists, none of the list's memory is freed; so do not keep one for long.
pub type OwnedEntry<O = Bytewise> = OwnedItem<ConcurrentSkipList<O>>;

impl<O: Order> OwnedEntry<O> {
    /// Whether the key was deleted when this entry was read.
    #[must_use]
    pub fn is_tombstone(&self) -> bool {
        self.rest
    }

    /// The entry, borrowed.
    #[must_use]
    pub fn as_entry(&self) -> Entry<'_> {
        self.item()
    }
}

impl<O: Order> PartialEq<Entry<'_>> for OwnedEntry<O> {
    fn eq(&self, other: &Entry<'_>) -> bool {
        self.item() == *other
    }
}
