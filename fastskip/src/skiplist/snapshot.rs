//! Snapshots: the contents of a list at one moment.

use core::fmt;

use super::cursor::{Cursor, Entry, Iter};
use super::table::ConcurrentSkipList;
use crate::bounds::KeyBounds;
use crate::iter::Ends;

/// The contents of a list when [`ConcurrentSkipList::snapshot`] was called. A snapshot never changes: an insert that was in
/// progress is either always or never part of it, and later deletions are not visible. Taking a snapshot costs one atomic
/// operation. A snapshot holds no resources except a borrow of the list.
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
#[derive(Clone, Copy)]
pub struct Snapshot<'a> {
    pub(super) list: &'a ConcurrentSkipList,
    /// The latest stamp that is shown.
    pub(super) until: u64,
}

impl<'a> Snapshot<'a> {
    /// Returns the value of `key` and whether `key` was a tombstone, as [`ConcurrentSkipList::get`] would have at the moment of
    /// the snapshot. Expected O(log n).
    #[must_use]
    pub fn get(&self, key: &[u8]) -> Option<(&'a [u8], bool)> {
        self.list.find(key, self.until).map(|entry| (entry.value, entry.is_tombstone))
    }

    /// Iterates over all entries in key order, including tombstones. O(1) to begin, and see [`Iter`] for a step.
    #[must_use]
    pub fn iter(&self) -> Iter<'a> {
        self.list.shown_range(self.until, Ends::new(..))
    }

    /// Iterates over the entries within `bounds` in key order. Yields nothing if the bounds are inverted.
    /// Expected O(log n) to begin at either end.
    #[must_use]
    pub fn range(&self, bounds: impl KeyBounds) -> Iter<'a> {
        self.list.shown_range(self.until, Ends::new(bounds))
    }

    /// Returns a cursor on the first entry. O(1), not counting entries that the snapshot hides.
    #[must_use]
    pub fn cursor(&self) -> Cursor<'a> {
        Cursor::new(self.list, self.until)
    }

    /// Returns a cursor on the first entry whose key is not less than `key`, or `None` if there is no such entry.
    /// Expected O(log n), not counting entries behind `key` that the snapshot hides.
    #[must_use]
    pub fn cursor_at(&self, key: &[u8]) -> Option<Cursor<'a>> {
        Cursor::at(self.list, self.until, key)
    }
}

impl<'a> IntoIterator for &Snapshot<'a> {
    type Item = Entry<'a>;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

impl fmt::Debug for Snapshot<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot").field("until", &self.until).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use crate::ConcurrentSkipList;

    /// Catches a cursor that passes over what lies before the key that it is asked for.
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
