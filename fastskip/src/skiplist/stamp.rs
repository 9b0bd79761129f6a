//! Stamps: when an entry of a list was inserted and deleted, so that a snapshot never changes.
//!
//! A stamp taken before the node is linked would let a snapshot taken in between change later, and one taken after
//! it would leave a moment without stamp. So nodes are linked, and deletions marked, unstamped; then
//! the writer reads the clock and sets the stamp by CAS, and so does every reader that meets the node first.
//!
//! ```text
//!   meta 0, inserted: 0 -> stamp           meta 1, deleted: 0 (live) -> PENDING -> stamp
//! ```
//!
//! I5 snapshot: a snapshot is a `fetch_add(1)` on the clock that returned s; it sees stamps <= s. A stamp is read by
//! `fetch_add(0)`. Both are read-modify-writes of one word, hence totally ordered. If a stamp t <= s, its reading comes
//! before the snapshot's step, which therefore acquires the link or mark that preceded it: the snapshot finds the node
//! from its first look on. If a snapshot meets no stamp, the one it sets is > s. Either way the answer is settled.
//! A thread that saw an entry acquired its stamp, and with it the reading of the clock; so a snapshot that it takes then is >= that stamp.

use crate::node::{NodeRef, Schema};
use crate::sync::{AtomicU64, Ordering, ord};

const INSERTED: usize = 0;
const DELETED: usize = 1;

const UNSTAMPED: u64 = 0;
const PENDING: u64 = 1;
const FIRST_STAMP: u64 = 2;

/// Nodes of a list: one to a key, with two stamps.
#[derive(Debug)]
pub struct Stamped;

impl Schema for Stamped {
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

/// The stamp in a word, settled or not.
#[inline(always)]
fn load(word: &AtomicU64) -> u64 {
    // ORDERING(stamp.read): Acquire; pairs with `stamp.set`: who relies on a stamp saw the clock at least that far.
    word.load(ord("stamp.read", Ordering::Acquire))
}

/// Orders insertions, deletions and snapshots of one list.
#[derive(Debug)]
pub(crate) struct StampClock(AtomicU64);

impl StampClock {
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(FIRST_STAMP))
    }

    /// A stamp for what the caller has linked or marked, or seen linked or marked.
    fn read(&self) -> u64 {
        // ORDERING(clock.read): Release; pairs with `clock.snapshot`. Weaker: a snapshot that comes later in the clock's
        // order could miss the link or mark that led here (loom `snapshot`). It need not acquire: a thread that relies on the
        // stamp acquires it from `stamp.set`, and so is behind this step in the clock's order.
        self.0.fetch_add(0, ord("clock.read", Ordering::Release))
    }

    /// The stamp up to which a snapshot that begins now sees.
    pub(crate) fn snapshot(&self) -> u64 {
        // ORDERING(clock.snapshot): Acquire; pairs with `clock.read`, see there.
        self.0.fetch_add(1, ord("clock.snapshot", Ordering::Acquire))
    }

    /// Sets `word` from `unset` to a stamp, unless somebody did; returns the stamp.
    #[inline]
    fn settle(&self, word: &AtomicU64, unset: u64) -> u64 {
        let seen = load(word);
        if seen != unset { seen } else { self.stamp(word, unset) }
    }

    #[cold]
    fn stamp(&self, word: &AtomicU64, unset: u64) -> u64 {
        let now = self.read();
        // ORDERING(stamp.set): Release; pairs with `stamp.read`. Weaker: who saw the entry could take a snapshot that lies
        // before its stamp in the clock's order (axioms `seen_entry`). What it replaces was acquired by the look before.
        let set = word.compare_exchange(
            unset,
            now,
            ord("stamp.set", Ordering::Release),
            ord("stamp.read", Ordering::Acquire),
        );
        set.map_or_else(|stamp| stamp, |_| now)
    }

    /// Settles when `node` was inserted.
    #[inline]
    pub(crate) fn inserted(&self, node: NodeRef<'_, Stamped>) -> u64 {
        self.settle(node.meta(INSERTED), UNSTAMPED)
    }

    /// Settles both. Returns what is shown up to a stamp: nothing, or an entry and whether it is deleted.
    #[inline(always)]
    pub(crate) fn shown(&self, node: NodeRef<'_, Stamped>, until: u64) -> Option<bool> {
        // Both addresses are known before the first look, which the compiler moves nothing before.
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

    /// Deletes `node`; false if it was deleted before. Settled when this returns.
    pub(crate) fn delete(&self, node: NodeRef<'_, Stamped>) -> bool {
        // A deletion is later than its insertion, in every snapshot.
        self.inserted(node);
        let word = node.meta(DELETED);
        // ORDERING(delete.mark): Release; pairs with `stamp.read`. A failure means another call deleted the node.
        let marked =
            word.compare_exchange(UNSTAMPED, PENDING, ord("delete.mark", Ordering::Release), Ordering::Relaxed);
        self.settle(word, PENDING);
        marked.is_ok()
    }
}
