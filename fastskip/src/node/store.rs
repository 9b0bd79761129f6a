//! The nodes of a list: access by id, their order, and the checks of both.

use alloc::vec::Vec;
use core::cmp::Ordering;
use core::marker::PhantomData;

use super::id::{Link, NodeId, Predecessor};
use super::read::{self, NodeRef, Record, Schema};
use super::write::{Kind, NewNode, Target};
use crate::error::Refusal;
use crate::key::{self, PartialKey};
use crate::mem::arena::{Arena, Layout};
use crate::mem::storage::{Storage, TablePool};
use crate::order::Order;

/// An arena, and the sorted list of nodes in it. `T` is the state that the layers above keep for each shard, on the cache lines of the arena's shard.
#[derive(Debug)]
pub(crate) struct Nodes<S, T> {
    pub(crate) arena: Arena<T>,
    schema: PhantomData<S>,
}

impl<S: Schema, T: Default> Nodes<S, T> {
    /// An empty list of nodes: it has only the head.
    ///
    /// # Errors
    /// Returns an error if the system refuses the address range.
    pub(crate) fn new(layout: Layout, pool: Option<&TablePool>) -> Result<Self, Refusal> {
        let nodes = Self { arena: Arena::new(layout, pool)?, schema: PhantomData };
        read::write_head(nodes.storage());
        Ok(nodes)
    }

    /// Removes every node.
    pub(crate) fn reset(&mut self) {
        self.arena.reset();
        read::write_head(self.storage());
    }
}

impl<S: Schema, T> Nodes<S, T> {
    pub(crate) fn storage(&self) -> &Storage {
        &self.arena.storage
    }

    /// The node with this id, which must belong to this list.
    #[inline(always)]
    pub(crate) fn node(&self, id: NodeId) -> NodeRef<'_, S> {
        // SAFETY: callers use ids only with their list: no id leaves the crate except in a cursor or iterator, which holds its list.
        unsafe { NodeRef::new(&self.arena.storage, id) }
    }

    /// The link from the head, or from a linked node of this list.
    #[inline(always)]
    pub(crate) fn link(&self, at: impl Into<Predecessor>) -> Link {
        // SAFETY: callers only have ids of linked nodes: they come from a walk, from an acquired hint, or from the run of a lone writer.
        unsafe { read::next(self.storage(), at) }
    }

    /// The node that follows `at` in the list.
    #[inline]
    pub(crate) fn after(&self, at: impl Into<Predecessor>) -> Option<NodeId> {
        self.link(at).to
    }

    /// The sort key of a node; empty for the head.
    pub(crate) fn sort_key_of(&self, node: Option<Predecessor>) -> impl AsRef<[u8]> + use<'_, S, T> {
        struct OrEmpty<K>(Option<K>);

        impl<K: AsRef<[u8]>> AsRef<[u8]> for OrEmpty<K> {
            #[inline(always)]
            fn as_ref(&self) -> &[u8] {
                self.0.as_ref().map_or(&[], K::as_ref)
            }
        }

        OrEmpty(node.and_then(Predecessor::node).map(|node| self.node(node).sort_key()))
    }

    /// Prefetches the words that a search reads of a node: the link, the meta words and the first words of the key.
    #[inline(always)]
    pub(crate) fn prefetch(&self, node: Option<Predecessor>) {
        if let Some(node) = node {
            self.storage().prefetch::<0>(node.to_stored());
            self.storage().prefetch::<4>(node.to_stored());
        }
    }
}

/// The result of comparing a node with a target.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Compared {
    pub(crate) order: Ordering,
    pub(crate) has_key: bool,
    /// The length of the zero-padded prefix that the keys share.
    pub(crate) shared: u32,
}

/// Of the hints around a target, the one that a descent by keys searches for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// The target's own hint, or else the last one before it.
    AtOrBefore,
    /// The last hint before the target.
    Before,
}

