//! Sorted string tables (SSTables): immutable files of sorted entries.
//!
//! [`Builder`] writes one, [`Table`] reads it. A file is data blocks, then partitions, the root, the properties, and a footer of fixed
//! size that says where those are. A partition is the filter and the fence pointers of a group of data blocks ([`partition`]); the root is
//! the fence pointers of the partitions ([`root`]). The root is in memory from the first read of the table on; partitions and data blocks
//! come through the block cache. So what tables keep in memory outside the cache is a ten-thousandth of their data, and a point
//! read reads two blocks at most. Range tombstones, if there are any, have a block before the properties ([`range_block`]); they are in
//! memory with the root.
//!
//! Every block carries a checksum seeded with the table's number and the block's offset, so right bytes in a wrong place do not
//! pass; the footer carries one of its own. A table is read-only once built, is never truncated, and its number is never used
//! for another. The layout is in [`format`], [`frame`] and [`block`]; `docs/src/formats.md` describes it for strangers.

mod block;
mod builder;
mod cache;
mod dump;
mod entry;
mod eytzinger;
mod filter;
mod format;
mod frame;
mod get_many;
mod index;
mod iter;
mod key_heads;
mod lookup;
mod partition;
mod properties;
mod range_block;
mod rates;
mod readahead;
mod reader;
mod root;
mod run;
mod run_table;
mod salvage;
#[cfg(test)]
mod theory;
mod verify;

pub(crate) use builder::{Builder, TableOptions};
pub(crate) use cache::{BlockCache, TableCache};
pub(crate) use format::{file_name, parse_file_name};
pub(crate) use properties::TableMeta;
pub(crate) use rates::{MOST_BITS, false_positive_rate};
pub(crate) use reader::Table;
pub(crate) use run::{OpenRun, RunIter};
pub(crate) use run_table::RunTable;
pub use salvage::LostKeys;
pub(crate) use salvage::{Lost, SalvageIter};
pub(crate) use verify::TableReport;

#[cfg(test)]
mod tests;
