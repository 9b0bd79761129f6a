//! A list: its nodes and their index, and the code that admits, limits and counts its writers.
//!
//! `writer` allocates nodes, writes them and links them. `run` avoids the search if keys come in order; `group` searches for many targets at once.
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
