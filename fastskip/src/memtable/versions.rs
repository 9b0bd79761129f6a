//! Versions of keys, and the iterators over them.

use core::fmt;

use crate::list::schema::{NodeRef, Schema};
use crate::list::{List, RangeIter};
use crate::node::Kind;
use crate::sync::Ordering;

#[cfg(doc)]
use crate::Memtable;

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
pub struct Version<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The sequence number of the write.
    pub seqno: u64,
    /// Whether the write was a put or a delete.
    pub kind: Kind,
    /// The value; empty for a tombstone.
    pub value: &'a [u8],
}

impl<'a> Version<'a> {
    pub(crate) fn of(node: NodeRef<'a, Versioned>) -> Self {
        let (key, value, kind) = node.entry();
        Self { key, seqno: node.version(), kind, value }
    }
}

/// A double-ended iterator over the visible version of each key; see [`Memtable::range`]. Each key appears at most once.
#[derive(Clone)]
pub struct Versions<'a> {
    list: &'a List<Versioned>,
    range: RangeIter,
    seqno: u64,
    /// The version that the front yielded last. Older versions of its key may follow it. They are skipped only when the front
    /// moves again, so that reading one key touches no node of the next.
    yielded: Option<NodeRef<'a, Versioned>>,
}

impl<'a> Versions<'a> {
    pub(crate) fn new(list: &'a List<Versioned>, range: RangeIter, seqno: u64) -> Self {
        Self { list, range, seqno, yielded: None }
    }

    /// Whether `node` has the key that the front yielded last.
    fn is_yielded(&self, node: NodeRef<'a, Versioned>) -> bool {
        self.yielded.is_some_and(|yielded| yielded.key() == node.key())
    }

    /// Skips the remaining versions of the key that the front yielded last, so that the back does not yield this key again.
    fn take_yielded_key(&mut self) {
        while self.range.front(self.list).is_some_and(|first| self.is_yielded(first)) {
            self.range.pop_front(self.list);
        }
        self.yielded = None;
    }

    /// Skips every version of the key of `last`, the last remaining node, and returns the visible version.
    fn take_last_key(&mut self, last: NodeRef<'a, Versioned>) -> Option<NodeRef<'a, Versioned>> {
        let mut visible = None;
        let mut left = Some(last);
        while let Some(node) = left.filter(|node| node.key() == last.key()) {
            // From the back, versions appear from oldest to newest: the last one that is not too new is visible.
            if node.version() <= self.seqno {
                visible = Some(node);
            }
            self.range.pop_back(self.list);
            left = self.range.back(self.list);
        }
        visible
    }
}

impl<'a> Iterator for Versions<'a> {
    type Item = Version<'a>;

    fn next(&mut self) -> Option<Version<'a>> {
        loop {
            let first = self.range.front(self.list)?;
            self.range.pop_front(self.list);
            // From the front, versions appear from newest to oldest: the first one that is not too new is visible.
            if first.version() <= self.seqno && !self.is_yielded(first) {
                self.yielded = Some(first);
                return Some(Version::of(first));
            }
        }
    }
}

impl DoubleEndedIterator for Versions<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        if self.yielded.is_some() {
            self.take_yielded_key();
        }
        loop {
            let last = self.range.back(self.list)?;
            if let Some(visible) = self.take_last_key(last) {
                return Some(Version::of(visible));
            }
        }
    }
}

impl core::iter::FusedIterator for Versions<'_> {}

impl fmt::Debug for Versions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Versions").field("seqno", &self.seqno).finish_non_exhaustive()
    }
}

/// A double-ended iterator over all versions; see [`Memtable::all_versions`].
#[derive(Clone)]
pub struct AllVersions<'a> {
    list: &'a List<Versioned>,
    range: RangeIter,
}

impl<'a> AllVersions<'a> {
    pub(crate) fn new(list: &'a List<Versioned>, range: RangeIter) -> Self {
        Self { list, range }
    }
}

impl<'a> Iterator for AllVersions<'a> {
    type Item = Version<'a>;

    fn next(&mut self) -> Option<Version<'a>> {
        let node = self.range.front(self.list)?;
        self.range.pop_front(self.list);
        Some(Version::of(node))
    }
}

impl DoubleEndedIterator for AllVersions<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let node = self.range.back(self.list)?;
        self.range.pop_back(self.list);
        Some(Version::of(node))
    }
}

impl core::iter::FusedIterator for AllVersions<'_> {}

impl fmt::Debug for AllVersions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AllVersions").finish_non_exhaustive()
    }
}
