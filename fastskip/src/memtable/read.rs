//! Iterators and cursors over the versions of a memtable. They either borrow the memtable or keep it alive.

use core::ops::RangeBounds;

use super::table::Memtable;
use super::version::{MemtableCore, OwnedVersion, Version};
use crate::bounds::KeyBounds;
use crate::iter::cursor::TableCursor;
use crate::iter::range::{Ends, TableIter};
use crate::iter::source::TableHandle;
use crate::iter::walk::End;
use crate::node::Target;
use crate::order::{Bytewise, Order};
use crate::sync::Arc;

/// Iterating.
impl<O: Order> Memtable<O> {
    /// Iterates in key order over the keys within `bounds` that have a version not newer than `seqno`, and yields the newest such version of each
    /// key, tombstones included. Yields nothing if the bounds are inverted. The bounds are copied.
    ///
    /// The result is stable if every write up to `seqno` has returned before the call. O(log n) to begin at either end. A step is amortised O(1); it
    /// is expected O(log n) if it passes more than a few hidden versions of one key, however many there are.
    ///
    /// ```
    /// # let memtable = fastskip::Memtable::new();
    /// memtable.put(b"a", 1, b"old")?;
    /// memtable.put(b"a", 2, b"new")?;
    /// memtable.put(b"b", 3, b"later")?;
    /// let visible: Vec<_> = memtable.range(b"a"..=b"z", 2).map(|version| (version.key, version.value)).collect();
    /// assert_eq!(visible, [(&b"a"[..], &b"new"[..])]);
    /// # Ok::<(), fastskip::InsertError>(())
    /// ```
    #[must_use]
    pub fn range(&self, bounds: impl KeyBounds, seqno: u64) -> Versions<'_, O> {
        TableIter::new(&*self.list, Some(seqno), Ends::new(bounds))
    }

    /// Iterates over all keys, in the same way as [`range`](Self::range).
    #[must_use]
    pub fn iter(&self, seqno: u64) -> Versions<'_, O> {
        self.range(.., seqno)
    }

    /// Iterates over every version between two positions, tombstones included. A position is a key and a sequence number; keys
    /// ascend, and the versions of a key go from newest to oldest. Yields nothing if the bounds are inverted. O(log n) to begin
    /// at either end, amortised O(1) for a step.
    ///
    /// ```
    /// # use fastskip::Memtable;
    /// let memtable = Memtable::new();
    /// (1..=4).try_for_each(|seqno| memtable.put(b"a", seqno, b"").map(|_| ()))?;
    /// // Every version of a key that is not newer than 3.
    /// let seqnos: Vec<_> = memtable.versions_between((b"a", 3)..=(b"a", 0)).map(|version| version.seqno).collect();
    /// assert_eq!(seqnos, [3, 2, 1]);
    /// # Ok::<(), fastskip::InsertError>(())
    /// ```
    #[must_use]
    pub fn versions_between<K: AsRef<[u8]>>(&self, bounds: impl RangeBounds<(K, u64)>) -> Versions<'_, O> {
        TableIter::new(&*self.list, None, Ends::between(&bounds))
    }

    /// Iterates over every version of the keys within `bounds`, tombstones included: like [`versions_between`](Self::versions_between), with bounds
    /// that are keys. For engines whose readers merge all versions from several sources.
    ///
    /// ```
    /// # use fastskip::Memtable;
    /// let memtable = Memtable::new();
    /// for (key, seqno) in [("a", 1), ("b", 2), ("b", 3), ("c", 4)] {
    ///     memtable.put(key.as_bytes(), seqno, b"")?;
    /// }
    /// let seqnos: Vec<_> = memtable.versions("a"..="b").map(|version| version.seqno).collect();
    /// assert_eq!(seqnos, [1, 3, 2]);
    /// # Ok::<(), fastskip::InsertError>(())
    /// ```
    #[must_use]
    pub fn versions(&self, bounds: impl KeyBounds) -> Versions<'_, O> {
        TableIter::new(&*self.list, None, Ends::new(bounds))
    }

    /// Iterates over every version of every key, in the order that a flush needs: keys ascending, and the versions of a key from newest to oldest.
    /// Amortised O(1) for a step.
    #[must_use]
    pub fn all_versions(&self) -> Versions<'_, O> {
        self.versions(..)
    }
}

/// In other orders, keys with a common prefix need not be neighbours.
impl Memtable {
    /// Iterates over the keys that begin with `prefix`, in the same way as [`range`](Self::range).
    #[must_use]
    pub fn prefix(&self, prefix: &[u8], seqno: u64) -> Versions<'_> {
        TableIter::new(&*self.list, Some(seqno), Ends::prefix(prefix))
    }

    /// Like [`prefix`](Self::prefix), but the iterator and its versions keep the table alive.
    #[must_use]
    pub fn owned_prefix(&self, prefix: &[u8], seqno: u64) -> OwnedVersions {
        TableIter::new(Arc::clone(&self.list), Some(seqno), Ends::prefix(prefix))
    }
}

