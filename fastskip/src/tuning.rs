//! Constants that affect only the speed of a table, never its contents: sizes of groups, and thresholds. Measured in `docs/src/lab-notes.md`. The
//! models in `loom-tests` use small values instead, so that a handful of nodes reaches every path.

/// Slots of a block: with its header, two cache lines of partial keys and two of offsets. 14 and 62 were no better.
pub(crate) const SLOTS: usize = 30;

/// Of this many nodes that are linked directly after a hinted one, one gets no hint: this saves a fifth of the blocks' memory, and costs one more
/// step in a fifth of the searches.
pub(crate) const HINTED_OF: u32 = 5;

/// Nodes that lie before this word are hinted more sparsely: while a table is small, steps are cheap and blocks are not. 32 KiB.
pub(crate) const SPARSE_WORDS: u32 = (32 << 10) / 8;

/// Nodes in a row that are left without hints there.
pub(crate) const SPARSE_WALK: u32 = 1;

/// The number of looks at a block that a writer is changing, before a reader uses what it has seen.
pub(crate) const STABLE_LOOKS: u32 = 3;

/// Nodes that a search walks over before it tries another way down. A writer that walks further mends the index.
pub(crate) const WALK_LIMIT: u32 = 24;

/// The number of nodes that a search walks over from a hint that does not have the prefix left out on the way: the target may still be the first of
/// the next leaf.
pub(crate) const MISFIT_WALK: u32 = 3;

/// Nodes that a lookup walks over before it mends the index.
pub(crate) const READ_WALK_LIMIT: u32 = 4;

/// Tries to add a hint while the index changes.
pub(crate) const HINT_TRIES: u32 = 3;

/// The maximum number of hints that one mend adds, and the minimum number of nodes from one of them to the next.
pub(crate) const MEND_HINTS: u32 = 16;
pub(crate) const MEND_STEP: u32 = 3;

/// The number of mends that find a lock with the same holder before its block is replaced. Threads that come at the same time do not count
/// separately, and a running holder has released the lock before that.
pub(crate) const STUCK_LOOKS: u64 = 4;

/// Replaced blocks take at most one part in this many of the limit on memory: a stopped thread costs a block or two, rarely five.
pub(crate) const REPLACED_PART: u64 = 16;

/// The number of searches at once: more than the cache misses that a core can have in flight.
pub(crate) const GROUP: usize = 32;

/// The number of steps after which a walk begins to read ahead.
pub(crate) const STEADY_WALK: u32 = 8;

/// Hints that are fetched together ahead of a walk, which is then up to three times as many nodes behind.
pub(crate) const READAHEAD: usize = 12;

/// The maximum number of nodes that a backward walk passes at once, from a hint to its position.
pub(crate) const BACKWARD_WALK: usize = 64;

/// The number of steps without a node that was fetched ahead, after which readahead searches for its place again.
pub(crate) const READAHEAD_MISSES: u32 = 32;

/// Words of the smallest chunk; a smaller one would not be useful. 256 bytes.
pub(crate) const MIN_CHUNK: u64 = 32;

/// Words of the largest chunk, except one that is requested by size: larger chunks would only leave more memory idle. 2 MiB.
pub(crate) const MAX_CHUNK: u64 = (2 << 20) / 8;

/// Nodes of one key that a walk passes over step by step before it searches for the next place.
pub(crate) const HIDDEN_WALK: u32 = 8;

/// The number of size classes of spare pieces, each twice the one before.
pub(crate) const SPARE_BINS: usize = 32;
