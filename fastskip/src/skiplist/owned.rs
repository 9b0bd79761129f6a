//! What keeps its list alive: entries, the iterator and the cursor over them, and snapshots.

use core::fmt;

use super::cursor::{Contents, Entry, shown};
use super::snapshot::Snapshot;
use super::stamp::Stamped;
use super::table::ConcurrentSkipList;
use crate::bounds::KeyBounds;
use crate::iter::Ends;
use crate::iter::cursor::{End, Walk, moves};
use crate::iter::owned::{Kept, OwnedBytes, impl_owned_entry, impl_owned_iterator, step};
use crate::list::List;
use crate::node::Target;
use crate::sync::Arc;

#[cfg(doc)]
use crate::Cursor;

/// Reading what outlives the borrow.
impl ConcurrentSkipList {
    /// Returns the entry of `key`, which keeps the list alive. Expected O(log n).
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use fastskip::ConcurrentSkipList;
    /// let list = Arc::new(ConcurrentSkipList::new());
    /// list.insert(b"a", b"1");
    /// let entry = list.get_owned(b"a").unwrap();
    /// drop(list);
    /// assert_eq!((entry.value(), entry.is_tombstone()), (&b"1"[..], false));
    /// ```
    #[must_use]
    pub fn get_owned(self: &Arc<Self>, key: &[u8]) -> Option<OwnedEntry> {
        OwnedEntry::attach(self, |list| list.find(key, Contents::LIVE))
    }

    /// As [`range`](Self::range); the iterator and what it yields keep the list alive.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use fastskip::ConcurrentSkipList;
    /// let list = Arc::new(ConcurrentSkipList::new());
    /// list.insert(b"a", b"1");
    /// list.insert(b"b", b"2");
    /// let mut entries = list.owned_range(b"a"..);
    /// drop(list);
    /// let last = entries.next_back().unwrap();
    /// let first = std::thread::spawn(move || entries.next()).join().unwrap().unwrap();
    /// assert_eq!((first.key(), last.key()), (&b"a"[..], &b"b"[..]));
    /// ```
    #[must_use]
    pub fn owned_range(self: &Arc<Self>, bounds: impl KeyBounds) -> OwnedEntries {
        OwnedEntries::new(self, Contents::LIVE, bounds)
    }

    /// Returns a cursor on the first entry, which keeps the list alive. O(1).
    #[must_use]
    pub fn owned_cursor(self: &Arc<Self>) -> OwnedListCursor {
        OwnedListCursor::new(self, Contents::LIVE)
    }

    /// As [`snapshot`](Self::snapshot); the snapshot and what it shows keep the list alive. O(1).
    #[must_use]
    pub fn owned_snapshot(self: &Arc<Self>) -> OwnedSnapshot {
        OwnedSnapshot { until: self.snapshot().until, list: Arc::clone(self) }
    }
}

/// A [`Snapshot`] that keeps its list alive. It is `'static` and [`Send`].
///
/// ```
/// # use std::sync::Arc;
/// # use fastskip::ConcurrentSkipList;
/// let list = Arc::new(ConcurrentSkipList::new());
/// list.insert(b"a", b"1");
/// let snapshot = list.owned_snapshot();
/// list.insert(b"b", b"2");
/// drop(list);
/// assert_eq!(snapshot.as_snapshot().get(b"b"), None);
/// let keys: Vec<_> = snapshot.range(..).map(|entry| entry.key().to_vec()).collect();
/// assert_eq!(keys, [b"a"]);
/// ```
#[derive(Clone)]
pub struct OwnedSnapshot {
    list: Arc<ConcurrentSkipList>,
    until: u64,
}

impl OwnedSnapshot {
    /// The snapshot, borrowed: to look up keys, and to iterate without a reference for each entry.
    #[must_use]
    pub fn as_snapshot(&self) -> Snapshot<'_> {
        Snapshot { list: &self.list, until: self.until }
    }

    /// As [`Snapshot::range`]; the iterator and what it yields keep the list alive.
    #[must_use]
    pub fn range(&self, bounds: impl KeyBounds) -> OwnedEntries {
        OwnedEntries::new(&self.list, self.until, bounds)
    }

    /// As [`Snapshot::cursor`]; the cursor keeps the list alive.
    #[must_use]
    pub fn cursor(&self) -> OwnedListCursor {
        OwnedListCursor::new(&self.list, self.until)
    }
}

impl fmt::Debug for OwnedSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedSnapshot").field("until", &self.until).finish_non_exhaustive()
    }
}

