//! [`List`]: the parts of a list; creation, freezing and reset.

use super::counts::Counts;
use super::gate::{Freezing, Gate};
use super::run::Run;
use crate::builder::{Config, Duplicates};
use crate::error::Refusal;
use crate::index::Index;
use crate::mem::arena::Pending;
use crate::mem::quota::{Lease, Quota};
use crate::node::{NodeId, NodeRef, Nodes, Schema};
use crate::sync::{AtomicBool, AtomicU64, Ordering};

/// The number of writers inside a shard for which no room is left to the index. If there are more, most are likely open reservations of one entry.
const FEW_WRITERS: u64 = 31;

/// The state of a shard, in addition to its chunk of the arena.
#[derive(Debug, Default)]
pub(crate) struct Shard {
    pub(super) gate: Gate,
    pub(super) lease: Lease,
    pub(super) counts: Counts,
    pub(super) run: Run,
    /// The number of entries of open reservations that are not stored yet; one entry of each reservation is not counted.
    pub(super) announced: AtomicU64,
}

impl Pending for Shard {
    fn pending(&self) -> u64 {
        // A few concurrent single writes may use up the limit entirely: blocks still have free slots for them.
        let single = self.gate.writers().saturating_sub(FEW_WRITERS);
        // Relaxed: see `Arena::pending`.
        single + self.announced.load(Ordering::Relaxed)
    }
}

/// The nodes and their index, and the state that admits, limits and counts writers. The index is the first field, so the list and the index have the
/// same address: walks need only one register for both.
#[derive(Debug)]
#[repr(C)]
pub struct List<S> {
    pub(crate) index: Index<S, Shard>,
    pub(super) quota: Quota,
    /// Set once a limit is near, and never cleared.
    pub(super) pressed: AtomicBool,
    pub(super) config: Config,
    pub(super) freezing: Freezing,
}

impl<S: Schema> List<S> {
    /// An empty list.
    ///
    /// # Errors
    /// Returns an error if the system refuses the address range.
    pub(crate) fn new(config: Config) -> Result<Self, Refusal> {
        Ok(Self {
            index: Index::new(config.arena.clone(), config.pool.as_ref())?,
            quota: Quota::new(config.max_entries, config.arena.shards),
            pressed: AtomicBool::new(false),
            config,
            freezing: Freezing::default(),
        })
    }

    /// Removes every entry and accepts writes again.
    pub(crate) fn reset(&mut self) {
        self.index.reset();
        self.quota = Quota::new(self.config.max_entries, self.config.arena.shards);
        self.pressed = AtomicBool::new(false);
        self.freezing = Freezing::default();
    }

    #[inline(always)]
    pub(crate) fn nodes(&self) -> &Nodes<S, Shard> {
        &self.index.nodes
    }

    /// The node with this id, which must belong to this list.
    #[inline(always)]
    pub(crate) fn node(&self, id: NodeId) -> NodeRef<'_, S> {
        self.nodes().node(id)
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

    /// Whether a write replaces the stored entry that has the same key and version.
    #[inline]
    pub(crate) fn replaces(&self) -> bool {
        self.config.duplicates == Duplicates::Replace
    }

    /// Turns away every later writer.
    pub(super) fn begin_freeze(&self) {
        self.gates().for_each(Gate::freeze);
    }

    /// Waits until no writer is inside the frozen list.
    pub(super) fn wait_until_drained(&self) {
        self.freezing.wait(self.gates());
    }

    /// The number of writers inside, and the number of inserts attempted; see [`Gate::traffic`].
    pub(crate) fn traffic(&self) -> (u64, u64) {
        self.gates().map(Gate::traffic).fold((0, 0), |sum, gate| (sum.0 + gate.0, sum.1 + gate.1))
    }

    /// Whether every later write is refused. Writers inside may still finish.
    pub(crate) fn is_frozen(&self) -> bool {
        let is_frozen = self.shard(0).gate.is_frozen();
        if is_frozen && !self.gates().all(Gate::is_frozen) {
            self.begin_freeze();
        }
        is_frozen
    }

    /// Whether the list is frozen and no writer is inside: its contents are final.
    pub(crate) fn is_drained(&self) -> bool {
        self.freezing.is_drained(self.gates())
    }
}
