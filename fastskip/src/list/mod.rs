//! The core of both tables: a sorted list of nodes in an arena.
//!
//! `writer` admits a thread through the `gate` of its shard, allocates and writes nodes, and counts them in `stats`;
//! `towers` searches, links and iterates; `schema` and `stamp` say what a node holds; `validate` checks the invariants.
//!
//! To insert N between A and B at a level: store N's own link to B, then swing A's link from B to N by CAS. The CAS at
//! level 0 is the commit; the levels above, linked bottom up afterwards, only speed searches up.
//!
//! ```text
//!   A --------> B          A ----> N ----> B        A's CAS fails if anyone linked there meanwhile: then walk on from A,
//!        N ---->                                    which still precedes N, and try again with the same node.
//! ```
//!
//! I1 order: keys, and within a key versions descending, strictly sorted along every level. The CAS replaces exactly the
//!    link whose two ends were compared with N.
//! I2 ladder: a node reachable at level L > 0 is reachable at L-1. Levels are linked bottom up and never unlinked.
//! I3 single commit: before the CAS at level 0 no link leads to the node; after it the node is found.
//! I7 freeze: writers pass through a gate, see `gate.rs`.
//! I9 partial key: see `key.rs`.

mod gate;
pub(crate) mod schema;
pub(crate) mod stamp;
pub(crate) mod stats;
pub(crate) mod towers;
mod validate;
mod writer;

use std::io;
use std::marker::PhantomData;

use self::gate::Gate;
use self::schema::{NodeRef, Schema};
use self::stats::Counts;
use self::towers::{Trail, mix};
use crate::builder::Config;
use crate::mem::arena::{Arena, Layout};
use crate::mem::quota::{Lease, Quota};
use crate::mem::storage::Storage;
use crate::node::{HEAD_WORDS, Node, NodeId};
use crate::sync::{AtomicBool, AtomicU32, Condvar, Mutex, PoisonError};

pub(crate) use towers::{Position, RangeIter, SeekResult};
pub(crate) use writer::{ArenaAlloc, NodeAlloc, Outcome, Writer};

/// What a shard has beside its chunk of the arena.
#[derive(Debug, Default)]
struct Shard {
    gate: Gate,
    lease: Lease,
    counts: Counts,
    trail: Trail,
}

/// An arena, and the sorted list of nodes in it.
#[derive(Debug)]
pub(crate) struct List<S> {
    arena: Arena<Shard>,
    /// Levels in use, a hint where searches begin. Every level is sound, used or not.
    levels: AtomicU32,
    quota: Quota,
    /// Set once a limit is near, and never cleared.
    pressed: AtomicBool,
    config: Config,
    seed: u64,
    /// Where a freezing thread waits for the last writer.
    drain: (Mutex<()>, Condvar),
    schema: PhantomData<S>,
}

impl<S: Schema> List<S> {
    /// An empty list.
    ///
    /// # Errors
    /// The system refuses the address range.
    pub(crate) fn new(config: Config) -> io::Result<Self> {
        let arena = Arena::new(Layout {
            shards: config.shards,
            chunk_bytes: config.chunk_bytes,
            max_memory_bytes: config.max_memory_bytes,
            huge_pages: config.huge_pages,
            head_words: HEAD_WORDS,
        })?;
        let list = Self {
            arena,
            levels: AtomicU32::new(1),
            quota: Quota::new(config.max_entries),
            pressed: AtomicBool::new(false),
            seed: config.seed,
            config,
            drain: (Mutex::new(()), Condvar::new()),
            schema: PhantomData,
        };
        Node::write_head(list.storage());
        Ok(list)
    }

    /// Forgets every entry and opens the list again.
    pub(crate) fn reset(&mut self) {
        self.arena.reset();
        Node::write_head(self.storage());
        self.levels = AtomicU32::new(1);
        self.quota = Quota::new(self.config.max_entries);
        self.pressed = AtomicBool::new(false);
        self.seed = mix(self.seed);
    }

    pub(crate) fn config(&self) -> &Config {
        &self.config
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
}

/// Freezing.
impl<S: Schema> List<S> {
    /// Turns away every later writer, and returns when none is inside.
    pub(crate) fn freeze(&self) {
        for shard in self.arena.shards() {
            shard.gate.freeze();
        }
        let mut looking = self.drain.0.lock().unwrap_or_else(PoisonError::into_inner);
        while !self.arena.shards().all(|shard| shard.gate.is_drained()) {
            looking = self.drain.1.wait(looking).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Whether `freeze` was called.
    pub(crate) fn is_frozen(&self) -> bool {
        self.arena.shards().all(|shard| shard.gate.is_frozen())
    }
}

#[cfg(test)]
mod tests;
