//! Merging tables so that reads stay bounded: what to merge ([`pick`], pure) and the merge itself ([`run`]).
//!
//! Flushing a memtable is the same copy with other inputs, so [`TableStore::write`] serves both.

mod job;
mod plan;
mod retention;
mod store;
#[cfg(test)]
mod tests;

pub(crate) use job::run;
#[cfg(test)]
pub(crate) use plan::Plan;
pub(crate) use plan::pick;
pub(crate) use retention::Retention;
pub(crate) use store::{OpenTable, TableStore, Written};
