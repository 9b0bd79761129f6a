//! Ordered reads of a [`ConcurrentSkipList`]: entries, the iterator and the cursor.

use core::fmt;

use crate::list::schema::NodeRef;
use crate::list::stamp::{Clock, Stamped};
use crate::list::{List, Position, RangeIter};
use crate::node::{Kind, Target};

#[cfg(doc)]
use crate::ConcurrentSkipList;

/// An entry of a list, borrowed from its arena.
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
pub(crate) struct View<'a> {
    pub(crate) list: &'a List<Stamped>,
    pub(crate) clock: &'a Clock,
    /// Entries with a later stamp are hidden. The live view uses the greatest possible stamp.
    pub(crate) until: u64,
}

impl<'a> View<'a> {
    pub(crate) const LIVE: u64 = u64::MAX;

    /// The entry of `node`, if it is visible in this view. Sets missing stamps of the node even if the view does not need them:
    /// otherwise an entry seen here could be missing from a later snapshot.
    #[inline]
    pub(crate) fn entry(&self, node: NodeRef<'a, Stamped>) -> Option<Entry<'a>> {
        if self.clock.inserted(node) > self.until {
            return None;
        }
        let deleted = self.clock.deleted(node).is_some_and(|stamp| stamp <= self.until);
        let (key, value, kind) = node.entry();
        Some(Entry { key, value, is_tombstone: deleted || kind == Kind::Tombstone })
    }

    /// The entry of `key`.
    #[inline]
    pub(crate) fn get(&self, key: &[u8]) -> Option<Entry<'a>> {
        let found = self.list.lower_bound(Target { key, version: 0 }).with_key()?;
        self.entry(self.list.node(found))
    }
}

/// A double-ended iterator over entries in key order, including tombstones.
///
/// It never misses a key that was stored before the iterator was created, and never yields a key twice. Keys that are stored
/// later may appear. A step forward is O(1) and a step back amortised O(1), not counting entries that a snapshot hides.
#[derive(Clone)]
pub struct Iter<'a> {
    view: View<'a>,
    range: RangeIter,
}

impl<'a> Iter<'a> {
    pub(crate) fn new(view: View<'a>, range: RangeIter) -> Self {
        Self { view, range }
    }
}

impl<'a> Iterator for Iter<'a> {
    type Item = Entry<'a>;

    #[inline]
    fn next(&mut self) -> Option<Entry<'a>> {
        loop {
            let node = self.range.front(self.view.list)?;
            self.range.pop_front(self.view.list);
            if let Some(entry) = self.view.entry(node) {
                return Some(entry);
            }
        }
    }
}

impl DoubleEndedIterator for Iter<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        loop {
            let node = self.range.back(self.view.list)?;
            self.range.pop_back(self.view.list);
            if let Some(entry) = self.view.entry(node) {
                return Some(entry);
            }
        }
    }
}

impl core::iter::FusedIterator for Iter<'_> {}

impl fmt::Debug for Iter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Iter").finish_non_exhaustive()
    }
}

/// Which step yields the entry that a cursor was just moved to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pending {
    /// `next_entry`: the cursor is logically just before its entry.
    Next,
    /// `prev_entry`: the cursor is logically just after its entry.
    Prev,
    /// Neither: the entry has been yielded.
    Nothing,
}

/// A cursor over a list that moves in both directions and can seek to any key.
///
/// A cursor that has moved past either end is on no entry; from there, only a seek moves it back to an entry. On a new cursor
/// and after [`seek`](Self::seek), the first [`next_entry`](Self::next_entry) yields the entry that the cursor is on. After
/// [`seek_for_prev`](Self::seek_for_prev), the first [`prev_entry`](Self::prev_entry) does.
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
/// ```
#[derive(Clone)]
pub struct Cursor<'a> {
    view: View<'a>,
    position: Position,
    pending: Pending,
}

impl<'a> Cursor<'a> {
    /// Creates a cursor on the first entry of `view`.
    pub(crate) fn new(view: View<'a>) -> Self {
        let mut cursor = Self { view, position: Position::new(), pending: Pending::Next };
        cursor.position.seek_to_first(view.list);
        cursor.skip_hidden_forward();
        cursor
    }

    /// The entry that the cursor is on.
    #[must_use]
    pub fn entry(&self) -> Option<Entry<'a>> {
        self.view.entry(self.position.node(self.view.list)?)
    }

    /// Whether the cursor is on an entry.
    #[must_use]
    pub fn valid(&self) -> bool {
        self.position.node(self.view.list).is_some()
    }

    /// Moves to the first entry whose key is not less than `key`. Returns false if there is none. Expected O(log n).
    pub fn seek(&mut self, key: &[u8]) -> bool {
        self.position.seek(self.view.list, Target { key, version: 0 });
        self.pending = Pending::Next;
        self.skip_hidden_forward()
    }

    /// Moves to the last entry whose key is not greater than `key`. Returns false if there is none. Expected O(log n).
    pub fn seek_for_prev(&mut self, key: &[u8]) -> bool {
        self.position.seek_for_prev(self.view.list, Target { key, version: 0 });
        self.pending = Pending::Prev;
        self.skip_hidden_backward()
    }

    /// Moves to the next entry and returns it. Returns `None` after the last entry, and from then on. O(1).
    pub fn next_entry(&mut self) -> Option<Entry<'a>> {
        if self.pending != Pending::Next {
            self.position.next(self.view.list);
            self.skip_hidden_forward();
        }
        self.pending = Pending::Nothing;
        self.entry()
    }

    /// Moves to the previous entry and returns it. Returns `None` before the first entry, and from then on. Amortised O(1).
    pub fn prev_entry(&mut self) -> Option<Entry<'a>> {
        if self.pending != Pending::Prev {
            self.position.prev(self.view.list);
            self.skip_hidden_backward();
        }
        self.pending = Pending::Nothing;
        self.entry()
    }

    fn skip_hidden_forward(&mut self) -> bool {
        while self.valid() && self.entry().is_none() {
            self.position.next(self.view.list);
        }
        self.valid()
    }

    fn skip_hidden_backward(&mut self) -> bool {
        while self.valid() && self.entry().is_none() {
            self.position.prev(self.view.list);
        }
        self.valid()
    }
}

impl<'a> Iterator for Cursor<'a> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        self.next_entry()
    }
}

impl core::iter::FusedIterator for Cursor<'_> {}

impl fmt::Debug for Cursor<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cursor").field("entry", &self.entry()).finish_non_exhaustive()
    }
}
