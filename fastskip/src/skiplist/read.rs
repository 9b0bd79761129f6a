//! Reads of a list: lookups, iterators, cursors and snapshots.

use super::cursor::{Contents, Cursor, Entry, Iter, shown};
use super::snapshot::Snapshot;
use super::table::ConcurrentSkipList;
use crate::bounds::KeyBounds;
use crate::iter::{Ends, View};
use crate::node::Target;

/// Reading.
impl ConcurrentSkipList {
    /// Returns the value of `key` and whether `key` is a tombstone. A tombstone keeps its old value. Expected O(log n).
    #[must_use]
    pub fn get(&self, key: &[u8]) -> Option<(&[u8], bool)> {
        self.find(key, Contents::LIVE).map(|entry| (entry.value, entry.is_tombstone))
    }

    /// Returns the value of `key`, or `None` if `key` is absent or a tombstone. Expected O(log n).
    #[must_use]
    pub fn get_live(&self, key: &[u8]) -> Option<&[u8]> {
        self.get(key).filter(|(_, is_tombstone)| !is_tombstone).map(|(value, _)| value)
    }

    /// Looks up each key as [`get_live`](Self::get_live) does, and returns the values in the order of `keys`.
    /// Expected O(log n) for each key; the searches go on side by side.
    #[must_use]
    pub fn get_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Vec<Option<&[u8]>> {
        let keys: Vec<_> = keys.iter().map(|key| Target { key: key.as_ref(), version: 0 }).collect();
        let mut values = vec![None; keys.len()];
        let (list, live) = shown(self, Contents::LIVE);
        let Some(list) = list else { return values };
        list.lower_bounds(&keys, |index, found| {
            let entry = found.with_key().and_then(|id| live.item(list.node(id)));
            values[index] = entry.filter(|entry| !entry.is_tombstone).map(|entry| entry.value);
        });
        values
    }

    /// Whether `key` is stored and is not a tombstone. Expected O(log n).
    #[must_use]
    pub fn contains_key(&self, key: &[u8]) -> bool {
        self.get_live(key).is_some()
    }

    /// Iterates over all entries in key order, including tombstones. O(1) to begin, and see [`Iter`] for a step.
    #[must_use]
    pub fn iter(&self) -> Iter<'_> {
        self.shown_range(Contents::LIVE, Ends::new(..))
    }

    /// Returns a cursor on the first entry. O(1).
    #[must_use]
    pub fn cursor(&self) -> Cursor<'_> {
        Cursor::new(self, Contents::LIVE)
    }

    /// Returns a cursor on the first entry whose key is not less than `key`, or `None` if there is no such entry.
    /// Expected O(log n).
    #[must_use]
    pub fn cursor_at(&self, key: &[u8]) -> Option<Cursor<'_>> {
        Cursor::at(self, Contents::LIVE, key)
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
    pub fn range(&self, bounds: impl KeyBounds) -> Iter<'_> {
        self.shown_range(Contents::LIVE, Ends::new(bounds))
    }

    /// Iterates over the entries whose keys begin with `prefix`, in key order. Expected O(log n) to begin at either end.
    #[must_use]
    pub fn prefix(&self, prefix: &[u8]) -> Iter<'_> {
        self.shown_range(Contents::LIVE, Ends::prefix(prefix))
    }

    /// Takes a snapshot of the current contents. O(1).
    #[must_use]
    pub fn snapshot(&self) -> Snapshot<'_> {
        Snapshot { list: self, until: self.clock.snapshot() }
    }
}

impl<'a> IntoIterator for &'a ConcurrentSkipList {
    type Item = Entry<'a>;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}
