//! [`Table`]: an open table. Filter and index stay in memory; data blocks come through the cache.
//!
//! A table is shared by reference count and never changes, so reads take no lock. An error of one block does not
//! disturb reads of others (durability rule 9).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::block::Cursor;
use super::filter::Filter;
use super::format::{FOOTER_LEN, Footer, Handle, file_name};
use super::frame::{Block, Place};
use super::index::Index;
use super::iter::{CacheUse, TableIter};
use super::properties::Properties;
use super::{TableMeta, TableReport, verify};
use crate::cache::BlockCache;
use crate::codec::Malformed;
use crate::error::{Error, Result};
use crate::fs::{File, FileSystem};
use crate::metrics::Counters;
use crate::types::{Kind, SeqNo, Slice};

/// An open table file.
#[derive(Debug)]
pub(crate) struct Table {
    file: Arc<dyn File>,
    path: PathBuf,
    meta: TableMeta,
    properties: Properties,
    filter: Option<Filter>,
    index: Index,
    cache: Arc<BlockCache>,
    counters: Arc<Counters>,
}

impl Table {
    /// Opens table `number` in `dir`: reads and checks the footer, the filter, the index and the properties.
    ///
    /// # Errors
    /// [`Error::Io`], a missing file included; [`Error::Corruption`]; [`Error::UnsupportedVersion`].
    pub(crate) fn open(
        fs: &dyn FileSystem,
        dir: &Path,
        number: u64,
        cache: Arc<BlockCache>,
        counters: Arc<Counters>,
    ) -> Result<Arc<Self>> {
        let path = dir.join(file_name(number));
        let file = fs.open(&path).map_err(Error::io("open", &path))?;
        let (footer, size) = read_footer(&*file, &path, number)?;
        let place = |handle| Place { path: &path, number, handle };
        let malformed = |handle: Handle| {
            let path = &path;
            move |error: Malformed| error.in_file(path, handle.offset)
        };
        let filter = match footer.filter.len {
            0 => None,
            _ => {
                let block = place(footer.filter).read(&*file)?;
                Some(Filter::decode(block.contents()).map_err(malformed(footer.filter))?)
            }
        };
        let block = place(footer.index).read(&*file)?;
        let index = Index::decode(block, footer.filter.offset).map_err(malformed(footer.index))?;
        let block = place(footer.properties).read(&*file)?;
        let properties = Properties::decode(block.contents()).map_err(malformed(footer.properties))?;
        let meta = TableMeta {
            number,
            size,
            entries: properties.entries,
            tombstones: properties.tombstones,
            smallest: Slice::from(&properties.smallest[..]),
            largest: Slice::from(&properties.largest[..]),
            min_seqno: properties.min_seqno,
            max_seqno: properties.max_seqno,
        };
        Ok(Arc::new(Self { file, path, meta, properties, filter, index, cache, counters }))
    }

    pub(crate) fn number(&self) -> u64 {
        self.meta.number
    }

    pub(crate) fn meta(&self) -> &TableMeta {
        &self.meta
    }

    /// The newest version of `key`, whose [`key_hash`](crate::codec::key_hash) is `hash`, that is not newer than
    /// `seqno`. The value is a view of its block. At most one block is read.
    ///
    /// # Errors
    /// [`Error::Io`] and [`Error::Corruption`] of the block that can hold the key.
    pub(crate) fn get(&self, key: &[u8], hash: u64, seqno: SeqNo) -> Result<Option<(Kind, SeqNo, Slice)>> {
        if self.filter.as_ref().is_some_and(|filter| !filter.may_contain(hash)) {
            self.counters.filter_negatives.add(1);
            return Ok(None);
        }
        let index = self.index.find(key, seqno);
        let Some(handle) = self.index.handle(index) else { return Ok(None) };
        let mut cursor = self.cursor(handle, CacheUse::Fill)?;
        cursor.seek(key, seqno).map_err(|malformed| self.malformed(handle, malformed))?;
        // An entry of the key that is not in this block is not in the next either: the fence would say so.
        if !cursor.valid() || cursor.key() != key {
            return Ok(None);
        }
        Ok(Some((cursor.kind(), cursor.seqno(), cursor.value_slice())))
    }

    /// Iterates over all entries, through the cache.
    pub(crate) fn iter(self: &Arc<Self>) -> TableIter {
        TableIter::new(Arc::clone(self), CacheUse::Fill)
    }

    /// Iterates over all entries without putting blocks into the cache: for merges, which read each block once.
    pub(crate) fn iter_uncached(self: &Arc<Self>) -> TableIter {
        TableIter::new(Arc::clone(self), CacheUse::Bypass)
    }

    /// Reads the whole table past the cache and checks checksums, order, fences, filter and counts.
    ///
    /// # Errors
    /// The first thing found wrong, as [`Error::Corruption`]; [`Error::Io`].
    pub(crate) fn verify(&self) -> Result<TableReport> {
        verify::verify(self)
    }

    pub(super) fn index(&self) -> &Index {
        &self.index
    }

    pub(super) fn filter(&self) -> Option<&Filter> {
        self.filter.as_ref()
    }

    pub(super) fn properties(&self) -> &Properties {
        &self.properties
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// A cursor over the data block at `handle`.
    pub(super) fn cursor(&self, handle: Handle, cache: CacheUse) -> Result<Cursor> {
        let block = match cache {
            CacheUse::Fill => self.cached_block(handle)?,
            CacheUse::Bypass => self.read_block(handle)?,
        };
        Cursor::new(block).map_err(|malformed| self.malformed(handle, malformed))
    }

    /// The corruption that undecodable contents of the block at `handle` are.
    pub(super) fn malformed(&self, handle: Handle, malformed: Malformed) -> Error {
        malformed.in_file(&self.path, handle.offset)
    }

    fn cached_block(&self, handle: Handle) -> Result<Block> {
        if let Some(bytes) = self.cache.get(self.number(), handle.offset) {
            return Ok(Block::from_shared(bytes));
        }
        let block = self.read_block(handle)?;
        self.cache.insert(self.number(), handle.offset, block.shared().clone());
        Ok(block)
    }

    fn read_block(&self, handle: Handle) -> Result<Block> {
        self.counters.block_reads.add(1);
        Place { path: &self.path, number: self.number(), handle }.read(&*self.file)
    }
}

/// The footer and the length of the file. Every byte of the file belongs to a block or to the footer.
fn read_footer(file: &dyn File, path: &Path, number: u64) -> Result<(Footer, u64)> {
    let size = file.len().map_err(Error::io("read the length of", path))?;
    let Some(offset) = size.checked_sub(FOOTER_LEN as u64) else {
        let what = format!("table footer: expected {FOOTER_LEN} bytes, found a file of {size}");
        return Err(Error::corruption(path, 0, what));
    };
    let mut bytes = [0; FOOTER_LEN];
    file.read_exact_at(&mut bytes, offset).map_err(Error::io("read", path))?;
    let footer = Footer::decode(&bytes, path, number, offset)?;
    let ends = [footer.filter, footer.index, footer.properties].map(Handle::end);
    if ends != [footer.index.offset, footer.properties.offset, offset].map(Some) {
        let what = format!("block handles: expected them to meet each other and the footer, found {footer:?}");
        return Err(Error::corruption(path, offset, what));
    }
    Ok((footer, size))
}
