//! Versions of keys: how nodes hold them, and which of them a view shows.

use crate::iter::View;
use crate::list::{LazyList, List};
use crate::node::{Kind, Record, Target};
use crate::nodes::{NodeRef, Schema};
use crate::sync::Ordering;

/// The schema of a memtable's nodes: a key may have any number of versions, which differ in their sequence numbers and are
/// ordered from newest to oldest.
#[derive(Debug, Clone)]
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

    #[inline(always)]
    pub(crate) fn of(node: NodeRef<'a, Versioned>) -> Self {
        let Record { key, value, kind, tag } = node.record();
        Self { key, seqno: node.version(), kind, tag, value }
    }

    /// The newest version of `key` that is not newer than `seqno`.
    #[inline]
    pub(super) fn find(table: &'a LazyList<Versioned>, key: &[u8], seqno: u64) -> Option<Self> {
        let list = table.made()?;
        let found = list.lower_bound(Target { key, version: seqno }).with_key()?;
        Some(Self::of(list.node(found)))
    }
}

/// All versions of a memtable, or those visible at a sequence number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Visible {
    /// Where set, each key shows its newest version that is not newer.
    pub(crate) at: Option<u64>,
}

impl<'a> View<'a> for Visible {
    type Schema = Versioned;
    type Item = Version<'a>;

    #[inline(always)]
    fn item(self, node: NodeRef<'a, Versioned>) -> Option<Version<'a>> {
        let is_shown = self.at.is_none_or(|at| node.version() <= at);
        is_shown.then(|| Version::of(node))
    }

    #[inline]
    fn at(self) -> Option<u64> {
        self.at
    }
}

/// What a walk takes: the list, if it was made, and the view.
#[inline]
pub(super) fn shown(table: &LazyList<Versioned>, view: Visible) -> (Option<&List<Versioned>>, Visible) {
    (table.made(), view)
}
