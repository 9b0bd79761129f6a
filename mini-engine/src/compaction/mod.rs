//! Compactions, which keep the cost of reads bounded: the choice of one ([`pick`] and [`pick_manual`], pure functions) and its execution ([`run`]).
//!
//! A flush of a memtable copies entries in the same way from other inputs, so [`TableStore::write`] serves both.

mod damage;
mod filter_allocation;
mod in_progress;
mod ingest;
mod inputs;
mod job;
mod key_range;
mod live_keys;
mod manual;
mod output_sizes;
mod piece;
mod plan;
mod policy;
mod retention;
mod store;
#[cfg(test)]
mod tests;

pub(crate) use filter_allocation::{filter_bits_of_flush, filter_bits_of_merge};
pub(crate) use in_progress::InProgress;
pub(crate) use ingest::pick_for_ingest;
pub(crate) use inputs::Inputs;
pub(crate) use job::run;
pub(crate) use key_range::{KeyRange, overlaps_bounds};
pub(crate) use live_keys::may_have_dropped;
pub(crate) use manual::{ManualCompaction, pick_manual};
pub(crate) use output_sizes::OutputSizes;
pub(crate) use plan::{Input, Plan};
pub(crate) use policy::{BOTTOM, Context, Work, pick};
pub(crate) use retention::{Retention, Tombstones};
pub(crate) use store::{Limits, OutputSpec, TableStore, Written};
