//! [`Schema`]: the difference between the two types of table below their API, and nodes read by it.

use core::marker::PhantomData;

use crate::mem::storage::Storage;
use crate::node::{Node, NodeId, Record, Target};
use crate::sync::AtomicU64;

/// What a node holds beside its entry, and how equal keys are ordered.
pub trait Schema: Send + Sync + 'static {
    /// Words between a node's link and its bytes.
    const META_WORDS: usize;

    /// Whether a key can have more than one node.
    const HAS_VERSIONS: bool;

    /// What those words are at first.
    fn meta(version: u64) -> impl AsRef<[u64]>;

    /// The version of a node: among equal keys, greater ones come first.
    fn version(node: NodeRef<'_, Self>) -> u64
    where
        Self: Sized;
}

/// A node with its storage and its schema, so that reading it is safe.
pub struct NodeRef<'a, S> {
    node: Node<'a>,
    schema: PhantomData<S>,
}

impl<S> Clone for NodeRef<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for NodeRef<'_, S> {}

impl<'a, S: Schema> NodeRef<'a, S> {
    /// # Safety
    /// `id` is of the table in `storage`, which has schema `S`.
    #[inline(always)]
    pub(crate) unsafe fn new(storage: &'a Storage, id: NodeId) -> Self {
        Self { node: Node::new(storage, id), schema: PhantomData }
    }

    /// Meta word `index`, which must be less than `S::META_WORDS`.
    #[inline(always)]
    pub(crate) fn meta(self, index: usize) -> &'a AtomicU64 {
        assert!(index < S::META_WORDS);
        // SAFETY: a node of schema `S` (`new`), and `index` was just checked.
        unsafe { self.node.meta(index) }
    }

    #[inline(always)]
    pub(crate) fn key(self) -> &'a [u8] {
        // SAFETY: a node of schema `S` (`new`).
        unsafe { self.node.key(S::META_WORDS) }
    }

    /// What the latest write of its key and version stored.
    #[inline(always)]
    pub(crate) fn record(self) -> Record<'a> {
        // SAFETY: a linked node of schema `S` (`new`).
        unsafe { self.node.record(S::META_WORDS) }
    }

    /// What it holds itself, whatever replaced that; and whether it is replaceable.
    pub(crate) fn own_record(self) -> (Record<'a>, bool) {
        // SAFETY: a node of schema `S` (`new`).
        unsafe { self.node.own_record(S::META_WORDS) }
    }

    /// The node that shows instead of this one, if there is one.
    pub(crate) fn latest(self) -> Option<NodeId> {
        // SAFETY: replaceable, as was just asked.
        self.own_record().1.then(|| unsafe { self.node.latest() })?
    }

    /// Makes `by` show instead of this node, and returns the node that did so before. `by` has its key and version, and was not linked.
    ///
    /// # Panics
    /// If this node is not replaceable.
    pub(crate) fn replace(self, by: NodeId) -> Option<NodeId> {
        assert!(self.own_record().1, "I10 broken: a node that is not replaceable");
        // SAFETY: replaceable, as was just asked; `by` names a written node of this table. That it has this key and version and was not linked is the
        // caller's promise, on which I10 depends and no access to memory does.
        unsafe { self.node.replace(by) }
    }

    #[inline(always)]
    pub(crate) fn version(self) -> u64 {
        S::version(self)
    }

    /// What a search for this very node looks for.
    #[inline(always)]
    pub(crate) fn target(self) -> Target<'a> {
        Target { key: self.key(), version: self.version() }
    }
}
