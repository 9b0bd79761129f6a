//! [`List`]: its parts, and how it is made, frozen and reset.

use std::io;

use super::counts::Counts;
use super::freeze::{self, Freezing};
use super::gate::Gate;
use super::run::Run;
use crate::builder::{Config, Duplicates};
use crate::index::{Index, LowerBound};
use crate::mem::arena::Layout;
use crate::mem::quota::{Lease, Quota};
use crate::node::{NodeId, Target};
use crate::nodes::{NodeRef, Nodes, Schema};
use crate::sync::AtomicBool;

/// What a shard has beside its chunk of the arena.
#[derive(Debug, Default)]
pub(crate) struct Shard {
    pub(super) gate: Gate,
    pub(super) lease: Lease,
    pub(super) counts: Counts,
    pub(super) run: Run,
}

/// Nodes with their index, and what admits, limits and counts those who write them. The index is first, so that the address of one is
/// that of both: walks need one register for them.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct List<S> {
    pub(crate) index: Index<S, Shard>,
    pub(super) quota: Quota,
    /// Set once a limit is near, and never cleared.
    pub(super) pressed: AtomicBool,
    pub(super) config: Config,
    /// Whether the system refused the memory that the settings ask for: then nothing is too large, only this table full.
    pub(super) starved: bool,
    pub(super) freezing: Freezing,
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
            head_words: 0,
        };
        Ok(Self {
            index: Index::new(layout, config.pool.as_ref())?,
            quota: Quota::new(config.max_entries, config.shards),
            pressed: AtomicBool::new(false),
            config,
            starved: false,
            freezing: Freezing::default(),
        })
    }

    /// An empty list with these settings that stores next to nothing, for want of memory.
    ///
    /// # Panics
    /// If the allocator has not even a page.
    pub(crate) fn smallest(config: &Config) -> Self {
        let small = Config { chunk_bytes: 0, max_memory_bytes: 1, pool: None, ..config.clone() };
        Self { starved: true, config: config.clone(), ..Self::new(small).expect("a page from the allocator") }
    }

    /// Forgets every entry and opens the list again.
    pub(crate) fn reset(&mut self) {
        self.index.reset();
        self.quota = Quota::new(self.config.max_entries, self.config.shards);
        self.pressed = AtomicBool::new(false);
        self.freezing = Freezing::default();
    }

    #[inline(always)]
    pub(crate) fn nodes(&self) -> &Nodes<S, Shard> {
        &self.index.nodes
    }

    /// The node, which is one of this list.
    #[inline(always)]
    pub(crate) fn node(&self, id: NodeId) -> NodeRef<'_, S> {
        self.nodes().node(id)
    }

    /// The first node not before the target.
    #[inline(always)]
    pub(crate) fn lower_bound(&self, target: Target<'_>) -> LowerBound {
        self.index.lower_bound(target)
    }

    #[inline(always)]
    pub(super) fn shard(&self, shard: usize) -> &Shard {
        self.nodes().arena.shard(shard)
    }

    pub(super) fn shards(&self) -> impl Iterator<Item = &Shard> + Clone {
        self.nodes().arena.shards()
    }

    fn gates(&self) -> impl Iterator<Item = &Gate> + Clone {
        self.shards().map(|shard| &shard.gate)
    }

    /// Whether a write whose key and version are there replaces what is there.
    #[inline]
    pub(crate) fn replaces(&self) -> bool {
        self.config.duplicates == Duplicates::Replace
    }

    /// Turns away every later writer, and returns when none is inside.
    pub(crate) fn freeze(&self) {
        self.freezing.freeze(self.gates());
    }

    /// Whether every later write is refused. Writers inside may still finish.
    pub(crate) fn is_frozen(&self) -> bool {
        freeze::is_frozen(self.gates())
    }

    /// Whether the list is frozen and no writer is inside: its contents are final.
    pub(crate) fn is_drained(&self) -> bool {
        self.freezing.is_drained()
    }
}