/// Reads whose results outlive the handle.
impl<O: Order> Memtable<O> {
    /// Like [`get_version`](Self::get_version), but the version keeps the table alive. Expected O(log n).
    ///
    /// ```
    /// # use fastskip::Memtable;
    /// let memtable = Memtable::new();
    /// memtable.put(b"a", 1, b"x")?;
    /// let version = memtable.get_owned(b"a", 9).unwrap();
    /// drop(memtable);
    /// assert_eq!((version.value(), version.seqno()), (&b"x"[..], 1));
    /// # Ok::<(), fastskip::InsertError>(())
    /// ```
    #[must_use]
    pub fn get_owned(&self, key: &[u8], seqno: u64) -> Option<OwnedVersion<O>> {
        OwnedVersion::attach(&self.list, |table| Version::find(table, key, seqno))
    }

    /// Like [`range`](Self::range), but the iterator and its versions keep the table alive.
    ///
    /// ```
    /// # let memtable = fastskip::Memtable::new();
    /// memtable.put(b"a", 1, b"x")?;
    /// memtable.put(b"b", 2, b"y")?;
    /// let mut versions = memtable.owned_range(b"a"..=b"z", 2);
    /// drop(memtable);
    /// let last = versions.next_back().unwrap();
    /// let first = std::thread::spawn(move || versions.next()).join().unwrap().unwrap();
    /// assert_eq!((first.key(), last.key()), (&b"a"[..], &b"b"[..]));
    /// # Ok::<(), fastskip::InsertError>(())
    /// ```
    #[must_use]
    pub fn owned_range(&self, bounds: impl KeyBounds, seqno: u64) -> OwnedVersions<O> {
        TableIter::new(Arc::clone(&self.list), Some(seqno), Ends::new(bounds))
    }

    /// Like [`versions_between`](Self::versions_between), but the iterator and its versions keep the table alive.
    #[must_use]
    pub fn owned_versions_between<K: AsRef<[u8]>>(&self, bounds: impl RangeBounds<(K, u64)>) -> OwnedVersions<O> {
        TableIter::new(Arc::clone(&self.list), None, Ends::between(&bounds))
    }

    /// Like [`versions`](Self::versions), but the iterator and its versions keep the table alive.
    #[must_use]
    pub fn owned_versions(&self, bounds: impl KeyBounds) -> OwnedVersions<O> {
        TableIter::new(Arc::clone(&self.list), None, Ends::new(bounds))
    }

    /// Like [`all_versions`](Self::all_versions), but the iterator and its versions keep the table alive: for a flush on another thread.
    ///
    /// ```
    /// # let memtable = fastskip::Memtable::new();
    /// memtable.put(b"a", 1, b"x")?;
    /// memtable.put(b"a", 2, b"y")?;
    /// let mut versions = memtable.owned_all_versions();
    /// let mut seqnos = Vec::new();
    /// while let Some(version) = versions.next_ref() {
    ///     seqnos.push(version.seqno);
    /// }
    /// assert_eq!(seqnos, [2, 1]);
    /// # Ok::<(), fastskip::InsertError>(())
    /// ```
    #[must_use]
    pub fn owned_all_versions(&self) -> OwnedVersions<O> {
        self.owned_versions(..)
    }
}

/// Cursors.
impl<O: Order> Memtable<O> {
    /// Returns a cursor over all versions; it starts on the first one. O(1).
    #[must_use]
    pub fn cursor(&self) -> MemtableCursor<'_, O> {
        TableCursor::new(&*self.list, None)
    }

    /// Returns a cursor over all versions; it starts on the first one. The cursor keeps the table alive. O(1).
    #[must_use]
    pub fn owned_cursor(&self) -> OwnedMemtableCursor<O> {
        TableCursor::new(Arc::clone(&self.list), None)
    }
}

/// A double-ended iterator over versions, or over the visible version of each key; see [`Memtable::versions`] and
/// [`Memtable::range`].
///
/// It never misses a version that was stored before the iterator was created, and never yields a version twice. A version that was stored before a
/// step is also yielded if it lies ahead of the last version that this end has yielded.
pub type Versions<'a, O = Bytewise> = TableIter<&'a MemtableCore<O>, MemtableCore<O>>;

/// A double-ended iterator like [`Versions`](crate::Versions) that keeps its memtable alive. It is `'static` and [`Send`].
///
/// Each version that it yields keeps the table alive too, and so increments the reference count. A loop that only reads each version, as a flush
/// does, can borrow it instead: `while let Some(version) = versions.next_ref()`.
pub type OwnedVersions<O = Bytewise> = TableIter<Arc<MemtableCore<O>>, MemtableCore<O>>;

