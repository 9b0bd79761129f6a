//! The cursors over a memtable. They borrow the memtable or keep it alive.

use core::fmt;

use super::owned::OwnedVersion;
use super::table::Memtable;
use super::version::{Version, Versioned, Visible};
use crate::iter::cursor::{End, Walk, moves};
use crate::list::{LazyList, List};
use crate::node::Target;
use crate::sync::Arc;

impl Memtable {
    /// Returns a cursor over all versions that is on the first one. O(1).
    #[must_use]
    pub fn cursor(&self) -> MemtableCursor<'_> {
        MemtableCursor::new(&self.list, None)
    }

    /// Returns a cursor over all versions that is on the first one. It keeps the table alive. O(1).
    #[must_use]
    pub fn owned_cursor(&self) -> OwnedCursor {
        OwnedCursor::new(Arc::clone(&self.list), None)
    }
}

/// A cursor over the versions of a memtable: keys ascending, and the versions of a key from newest to oldest.
///
/// The cursor of a [`ConcurrentSkipList`](crate::ConcurrentSkipList) has the same moves. A seek finds an entry, and the first
/// step in its direction takes it. So a loop over `next` reads on from a [`seek`](Self::seek) or
/// [`seek_exclusive`](Self::seek_exclusive), and a loop over [`prev`](Self::prev) reads back from a
/// [`seek_for_prev`](Self::seek_for_prev) or [`seek_before`](Self::seek_before). A new cursor is on the first entry, as after
/// [`seek_to_first`](Self::seek_to_first). A cursor that has moved past an end stays there: from before the first entry `next`
/// moves to the first one, and from behind the last entry `prev` moves to the last one. Every step sees what was stored before
/// it.
///
/// A position is a key and a sequence number, in the order of the versions. So `(key, u64::MAX)` is before all versions of a key
/// and `(key, 0)` is the last position that one can have.
///
/// A cursor shows every version. [`visible_at`](Self::visible_at) restricts it to what a reader sees.
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
#[derive(Clone)]
pub struct MemtableCursor<'a> {
    table: &'a LazyList<Versioned>,
    view: Visible,
    walk: Walk,
}

impl<'a> MemtableCursor<'a> {
    fn new(table: &'a LazyList<Versioned>, at: Option<u64>) -> Self {
        let mut cursor = Self { table, view: Visible { at }, walk: Walk::new() };
        cursor.seek_to_first();
        cursor
    }

    /// Makes the cursor show the newest version of each key that is not newer than `seqno`, as [`Memtable::range`] does, and
    /// moves it to the first one. A step is then amortised O(1), and expected O(log n) where more than a few versions of one key
    /// are hidden.
    #[must_use]
    pub fn visible_at(self, seqno: u64) -> Self {
        Self::new(self.table, Some(seqno))
    }

    /// The version that the cursor is on. O(1).
    #[must_use]
    pub fn version(&self) -> Option<Version<'a>> {
        self.walk.item(self.table.made(), self.view)
    }

    #[cfg(test)]
    pub(super) fn moves(&self) -> usize {
        self.walk.moves()
    }

    #[inline]
    fn parts(&mut self) -> (&mut Walk, Option<&'a List<Versioned>>, Visible) {
        (&mut self.walk, self.table.made(), self.view)
    }

    moves!(Version<'a>, (key: &[u8], seqno: u64) => Target { key, version: seqno });
}

/// Takes the next version, from where the cursor is. O(1), not counting versions that are hidden.
impl<'a> Iterator for MemtableCursor<'a> {
    type Item = Version<'a>;

    #[inline]
    fn next(&mut self) -> Option<Version<'a>> {
        let (walk, list, view) = self.parts();
        walk.next(list, view)
    }
}

impl core::iter::FusedIterator for MemtableCursor<'_> {}

/// A [`MemtableCursor`] that keeps its memtable alive. It is `'static` and [`Send`].
///
/// It is no [`Iterator`], because it lends versions until it moves: one that yields versions must count a reference for each, or
/// borrow its table. [`OwnedVersions`](crate::OwnedVersions) is such an iterator; a cursor seeks and turns round. A loop over it reads
/// `while let Some(version) = cursor.next()`.
///
/// After a seek, [`version`](Self::version) is what the seek found, and no step is needed to see it. The first step in the seek's
/// direction takes it, so that the same loop reads on from a seek as from the first version.
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
#[derive(Clone)]
pub struct OwnedCursor {
    table: Arc<LazyList<Versioned>>,
    view: Visible,
    walk: Walk,
}

impl OwnedCursor {
    fn new(table: Arc<LazyList<Versioned>>, at: Option<u64>) -> Self {
        let mut cursor = Self { table, view: Visible { at }, walk: Walk::new() };
        cursor.seek_to_first();
        cursor
    }

    /// The same as [`MemtableCursor::visible_at`].
    #[must_use]
    pub fn visible_at(self, seqno: u64) -> Self {
        Self::new(self.table, Some(seqno))
    }

    /// The version that the cursor is on. O(1).
    #[must_use]
    pub fn version(&self) -> Option<Version<'_>> {
        self.walk.item(self.table.made(), self.view)
    }

    /// The version that the cursor is on; it keeps the table alive by itself, so the cursor may move on. O(1).
    #[must_use]
    pub fn version_owned(&self) -> Option<OwnedVersion> {
        OwnedVersion::attach(&self.table, |table| self.walk.item(table.made(), self.view))
    }

    /// Moves to the next version and returns it; after a seek forward, returns the version found. From before the first version
    /// it moves to the first one. O(1), not counting versions that are hidden.
    #[expect(clippy::should_implement_trait, reason = "a lending cursor: what it lends cannot outlive the next step")]
    #[inline]
    pub fn next(&mut self) -> Option<Version<'_>> {
        let (walk, list, view) = self.parts();
        walk.next(list, view)
    }

    #[inline]
    fn parts(&mut self) -> (&mut Walk, Option<&List<Versioned>>, Visible) {
        (&mut self.walk, self.table.made(), self.view)
    }

    moves!(Version<'_>, (key: &[u8], seqno: u64) => Target { key, version: seqno });
}

impl fmt::Debug for MemtableCursor<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemtableCursor").field("version", &self.version()).finish_non_exhaustive()
    }
}

impl fmt::Debug for OwnedCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedCursor").field("version", &self.version()).finish_non_exhaustive()
    }
}