/// An [`Entry`] that keeps its list alive, by one counted reference. Nothing is copied. It shows for ever what it was made from; a key
/// that is deleted later stays as it was.
///
/// While one lives, none of the list's memory is freed; so do not keep one for long.
#[derive(Clone)]
pub struct OwnedEntry {
    kept: Kept<2>,
    is_tombstone: bool,
}

impl OwnedEntry {
    #[inline]
    fn attach(
        list: &Arc<ConcurrentSkipList>,
        find: impl for<'a> FnOnce(&'a ConcurrentSkipList) -> Option<Entry<'a>>,
    ) -> Option<Self> {
        let (kept, is_tombstone) = Kept::attach(list, |list| {
            let Entry { key, value, is_tombstone } = find(list)?;
            Some(([key, value], is_tombstone))
        })?;
        Some(Self { kept, is_tombstone })
    }

    /// Whether the key was deleted.
    #[must_use]
    pub fn is_tombstone(&self) -> bool {
        self.is_tombstone
    }

    /// The entry, borrowed.
    #[must_use]
    pub fn as_entry(&self) -> Entry<'_> {
        Entry { key: self.key(), value: self.value(), is_tombstone: self.is_tombstone }
    }
}

impl_owned_entry!(OwnedEntry, Entry, as_entry);

/// A double-ended iterator like [`Iter`](crate::Iter) that keeps its list alive. It is `'static` and [`Send`].
///
/// What it yields keeps the list alive too, and so counts a reference. A loop that only looks at each entry borrows it instead:
/// `while let Some(entry) = entries.next_ref()`.
#[derive(Clone)]
pub struct OwnedEntries {
    table: Arc<ConcurrentSkipList>,
    /// The latest stamp that is shown.
    at: u64,
    ends: Option<Ends>,
}

impl OwnedEntries {
    fn new(list: &Arc<ConcurrentSkipList>, until: u64, bounds: impl KeyBounds) -> Self {
        Self { table: Arc::clone(list), at: until, ends: Some(Ends::new(bounds)) }
    }
}

impl_owned_iterator!(OwnedEntries, OwnedEntry, Entry, shown);

/// A [`Cursor`] that keeps its list alive. It is `'static` and [`Send`].
///
/// It is no [`Iterator`], because it lends entries until it moves: one that yields entries must count a reference for each, or borrow
/// its list. [`OwnedEntries`] is such an iterator; a cursor seeks and turns round. A loop over it reads
/// `while let Some(entry) = cursor.next()`.
///
/// After a seek, [`entry`](Self::entry) is what the seek found, and no step is needed to see it. The first step in the seek's direction
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
#[derive(Clone)]
pub struct OwnedListCursor {
    list: Arc<ConcurrentSkipList>,
    until: u64,
    walk: Walk,
}

impl OwnedListCursor {
    fn new(list: &Arc<ConcurrentSkipList>, until: u64) -> Self {
        let mut cursor = Self { list: Arc::clone(list), until, walk: Walk::new() };
        cursor.seek_to_first();
        cursor
    }

    /// The entry that the cursor is on. O(1).
    #[must_use]
    pub fn entry(&self) -> Option<Entry<'_>> {
        let (list, view) = shown(&self.list, self.until);
        self.walk.item(list, view)
    }

    /// The entry that the cursor is on; it keeps the list alive by itself, so the cursor may move on. O(1).
    #[must_use]
    pub fn entry_owned(&self) -> Option<OwnedEntry> {
        OwnedEntry::attach(&self.list, |list| {
            let (list, view) = shown(list, self.until);
            self.walk.item(list, view)
        })
    }

    /// Moves to the next entry and returns it; after a seek forward, returns the entry found. From before the first entry it moves to
    /// the first one. O(1), not counting entries that a snapshot hides.
    #[expect(clippy::should_implement_trait, reason = "a lending cursor: what it lends cannot outlive the next step")]
    #[inline]
    pub fn next(&mut self) -> Option<Entry<'_>> {
        let (walk, list, view) = self.parts();
        walk.next(list, view)
    }

    #[inline]
    fn parts(&mut self) -> (&mut Walk, Option<&List<Stamped>>, Contents<'_>) {
        let (list, view) = shown(&self.list, self.until);
        (&mut self.walk, list, view)
    }

    moves!(Entry<'_>, (key: &[u8]) => Target { key, version: 0 });
}

impl fmt::Debug for OwnedListCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedListCursor").field("entry", &self.entry()).finish_non_exhaustive()
    }
}
