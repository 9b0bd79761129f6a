//! Open tables: point reads, iterators, runs, and the parts of tables in memory.

pub(super) mod cache;
pub(super) mod get_many;
pub(super) mod iter;
pub(super) mod readahead;
pub(super) mod reader;
pub(super) mod root;
pub(super) mod run;
pub(super) mod run_table;
pub(super) mod verify;

pub(super) use cache::{CachedPartition, FileSlot, Group, OpenFile, Partitions, TableCache};
pub(super) use iter::TableIter;
pub(super) use readahead::{BytesAhead, ReadAhead, WINDOW};
pub(super) use reader::Table;
pub(super) use root::Root;
pub(super) use run_table::RunTable;
pub(super) use verify::TableReport;
