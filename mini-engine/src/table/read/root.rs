//! [`Root`]: what of a table is in memory from the first read on, outside the cache: the top-level index, which leads to the
//! partitions, the slots of those that are cached, and the properties.
//!
//! Both are at the end of the file, before the footer, and small: of a table of 64 MiB about 4 KiB. So one read of the end of the file
//! mostly opens a table.

use std::path::Path;
use std::sync::Arc;

use crate::codec::Malformed;
use crate::error::{Error, Result};
use crate::fs::File;
use crate::table::block::frame::{Block, BlockLocation, TableFile};
use crate::table::format::footer::{FOOTER_LEN, Footer, Handle};
use crate::table::format::properties::{Properties, TableMeta};
use crate::table::format::range_block;
use crate::table::index::fences::Index;
use crate::table::read::cache::Partitions;
use crate::types::{MappedBytes, RangeTombstones};

/// Bytes that are read first, from the end of the file.
const TAIL_LEN: u64 = 8 << 10;

/// The parts of a table that lead to its partitions, and by these to its data blocks. It stays as long as the table is in a view:
/// the file may be closed and opened again meanwhile.
#[derive(Debug)]
pub(in crate::table) struct Root {
    /// The fences of the partitions.
    pub(in crate::table) index: Index,
    /// The whole file, if it is mapped. Then it need not be open.
    pub(in crate::table) map: Option<Arc<MappedBytes>>,
    /// The partitions that are in memory.
    pub(in crate::table) partitions: Partitions,
    /// Where the data blocks end.
    pub(in crate::table) data_end: u64,
    pub(in crate::table) properties: Properties,
    pub(in crate::table) range_tombstones: RangeTombstones,
}

impl Root {
    /// Reads the root of table `number` in `file`, which is called `path`, and describes the table by it.
    pub(in crate::table) fn read(file: &dyn File, path: &Path, number: u64) -> Result<(Self, TableMeta)> {
        let (tail, size) = Tail::read(file, path, number)?;
        let footer = tail.footer()?;
        let properties = tail.block(footer.properties)?;
        let properties =
            Properties::decode(properties.contents()).map_err(|error| tail.malformed(footer.properties, error))?;
        let data_end = footer.partitions.offset;
        let root = tail.block(footer.root)?;
        let malformed = |error| tail.malformed(footer.root, error);
        let index = Index::decode(root, data_end..footer.root.offset).map_err(malformed)?;
        let range_tombstones = tail.range_tombstones(&footer)?;
        let ranges = range_tombstones.parts().count() as u64;
        let meta = TableMeta { range_tombstones: ranges, ..properties.meta(number, size) };
        let partitions = Partitions::new(index.len());
        Ok((Self { index, map: None, partitions, data_end, properties, range_tombstones }, meta))
    }

    /// Bytes of memory that this takes.
    pub(in crate::table) fn memory_len(&self) -> usize {
        let Properties { smallest, largest, .. } = &self.properties;
        let index = self.index.memory_len() + self.partitions.memory_len();
        let ranges = self.range_tombstones.memory_len();
        size_of::<Self>() + index + smallest.len() + largest.len() + ranges
    }
}

/// The end of a file.
struct Tail<'a> {
    file: &'a dyn File,
    path: &'a Path,
    number: u64,
    bytes: Vec<u8>,
    /// Where in the file they begin.
    start: u64,
}

impl<'a> Tail<'a> {
    fn read(file: &'a dyn File, path: &'a Path, number: u64) -> Result<(Self, u64)> {
        let size = file.len().map_err(Error::io("read the length of", path))?;
        let len = size.min(TAIL_LEN);
        let (mut bytes, start) = (vec![0; len as usize], size - len);
        file.read_exact_at(&mut bytes, start).map_err(Error::io("read", path))?;
        Ok((Self { file, path, number, bytes, start }, size))
    }

    /// The footer. Every byte of the file belongs to a block or to the footer.
    fn footer(&self) -> Result<Footer> {
        let Some((_, bytes)) = self.bytes.split_last_chunk::<FOOTER_LEN>() else {
            let what = format!("table footer: expected {FOOTER_LEN} bytes, found a file of {}", self.bytes.len());
            return Err(Error::corruption(self.path, 0, what));
        };
        let offset = self.start + (self.bytes.len() - FOOTER_LEN) as u64;
        let footer = Footer::decode(bytes, self.path, self.number, offset)?;
        if !footer.meets(offset) {
            let what = format!("block handles: expected them to meet each other and the footer, found {footer:?}");
            return Err(Error::corruption(self.path, offset, what));
        }
        Ok(footer)
    }

    fn range_tombstones(&self, footer: &Footer) -> Result<RangeTombstones> {
        let Some(handle) = footer.range_tombstones() else { return Ok(RangeTombstones::default()) };
        let block = self.block(handle)?;
        range_block::decode(block.contents()).map_err(|error| self.malformed(handle, error))
    }

    /// The block at `handle`, which lies before the footer.
    fn block(&self, handle: Handle) -> Result<Block> {
        let location = BlockLocation { file: TableFile::At(self.path), number: self.number, handle };
        let here = handle.offset.checked_sub(self.start).and_then(|from| {
            let from = usize::try_from(from).ok()?;
            self.bytes.get(from..from.checked_add(usize::try_from(handle.len).ok()?)?)
        });
        match here {
            Some(bytes) => location.decode(bytes),
            None => location.read(self.file),
        }
    }

    fn malformed(&self, handle: Handle, error: Malformed) -> Error {
        error.in_file(self.path, handle.offset)
    }
}
