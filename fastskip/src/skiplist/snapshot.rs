//! A list as it was at one moment.

use core::fmt;

use super::cursor::{Cursor, Entry, Iter, View};
use crate::bounds::KeyBounds;
use crate::list::RangeIter;

#[cfg(doc)]
use crate::ConcurrentSkipList;

/// What a list held when [`ConcurrentSkipList::snapshot`] was called. It never changes: inserts that were in flight are
/// in it for good or not at all, and deletions that came later do not show. Taking one costs one atomic step; it holds
/// nothing but a borrow of the list.
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
    view: View<'a>,
}

impl<'a> Snapshot<'a> {
    pub(crate) fn new(view: View<'a>) -> Self {
        Self { view }
    }

    /// The value of `key` and whether it was a tombstone, as [`ConcurrentSkipList::get`] would have said. Expected
    /// O(log n).
    #[must_use]
    pub fn get(&self, key: &[u8]) -> Option<(&'a [u8], bool)> {
        self.view.get(key).map(|entry| (entry.value, entry.is_tombstone))
    }

    /// All entries in order, tombstones included.
    #[must_use]
    pub fn iter(&self) -> Iter<'a> {
        Iter::new(self.view, RangeIter::all())
    }

    /// The entries within `bounds` in order; none if the bounds are inverted.
    #[must_use]
    pub fn range(&self, bounds: impl KeyBounds) -> Iter<'a> {
        Iter::new(self.view, RangeIter::new(bounds))
    }

    /// A cursor on the first entry whose key is not less than `key`, if there is one.
    #[must_use]
    pub fn cursor_at(&self, key: &[u8]) -> Option<Cursor<'a>> {
        let mut cursor = Cursor::new(self.view);
        cursor.seek(key).then_some(cursor)
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
        f.debug_struct("Snapshot").field("until", &self.view.until).finish_non_exhaustive()
    }
}
