//! Entries of a [`ConcurrentSkipList`], as a reader sees them, and the iterators and cursors over them.

use super::stamp::Stamped;
use super::table::ConcurrentSkipList;
use crate::iter::cursor::TableCursor;
use crate::iter::owned::OwnedItem;
use crate::iter::range::TableRange;
use crate::iter::source::{Handle, Source};
use crate::iter::walk::End;
use crate::list::List;
use crate::node::{Kind, NodeRef, Record, Target};
use crate::sync::Arc;

/// The greatest possible stamp, up to which everything is shown.
pub(super) const LIVE: u64 = u64::MAX;

/// An entry of a list, borrowed from its arena.
// Not `#[non_exhaustive]`, as `Version` is: programs take it apart by `Entry { key, value, is_tombstone }`, and make one to compare with.
// A list stores these three for good; what a memtable stores may grow, as it did by the tag.
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
impl Source for ConcurrentSkipList {
    type Item<'a> = Entry<'a>;
    /// Whether the key is deleted.
    type Rest = bool;
    type Point = u64;
    type Schema = Stamped;

    #[inline(always)]
    fn list(&self) -> Option<&List<Stamped>> {
        self.list.made()
    }

    /// Sets missing stamps of the node even if the reader does not need them: otherwise an entry seen here could be missing from a
    /// later snapshot.
    #[inline(always)]
    fn show<'a>(&'a self, node: NodeRef<'a, Stamped>, until: u64) -> Option<Entry<'a>> {
        // The record is read first, so that the compiler computes the place of the node once.
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
/// It never misses a key that was stored before the iterator was created, and never yields a key twice. A key that was stored
/// before a step is yielded if it lies ahead of what that end has yielded last, unless a snapshot hides it. O(log n) to begin at
/// either end; a step forward is O(1) and a step back amortised O(1), not counting entries that a snapshot hides.
pub type Iter<'a> = TableRange<&'a ConcurrentSkipList, ConcurrentSkipList>;

/// A double-ended iterator like [`Iter`](crate::Iter) that keeps its list alive. It is `'static` and [`Send`].
///
/// What it yields keeps the list alive too, and so counts a reference. A loop that only looks at each entry borrows it instead:
/// `while let Some(entry) = entries.next_ref()`.
pub type OwnedEntries = TableRange<Arc<ConcurrentSkipList>, ConcurrentSkipList>;

/// A cursor over a list that moves in both directions and can seek to any key.
///
/// The cursor of a [`Memtable`](crate::Memtable) has the same moves. A seek finds an entry, and the first step in its direction
/// takes it. So a loop over `next` reads on from a [`seek`](TableCursor::seek) or [`seek_exclusive`](TableCursor::seek_exclusive), and a loop
/// over [`prev`](TableCursor::prev) reads back from a [`seek_for_prev`](TableCursor::seek_for_prev) or [`seek_before`](TableCursor::seek_before). A
/// new cursor is on the first entry, as after [`seek_to_first`](TableCursor::seek_to_first). A cursor that has moved past an end stays
/// there: from before the first entry `next` moves to the first one, and from behind the last entry `prev` moves to the last
/// one. Every step sees what was stored before it. A position is a key.
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
pub type Cursor<'a> = TableCursor<&'a ConcurrentSkipList, ConcurrentSkipList>;

/// A [`Cursor`] that keeps its list alive. It is `'static` and [`Send`].
///
/// It is no [`Iterator`], because it lends entries until it moves: one that yields entries must count a reference for each, or borrow
/// its list. [`OwnedEntries`] is such an iterator; a cursor seeks and turns round. A loop over it reads
/// `while let Some(entry) = cursor.next()`.
///
/// After a seek, [`entry`](TableCursor::entry) is what the seek found, and no step is needed to see it. The first step in the seek's direction
/// takes it, so that the same loop reads on from a seek as from the first entry.
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
pub type OwnedListCursor = TableCursor<Arc<ConcurrentSkipList>, ConcurrentSkipList>;

/// The cursors of a list.
impl<H: Handle<ConcurrentSkipList>> TableCursor<H, ConcurrentSkipList> {
    /// The entry that the cursor is on. O(1).
    #[must_use]
    pub fn entry(&self) -> Option<H::Item<'_>> {
        self.item()
    }

    /// The same as [`prev`](Self::prev).
    pub fn prev_entry(&mut self) -> Option<H::Item<'_>> {
        self.prev()
    }

    /// Moves to the first entry whose key is not less than `key`, for `next` to take. Returns false if there is none;
    /// then the cursor is behind the last entry. Expected O(log n), not counting entries that are hidden.
    pub fn seek(&mut self, key: &[u8]) -> bool {
        self.seek_from(Target { key, version: 0 }, End::Included)
    }

    /// Like [`seek`](Self::seek), to the first entry whose key is greater.
    pub fn seek_exclusive(&mut self, key: &[u8]) -> bool {
        self.seek_from(Target { key, version: 0 }, End::Excluded)
    }

    /// Moves to the last entry whose key is not greater than `key`, for [`prev`](Self::prev) to take. Returns false if there is none;
    /// then the cursor is before the first entry. Expected O(log n), not counting entries that are hidden.
    pub fn seek_for_prev(&mut self, key: &[u8]) -> bool {
        self.seek_back_from(Target { key, version: 0 }, End::Included)
    }

    /// Like [`seek_for_prev`](Self::seek_for_prev), to the last entry whose key is less.
    pub fn seek_before(&mut self, key: &[u8]) -> bool {
        self.seek_back_from(Target { key, version: 0 }, End::Excluded)
    }
}

impl<'a> Cursor<'a> {
    /// The same as `next`.
    pub fn next_entry(&mut self) -> Option<Entry<'a>> {
        self.next()
    }
}

impl OwnedListCursor {
    /// The entry that the cursor is on; it keeps the list alive by itself, so the cursor may move on. O(1).
    #[must_use]
    pub fn entry_owned(&self) -> Option<OwnedEntry> {
        OwnedEntry::attach(&self.table, |list| self.item_of(list))
    }
}

/// An [`Entry`] that keeps its list alive, by one counted reference. Nothing is copied. It shows for ever what it was made from; a key
/// that is deleted later stays as it was.
///
/// While one lives, none of the list's memory is freed; so do not keep one for long.
pub type OwnedEntry = OwnedItem<ConcurrentSkipList>;

impl OwnedEntry {
    /// Whether the key was deleted.
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

impl PartialEq<Entry<'_>> for OwnedEntry {
    fn eq(&self, other: &Entry<'_>) -> bool {
        self.item() == *other
    }
}