/// A cursor over the versions of a memtable: keys ascending, and the versions of a key from newest to oldest. [`TableCursor`] says how it moves.
///
/// A position is a key and a sequence number, in the order of the versions. So `(key, u64::MAX)` is before all versions of a key, and `(key, 0)` is
/// the last position that a version of the key can have.
///
/// A cursor shows every version. [`visible_at`](TableCursor::visible_at) restricts it to the versions that a reader sees.
///
/// ```
/// use fastskip::{Kind, Memtable};
///
/// let memtable = Memtable::new();
/// memtable.put(b"a", 1, b"x")?;
/// memtable.delete(b"a", 2)?;
/// memtable.put(b"b", 3, b"y")?;
/// let mut cursor = memtable.cursor();
/// let seqnos: Vec<_> = cursor.by_ref().map(|version| version.seqno).collect();
/// assert_eq!(seqnos, [2, 1, 3]);
/// assert!(cursor.seek(b"a", 1));
/// assert_eq!(cursor.version().map(|version| version.value), Some(&b"x"[..]));
/// assert_eq!(cursor.next().map(|version| version.seqno), Some(1));
/// // By key, a cursor stops only at the newest version of each, wherever it comes from.
/// assert_eq!(cursor.next_key().map(|version| version.key), Some(&b"b"[..]));
/// assert_eq!(cursor.prev_key().map(|version| version.kind), Some(Kind::Tombstone));
/// assert!(cursor.seek_for_prev(b"a", 0));
/// assert_eq!(cursor.prev_key().map(|version| version.seqno), Some(2));
/// # Ok::<(), fastskip::InsertError>(())
/// ```
pub type MemtableCursor<'a, O = Bytewise> = TableCursor<&'a MemtableCore<O>, MemtableCore<O>>;

/// A [`MemtableCursor`] that keeps its memtable alive. It is `'static` and [`Send`].
///
/// It is no [`Iterator`], because it lends each version only until it moves: an iterator must count a reference for each version, or borrow its
/// table. [`OwnedVersions`](crate::OwnedVersions) is such an iterator; only a cursor can seek and change direction. A loop over it reads `while let
/// Some(version) = cursor.next()`.
///
/// After a seek, [`version`](TableCursor::version) returns the version found; no step is necessary. The first step in the seek's direction returns it
/// again, so the same loop serves after a seek and from the first version on.
///
/// ```
/// # let memtable = fastskip::Memtable::new();
/// memtable.put(b"a", 1, b"x")?;
/// memtable.put(b"b", 2, b"y")?;
/// memtable.put(b"c", 3, b"z")?;
/// let mut cursor = memtable.owned_cursor();
/// drop(memtable);
/// assert!(cursor.seek(b"b", u64::MAX));
/// assert_eq!(cursor.version().map(|version| version.value), Some(&b"y"[..]));
/// let mut seqnos = Vec::new();
/// while let Some(version) = cursor.next() {
///     seqnos.push(version.seqno);
/// }
/// assert_eq!(seqnos, [2, 3]);
/// # Ok::<(), fastskip::InsertError>(())
/// ```
pub type OwnedMemtableCursor<O = Bytewise> = TableCursor<Arc<MemtableCore<O>>, MemtableCore<O>>;

/// The cursors of a memtable.
impl<O: Order, H: TableHandle<MemtableCore<O>>> TableCursor<H, MemtableCore<O>> {
    /// Makes the cursor show the newest version of each key that is not newer than `seqno`, as [`Memtable::range`] does, and moves it to the first
    /// one. A step is then amortised O(1); it is expected O(log n) if it passes more than a few hidden versions of one key.
    #[must_use]
    pub fn visible_at(mut self, seqno: u64) -> Self {
        self.at = Some(seqno);
        self.seek_to_first();
        self
    }

    /// The version that the cursor is on. O(1).
    #[must_use]
    pub fn version(&self) -> Option<H::Item<'_>> {
        self.item()
    }

    /// Moves to the first entry at or behind a position; the next call of `next` returns this entry. Returns false if there is none; then the cursor
    /// is behind the last entry. Expected O(log n), not counting entries that are hidden.
    pub fn seek(&mut self, key: &[u8], seqno: u64) -> bool {
        self.seek_from(Target { key, version: seqno }, End::Included)
    }

    /// Like [`seek`](Self::seek), but moves to the first entry strictly behind a position.
    pub fn seek_after(&mut self, key: &[u8], seqno: u64) -> bool {
        self.seek_from(Target { key, version: seqno }, End::Excluded)
    }

    /// Moves to the last entry at or before a position; the next call of [`prev`](Self::prev) returns this entry. Returns false if there is none;
    /// then the cursor is before the first entry. Expected O(log n), not counting entries that are hidden.
    pub fn seek_for_prev(&mut self, key: &[u8], seqno: u64) -> bool {
        self.seek_back_from(Target { key, version: seqno }, End::Included)
    }

    /// Like [`seek_for_prev`](Self::seek_for_prev), but moves to the last entry strictly before a position.
    pub fn seek_before(&mut self, key: &[u8], seqno: u64) -> bool {
        self.seek_back_from(Target { key, version: seqno }, End::Excluded)
    }
}

impl<O: Order> OwnedMemtableCursor<O> {
    /// The version that the cursor is on; it keeps the table alive, so it stays valid when the cursor moves on. O(1).
    #[must_use]
    pub fn version_owned(&self) -> Option<OwnedVersion<O>> {
        OwnedVersion::attach(&self.table, |table| self.item_of(table))
    }
}
