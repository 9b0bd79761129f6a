//! The index: a tree of blocks of hints above the list. Only the list decides which entries exist.
//!
//! A hint consists of a node and a partial key (Bohannon, McIlroy and Rastogi, "Main-memory index structures with fixed-size partial keys", 2001).
//! The hints of a block are adjacent in memory, so a few vector comparisons find a place among thirty hints. Blocks form a skip list with wide levels
//! (Munro, Papadakis and Sedgewick, "Deterministic skip lists", 1992; blocked for the cache: Luo et al., "B-skiplist", 2025). A search misses the
//! cache twice: on one leaf, whose cache lines are fetched together, and on the node that its hint names.
//!
//! The index is never needed for a right answer. A hint may be missing, stale or false: the search compares the named node with the target, and a
//! wrong hint costs a second, more exact descent. So a writer skips the upkeep of the index whenever a lock bit is taken, and no thread waits.
//! Nevertheless these files keep the cost of searches low:
//!
//! * `hint.rs` adds a hint for four of five nodes when they are linked, and adds more where a search had to walk;
//! * `split.rs` divides full blocks after locking their parents;
//! * `replace.rs` replaces a block by a copy if a stopped thread holds the block's lock.
//!
//! I2 hints: the index stores only nodes of this list that were linked before, see `block/`. I3 single commit: before the CAS no link leads to the
//! node; after it every search finds the node, whatever the index contains (`search.rs`).

mod block;
mod descent;
mod estimate;
mod hint;
mod neighbours;
mod prefix;
mod replace;
mod search;
mod split;
mod steps;
#[cfg(feature = "scramble")]
mod test_scramble;
mod ties;
mod tree;

pub(crate) use block::BlockId;
pub(crate) use descent::{Descent, Probe, Ties};
pub(crate) use estimate::Estimate;
pub(crate) use hint::Hinted;
pub(crate) use neighbours::{HintPlace, Hints};
pub(crate) use prefix::Split;
pub(crate) use search::{LowerBound, Seek};
#[cfg(test)]
pub(crate) use steps::{Stopper, counted};
pub(crate) use tree::Index;
