//! Ordered reads of a [`ConcurrentSkipList`]: entries, the iterator and the cursor.

use core::fmt;

use super::stamp::{StampClock, Stamped};
use super::table::ConcurrentSkipList;
use crate::iter::cursor::{End, Walk, moves};
use crate::iter::{Ends, Range, View, impl_range_iterator};
use crate::list::List;
use crate::node::{Kind, Record, Target};
use crate::nodes::NodeRef;

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

/// The current contents of a list, or its contents when a snapshot was taken.
#[derive(Clone, Copy)]
pub(crate) struct Contents<'a> {
    clock: &'a StampClock,
    /// Entries with a later stamp are hidden.
    until: u64,
}

impl<'a> View<'a> for Contents<'a> {
    type Schema = Stamped;
    type Item = Entry<'a>;

    /// Sets missing stamps of the node even if the view does not need them: otherwise an entry seen here could be missing from a
    /// later snapshot.
    #[inline(always)]
    fn item(self, node: NodeRef<'a, Stamped>) -> Option<Entry<'a>> {
        // The record is read first, so that the compiler computes the place of the node once.
        let Record { key, value, kind, .. } = node.record();
        let deleted = self.clock.shown(node, self.until)?;
        Some(Entry { key, value, is_tombstone: deleted || kind == Kind::Tombstone })
    }

    #[inline]
    fn at(self) -> Option<u64> {
        None
    }
}

impl Contents<'_> {
    /// The greatest possible stamp, up to which everything is shown.
    pub(crate) const LIVE: u64 = u64::MAX;
}

impl ConcurrentSkipList {
    /// How the list is shown up to a stamp.
    #[inline]
    pub(super) fn contents(&self, until: u64) -> Contents<'_> {
        Contents { clock: &self.clock, until }
    }

    /// The entry of `key` as it is shown up to a stamp.
    #[inline]
    pub(super) fn find(&self, key: &[u8], until: u64) -> Option<Entry<'_>> {
        let (list, contents) = shown(self, until);
        let list = list?;
        let found = list.lower_bound(Target { key, version: 0 }).with_key()?;
        contents.item(list.node(found))
    }

    /// Iterates over what is shown up to a stamp.
    pub(super) fn shown_range(&self, until: u64, ends: Ends) -> Iter<'_> {
        Iter(Range::new(&self.list, self.contents(until), ends))
    }
}

/// What a walk takes: the list, if it was made, and the view up to a stamp.
#[inline]
pub(super) fn shown(list: &ConcurrentSkipList, until: u64) -> (Option<&List<Stamped>>, Contents<'_>) {
    (list.list.made(), list.contents(until))
}

/// A double-ended iterator over entries in key order, including tombstones.
///
/// It never misses a key that was stored before the iterator was created, and never yields a key twice. A key that was stored
/// before a step is yielded if it lies ahead of what that end has yielded last, unless a snapshot hides it. O(log n) to begin at
/// either end; a step forward is O(1) and a step back amortised O(1), not counting entries that a snapshot hides.
#[derive(Clone)]
pub struct Iter<'a>(pub(super) Range<'a, Contents<'a>>);

impl_range_iterator!(Iter, Entry);

/// A cursor over a list that moves in both directions and can seek to any key.
///
/// The cursor of a [`Memtable`](crate::Memtable) has the same moves. A seek finds an entry, and the first step in its direction
/// takes it. So a loop over `next` reads on from a [`seek`](Self::seek) or [`seek_exclusive`](Self::seek_exclusive), and a loop
/// over [`prev`](Self::prev) reads back from a [`seek_for_prev`](Self::seek_for_prev) or [`seek_before`](Self::seek_before). A
/// new cursor is on the first entry, as after [`seek_to_first`](Self::seek_to_first). A cursor that has moved past an end stays
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
#[derive(Clone)]
pub struct Cursor<'a> {
    list: &'a ConcurrentSkipList,
    until: u64,
    walk: Walk,
}

impl<'a> Cursor<'a> {
    /// Creates a cursor on the first entry that is shown up to a stamp.
    pub(crate) fn new(list: &'a ConcurrentSkipList, until: u64) -> Self {
        let mut cursor = Self { list, until, walk: Walk::new() };
        cursor.seek_to_first();
        cursor
    }

    /// Creates a cursor on the first entry whose key is not less than `key`.
    pub(crate) fn at(list: &'a ConcurrentSkipList, until: u64, key: &[u8]) -> Option<Self> {
        let mut cursor = Self { list, until, walk: Walk::new() };
        cursor.seek(key).then_some(cursor)
    }

    /// The entry that the cursor is on. O(1).
    #[must_use]
    pub fn entry(&self) -> Option<Entry<'a>> {
        let (list, view) = shown(self.list, self.until);
        self.walk.item(list, view)
    }

    /// The same as `next`.
    pub fn next_entry(&mut self) -> Option<Entry<'a>> {
        self.next()
    }

    /// The same as [`prev`](Self::prev).
    pub fn prev_entry(&mut self) -> Option<Entry<'a>> {
        self.prev()
    }

    #[cfg(test)]
    pub(super) fn moves(&self) -> usize {
        self.walk.moves()
    }

    #[inline]
    fn parts(&mut self) -> (&mut Walk, Option<&'a List<Stamped>>, Contents<'a>) {
        let (list, view) = shown(self.list, self.until);
        (&mut self.walk, list, view)
    }

    moves!(Entry<'a>, (key: &[u8]) => Target { key, version: 0 });
}

/// Takes the next entry, from where the cursor is. Returns `None` behind the last entry, and from then on. O(1), not counting
/// entries that a snapshot hides.
impl<'a> Iterator for Cursor<'a> {
    type Item = Entry<'a>;

    #[inline]
    fn next(&mut self) -> Option<Entry<'a>> {
        let (walk, list, view) = self.parts();
        walk.next(list, view)
    }
}

impl core::iter::FusedIterator for Cursor<'_> {}

impl fmt::Debug for Cursor<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cursor").field("entry", &self.entry()).finish_non_exhaustive()
    }
}
