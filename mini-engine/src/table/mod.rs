//! Sorted string tables (SSTables): immutable files of sorted entries.
//!
//! [`Builder`] writes one, [`Table`] reads it. A file consists of data blocks, partitions, the root, the properties, and a footer of fixed size
//! with the places of these parts. A partition is the filter and the fence pointers of a group of data blocks ([`index`]); the root is the fence
//! pointers of the partitions (`read/root.rs`). The root is in memory from the first read of the table on; partitions and data blocks come through
//! the block cache. So outside the cache, tables keep a six-thousandth of their data in memory, and a point read reads at most two blocks. Range
//! tombstones, if there are any, have a block before the properties (`format/range_block.rs`); they are in memory with the root.
//!
//! Every block carries a checksum seeded with the table's number and the block's offset, so right bytes in a wrong place do not pass; the footer
//! has its own checksum. A table is read-only once built, is never truncated, and its number is never reused. The layout is in [`mod@format`] and
//! [`block`]; `docs/src/formats.md` is its specification.

mod block;
mod builder;
mod format;
mod index;
mod read;
mod walk;

pub(crate) use block::cursor::Cursor;
pub(crate) use block::frame::Block;
pub(crate) use builder::{Builder, TableOptions};
pub(crate) use format::footer::{file_name, parse_file_name};
pub(crate) use format::properties::{Expiring, Properties, TableMeta};
pub(crate) use index::fences::FencePlace;
pub(crate) use index::partition::Partition;
pub(crate) use index::rates::{MOST_BITS, false_positive_rate};
pub(crate) use read::cache::{BlockCache, TableCache};
pub(crate) use read::reader::Table;
pub(crate) use read::run::{OpenRun, RunIter};
pub(crate) use read::run_table::RunTable;
pub(crate) use read::verify::TableReport;
pub(crate) use walk::{Part, Source, Walk};

#[cfg(test)]
mod tests;
