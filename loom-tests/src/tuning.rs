//! The constants of `fastskip/src/tuning.rs`, with values so small that a few nodes reach every path.

use std::cell::Cell;
use std::cmp::Ordering;

/// Slots of a block: the head's and three more.
pub(crate) const SLOTS: usize = 4;

/// Of the nodes that are linked right behind a hinted node, one in `HINTED_OF` gets no hint: here practically none. A locked block also gets no hint.
pub(crate) const HINTED_OF: u32 = 1 << 31;

/// Nodes before this word get fewer hints: in most models, all nodes that the threads store. A write to the index takes far more steps than a
/// write to the list, so only models of the index give hints to all nodes.
pub(crate) const SPARSE_WORDS: Sparse = Sparse;

/// The number of nodes in a row without hints before that word.
pub(crate) const SPARSE_WALK: u32 = 1;

/// Compares with offsets like the word that it stands for.
pub(crate) struct Sparse;

thread_local! {
    static IS_SPARSE: Cell<bool> = const { Cell::new(false) };
    static THREADS_ARE_SPARSE: Cell<bool> = const { Cell::new(false) };
}

/// Selects the nodes of a model that get hints as in a large table. The others get fewer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hinting {
    All,
    /// The nodes that are stored before the threads begin.
    Before,
    None,
}

/// Selects the hints for later nodes. All threads of a model run on one thread of the system.
pub(crate) fn hint(which: Hinting) {
    IS_SPARSE.set(which == Hinting::None);
    THREADS_ARE_SPARSE.set(which != Hinting::All);
}

/// Marks the start of a model's threads.
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

/// The reads of a block under change after which a reader accepts its contents.
pub(crate) const STABLE_LOOKS: u32 = 1;

/// The nodes that a search steps over before it tries another way down. A writer that steps over more nodes repairs the index.
pub(crate) const WALK_LIMIT: u32 = 2;

/// The nodes that a search steps over from a hint whose key lacks the prefix that the blocks on the way left out.
pub(crate) const MISFIT_WALK: u32 = 1;

/// The nodes that a lookup steps over before it repairs the index.
pub(crate) const READ_WALK_LIMIT: u32 = 2;

/// The attempts to add a hint while the index changes.
pub(crate) const HINT_TRIES: u32 = 2;

/// The most hints that one repair adds, and the least number of nodes between two of them.
pub(crate) const MEND_HINTS: u32 = 2;
pub(crate) const MEND_STEP: u32 = 1;

/// The number of repairs that must find a block under the same lock acquisition before the block is replaced: one is not enough.
pub(crate) const STUCK_LOOKS: u64 = 2;

/// Replaced blocks take at most one `REPLACED_PART`th of the memory limit. A model's table has room for about ten blocks.
pub(crate) const REPLACED_PART: u64 = 16;

/// The interleaved searches of a group: a batch of three needs two groups.
pub(crate) const GROUP: usize = 2;

/// The steps after which a walk reads ahead.
pub(crate) const STEADY_WALK: u32 = 2;

/// Hints that are fetched together ahead of a walk.
pub(crate) const READAHEAD: usize = 2;

/// The most nodes that a walk back passes at once, from a hint to its place.
pub(crate) const BACKWARD_WALK: usize = 4;

/// Steps of a walk that meet no prefetched node; after them, the walk searches again for the way ahead.
pub(crate) const READAHEAD_MISSES: u32 = 2;

/// No walk is sequential: a walk that reads no hints reaches no more than the list.
pub(crate) const SEQUENTIAL_CHUNKS: u32 = 1 << 20;
pub(crate) const SEQUENTIAL_WORDS: u32 = 0;
pub(crate) const SEQUENTIAL_STEPS: u32 = 1;
pub(crate) const SEQUENTIAL_AHEAD: i32 = 1;
pub(crate) const SEQUENTIAL_MISSES: u32 = 1;

/// Words of the smallest chunk.
pub(crate) const MIN_CHUNK: u64 = 32;

/// Words of the largest chunk.
pub(crate) const MAX_CHUNK: u64 = 256;

/// The nodes of one key that a walk steps over before it searches for the next place.
pub(crate) const HIDDEN_WALK: u32 = 1;

/// The number of size classes of spare pieces.
pub(crate) const SPARE_BINS: usize = 1;
