//! Sorted string tables (SSTables): immutable files of sorted entries.
//!
//! [`Builder`] writes a table, [`Table`] reads it. A file consists of data blocks, partitions, the root, the properties, and a footer of fixed size
//! with the positions of these parts. A partition contains the filter and the fence pointers of a group of data blocks ([`index`]); the root contains
//! the fence pointers of the partitions (`read/root.rs`). The root is kept in memory from the first read of the table on; partitions and data blocks
//! are read through the block cache. So outside the cache, tables keep a six-thousandth of their data in memory, and a point read reads at most two
//! blocks. Range tombstones, if there are any, are in a block before the properties (`format/range_block.rs`); they are kept in memory with the root.
//!
//! Every block has a checksum seeded with the table's number and the block's offset, so that a block at another offset or in another table does not
//! pass; the footer has its own checksum. A table never changes once it is built, is never truncated, and its number is never reused. [`mod@format`]
//! and [`block`] describe the layout; `docs/src/formats.md` is its specification.

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
pub(crate) use read::reader::{Table, TableEntry};
pub(crate) use read::run::{OpenRun, RunIter};
pub(crate) use read::run_table::RunTable;
pub(crate) use read::verify::TableReport;
pub(crate) use walk::{Part, Source, Walk};

#[cfg(test)]
mod tests;
