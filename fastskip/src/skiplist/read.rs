//! Reads of a list, of its present state or of a snapshot: lookups, iterators and cursors.

use alloc::vec::Vec;
use core::fmt;

use super::entry::{Cursor, Entries, Entry, LIVE, OwnedCursor, OwnedEntries, OwnedEntry};
use super::table::{ConcurrentSkipList, FrozenList};
use crate::bounds::KeyBounds;
use crate::iter::cursor::TableCursor;
use crate::iter::range::{Ends, TableIter};
use crate::iter::source::TableSource;
use crate::node::Target;
use crate::order::{Bytewise, Order};
use crate::sync::Arc;

/// Reads up to a stamp.
impl<O: Order> ConcurrentSkipList<O> {
    /// The entry of `key`.
    #[inline(always)]
    fn entry_at(&self, key: &[u8], until: u64) -> Option<Entry<'_>> {
        let list = self.list.made()?;
        let found = list.index.lower_bound(Target { key, version: 0 }).with_key()?;
        self.show(list.node(found), until)
    }

    /// A cursor on the first entry whose key is not less than `key`.
    fn cursor_from(&self, key: &[u8], until: u64) -> Option<Cursor<'_, O>> {
        let mut cursor = TableCursor::unplaced(self, until);
        cursor.seek(key).then_some(cursor)
    }
}

/// Reading.
impl<O: Order> ConcurrentSkipList<O> {
    /// Returns the value of `key` and whether `key` is a tombstone. A tombstone keeps its old value. Expected O(log n).
    #[must_use]
    pub fn get(&self, key: &[u8]) -> Option<(&[u8], bool)> {
        self.entry_at(key, LIVE).map(|entry| (entry.value, entry.is_tombstone))
    }

    /// Returns the entry of `key`, which may be a tombstone. Expected O(log n).
    #[must_use]
    pub fn get_entry(&self, key: &[u8]) -> Option<Entry<'_>> {
        self.entry_at(key, LIVE)
    }

    /// Returns the value of `key`, or `None` if `key` is absent or a tombstone. Expected O(log n).
    #[must_use]
    pub fn get_live(&self, key: &[u8]) -> Option<&[u8]> {
        self.entry_at(key, LIVE).filter(|entry| !entry.is_tombstone).map(|entry| entry.value)
    }

    /// Looks up each key as [`get_live`](Self::get_live) does, and returns the values in the order of `keys`. Expected O(log n) for each key; the
    /// searches proceed side by side, so that their cache misses overlap.
    #[must_use]
    pub fn get_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Vec<Option<&[u8]>> {
        let keys: Vec<_> = keys.iter().map(|key| Target { key: key.as_ref(), version: 0 }).collect();
        let mut values = vec![None; keys.len()];
        let Some(list) = self.list.made() else { return values };
        list.lower_bounds(&keys, |index, found| {
            let entry = found.with_key().and_then(|id| self.show(list.node(id), LIVE));
            values[index] = entry.filter(|entry| !entry.is_tombstone).map(|entry| entry.value);
        });
        values
    }

    /// Whether `key` is stored and is not a tombstone. Expected O(log n).
    #[must_use]
    pub fn contains_key(&self, key: &[u8]) -> bool {
        self.get_live(key).is_some()
    }

    /// Iterates over all entries in key order, including tombstones. Creating it is O(1); see [`Entries`] for the cost of a step.
    #[must_use]
    pub fn iter(&self) -> Entries<'_, O> {
        TableIter::new(self, LIVE, Ends::new(..))
    }

    /// Returns a cursor on the first entry. O(1).
    #[must_use]
    pub fn cursor(&self) -> Cursor<'_, O> {
        Cursor::new(self, LIVE)
    }

    /// Returns a cursor on the first entry whose key is not less than `key`, or `None` if there is no such entry.
    /// Expected O(log n).
    #[must_use]
    pub fn cursor_at(&self, key: &[u8]) -> Option<Cursor<'_, O>> {
        self.cursor_from(key, LIVE)
    }

    /// Iterates over the entries within `bounds` in key order. Yields nothing if the bounds are inverted. The bounds are
    /// copied. Expected O(log n) to begin at either end.
    ///
    /// ```
    /// # let list = fastskip::ConcurrentSkipList::new();
    /// list.insert(b"a", b"");
    /// list.insert(b"b", b"");
    /// list.insert(b"c", b"");
    /// let keys: Vec<_> = list.range("b"..).rev().map(|entry| entry.key).collect();
    /// assert_eq!(keys, [b"c", b"b"]);
    /// ```
    #[must_use]
    pub fn range(&self, bounds: impl KeyBounds) -> Entries<'_, O> {
        TableIter::new(self, LIVE, Ends::new(bounds))
    }

    /// Takes a snapshot of the current contents. O(1).
    #[must_use]
    pub fn snapshot(&self) -> Snapshot<'_, O> {
        Snapshot { list: self, until: self.clock.snapshot() }
    }
}

