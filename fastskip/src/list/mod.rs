//! The core of both tables: links nodes into the list, and is the only writer of links.
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
//! I7 seal: writers pass through a gate, see `gate.rs`.
//! I9 piece: see `key.rs`.

mod figures;
mod group;
mod link;
mod pass;
mod place;
mod search;
mod splice;
mod stretch;

use std::io;
use std::marker::PhantomData;

use crate::arena::{Arena, Layout};
use crate::budget::Budget;
use crate::config::Config;
use crate::height::{MAX_HEIGHT, mix};
use crate::node::{HEAD, HEAD_WORDS, Link, NIL, Node};
use crate::search::{NodeRef, Schema};
use crate::storage::{Storage, WORD};
use crate::sync::{AtomicBool, AtomicU32, Condvar, Mutex, Ordering, PoisonError};

pub(crate) use pass::{Fresh, Outcome, Pass, Room};
pub(crate) use stretch::{Reach, Stretch};

/// An arena, and the sorted list of nodes in it.
#[derive(Debug)]
pub(crate) struct List<S> {
    arena: Arena,
    /// Levels in use, a hint where searches begin. Every level is sound, used or not.
    levels: AtomicU32,
    budget: Budget,
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
            budget: Budget::new(config.max_entries),
            pressed: AtomicBool::new(false),
            seed: config.seed,
            config,
            drain: (Mutex::new(()), Condvar::new()),
            schema: PhantomData,
        };
        list.write_head();
        Ok(list)
    }

    fn write_head(&self) {
        // The words of its links; the one before them is where NIL points.
        self.storage().open(NIL + 1, MAX_HEIGHT * WORD);
        for level in 0..MAX_HEIGHT {
            // SAFETY: the head has a link at every level.
            unsafe { self.head().link(level) }.store(Link::END.pack(), Ordering::Relaxed);
        }
    }

    /// Forgets every entry and opens the list again.
    pub(crate) fn reset(&mut self) {
        self.arena.reset();
        self.write_head();
        self.levels = AtomicU32::new(1);
        self.budget = Budget::new(self.config.max_entries);
        self.pressed = AtomicBool::new(false);
        self.seed = mix(self.seed);
    }

    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    pub(crate) fn storage(&self) -> &Storage {
        &self.arena.storage
    }

    fn head(&self) -> Node<'_> {
        Node { storage: &self.arena.storage, off: HEAD }
    }

    /// The node at `off`, which a link of this list led to, or a finger's walk or an earlier insert returned.
    #[inline(always)]
    pub(crate) fn node(&self, off: u32) -> NodeRef<'_, S> {
        debug_assert!(off != NIL && off != HEAD);
        // SAFETY: offsets go round inside this crate only; those that reach here came from links of this list. I8.
        unsafe { NodeRef::new(&self.arena.storage, off) }
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
