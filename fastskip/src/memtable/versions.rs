//! Versions of keys, and the iterator over them.

use core::fmt;
use core::ops::{Bound, RangeBounds};

use super::Memtable;
use crate::bounds::KeyBounds;
use crate::list::schema::{NodeRef, Schema};
use crate::list::view::View;
use crate::list::{List, Range};
use crate::node::{Kind, Record};
use crate::sync::Ordering;

/// The schema of a memtable's nodes: a key may have any number of versions, which differ in their sequence numbers and are
/// ordered from newest to oldest.
#[derive(Debug)]
pub(crate) struct Versioned;

impl Schema for Versioned {
    const META_WORDS: usize = 1;
    const HAS_VERSIONS: bool = true;

    #[inline(always)]
    fn meta(version: u64) -> impl AsRef<[u64]> {
        [version]
    }

    #[inline(always)]
    fn version(node: NodeRef<'_, Self>) -> u64 {
        // Relaxed: the word is written once, before the link to this node is published.
        node.meta(0).load(Ordering::Relaxed)
    }
}

/// A version of a key, borrowed from the arena.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Version<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The sequence number of the write.
    pub seqno: u64,
    /// Whether the write was a put or a delete.
    pub kind: Kind,
    /// The six bits that belong to the engine; 0 unless the write gave others.
    pub tag: u8,
    /// The value; empty for a tombstone, unless the write gave one.
    pub value: &'a [u8],
}

impl<'a> Version<'a> {
    /// A version with tag 0, for what comes from other sources.
    #[must_use]
    pub const fn new(key: &'a [u8], seqno: u64, kind: Kind, value: &'a [u8]) -> Self {
        Self { key, seqno, kind, tag: 0, value }
    }

    #[inline]
    pub(crate) fn of(node: NodeRef<'a, Versioned>) -> Self {
        let Record { key, value, kind, tag } = node.record();
        Self { key, seqno: node.version(), kind, tag, value }
    }
}

/// All versions of a memtable, or those visible at a sequence number.
#[derive(Clone, Copy)]
pub(crate) struct Visible<'a> {
    pub(crate) list: &'a List<Versioned>,
    /// Where set, each key shows its newest version that is not newer.
    pub(crate) at: Option<u64>,
}

impl<'a> View<'a> for Visible<'a> {
    type Schema = Versioned;
    type Item = Version<'a>;

    fn list(self) -> &'a List<Versioned> {
        self.list
    }

    #[inline]
    fn item(self, node: NodeRef<'a, Versioned>) -> Option<Version<'a>> {
        let is_shown = self.at.is_none_or(|at| node.version() <= at);
        is_shown.then(|| Version::of(node))
    }

    #[inline]
    fn at(self) -> Option<u64> {
        self.at
    }
}

/// Iterating.
impl Memtable {
    fn visible(&self, at: Option<u64>) -> Visible<'_> {
        Visible { list: self.list(), at }
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
        Versions(Range::new(self.visible(Some(seqno)), bounds))
    }

    /// Iterates over the keys that begin with `prefix`, as [`range`](Self::range) does.
    #[must_use]
    pub fn prefix(&self, prefix: &[u8], seqno: u64) -> Versions<'_> {
        Versions(Range::prefix(self.visible(Some(seqno)), prefix))
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
    /// (1..=4).try_for_each(|seqno| memtable.put(b"a", seqno, b""))?;
    /// // Every version of a key that is not newer than 3.
    /// let seqnos: Vec<_> = memtable.versions((b"a", 3)..=(b"a", 0)).map(|version| version.seqno).collect();
    /// assert_eq!(seqnos, [3, 2, 1]);
    /// # Ok::<(), fastskip::InsertError>(())
    /// ```
    #[must_use]
    pub fn versions<K: AsRef<[u8]>>(&self, bounds: impl RangeBounds<(K, u64)>) -> Versions<'_> {
        let place = |bound: Bound<&(K, u64)>| bound.map(|(key, seqno)| (Box::from(key.as_ref()), *seqno));
        Versions(Range::between(self.visible(None), place(bounds.start_bound()), place(bounds.end_bound())))
    }

    /// Iterates over every version of every key, as a flush needs them: keys ascending, and the versions of a key from newest
    /// to oldest. Amortised O(1) for a step.
    #[must_use]
    pub fn all_versions(&self) -> Versions<'_> {
        Versions(Range::new(self.visible(None), ..))
    }
}

/// A double-ended iterator over versions, or over the visible version of each key; see [`Memtable::versions`] and
/// [`Memtable::range`].
///
/// It never misses a version that was stored before the iterator was created, and never yields one twice. A version that was
/// stored before a step is yielded if it lies ahead of what that end has yielded last.
#[derive(Clone)]
pub struct Versions<'a>(pub(super) Range<Visible<'a>>);

impl<'a> Iterator for Versions<'a> {
    type Item = Version<'a>;

    #[inline]
    fn next(&mut self) -> Option<Version<'a>> {
        self.0.next()
    }
}

impl DoubleEndedIterator for Versions<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        self.0.next_back()
    }
}

impl core::iter::FusedIterator for Versions<'_> {}

impl fmt::Debug for Versions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Versions").finish_non_exhaustive()
    }
}
