//! Numbers that decide how fast a table is, and never what it holds: how much is done at once, and from when on that pays.
//! Measured in `docs/src/results.md`. The models in `loom-tests` put small ones in their place, so that a handful of nodes
//! reaches every path.

/// Slots of a block: with its header, two cache lines of partial keys and two of offsets. 14 and 62 were no better.
pub(crate) const SLOTS: usize = 30;

/// Of so many nodes that are linked right behind a hinted one, one gets no hint: a fifth of the blocks' memory, for a step
/// more in a fifth of the searches.
pub(crate) const HINTED_OF: u32 = 5;

/// Nodes that lie before this word are hinted more sparsely: while a table is small, steps are cheap and blocks are not. 32 KiB.
pub(crate) const SPARSE_WORDS: u32 = (32 << 10) / 8;

/// Nodes in a row that are left without hints there.
pub(crate) const SPARSE_WALK: u32 = 1;

/// Looks at a block while a writer changes it, before a reader is content with what it has seen.
pub(crate) const STABLE_LOOKS: u32 = 3;

/// Nodes that a search walks over before it tries another way down. A writer that walks further mends the index.
pub(crate) const WALK_LIMIT: u32 = 24;

/// Nodes that a search walks over from a hint that does not have the prefix left out on the way: the target may still be the
/// next leaf's first.
pub(crate) const MISFIT_WALK: u32 = 3;

/// Nodes that a lookup walks over before it mends the index.
pub(crate) const READ_WALK_LIMIT: u32 = 4;

/// Tries to add a hint while the index changes.
pub(crate) const HINT_TRIES: u32 = 3;

/// Hints that are added at most by one that mends, and the nodes from one of them to the next at least.
pub(crate) const MEND_HINTS: u32 = 16;
pub(crate) const MEND_STEP: u32 = 3;

/// Mends that find a lock in the same hands before its block is replaced: threads that come by at once do not count for all of
/// them, and a holder that runs has let go before.
pub(crate) const STUCK_LOOKS: u64 = 4;

/// Of the limit on memory, blocks that are replaced take one part in so many at most: a thread that is stopped costs a block or
/// two, rarely five.
pub(crate) const REPLACED_PART: u64 = 16;

/// Searches in flight at once: more than a core can have cache misses.
pub(crate) const GROUP: usize = 32;

/// Steps after which a walk is worth looking ahead for.
pub(crate) const STEADY_WALK: u32 = 8;

/// Nodes that are fetched ahead of a walk.
pub(crate) const READAHEAD: usize = 16;

/// Nodes that a walk back passes at once at most, from a hint to where it is.
pub(crate) const BACKWARD_WALK: usize = 64;

/// Steps of a walk that meet no node fetched ahead, after which the way ahead is sought anew.
pub(crate) const READAHEAD_MISSES: u32 = 32;

/// Words of the smallest chunk: nothing smaller is worth one. 256 bytes.
pub(crate) const MIN_CHUNK: u64 = 32;

/// Words of the largest chunk but one that is asked for by size: growing further would only leave more idle. 2 MiB.
pub(crate) const MAX_CHUNK: u64 = (2 << 20) / 8;

/// Nodes of one key that a walk passes over step by step before it searches for the next place.
pub(crate) const HIDDEN_WALK: u32 = 8;

/// Sizes of spare pieces that are kept apart, each twice the one before.
pub(crate) const SPARE_BINS: usize = 32;
