//! [`FileEnd`]: the end of a table's file, with its footer, properties, root and range tombstones.

use std::path::Path;

use crate::codec::Malformed;
use crate::error::{Error, Result};
use crate::fs::File;
use crate::table::block::{Block, BlockLocation};
use crate::table::format::range_block;
use crate::table::format::{FOOTER_LEN, Footer, Handle, Properties};
use crate::table::index::fences::Index;
use crate::types::RangeTombstones;

/// The last bytes of a table's file: the footer, and perhaps blocks before it.
pub(crate) struct FileEnd<'a> {
    file: &'a dyn File,
    path: &'a Path,
    number: u64,
    bytes: Vec<u8>,
    /// The offset in the file at which these bytes begin.
    start: u64,
}

impl<'a> FileEnd<'a> {
    /// Reads the last `most` bytes of the file of table `number`, or the whole file if it is shorter.
    pub(crate) fn read(file: &'a dyn File, path: &'a Path, number: u64, most: u64) -> Result<Self> {
        let size = file.len().map_err(Error::io("read the length of", path))?;
        let len = size.min(most);
        let (mut bytes, start) = (vec![0; len as usize], size - len);
        file.read_exact_at(&mut bytes, start).map_err(Error::io("read", path))?;
        Ok(Self { file, path, number, bytes, start })
    }

    /// The length of the whole file in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    /// Decodes the footer. Checks that every byte of the file belongs to a block or to the footer.
    pub(crate) fn footer(&self) -> Result<Footer> {
        let Some((_, bytes)) = self.bytes.split_last_chunk::<FOOTER_LEN>() else {
            let what = format!("table footer: expected {FOOTER_LEN} bytes, found a file of {}", self.bytes.len());
            return Err(Error::corruption(self.path, 0, what));
        };
        let offset = self.start + (self.bytes.len() - FOOTER_LEN) as u64;
        Footer::decode(bytes, self.path, self.number, offset)
    }

    pub(crate) fn properties(&self, footer: &Footer) -> Result<Properties> {
        self.decoded(footer.properties, |block| Properties::decode(block.contents()))
    }

    /// The fence pointers of the partitions.
    pub(crate) fn index(&self, footer: &Footer) -> Result<Index> {
        self.decoded(footer.root, |root| Index::decode(root, footer.partitions.offset..footer.root.offset))
    }

    pub(crate) fn range_tombstones(&self, footer: &Footer) -> Result<RangeTombstones> {
        let Some(handle) = footer.range_tombstones() else { return Ok(RangeTombstones::default()) };
        self.decoded(handle, |block| range_block::decode(block.contents()))
    }

    fn decoded<T>(&self, handle: Handle, decode: impl FnOnce(Block) -> Result<T, Malformed>) -> Result<T> {
        decode(self.block(handle)?).map_err(|malformed| malformed.in_file(self.path, handle.offset))
    }

    /// The block at `handle`, which must lie before the footer.
    fn block(&self, handle: Handle) -> Result<Block> {
        let location = BlockLocation { path: self.path, number: self.number, handle };
        let here = handle.offset.checked_sub(self.start).and_then(|from| {
            let from = usize::try_from(from).ok()?;
            self.bytes.get(from..from.checked_add(usize::try_from(handle.len).ok()?)?)
        });
        match here {
            Some(bytes) => location.decode(bytes),
            None => location.read(self.file).map(Block::Own),
        }
    }
}
