//! Iterates over versions of keys.

use core::ops::RangeBounds;

use super::table::Memtable;
use super::version::{Version, Visible};
use crate::bounds::KeyBounds;
use crate::iter::{Ends, Range, impl_range_iterator};

/// Iterating.
impl Memtable {
    fn shown(&self, at: Option<u64>, ends: Ends) -> Versions<'_> {
        Versions(Range::new(&self.list, Visible { at }, ends))
    }

    /// Iterates over the keys within `bounds` that have a version not newer than `seqno`, tombstones included, in key order,
    /// and yields the newest such version of each. Yields nothing if the bounds are inverted. The bounds are copied.
    ///
    /// The result is stable if every write up to `seqno` has returned before the call. O(log n) to begin at either end. A step
    /// is amortised O(1), and expected O(log n) where more than a few versions of one key are hidden, whatever their number.
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
    pub fn range(&self, bounds: impl KeyBounds, seqno: u64) -> Versions<'_> {
        self.shown(Some(seqno), Ends::new(bounds))
    }

    /// Iterates over the keys that begin with `prefix`, as [`range`](Self::range) does.
    #[must_use]
    pub fn prefix(&self, prefix: &[u8], seqno: u64) -> Versions<'_> {
        self.shown(Some(seqno), Ends::prefix(prefix))
    }

    /// Iterates over all keys, as [`range`](Self::range) does over some.
    #[must_use]
    pub fn iter(&self, seqno: u64) -> Versions<'_> {
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
    /// let seqnos: Vec<_> = memtable.versions((b"a", 3)..=(b"a", 0)).map(|version| version.seqno).collect();
    /// assert_eq!(seqnos, [3, 2, 1]);
    /// # Ok::<(), fastskip::InsertError>(())
    /// ```
    #[must_use]
    pub fn versions<K: AsRef<[u8]>>(&self, bounds: impl RangeBounds<(K, u64)>) -> Versions<'_> {
        self.shown(None, Ends::between(&bounds))
    }

    /// Iterates over every version of the keys within `bounds`, tombstones included, as [`versions`](Self::versions) does between the
    /// positions that these keys can have. For engines whose readers merge all versions of several sources.
    ///
    /// ```
    /// # use fastskip::Memtable;
    /// let memtable = Memtable::new();
    /// for (key, seqno) in [("a", 1), ("b", 2), ("b", 3), ("c", 4)] {
    ///     memtable.put(key.as_bytes(), seqno, b"")?;
    /// }
    /// let seqnos: Vec<_> = memtable.versions_of("a"..="b").map(|version| version.seqno).collect();
    /// assert_eq!(seqnos, [1, 3, 2]);
    /// # Ok::<(), fastskip::InsertError>(())
    /// ```
    #[must_use]
    pub fn versions_of(&self, bounds: impl KeyBounds) -> Versions<'_> {
        self.shown(None, Ends::new(bounds))
    }

    /// Iterates over every version of every key, as a flush needs them: keys ascending, and the versions of a key from newest
    /// to oldest. Amortised O(1) for a step.
    #[must_use]
    pub fn all_versions(&self) -> Versions<'_> {
        self.versions_of(..)
    }
}

/// A double-ended iterator over versions, or over the visible version of each key; see [`Memtable::versions`] and
/// [`Memtable::range`].
///
/// It never misses a version that was stored before the iterator was created, and never yields one twice. A version that was
/// stored before a step is yielded if it lies ahead of what that end has yielded last.
#[derive(Clone)]
pub struct Versions<'a>(pub(super) Range<'a, Visible>);

impl_range_iterator!(Versions, Version);