/// In other orders, keys with a common prefix need not be neighbours.
impl ConcurrentSkipList {
    /// Iterates over the entries whose keys begin with `prefix`, in key order. Expected O(log n) to begin at either end.
    #[must_use]
    pub fn prefix(&self, prefix: &[u8]) -> Entries<'_> {
        TableIter::new(self, LIVE, Ends::prefix(prefix))
    }

    /// Like [`prefix`](Self::prefix), but the iterator and its entries keep the list alive.
    #[must_use]
    pub fn owned_prefix(self: &Arc<Self>, prefix: &[u8]) -> OwnedEntries {
        TableIter::new(Arc::clone(self), LIVE, Ends::prefix(prefix))
    }
}

impl<'a, O: Order> IntoIterator for &'a ConcurrentSkipList<O> {
    type Item = Entry<'a>;
    type IntoIter = Entries<'a, O>;

    fn into_iter(self) -> Entries<'a, O> {
        self.iter()
    }
}

impl<'a, O: Order> IntoIterator for &'a FrozenList<O> {
    type Item = Entry<'a>;
    type IntoIter = Entries<'a, O>;

    fn into_iter(self) -> Entries<'a, O> {
        self.iter()
    }
}

/// Reads whose results outlive the borrow of the list.
impl<O: Order> ConcurrentSkipList<O> {
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
    pub fn get_owned(self: &Arc<Self>, key: &[u8]) -> Option<OwnedEntry<O>> {
        OwnedEntry::attach(self, |list| list.entry_at(key, LIVE))
    }

    /// Like [`range`](Self::range), but the iterator and its entries keep the list alive.
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
    pub fn owned_range(self: &Arc<Self>, bounds: impl KeyBounds) -> OwnedEntries<O> {
        TableIter::new(Arc::clone(self), LIVE, Ends::new(bounds))
    }

    /// Returns a cursor on the first entry, which keeps the list alive. O(1).
    #[must_use]
    pub fn owned_cursor(self: &Arc<Self>) -> OwnedCursor<O> {
        TableCursor::new(Arc::clone(self), LIVE)
    }

    /// Like [`snapshot`](Self::snapshot), but the snapshot and its entries keep the list alive. O(1).
    #[must_use]
    pub fn owned_snapshot(self: &Arc<Self>) -> OwnedSnapshot<O> {
        OwnedSnapshot { until: self.snapshot().until, list: Arc::clone(self) }
    }
}

/// The contents of a list at the moment when [`ConcurrentSkipList::snapshot`] was called. A snapshot never changes: an insert that was in progress is
/// either part of it from the start or never, and later deletions are not visible. Taking a snapshot costs one atomic operation. A snapshot holds no
/// resources other than a borrow of the list.
///
/// ```
/// use fastskip::ConcurrentSkipList;
///
/// let list = ConcurrentSkipList::new();
/// list.insert(b"a", b"1");
/// let snapshot = list.snapshot();
/// list.insert(b"b", b"2");
/// list.delete(b"a");
/// assert_eq!(snapshot.iter().count(), 1);
/// assert_eq!(snapshot.get(b"a"), Some((&b"1"[..], false)));
/// assert_eq!(snapshot.get(b"b"), None);
/// ```
pub struct Snapshot<'a, O: Order = Bytewise> {
    list: &'a ConcurrentSkipList<O>,
    /// The latest stamp that the snapshot shows.
    until: u64,
}

// Not derived, because a derived impl would require `O: Clone`.
impl<O: Order> Clone for Snapshot<'_, O> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<O: Order> Copy for Snapshot<'_, O> {}

impl<'a, O: Order> Snapshot<'a, O> {
    /// Returns the result that [`ConcurrentSkipList::get`] would have returned at the moment of the snapshot: the value of `key` and whether `key`
    /// was a tombstone. Expected O(log n).
    #[must_use]
    pub fn get(&self, key: &[u8]) -> Option<(&'a [u8], bool)> {
        self.list.entry_at(key, self.until).map(|entry| (entry.value, entry.is_tombstone))
    }