impl Side {
    /// Whether a node is too far behind, if `order` is its order relative to the target.
    #[inline(always)]
    pub(crate) fn is_behind(self, order: Ordering) -> bool {
        match self {
            Self::AtOrBefore => order == Ordering::Greater,
            Self::Before => order != Ordering::Less,
        }
    }
}

/// Counts the nodes and blocks that a search visits. The unit type counts nothing, at no cost.
pub(crate) trait Cost {
    #[inline(always)]
    fn node(&mut self) {}

    #[inline(always)]
    fn block(&mut self) {}
}

impl Cost for () {}

impl<S: Schema, T> Nodes<S, T> {
    /// Compares a node with a target. The head precedes every target.
    #[inline(always)]
    pub(crate) fn compare(&self, at: Predecessor, target: Target<'_>) -> Compared {
        match at.node() {
            Some(node) => self.compare_from(self.node(node), target, 0),
            None => {
                let shared = key::compare(&[], S::Order::sort_key(target.key).as_ref(), 0).1;
                Compared { order: Ordering::Less, has_key: false, shared }
            }
        }
    }

    /// Like `compare`, if the first `known` bytes of the keys are known to be equal.
    #[inline(always)]
    pub(super) fn compare_from(&self, node: NodeRef<'_, S>, target: Target<'_>, known: u32) -> Compared {
        let (by_key, shared) = key::compare_keys::<S::Order>(node.key(), target.key, known);
        let order = by_key.then_with(|| target.version.cmp(&node.version()));
        Compared { order, has_key: by_key == Ordering::Equal, shared }
    }

    /// Whether `a` precedes `b`; each is a node or the head.
    pub(crate) fn is_before(&self, a: Predecessor, b: Predecessor) -> bool {
        match b.node() {
            Some(b) => self.compare(a, self.node(b).target()).order == Ordering::Less,
            None => false,
        }
    }

    /// Every node, in order. Checks I1 (order), I9 (partial keys) and I10 (replacements).
    pub(crate) fn validate(&self) -> Vec<NodeId> {
        let mut nodes = Vec::new();
        let mut at = Predecessor::HEAD;
        loop {
            let link = self.link(at);
            let Some(id) = link.to else {
                assert_eq!(link.partial, PartialKey::END, "I9 broken: the end of the list");
                return nodes;
            };
            let (here, next) = (at.node().map(|at| self.node(at)), self.node(id));
            assert_eq!(link.partial, PartialKey::between(self.sort_key_of(Some(at)), next.sort_key()), "I9 broken");
            if let Some(here) = here {
                let order =
                    key::order::<S::Order>(here.key(), next.key()).then_with(|| next.version().cmp(&here.version()));
                assert_eq!(order, Ordering::Less, "I1 broken");
            }
            if let Some(latest) = next.latest().map(|latest| self.node(latest)) {
                let is_same = latest.has_key(next.key()) && latest.version() == next.version();
                assert!(is_same && latest.latest().is_none(), "I10 broken");
            }
            nodes.push(id);
            at = id.into();
        }
    }

    /// The number of words of a node.
    pub(crate) fn words_of(&self, id: NodeId) -> u32 {
        let (Record { key, value, kind, tag }, latest) = self.node(id).own_record();
        let value = [value];
        let new = NewNode::new(key, &value, kind, tag, 0);
        if latest.is_some() { 1 + new.replaceable().words(S::META_WORDS) } else { new.words(S::META_WORDS) }
    }

    /// The number of words of an entry: of its node, and of the node that has replaced its contents.
    pub(crate) fn words_in_use(&self, id: NodeId) -> u32 {
        match self.node(id).latest() {
            Some(latest) => self.words_of_replaced(id) + self.words_of(latest),
            None => self.words_of(id),
        }
    }

    /// The number of words of a node that remain in use after another node has replaced its contents.
    pub(crate) fn words_of_replaced(&self, id: NodeId) -> u32 {
        let key = self.node(id).key();
        1 + NewNode::new(key, &[], Kind::Value, 0, 0).replaceable().words(S::META_WORDS)
    }
}
