//! [`Root`]: the parts of a table that stay in memory from the first read on, outside the cache: the top-level index, which locates the
//! partitions, the slots of the cached partitions, and the properties.
//!
//! Index and properties are small, about 4 KiB for a table of 64 MiB, and at the end of the file, before the footer. So usually one read of the end
//! of the file suffices to open a table.

use std::path::Path;
use std::sync::Arc;

use crate::cache::clock::CacheSlot;
use crate::epoch::Slot;
use crate::error::Result;
use crate::fs::File;
use crate::table::format::{Properties, TableMeta};
use crate::table::index::{FileEnd, Index};
use crate::table::read::Partitions;
use crate::types::{MappedBytes, RangeTombstones};

/// The number of bytes at the end of the file that are read first.
const READ_FIRST: u64 = 8 << 10;

/// The parts of a table through which its partitions are found, and through these its data blocks. The root is kept as long as the table is in a
/// view: the file may be closed and opened again meanwhile.
#[derive(Debug)]
pub(crate) struct Root {
    /// The fence pointers of the partitions.
    pub(crate) index: Index,
    /// The whole file, if it is mapped. Then the file need not be open.
    pub(crate) map: Option<Arc<MappedBytes>>,
    pub(crate) partitions: Partitions,
    /// The end of the data blocks in the file.
    pub(crate) data_end: u64,
    pub(crate) properties: Properties,
    pub(crate) range_tombstones: RangeTombstones,
}

impl Root {
    /// Reads the root of table `number` from `file`, whose path is `path`, and returns it with the table's metadata.
    pub(crate) fn read(file: &dyn File, path: &Path, number: u64) -> Result<(Self, TableMeta)> {
        let end = FileEnd::read(file, path, number, READ_FIRST)?;
        let footer = end.footer()?;
        let properties = end.properties(&footer)?;
        let index = end.index(&footer)?;
        let range_tombstones = end.range_tombstones(&footer)?;
        let meta = properties.meta(number, end.size(), &range_tombstones);
        let (partitions, data_end) = (Slot::several(index.len()), footer.partitions.offset);
        Ok((Self { index, map: None, partitions, data_end, properties, range_tombstones }, meta))
    }

    pub(crate) fn memory_len(&self) -> usize {
        let Properties { smallest, largest, .. } = &self.properties;
        let index = self.index.memory_len() + size_of_val(&*self.partitions);
        let ranges = self.range_tombstones.memory_len();
        size_of::<Self>() + index + smallest.len() + largest.len() + ranges
    }
}
