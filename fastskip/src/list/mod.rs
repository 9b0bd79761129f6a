//! A list: its nodes with their index, and what admits, limits and counts those who write them.
//!
//! `writer` allocates nodes, writes them and has them linked. `run` spares the search where keys come in order, `group` searches
//! for many targets at once.
//!
//! I7 freeze: writers pass through a gate, see `gate.rs`.

mod counts;
mod gate;
mod group;
mod lazy;
mod run;
mod state;
pub(crate) mod stats;
mod writer;

pub(crate) use lazy::LazyList;
pub(crate) use state::List;
pub(crate) use writer::{Announced, ArenaAlloc, NodeAlloc, Outcome, Writer, index_words};

#[cfg(test)]
pub(crate) mod tests;
