//! Reading a [`Memtable`] in order.

use core::borrow::Borrow;
use core::fmt;

use crate::list::List;
use crate::memtable::{Memtable, Versioned};
use crate::node::Kind;
use crate::search::{NodeRef, Target};
use crate::walk::{Span, Walker};

/// One version of a key, borrowed from the arena.
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
    fn of(node: NodeRef<'a, Versioned>) -> Self {
        let (key, value, kind) = node.entry();
        Self { key, seqno: node.version(), kind, value }
    }
}

/// The visible version of each key, from both ends; see [`Memtable::range`]. Each key appears at most once.
#[derive(Clone)]
pub struct Versions<'a> {
    list: &'a List<Versioned>,
    span: Span,
    seqno: u64,
}

impl<'a> Versions<'a> {
    pub(crate) fn new(list: &'a List<Versioned>, span: Span, seqno: u64) -> Self {
        Self { list, span, seqno }
    }
}

// Both ends take all versions of a key at once, so that they never share one.
impl<'a> Versions<'a> {
    /// Takes every version of the key of `first`, the first node left; returns the visible one.
    fn take_first_key(&mut self, first: NodeRef<'a, Versioned>) -> Option<NodeRef<'a, Versioned>> {
        let mut visible = None;
        let mut left = Some(first);
        while let Some(node) = left.filter(|node| node.key() == first.key()) {
            // Newest first: the first one that is not too new.
            if visible.is_none() && node.version() <= self.seqno {
                visible = Some(node);
            }
            self.span.pop_front(self.list);
            left = self.span.front(self.list);
        }
        visible
    }

    /// Takes every version of the key of `last`, the last node left; returns the visible one.
    fn take_last_key(&mut self, last: NodeRef<'a, Versioned>) -> Option<NodeRef<'a, Versioned>> {
        let mut visible = None;
        let mut left = Some(last);
        while let Some(node) = left.filter(|node| node.key() == last.key()) {
            // Oldest first: the last one that is not too new.
            if node.version() <= self.seqno {
                visible = Some(node);
            }
            self.span.pop_back(self.list);
            left = self.span.back(self.list);
        }
        visible
    }
}

impl<'a> Iterator for Versions<'a> {
    type Item = Version<'a>;

    fn next(&mut self) -> Option<Version<'a>> {
        loop {
            let first = self.span.front(self.list)?;
            if let Some(visible) = self.take_first_key(first) {
                return Some(Version::of(visible));
            }
        }
    }
}

impl DoubleEndedIterator for Versions<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        loop {
            let last = self.span.back(self.list)?;
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

/// Every version, from both ends; see [`Memtable::all_versions`].
#[derive(Clone)]
pub struct AllVersions<'a> {
    list: &'a List<Versioned>,
    span: Span,
}

impl<'a> AllVersions<'a> {
    pub(crate) fn new(list: &'a List<Versioned>, span: Span) -> Self {
        Self { list, span }
    }
}

impl<'a> Iterator for AllVersions<'a> {
    type Item = Version<'a>;

    fn next(&mut self) -> Option<Version<'a>> {
        let node = self.span.front(self.list)?;
        self.span.pop_front(self.list);
        Some(Version::of(node))
    }
}

impl DoubleEndedIterator for AllVersions<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let node = self.span.back(self.list)?;
        self.span.pop_back(self.list);
        Some(Version::of(node))
    }
}

impl core::iter::FusedIterator for AllVersions<'_> {}

impl fmt::Debug for AllVersions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AllVersions").finish_non_exhaustive()
    }
}

/// A position among all versions of a memtable, keys ascending and of a key the newest first.
///
/// It is on a version or, at first and past either end, on none; from there only a seek or a move to an end leads back.
/// What it lends lives as long as the borrow of the cursor. `H` is how it holds the table: [`OwnedCursor`] keeps it
/// alive, `MemtableCursor<&Memtable>` borrows it.
///
/// ```
/// use fastskip::{Kind, Memtable};
///
/// let memtable = Memtable::new();
/// memtable.put(b"a", 1, b"x")?;
/// memtable.delete(b"a", 2)?;
/// let mut cursor = memtable.owned_cursor();
/// drop(memtable);
/// assert!(cursor.seek_to_first());
/// assert_eq!((cursor.key(), cursor.seqno(), cursor.kind()), (&b"a"[..], 2, Kind::Tombstone));
/// assert!(cursor.next());
/// assert_eq!((cursor.seqno(), cursor.value()), (1, &b"x"[..]));
/// assert!(!cursor.next());
/// # Ok::<(), fastskip::InsertError>(())
/// ```
#[derive(Clone)]
pub struct MemtableCursor<H> {
    memtable: H,
    walker: Walker,
}

/// A cursor that keeps its memtable alive: `'static` and [`Send`].
pub type OwnedCursor = MemtableCursor<Memtable>;

impl<H: Borrow<Memtable>> MemtableCursor<H> {
    pub(crate) fn new(memtable: H) -> Self {
        Self { memtable, walker: Walker::new() }
    }

    fn list(&self) -> &List<Versioned> {
        self.memtable.borrow().list()
    }

    fn move_by(&mut self, step: impl FnOnce(&mut Walker, &List<Versioned>)) -> bool {
        step(&mut self.walker, self.memtable.borrow().list());
        self.valid()
    }

    fn node(&self) -> NodeRef<'_, Versioned> {
        self.walker.node(self.list()).expect("the cursor is on no version: ask `valid` first")
    }

    /// Whether the cursor is on a version. The methods that move it return the same.
    #[must_use]
    pub fn valid(&self) -> bool {
        self.walker.node(self.list()).is_some()
    }

    /// Goes to the first version. O(1).
    pub fn seek_to_first(&mut self) -> bool {
        self.move_by(Walker::seek_to_first)
    }

    /// Goes to the last version. Expected O(log n).
    pub fn seek_to_last(&mut self) -> bool {
        self.move_by(Walker::seek_to_last)
    }

    /// Goes to the newest version of `key` not newer than `seqno`, or else the first version behind it. Expected O(log n).
    pub fn seek(&mut self, key: &[u8], seqno: u64) -> bool {
        self.move_by(|walker, list| walker.seek(list, Target { key, version: seqno }))
    }

    /// Goes to the version `seqno` of `key`, or else the last version before it. Expected O(log n).
    pub fn seek_for_prev(&mut self, key: &[u8], seqno: u64) -> bool {
        self.move_by(|walker, list| walker.seek_for_prev(list, Target { key, version: seqno }))
    }

    /// Goes one version on. O(1).
    #[expect(clippy::should_implement_trait, reason = "a lending cursor: what it lends cannot outlive the next step")]
    pub fn next(&mut self) -> bool {
        self.move_by(Walker::next)
    }

    /// Goes one version back. Amortised O(1).
    pub fn prev(&mut self) -> bool {
        self.move_by(Walker::prev)
    }

    /// The key.
    ///
    /// # Panics
    /// If the cursor is not [`valid`](Self::valid), as all that follow.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        self.node().key()
    }

    /// The sequence number.
    #[must_use]
    pub fn seqno(&self) -> u64 {
        self.node().version()
    }

    /// Whether it is a put or a delete.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.node().entry().2
    }

    /// The value; empty for a tombstone.
    #[must_use]
    pub fn value(&self) -> &[u8] {
        self.node().entry().1
    }
}

impl<H: Borrow<Memtable>> fmt::Debug for MemtableCursor<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = self.walker.node(self.list()).map(Version::of);
        f.debug_struct("MemtableCursor").field("version", &version).finish_non_exhaustive()
    }
}
