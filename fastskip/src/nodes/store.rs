//! The nodes of a list, and the way to them by their ids.

use std::io;
use std::marker::PhantomData;

use super::schema::{NodeRef, Schema};
use crate::mem::arena::{Arena, Layout};
use crate::mem::storage::{Storage, TablePool};
use crate::node::{Link, Node, NodeId, Predecessor};

/// An arena, and the sorted list of nodes in it. `T` is what the layers above keep for each shard, on the cache lines of the arena's shard.
#[derive(Debug)]
pub(crate) struct Nodes<S, T> {
    pub(crate) arena: Arena<T>,
    schema: PhantomData<S>,
}

impl<S: Schema, T: Default> Nodes<S, T> {
    /// An empty list of nodes: the head alone.
    ///
    /// # Errors
    /// The system refuses the address range.
    pub(crate) fn new(layout: Layout, pool: Option<&TablePool>) -> io::Result<Self> {
        let nodes = Self { arena: Arena::new(layout, pool)?, schema: PhantomData };
        Node::write_head(nodes.storage());
        Ok(nodes)
    }

    /// Forgets every node.
    pub(crate) fn reset(&mut self) {
        self.arena.reset();
        Node::write_head(self.storage());
    }
}

impl<S: Schema, T> Nodes<S, T> {
    pub(crate) fn storage(&self) -> &Storage {
        &self.arena.storage
    }

    /// The node, which is one of this list.
    #[inline(always)]
    pub(crate) fn node(&self, id: NodeId) -> NodeRef<'_, S> {
        // SAFETY: callers keep ids with their list: none leaves the crate but in a cursor or iterator, which holds its list.
        unsafe { NodeRef::new(&self.arena.storage, id) }
    }

    /// The link from the head, or from a linked node of this list.
    #[inline(always)]
    pub(crate) fn link(&self, at: impl Into<Predecessor>) -> Link {
        // SAFETY: a caller has ids of linked nodes only: a walk, an acquired hint or what a lone writer remembers led to them.
        unsafe { Node::new(self.storage(), at).next() }
    }

    /// The node behind `at` in order.
    #[inline]
    pub(crate) fn after(&self, at: impl Into<Predecessor>) -> Option<NodeId> {
        self.link(at).to
    }

    /// The key of a node; none of its bytes for the head.
    pub(crate) fn key_of(&self, node: Option<Predecessor>) -> &[u8] {
        node.and_then(Predecessor::node).map_or(&[], |node| self.node(node).key())
    }

    /// Asks the processor for what a search reads of a node.
    #[inline(always)]
    pub(crate) fn prefetch(&self, node: Option<Predecessor>) {
        if let Some(node) = node {
            Node::new(self.storage(), node).prefetch_search();
        }
    }
}
