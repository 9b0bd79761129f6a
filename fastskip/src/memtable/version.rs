//! Versions of keys: how nodes store them, and which of them a reader sees.

use core::marker::PhantomData;

use crate::iter::owned::OwnedItem;
use crate::iter::source::TableSource;
use crate::list::{LazyList, List};
use crate::node::{Kind, NodeRef, Record, Schema, Target};
use crate::order::{Bytewise, Order};
use crate::sync::Ordering;

/// The schema of a memtable's nodes: a key may have any number of versions, which differ in their sequence numbers and are
/// ordered from newest to oldest.
pub struct Versioned<O>(PhantomData<fn() -> O>);

impl<O: Order> Schema for Versioned<O> {
    type Order = O;

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

/// The table that the handles of a memtable share.
pub(crate) type MemtableCore<O = Bytewise> = LazyList<Versioned<O>>;

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
    /// Six bits for the engine's use; 0 unless the write set others.
    pub tag: u8,
    /// The value; empty for a tombstone, unless the write passed one.
    pub value: &'a [u8],
}

impl<'a> Version<'a> {
    /// A version with tag 0, for versions that come from other sources.
    #[must_use]
    pub const fn new(key: &'a [u8], seqno: u64, kind: Kind, value: &'a [u8]) -> Self {
        Self { key, seqno, kind, tag: 0, value }
    }

    /// The newest version of `key` that is not newer than `seqno`.
    #[inline]
    pub(super) fn find(table: &'a MemtableCore<impl Order>, key: &[u8], seqno: u64) -> Option<Self> {
        let list = table.made()?;
        let found = list.index.lower_bound(Target { key, version: seqno }).with_key()?;
        table.show(list.node(found), None)
    }
}

/// A point is a sequence number: for each key, the newest version that is not newer is visible. `None` makes all versions visible.
impl<O: Order> TableSource for MemtableCore<O> {
    type Item<'a> = Version<'a>;
    /// Sequence number, kind and tag.
    type Rest = (u64, Kind, u8);
    type Point = Option<u64>;
    type Schema = Versioned<O>;

    #[inline(always)]
    fn list(&self) -> Option<&List<Versioned<O>>> {
        self.made()
    }

    #[inline(always)]
    fn show<'a>(&'a self, node: NodeRef<'a, Versioned<O>>, at: Option<u64>) -> Option<Version<'a>> {
        let version = || {
            let Record { key, value, kind, tag } = node.record();
            Version { key, seqno: node.version(), kind, tag, value }
        };
        at.is_none_or(|at| node.version() <= at).then(version)
    }

    #[inline(always)]
    fn version(at: Option<u64>) -> Option<u64> {
        at
    }

    #[inline(always)]
    fn split(version: Self::Item<'_>) -> ([&[u8]; 2], Self::Rest) {
        ([version.key, version.value], (version.seqno, version.kind, version.tag))
    }

    #[inline(always)]
    fn join([key, value]: [&[u8]; 2], (seqno, kind, tag): Self::Rest) -> Version<'_> {
        Version { key, seqno, kind, tag, value }
    }
}

/// A [`Version`] that keeps its table alive, by one counted reference. Nothing is copied. Its contents never change, even if the version is replaced.
///
/// While such a version exists, the table cannot be [reset](crate::Memtable::try_reset), and none of its memory is freed; so do not keep one for long.
pub type OwnedVersion<O = Bytewise> = OwnedItem<MemtableCore<O>>;

impl<O: Order> OwnedVersion<O> {
    /// The sequence number of the write.
    #[must_use]
    pub fn seqno(&self) -> u64 {
        self.rest.0
    }

    /// Whether the write was a put or a delete.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.rest.1
    }

    /// Six bits for the engine's use; 0 unless the write set others.
    #[must_use]
    pub fn tag(&self) -> u8 {
        self.rest.2
    }

    /// The version, borrowed.
    #[must_use]
    pub fn as_version(&self) -> Version<'_> {
        self.item()
    }
}

impl<O: Order> PartialEq<Version<'_>> for OwnedVersion<O> {
    fn eq(&self, other: &Version<'_>) -> bool {
        self.item() == *other
    }
}
