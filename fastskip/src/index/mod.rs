//! The index: a tree of blocks of hints above the list, which alone is the truth.
//!
//! A hint is a partial key (Bohannon, McIlroy and Rastogi, "Main-memory index structures with fixed-size partial keys", 2001) and a node. The hints
//! of a block lie side by side, so a few vector comparisons find a place among thirty. Blocks form a skip list with wide levels (Munro, Papadakis
//! and Sedgewick, "Deterministic skip lists", 1992; blocked for the cache: Luo et al., "B-skiplist", 2025). A search misses the cache twice: on one
//! leaf, whose lines arrive together, and on the node that its hint names.
//!
//! The index is never needed for a right answer. A hint may be missing, stale or false: the search compares the node that it names, and a wrong one
//! costs a second, more exact descent. So the upkeep is skipped whenever a lock bit is taken, and no thread waits. These files keep the cost low
//! nevertheless:
//!
//! * `hint.rs` adds a hint for four of five nodes when they are linked, and where a search had to walk;
//! * `split.rs` divides full blocks, after it has locked the parents;
//! * `replace.rs` replaces blocks whose lock stays with a stopped thread by copies.
//!
//! I2 hints: the index stores only nodes of this list that were linked before, see `block/`.
//! I3 single commit: before the CAS no link leads to the node; after it the node is found, whatever the index says (`search.rs`).

mod block;
mod descent;
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
pub(crate) use hint::Hinted;
pub(crate) use neighbours::{HintPlace, Hints};
pub(crate) use prefix::Split;
pub(crate) use search::{LowerBound, Seek};
#[cfg(test)]
pub(crate) use steps::{Stopper, counted};
pub(crate) use tree::Index;
