//! Constants that affect only the speed of a table, never its contents: sizes of groups, and thresholds. Measured in `docs/src/lab-notes.md`. The
//! loom models in `loom-tests` use small values instead, so that a handful of nodes exercises every path.

/// The number of slots of a block: with its header, a block has two cache lines of partial keys and two of offsets. 14 and 62 slots were not better.
pub(crate) const SLOTS: usize = 30;

/// Of this many nodes linked directly after a hinted node, one gets no hint: this saves a fifth of the blocks' memory, and costs one more step in a
/// fifth of the searches.
pub(crate) const HINTED_OF: u32 = 5;

/// Nodes that lie before this word get fewer hints: while a table is small, steps are cheap compared with blocks. 32 KiB.
pub(crate) const SPARSE_WORDS: u32 = (32 << 10) / 8;

/// The number of nodes in a row that get no hint before that word.
pub(crate) const SPARSE_WALK: u32 = 1;

/// The number of times that a reader reads a block that a writer is changing, before it uses its last result.
pub(crate) const STABLE_LOOKS: u32 = 3;

/// The number of nodes that a search passes before it descends again in another way. A writer whose walk is longer mends the index.
pub(crate) const WALK_LIMIT: u32 = 24;

/// The number of nodes that a search passes after a hint whose key lacks the prefix left out on the way: the target may be the next leaf's first
/// node.
pub(crate) const MISFIT_WALK: u32 = 3;

/// The number of nodes that a lookup passes before it mends the index.
pub(crate) const READ_WALK_LIMIT: u32 = 4;

/// The number of tries to add a hint while the index changes.
pub(crate) const HINT_TRIES: u32 = 3;

/// The maximum number of hints that one mend adds, and the minimum number of nodes from one of them to the next.
pub(crate) const MEND_HINTS: u32 = 16;
pub(crate) const MEND_STEP: u32 = 3;

/// The number of mends that find a lock with the same holder before the locked block is replaced. Threads that find it at the same time do not count
/// separately, and a running holder releases the lock before the count is reached.
pub(crate) const STUCK_LOOKS: u64 = 4;

/// Replaced blocks take at most one part in this many of the limit on memory: a stopped thread costs one or two blocks, rarely five.
pub(crate) const REPLACED_PART: u64 = 16;

/// The number of searches in a group: more than the number of cache misses that a core can have in flight.
pub(crate) const GROUP: usize = 32;

/// The number of steps after which a walk begins readahead.
pub(crate) const STEADY_WALK: u32 = 8;

/// The number of hints that are fetched together ahead of a walk; the walk may then be up to three times this number of nodes behind.
pub(crate) const READAHEAD: usize = 12;

/// The maximum number of nodes that a backward walk passes between a hint and its position.
pub(crate) const BACKWARD_WALK: usize = 64;

/// The number of steps to nodes that were not prefetched, after which readahead searches for its place again.
pub(crate) const READAHEAD_MISSES: u32 = 32;

/// A walk is sequential after this many chunks of hints whose nodes lie close together in memory.
pub(crate) const SEQUENTIAL_CHUNKS: u32 = 6;

/// The maximum number of words from one node to the next, on average, that counts as close. 256 bytes; nodes that are further apart have so many cache
/// lines without a link that it is better to prefetch nodes one by one.
pub(crate) const SEQUENTIAL_WORDS: u32 = 32;

/// The number of steps after which a sequential walk prefetches again, and how many times as far ahead of itself: 48 nodes.
pub(crate) const SEQUENTIAL_STEPS: u32 = 4;
pub(crate) const SEQUENTIAL_AHEAD: i32 = 12;

/// The limit on jumps in memory, after which a walk is no longer sequential. Each jump counts [`SEQUENTIAL_AHEAD`], since nothing useful is prefetched
/// for so many times [`SEQUENTIAL_STEPS`]; each of those without a jump subtracts 1. So a walk stays sequential over runs of some fifty nodes or more.
pub(crate) const SEQUENTIAL_MISSES: u32 = 36;

/// The number of words of the smallest chunk; a smaller one would not be useful. 256 bytes.
pub(crate) const MIN_CHUNK: u64 = 32;

/// The number of words of the largest chunk, except one that is requested by size: larger chunks would only leave more memory idle. 2 MiB.
pub(crate) const MAX_CHUNK: u64 = (2 << 20) / 8;

/// The number of nodes of one key that a walk passes step by step before it searches for the next place.
pub(crate) const HIDDEN_WALK: u32 = 8;

/// The number of size classes of spare pieces; each is twice as large as the previous one.
pub(crate) const SPARE_BINS: usize = 32;
