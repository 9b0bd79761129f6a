//! Stamps: the times at which an entry of a list was inserted and deleted. With them a snapshot never changes.
//!
//! If a stamp were taken before the node is linked, a snapshot taken between the two could change later; if it were taken after, the node would be
//! without a stamp for a moment. So nodes are linked, and deletions marked, without a stamp. Then the writer reads the clock and sets the stamp by
//! CAS; a reader that meets the node first does the same.
//!
//! ```text
//!   meta 0, inserted: 0 -> stamp           meta 1, deleted: 0 (live) -> PENDING -> stamp
//! ```
//!
//! I5 snapshot: a snapshot is a `fetch_add(1)` on the clock; if it returned s, the snapshot sees stamps <= s. A stamp is obtained by `fetch_add(0)`.
//! Both are read-modify-writes of the same word, so they are totally ordered. If a stamp t <= s, its `fetch_add(0)` comes before the snapshot's
//! `fetch_add(1)`, which therefore acquires the link or mark that preceded the stamp: the snapshot finds the node from its first read on. If a reader
//! of the snapshot finds no stamp, the stamp that it sets is > s. In both cases the result is the same for every later read of the snapshot. A thread
//! that saw an entry has acquired its stamp, and with it the read of the clock; so a snapshot that this thread takes afterwards is >= that stamp.

use core::marker::PhantomData;

use crate::node::{NodeRef, Schema};
use crate::order::Order;
use crate::sync::{AtomicU64, Ordering, ord};

const INSERTED: usize = 0;
const DELETED: usize = 1;

const UNSTAMPED: u64 = 0;
const PENDING: u64 = 1;
const FIRST_STAMP: u64 = 2;

/// The nodes of a list: one for each key, with two stamps.
pub struct Stamped<O>(PhantomData<fn() -> O>);

impl<O: Order> Schema for Stamped<O> {
    type Order = O;

    const META_WORDS: usize = 2;
    const HAS_VERSIONS: bool = false;

    #[inline(always)]
    fn meta(_: u64) -> impl AsRef<[u64]> {
        [UNSTAMPED; 2]
    }

    #[inline(always)]
    fn version(_: NodeRef<'_, Self>) -> u64 {
        0
    }
}

/// The stamp in a word; it may be unset.
#[inline(always)]
fn load(word: &AtomicU64) -> u64 {
    // ORDERING(stamp.read): Acquire; pairs with `stamp.set`: a thread that relies on a stamp also sees the clock at or after that stamp.
    word.load(ord("stamp.read", Ordering::Acquire))
}

/// Orders insertions, deletions and snapshots of one list.
#[derive(Debug)]
pub(crate) struct StampClock(AtomicU64);

impl StampClock {
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(FIRST_STAMP))
    }

    /// A stamp for a node that the caller has linked or marked, or has seen linked or marked.
    #[inline]
    fn read(&self) -> u64 {
        // ORDERING(clock.read): Release; pairs with `clock.snapshot`. Weaker: a snapshot that comes later in the clock's order could miss the link or
        // mark that preceded this stamp (loom `snapshot`). It need not acquire: a thread that relies on the stamp acquires it from `stamp.set`, and
        // so is after this step in the clock's order.
        self.0.fetch_add(0, ord("clock.read", Ordering::Release))
    }

    /// Takes a snapshot; it sees entries up to the returned stamp.
    pub(crate) fn snapshot(&self) -> u64 {
        // ORDERING(clock.snapshot): Acquire; pairs with `clock.read`, see there.
        self.0.fetch_add(1, ord("clock.snapshot", Ordering::Acquire))
    }

    /// Changes `word` from `unset` to a stamp, unless another thread already did; returns the stamp.
    #[inline]
    fn settle(&self, word: &AtomicU64, unset: u64) -> u64 {
        let seen = load(word);
        if seen != unset { seen } else { self.stamp(word, unset) }
    }

    #[cold]
    #[inline]
    fn stamp(&self, word: &AtomicU64, unset: u64) -> u64 {
        let now = self.read();
        // ORDERING(stamp.set): Release; pairs with `stamp.read`. Weaker: a thread that saw the entry could take a snapshot that precedes the entry's
        // stamp in the clock's order (axioms `seen_entry`). It need not acquire: the earlier load has acquired the value that it replaces.
        let set = word.compare_exchange(
            unset,
            now,
            ord("stamp.set", Ordering::Release),
            ord("stamp.read", Ordering::Acquire),
        );
        set.map_or_else(|stamp| stamp, |_| now)
    }

    /// Sets the insertion stamp of `node` if it is missing, and returns it.
    #[inline]
    pub(crate) fn inserted(&self, node: NodeRef<'_, Stamped<impl Order>>) -> u64 {
        self.settle(node.meta(INSERTED), UNSTAMPED)
    }

    /// Sets missing stamps of `node`. Returns the entry's state up to a stamp: `None` if it is not visible, otherwise whether it is deleted.
    #[inline(always)]
    pub(crate) fn shown(&self, node: NodeRef<'_, Stamped<impl Order>>, until: u64) -> Option<bool> {
        // Both addresses are computed before the first load, because the compiler moves nothing before that load.
        let (inserted, deleted) = (node.meta(INSERTED), node.meta(DELETED));
        if self.settle(inserted, UNSTAMPED) > until {
            return None;
        }
        Some(match load(deleted) {
            UNSTAMPED => false,
            PENDING => self.stamp(deleted, PENDING) <= until,
            stamp => stamp <= until,
        })
    }

    /// Deletes `node`; returns false if it was deleted before. The deletion stamp is set when this returns.
    pub(crate) fn delete(&self, node: NodeRef<'_, Stamped<impl Order>>) -> bool {
        // In every snapshot, a deletion comes after its insertion.
        self.inserted(node);
        let word = node.meta(DELETED);
        // ORDERING(delete.mark): Release; pairs with `stamp.read`. A failure means another call deleted the node.
        let marked =
            word.compare_exchange(UNSTAMPED, PENDING, ord("delete.mark", Ordering::Release), Ordering::Relaxed);
        self.settle(word, PENDING);
        marked.is_ok()
    }
}
