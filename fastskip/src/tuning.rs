//! Numbers that decide how fast a table is, and never what it holds: how much is done at once, and from when on that pays.
//! Measured in `docs/src/results.md`. The models in `loom-tests` put small ones in their place, so that a handful of nodes
//! reaches every path. A word has 8 bytes.

/// Searches in flight at once, and the most nodes of a batch that are searched for together: about as many cache misses
/// as a core can have.
pub(crate) const LANES: usize = 16;

/// Words of a table that leaves the second-level cache, so that searches are worth interleaving: 2 MiB.
pub(crate) const LARGE_WORDS: u64 = (2 << 20) / 8;

/// Steps after which a walk is worth looking ahead for.
pub(crate) const STEADY_WALK: u32 = 8;

/// Steps after which a walk is a long one.
pub(crate) const LONG_WALK: u32 = 100;

/// How the nodes around a walk are cut into stretches that are fetched side by side.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    /// The level whose nodes begin a stretch.
    pub(crate) level: usize,
    /// The level on which a walk to the first of them begins, if it is sought from behind.
    pub(crate) outer: usize,
    /// How many: no more than a core can have cache misses.
    pub(crate) lanes: usize,
}

/// About 16 nodes, for a walk that has just begun.
pub(crate) const NEAR: Shape = Shape { level: 4, outer: 4, lanes: 1 };
/// About 128 nodes, for a steady walk.
pub(crate) const MID: Shape = Shape { level: 4, outer: 7, lanes: 8 };
/// Some hundreds of nodes, for a long walk.
pub(crate) const FAR: Shape = Shape { level: 5, outer: 9, lanes: 16 };

/// Whether the gaps between nodes decide how tall a tower is (see `list/towers/height.rs`), or coins alone.
pub(crate) const RAISES_BY_GAPS: bool = true;

/// Levels that a reservation has room for beyond those that coins alone would raise its nodes to: nodes are raised by the
/// gaps they come to stand in (see `list/towers/height.rs`), which are not known yet.
pub(crate) const SPARE_LEVELS: u32 = 6;

/// Words of the smallest chunk: nothing smaller is worth one. 256 bytes.
pub(crate) const MIN_CHUNK: u64 = 32;

/// Words of the largest chunk but one that is asked for by size: growing further would only leave more idle. 2 MiB.
pub(crate) const MAX_CHUNK: u64 = (2 << 20) / 8;
