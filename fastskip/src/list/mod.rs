//! The core of both tables: one sorted list of nodes, which is the truth, and above it an index of hints.
//!
//! `search` finds places, `link` puts nodes there, `index/` makes both quick. `run` spares the search where keys come in order,
//! `group` searches for many targets at once, `position`, `cursor`, `range` and `readahead` iterate over what a `view` shows.
//!
//! I1 order: keys, and within a key versions descending, strictly sorted along the list. The CAS replaces exactly the link
//!    whose two ends were compared with the new node.
//! I2 hints: what the index stores are nodes of this list, linked before, see `index/block`.
//! I3 single commit: before the CAS no link leads to the node; after it the node is found, whatever the index says (`search.rs`).
//! I7 freeze: writers pass through a gate, see `gate.rs`.
//! I9 partial key: see `key.rs`.

mod backward;
mod counts;
pub(crate) mod cursor;
mod freeze;
mod gate;
mod group;
pub(crate) mod index;
mod lazy;
mod link;
mod order;
mod position;
mod range;
mod readahead;
mod run;
pub(crate) mod schema;
mod search;
pub(crate) mod stats;
mod validate;
pub(crate) mod view;
mod writer;

use std::io;
use std::marker::PhantomData;

use self::counts::Counts;
use self::freeze::Freezing;
use self::gate::Gate;
use self::index::{BLOCK_WORDS, FIRST_BLOCK, Index};
use self::run::Run;
use self::schema::{NodeRef, Schema};
use crate::builder::Config;
use crate::mem::arena::{Arena, Layout};
use crate::mem::quota::{Lease, Quota};
use crate::mem::storage::Storage;
use crate::node::{FIRST_NODE, Node, NodeId, Predecessor};
use crate::sync::AtomicBool;

pub(crate) use lazy::LazyList;
pub(crate) use range::Range;
pub(crate) use search::LowerBound;
pub(crate) use writer::{ArenaAlloc, NodeAlloc, Outcome, Writer};

const _: () = assert!(FIRST_BLOCK >= FIRST_NODE, "the first block lies behind the head");

/// What a shard has beside its chunk of the arena.
#[derive(Debug, Default)]
struct Shard {
    gate: Gate,
    lease: Lease,
    counts: Counts,
    run: Run,
}

/// An arena, and the sorted list of nodes in it.
#[derive(Debug)]
pub(crate) struct List<S> {
    arena: Arena<Shard>,
    index: Index,
    quota: Quota,
    /// Set once a limit is near, and never cleared.
    pressed: AtomicBool,
    config: Config,
    /// Whether the system refused the memory that the settings ask for: then nothing is too large, only this table full.
    starved: bool,
    freezing: Freezing,
    schema: PhantomData<S>,
}

impl<S: Schema> List<S> {
    /// An empty list.
    ///
    /// # Errors
    /// The system refuses the address range.
    pub(crate) fn new(config: Config) -> io::Result<Self> {
        let layout = Layout {
            shards: config.shards,
            chunk_bytes: config.chunk_bytes,
            max_memory_bytes: config.max_memory_bytes,
            size_hint: config.size_hint,
            huge_pages: config.huge_pages,
            head_words: FIRST_BLOCK + BLOCK_WORDS,
        };
        let arena = Arena::new(layout, config.pool.as_ref())?;
        let mut list = Self {
            arena,
            index: Index::new(),
            quota: Quota::new(config.max_entries, config.shards),
            pressed: AtomicBool::new(false),
            config,
            starved: false,
            freezing: Freezing::default(),
            schema: PhantomData,
        };
        list.make_empty();
        Ok(list)
    }

    /// An empty list with these settings that stores next to nothing, for want of memory.
    ///
    /// # Panics
    /// If the allocator has not even a page.
    pub(crate) fn smallest(config: &Config) -> Self {
        let config = Config { chunk_bytes: 0, size_hint: 1, max_memory_bytes: 0, pool: None, ..config.clone() };
        Self { starved: true, ..Self::new(config).expect("a page from the allocator") }
    }

    /// Forgets every entry and opens the list again.
    pub(crate) fn reset(&mut self) {
        self.arena.reset();
        self.make_empty();
        self.quota = Quota::new(self.config.max_entries, self.config.shards);
        self.pressed = AtomicBool::new(false);
        self.freezing = Freezing::default();
    }

    /// Writes what lies before the first node: the head and the first block.
    fn make_empty(&mut self) {
        Node::write_head(self.storage());
        self.write_first_block();
    }

    pub(crate) fn storage(&self) -> &Storage {
        &self.arena.storage
    }

    /// The node, which is one of this list.
    #[inline(always)]
    pub(crate) fn node(&self, id: NodeId) -> NodeRef<'_, S> {
        // SAFETY: callers keep ids with their list: none leaves the crate but in a cursor or iterator, which holds its list.
        unsafe { NodeRef::new(&self.arena.storage, id) }
    }

    /// The node behind `at` in order.
    #[inline]
    pub(crate) fn after(&self, at: impl Into<Predecessor>) -> Option<NodeId> {
        // SAFETY: the head, or a linked node of this list: only such ones get about.
        unsafe { Node::new(self.storage(), at).next() }.to
    }
}

#[cfg(test)]
mod tests;