    /// Returns the entry that `key` had at the moment of the snapshot. Expected O(log n).
    #[must_use]
    pub fn get_entry(&self, key: &[u8]) -> Option<Entry<'a>> {
        self.list.entry_at(key, self.until)
    }

    /// Iterates over all entries in key order, including tombstones. Creating it is O(1); see [`Entries`] for the cost of a step.
    #[must_use]
    pub fn iter(&self) -> Entries<'a, O> {
        TableIter::new(self.list, self.until, Ends::new(..))
    }

    /// Iterates over the entries within `bounds` in key order. Yields nothing if the bounds are inverted.
    /// Expected O(log n) to begin at either end.
    #[must_use]
    pub fn range(&self, bounds: impl KeyBounds) -> Entries<'a, O> {
        TableIter::new(self.list, self.until, Ends::new(bounds))
    }

    /// Returns a cursor on the first entry. O(1), not counting entries that the snapshot hides.
    #[must_use]
    pub fn cursor(&self) -> Cursor<'a, O> {
        Cursor::new(self.list, self.until)
    }

    /// Returns a cursor on the first entry whose key is not less than `key`, or `None` if there is no such entry.
    /// Expected O(log n), not counting entries behind `key` that the snapshot hides.
    #[must_use]
    pub fn cursor_at(&self, key: &[u8]) -> Option<Cursor<'a, O>> {
        self.list.cursor_from(key, self.until)
    }
}

/// Only here for the order of bytes, as for the list.
impl<'a> Snapshot<'a> {
    /// Iterates over the entries whose keys begin with `prefix`, in key order. Expected O(log n) to begin at either end.
    #[must_use]
    pub fn prefix(&self, prefix: &[u8]) -> Entries<'a> {
        TableIter::new(self.list, self.until, Ends::prefix(prefix))
    }
}

impl<'a, O: Order> IntoIterator for &Snapshot<'a, O> {
    type Item = Entry<'a>;
    type IntoIter = Entries<'a, O>;

    fn into_iter(self) -> Entries<'a, O> {
        self.iter()
    }
}

impl<O: Order> fmt::Debug for Snapshot<'_, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot").field("until", &self.until).finish_non_exhaustive()
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
pub struct OwnedSnapshot<O: Order = Bytewise> {
    list: Arc<ConcurrentSkipList<O>>,
    until: u64,
}

// Not derived, because a derived impl would require `O: Clone`.
impl<O: Order> Clone for OwnedSnapshot<O> {
    fn clone(&self) -> Self {
        Self { list: Arc::clone(&self.list), until: self.until }
    }
}

impl<O: Order> OwnedSnapshot<O> {
    /// The snapshot, borrowed: for lookups, and for iteration that counts no reference for each entry.
    #[must_use]
    pub fn as_snapshot(&self) -> Snapshot<'_, O> {
        Snapshot { list: &self.list, until: self.until }
    }

    /// Like [`Snapshot::range`], but the iterator and its entries keep the list alive.
    #[must_use]
    pub fn range(&self, bounds: impl KeyBounds) -> OwnedEntries<O> {
        TableIter::new(Arc::clone(&self.list), self.until, Ends::new(bounds))
    }

    /// Like [`Snapshot::cursor`], but the cursor keeps the list alive.
    #[must_use]
    pub fn cursor(&self) -> OwnedCursor<O> {
        TableCursor::new(Arc::clone(&self.list), self.until)
    }
}

impl<O: Order> fmt::Debug for OwnedSnapshot<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedSnapshot").field("until", &self.until).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use crate::ConcurrentSkipList;

    /// Catches a cursor that visits entries before the key to which it is to move.
    #[test]
    fn a_cursor_at_a_key_passes_over_no_hidden_key_before_it() {
        let list = ConcurrentSkipList::with_shards(1);
        assert!(list.insert(b"z", b""));
        let snapshot = list.snapshot();
        (0..1000_u16).for_each(|key| assert!(list.insert(&key.to_be_bytes(), b"")));
        let cursor = snapshot.cursor_at(b"z").unwrap();
        assert_eq!((cursor.entry().unwrap().key, cursor.moves()), (&b"z"[..], 1));
        assert_eq!(snapshot.cursor().entry().unwrap().key, b"z");
    }
}
