//! The constants of `fastskip/src/tuning.rs`, with values so small that a few nodes reach every path.

use std::cell::Cell;
use std::cmp::Ordering;

/// Slots of a block: the head's and three more.
pub(crate) const SLOTS: usize = 4;

/// Of so many nodes that are linked right behind a hinted one, one gets no hint: none does. What finds a lock taken goes without.
pub(crate) const HINTED_OF: u32 = 1 << 31;

/// Nodes that lie before this word are hinted more sparsely: all that the threads of most models store. What a writer does to
/// the index takes far more steps than what it does to the list, so only models of the index look at it.
pub(crate) const SPARSE_WORDS: Sparse = Sparse;

/// Nodes in a row that are left without hints there.
pub(crate) const SPARSE_WALK: u32 = 1;

/// Compares as the word does.
pub(crate) struct Sparse;

thread_local! {
    static IS_SPARSE: Cell<bool> = const { Cell::new(false) };
    static THREADS_ARE_SPARSE: Cell<bool> = const { Cell::new(false) };
}

/// Which nodes of a model get hints as a table's do that is not small. The others are hinted sparsely.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hinting {
    All,
    /// Those that are stored before the threads begin.
    Before,
    None,
}

/// Decides for the nodes to come. A model runs on one thread of the system.
pub(crate) fn hint(which: Hinting) {
    IS_SPARSE.set(which == Hinting::None);
    THREADS_ARE_SPARSE.set(which != Hinting::All);
}

/// Says that a model's threads begin.
pub(crate) fn begin_threads() {
    IS_SPARSE.set(THREADS_ARE_SPARSE.get());
}

impl PartialEq<Sparse> for u32 {
    fn eq(&self, _: &Sparse) -> bool {
        false
    }
}

impl PartialOrd<Sparse> for u32 {
    fn partial_cmp(&self, _: &Sparse) -> Option<Ordering> {
        Some(if IS_SPARSE.get() { Ordering::Less } else { Ordering::Greater })
    }
}

/// Looks at a block while a writer changes it, before a reader is content with what it has seen.
pub(crate) const STABLE_LOOKS: u32 = 1;

/// Nodes that a search walks over before it tries another way down. A writer that walks further mends the index.
pub(crate) const WALK_LIMIT: u32 = 2;

/// Nodes that a search walks over from a hint that does not have the prefix left out on the way.
pub(crate) const MISFIT_WALK: u32 = 1;

/// Nodes that a lookup walks over before it mends the index.
pub(crate) const READ_WALK_LIMIT: u32 = 2;

/// Tries to add a hint while the index changes.
pub(crate) const HINT_TRIES: u32 = 2;

/// Hints that are added at most by one that mends, and the nodes from one of them to the next at least.
pub(crate) const MEND_HINTS: u32 = 2;
pub(crate) const MEND_STEP: u32 = 1;

/// Mends that find a lock in the same hands before its block is replaced: one look is not enough.
pub(crate) const STUCK_LOOKS: u64 = 2;

/// Of the limit on memory, blocks that are replaced take one part in so many at most. A model's table has room for some ten.
pub(crate) const REPLACED_PART: u64 = 16;

/// Two searches in flight, so that a batch of three is searched for in two groups.
pub(crate) const GROUP: usize = 2;

/// Steps after which a walk looks ahead.
pub(crate) const STEADY_WALK: u32 = 2;

/// Nodes that are fetched ahead of a walk.
pub(crate) const READAHEAD: usize = 2;

/// Nodes that a walk back passes at once at most, from a hint to where it is.
pub(crate) const BACKWARD_WALK: usize = 4;

/// Steps of a walk that meet no node fetched ahead, after which the way ahead is sought anew.
pub(crate) const READAHEAD_MISSES: u32 = 2;

/// Words of the smallest chunk.
pub(crate) const MIN_CHUNK: u64 = 32;

/// Words of the largest chunk.
pub(crate) const MAX_CHUNK: u64 = 256;

/// Nodes of one key that a walk passes over step by step before it searches for the next place.
pub(crate) const HIDDEN_WALK: u32 = 1;

/// Sizes of spare pieces that are kept apart.
pub(crate) const SPARE_BINS: usize = 1;
