//! Merging tables so that reads stay bounded: what to merge ([`pick`] and [`pick_within`], pure) and the merge itself
//! ([`run`]).
//!
//! Flushing a memtable is the same copy with other inputs, so [`TableStore::write`] serves both.

mod ingest;
mod job;
mod monkey;
mod plan;
mod policy;
mod range;
mod ranges;
mod retention;
mod running;
mod store;
#[cfg(test)]
mod tests;

pub(crate) use ingest::place;
pub(crate) use job::run;
pub(crate) use monkey::{filter_bits_of_flush, filter_bits_of_merge};
pub(crate) use plan::Plan;
pub(crate) use policy::{BOTTOM, Context, pick};
pub(crate) use range::{Range, pick_within};
pub(crate) use ranges::{Bounds, Span, overlaps_bounds};
pub(crate) use retention::{Retention, Tombstones};
pub(crate) use running::Running;
pub(crate) use store::{OpenTable, TableStore, Target, Written};
