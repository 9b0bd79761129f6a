//! Tables that are open: point reads, iterators, runs, and what of them is in memory.

pub(super) mod cache;
pub(super) mod dump;
pub(super) mod get_many;
pub(super) mod iter;
pub(super) mod readahead;
pub(super) mod reader;
pub(super) mod root;
pub(super) mod run;
pub(super) mod run_table;
pub(super) mod verify;
