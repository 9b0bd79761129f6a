//! [`Table`]: an open table. Filter and index stay in memory; data blocks come through the cache.
//!
//! A table is shared by reference count and never changes, so reads take no lock. An error of one block does not
//! disturb reads of others (durability rule 9).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::block::Cursor;
use super::filter::Filter;
use super::format::{FOOTER_LEN, Footer, Handle, file_name};
use super::frame::{Block, BlockLocation};
use super::index::Index;
use super::lookup::{Found, lookup};
use super::properties::{Properties, TableMeta};
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
        Self::open_file(fs, &dir.join(file_name(number)), number, cache, counters)
    }

    /// As [`Table::open`], whatever the file is called now.
    pub(crate) fn open_file(
        fs: &dyn FileSystem,
        path: &Path,
        number: u64,
        cache: Arc<BlockCache>,
        counters: Arc<Counters>,
    ) -> Result<Arc<Self>> {
        let path = path.to_path_buf();
        let file = fs.open(&path).map_err(Error::io("open", &path))?;
        let (footer, size) = read_footer(&*file, &path, number)?;
        let location = |handle| BlockLocation { path: &path, number, handle };
        let malformed = |handle: Handle| {
            let path = &path;
            move |error: Malformed| error.in_file(path, handle.offset)
        };
        let filter = match footer.filter.len {
            0 => None,
            _ => {
                let block = location(footer.filter).read(&*file)?;
                let contents = block.contents();
                let decoded = Filter::decode(contents);
                let decoded = decoded.map_err(|expected| Malformed { offset: contents.len(), expected });
                Some(decoded.map_err(malformed(footer.filter))?)
            }
        };
        let block = location(footer.index).read(&*file)?;
        let index = Index::decode(block, footer.filter.offset).map_err(malformed(footer.index))?;
        let block = location(footer.properties).read(&*file)?;
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

    /// The open file: it can be read as long as this table lives, though its name may be gone.
    pub(crate) fn file(&self) -> &dyn File {
        &*self.file
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
        let handle = self.index.handle(self.index.find(key, seqno));
        let found = match handle {
            Some(handle) => self.look_up(handle, &self.cached_block(handle)?, key, seqno)?,
            None => None,
        };
        self.count_useless(1 - usize::from(found.is_some()));
        Ok(found)
    }

    /// As [`Table::get`] for each of `keys`, which ascend: hands what it finds to `found`, with the key's position. The
    /// filter is asked for all at once, and a block that holds several of them is looked for once.
    ///
    /// # Errors
    /// As of [`Table::get`], for the first key that has one.
    pub(crate) fn get_many(
        &self,
        keys: &[&[u8]],
        hashes: &[u64],
        seqno: SeqNo,
        mut found: impl FnMut(usize, Kind, Slice),
    ) -> Result<()> {
        let passing = self.pass_filter(keys, hashes);
        let mut useless = 0;
        let mut here: Option<(Handle, Block)> = None;
        for at in passing {
            let Some(&key) = keys.get(at) else { continue };
            let Some(handle) = self.index.handle(self.index.find(key, seqno)) else {
                useless += 1;
                continue;
            };
            let block = match here.take() {
                Some((last, block)) if last == handle => block,
                Some(_) | None => self.cached_block(handle)?,
            };
            match self.look_up(handle, &block, key, seqno)? {
                Some((kind, _, value)) => found(at, kind, value),
                None => useless += 1,
            }
            here = Some((handle, block));
        }
        self.count_useless(useless);
        Ok(())
    }

    /// The positions of the keys that the filter lets pass: of all, if there is none.
    fn pass_filter(&self, keys: &[&[u8]], hashes: &[u64]) -> Vec<usize> {
        let Some(filter) = &self.filter else { return (0..keys.len()).collect() };
        let mut passing = Vec::new();
        filter.may_contain_many(hashes, &mut passing);
        self.counters.filter_negatives.add((keys.len() - passing.len()) as u64);
        passing
    }

    /// Counts keys that the filter let pass and that were not found.
    fn count_useless(&self, keys: usize) {
        if self.filter.is_some() && keys > 0 {
            self.counters.filter_false_positives.add(keys as u64);
        }
    }

    /// Bytes of memory that the filter and the index take, which stay as long as the table is open.
    pub(crate) fn memory_len(&self) -> u64 {
        (self.index.memory_len() + self.filter.as_ref().map_or(0, Filter::memory_len)) as u64
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

    /// A cursor over `block`, the data block at `handle`.
    pub(super) fn cursor(&self, handle: Handle, block: Block) -> Result<Cursor> {
        Cursor::new(block).map_err(|malformed| self.malformed(handle, malformed))
    }

    /// The corruption that undecodable contents of the block at `handle` are.
    pub(super) fn malformed(&self, handle: Handle, malformed: Malformed) -> Error {
        malformed.in_file(&self.path, handle.offset)
    }

    /// The newest version of `key` in `block`, the data block at `handle`. One that is not in this block is not in the
    /// next either: the fence would say so.
    fn look_up(&self, handle: Handle, block: &Block, key: &[u8], seqno: SeqNo) -> Result<Option<(Kind, SeqNo, Slice)>> {
        let found = lookup(block.contents(), key, seqno).map_err(|malformed| self.malformed(handle, malformed))?;
        Ok(found
            .and_then(|Found { kind, seqno, value }| Some((kind, seqno, Slice::view(block.shared().clone(), value)?))))
    }

    /// The data block at `handle` for a point read.
    fn cached_block(&self, handle: Handle) -> Result<Block> {
        self.counters.get_blocks.add(1);
        if let Some(block) = self.cached(handle) {
            return Ok(block);
        }
        let block = self.read_block(handle)?;
        self.keep(handle, &block);
        Ok(block)
    }

    /// The data block at `handle`, if it is in the cache.
    pub(super) fn cached(&self, handle: Handle) -> Option<Block> {
        self.cache.get(self.number(), handle.offset).map(Block::from_shared)
    }

    /// Puts the data block at `handle` into the cache.
    pub(super) fn keep(&self, handle: Handle, block: &Block) {
        self.cache.insert(self.number(), handle.offset, block.shared().clone());
    }

    /// Reads the data block at `handle` from the file.
    pub(super) fn read_block(&self, handle: Handle) -> Result<Block> {
        self.counters.block_reads.add(1);
        self.location(handle).read(&*self.file)
    }

    /// The data block at `handle`, whose bytes were read from the file.
    pub(super) fn decode_block(&self, handle: Handle, bytes: &[u8]) -> Result<Block> {
        self.counters.block_reads.add(1);
        self.location(handle).decode(bytes)
    }

    /// Fills `buf` from `offset` of the file.
    pub(super) fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<()> {
        self.file.read_exact_at(buf, offset).map_err(Error::io("read", &self.path))
    }

    fn location(&self, handle: Handle) -> BlockLocation<'_> {
        BlockLocation { path: &self.path, number: self.number(), handle }
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
