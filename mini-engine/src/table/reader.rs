//! [`Table`]: a table of a version, opened when it is first read.
//!
//! A table is shared by reference count and never changes, so reads take no lock. An error of one block does not
//! disturb reads of others (durability rule 9). What is open, and for how long, is up to the [`TableCache`]; an iterator keeps
//! the [`Root`], which is memory, and no file handle.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::block::Cursor;
use super::cache::{OpenGuard, Slot, TableCache};
use super::format::{Handle, file_name};
use super::frame::{Block, BlockLocation};
use super::lookup::{Found, lookup};
use super::partition::Partition;
use super::properties::TableMeta;
use super::root::{Opened, Root};
use crate::cache::CacheUse;
use crate::codec::Malformed;
use crate::error::{Error, Result};
use crate::fs::File;
use crate::types::{Kind, MAX_SEQNO, SeqNo, Slice, entry_order};

/// A table of a version. Its file is opened on demand, and stays as long as this lives: the file of an obsolete table is removed
/// when the last view that has the table lets go of it.
#[derive(Debug)]
pub(crate) struct Table {
    meta: TableMeta,
    /// Where the file is, if not under its own name in the directory of the cache.
    elsewhere: Option<PathBuf>,
    slot: Arc<Slot>,
    is_obsolete: AtomicBool,
    tables: Arc<TableCache>,
}

impl Table {
    /// The table that a version describes by `meta`. Nothing is read.
    pub(crate) fn new(tables: &Arc<TableCache>, meta: TableMeta) -> Arc<Self> {
        Arc::new(Self::at(tables, meta, None))
    }

    /// The table `number`, of which nothing is known yet, in `path` or else under its own name: reads and checks the footer, the
    /// root and the properties.
    ///
    /// # Errors
    /// [`Error::Io`], a missing file included; [`Error::Corruption`]; [`Error::UnsupportedVersion`].
    pub(crate) fn open(tables: &Arc<TableCache>, number: u64, path: Option<PathBuf>) -> Result<Arc<Self>> {
        let mut table = Self::at(tables, TableMeta { number, ..TableMeta::default() }, path);
        let path = table.path();
        let file = tables.open_file(&path).map_err(Error::io("open", &path))?;
        let (opened, meta) = Opened::read(file, &path, number)?;
        table.meta = meta;
        table.tables.keep(&table.slot, Arc::new(opened));
        Ok(Arc::new(table))
    }

    fn at(tables: &Arc<TableCache>, meta: TableMeta, elsewhere: Option<PathBuf>) -> Self {
        let (slot, is_obsolete) = (Arc::default(), AtomicBool::new(false));
        Self { meta, elsewhere, slot, is_obsolete, tables: Arc::clone(tables) }
    }

    /// Opens the table, unless it is open, and checks that it is what the version says.
    ///
    /// # Errors
    /// As of [`Table::open`]; a missing file is corruption, since a manifest names it (rule 10).
    pub(crate) fn check(&self) -> Result<()> {
        self.opened().map(drop)
    }

    /// The file and the root. Without a lock while the table is open.
    pub(super) fn opened(&self) -> Result<OpenGuard> {
        match self.slot.get() {
            Some(opened) => Ok(opened),
            None => self.reopen(),
        }
    }

    #[cold]
    fn reopen(&self) -> Result<OpenGuard> {
        // Another thread may open it too. Only one of them reads the root.
        let _turn = self.slot.turn();
        if let Some(opened) = self.slot.get() {
            return Ok(opened);
        }
        let path = self.path();
        let file = self.tables.open_file(&path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                Error::corruption(&path, 0, "expected a table that the manifest names, found no such file")
            }
            _ => Error::io("open", &path)(error),
        })?;
        let (opened, found) = Opened::read(file, &path, self.number())?;
        if !self.meta.is_of(&found) {
            let what = format!("table: expected {:?} as the manifest says, found {found:?}", self.meta);
            return Err(Error::corruption(&path, 0, what));
        }
        Ok(self.tables.keep(&self.slot, Arc::new(opened)))
    }

    pub(crate) fn number(&self) -> u64 {
        self.meta.number
    }

    pub(crate) fn meta(&self) -> &TableMeta {
        &self.meta
    }

    /// How many different keys it has. Reads the root, if the table is not open.
    pub(super) fn keys(&self) -> Result<u64> {
        Ok(self.opened()?.root.properties.keys)
    }

    /// The open file.
    pub(crate) fn file(&self) -> Result<Arc<dyn File>> {
        Ok(self.opened()?.file.clone())
    }

    /// No version names the table any more: its file goes with this.
    pub(crate) fn set_obsolete(&self) {
        // Relaxed: whoever drops the table last has synchronised with all others by its reference count.
        self.is_obsolete.store(true, Ordering::Relaxed);
    }

    pub(super) fn root(&self) -> Result<Arc<Root>> {
        Ok(self.opened()?.root.clone())
    }

    /// The newest version of `key`, whose [`key_hash`](crate::codec::key_hash) is `hash`, that is not newer than
    /// `seqno`. The value is a view of its block. At most two blocks are read: a partition and a data block.
    ///
    /// # Errors
    /// [`Error::Io`] and [`Error::Corruption`] of the blocks that can hold the key.
    pub(crate) fn get(&self, key: &[u8], hash: u64, seqno: SeqNo) -> Result<Option<(Kind, SeqNo, Slice)>> {
        let opened = self.opened()?;
        let root = &*opened.root;
        let Some(partition) = self.partition(root, root.index.find(key, seqno), CacheUse::Fill)? else {
            return Ok(None);
        };
        let parts = partition.parts();
        if parts.filter.is_some_and(|filter| !filter.may_contain(hash)) {
            self.tables.counters.filter_negatives.add(1);
            return Ok(None);
        }
        let found = match parts.find(key, seqno) {
            Some(handle) => self.look_up(handle, self.cached_block(handle)?, key, seqno)?,
            None => None,
        };
        if found.is_none() && parts.filter.is_some() {
            self.tables.counters.filter_false_positives.add(1);
        }
        Ok(found)
    }

    /// As [`Table::get`] for each of `keys`, which ascend: hands what it finds to `found`, with the key's position. A partition
    /// that leads to several of them is looked for once, and its filter asked for all at once; so is a data block looked for once.
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
        let opened = self.opened()?;
        let root = &*opened.root;
        let (mut from, mut passing) = (0, Vec::new());
        while let Some(&first) = keys.get(from) {
            let at = root.index.find(first, seqno);
            let (Some(partition), Some(fence)) = (self.partition(root, at, CacheUse::Fill)?, root.index.fence(at))
            else {
                break;
            };
            let reaches = |key: &&&[u8]| entry_order((key, seqno), fence).is_le();
            let count = keys.split_at(from).1.iter().take_while(reaches).count();
            let to = from + count.max(1);
            passing.clear();
            self.pass_filter(&partition, from, hashes.get(from..to).unwrap_or_default(), &mut passing);
            self.get_passing(&partition, keys, &passing, seqno, &mut found)?;
            from = to;
        }
        Ok(())
    }

    /// The positions, from `from` on, of the hashes that the filter lets pass: of all, if there is none.
    fn pass_filter(&self, partition: &Partition, from: usize, hashes: &[u64], passing: &mut Vec<usize>) {
        let Some(filter) = partition.parts().filter else { return passing.extend(from..from + hashes.len()) };
        filter.may_contain_many(hashes, passing);
        passing.iter_mut().for_each(|at| *at += from);
        self.tables.counters.filter_negatives.add((hashes.len() - passing.len()) as u64);
    }

    /// Looks for the keys at these positions, all of which the partition leads to.
    fn get_passing(
        &self,
        partition: &Partition,
        keys: &[&[u8]],
        passing: &[usize],
        seqno: SeqNo,
        found: &mut impl FnMut(usize, Kind, Slice),
    ) -> Result<()> {
        let parts = partition.parts();
        let mut useless = 0;
        let mut here: Option<(Handle, Block)> = None;
        for &at in passing {
            let Some(&key) = keys.get(at) else { continue };
            let Some(handle) = parts.find(key, seqno) else { continue };
            let block = match here.take() {
                Some((last, block)) if last == handle => block,
                Some(_) | None => self.cached_block(handle)?,
            };
            match self.look_up(handle, block.clone(), key, seqno)? {
                Some((kind, _, value)) => found(at, kind, value),
                None => useless += 1,
            }
            here = Some((handle, block));
        }
        if useless > 0 && parts.filter.is_some() {
            self.tables.counters.filter_false_positives.add(useless);
        }
        Ok(())
    }

    /// Partition `at` of the table, checked when it is read; `None` past the last.
    pub(super) fn partition(&self, root: &Root, at: usize, cache: CacheUse) -> Result<Option<Partition>> {
        if let Some(whole) = &root.whole {
            return Ok((at == 0).then(|| whole.clone()));
        }
        let Some(handle) = root.index.handle(at) else { return Ok(None) };
        let malformed = |error| self.malformed(handle, error);
        if cache == CacheUse::Fill
            && let Some(block) = self.tables.blocks.get_partition(self.number(), handle.offset)
        {
            return Partition::of(Block::from_shared(block)).map(Some).map_err(malformed);
        }
        self.tables.counters.partition_reads.add(1);
        let block = self.location(&self.path(), handle).read(&*self.opened()?.file)?;
        let partition = Partition::of(block).map_err(malformed)?;
        partition.check(root.data_end, root.index.fence(at)).map_err(malformed)?;
        if cache == CacheUse::Fill {
            self.tables.blocks.insert_partition(self.number(), handle.offset, partition.block().shared().clone());
        }
        Ok(Some(partition))
    }

    /// Bytes of the data blocks before the one that can hold `key`: for statistics, so all of them if that cannot be read.
    pub(super) fn bytes_before(&self, key: &[u8]) -> u64 {
        let handle = || {
            let root = self.root().ok()?;
            let partition = self.partition(&root, root.index.find(key, MAX_SEQNO), CacheUse::Bypass).ok()??;
            partition.parts().find(key, MAX_SEQNO)
        };
        handle().map_or(self.meta.size, |handle| handle.offset)
    }

    /// Bytes of memory that the root takes while the table is open; 0 if it is not.
    pub(crate) fn memory_len(&self) -> u64 {
        self.slot.peek().map_or(0, |opened| opened.root.memory_len() as u64)
    }

    #[cfg(test)]
    pub(super) fn cache(&self) -> Arc<crate::cache::BlockCache> {
        self.tables.blocks.clone()
    }

    pub(super) fn path(&self) -> PathBuf {
        match &self.elsewhere {
            Some(path) => path.clone(),
            None => self.tables.dir.join(file_name(self.number())),
        }
    }

    /// Makes room in the cache: nobody reads the partitions again. Those of a table that is not open grow cold instead.
    fn forget_partitions(&self) {
        let Some(opened) = self.slot.peek() else { return };
        for handle in (0..opened.root.index.len()).filter_map(|at| opened.root.index.handle(at)) {
            self.tables.blocks.remove_partition(self.number(), handle.offset);
        }
    }

    /// A cursor over `block`, the data block at `handle`.
    pub(super) fn cursor(&self, handle: Handle, block: Block) -> Result<Cursor> {
        Cursor::new(block).map_err(|malformed| self.malformed(handle, malformed))
    }

    /// The corruption that undecodable contents of the block at `handle` are.
    pub(super) fn malformed(&self, handle: Handle, malformed: Malformed) -> Error {
        malformed.in_file(&self.path(), handle.offset)
    }

    /// The newest version of `key` in `block`, the data block at `handle`. One that is not in this block is not in the
    /// next either: the fence would say so.
    fn look_up(&self, handle: Handle, block: Block, key: &[u8], seqno: SeqNo) -> Result<Option<(Kind, SeqNo, Slice)>> {
        let found = lookup(block.contents(), key, seqno).map_err(|malformed| self.malformed(handle, malformed))?;
        let view = |Found { kind, seqno, value }| Some((kind, seqno, Slice::view(block.into_shared(), value)?));
        Ok(found.and_then(view))
    }

    /// The data block at `handle` for a point read.
    fn cached_block(&self, handle: Handle) -> Result<Block> {
        self.tables.counters.get_blocks.add(1);
        if let Some(block) = self.cached(handle) {
            return Ok(block);
        }
        let block = self.read_block(handle)?;
        self.keep(handle, &block);
        Ok(block)
    }

    /// The data block at `handle`, if it is in the cache.
    pub(super) fn cached(&self, handle: Handle) -> Option<Block> {
        self.tables.blocks.get(self.number(), handle.offset).map(Block::from_shared)
    }

    /// Puts the data block at `handle` into the cache.
    pub(super) fn keep(&self, handle: Handle, block: &Block) {
        self.tables.blocks.insert(self.number(), handle.offset, block.shared().clone());
    }

    /// Reads the data block at `handle` from the file.
    pub(super) fn read_block(&self, handle: Handle) -> Result<Block> {
        self.tables.counters.block_reads.add(1);
        self.location(&self.path(), handle).read(&*self.opened()?.file)
    }

    /// The data block at `handle`, whose bytes were read from the file.
    pub(super) fn decode_block(&self, handle: Handle, bytes: &[u8]) -> Result<Block> {
        self.tables.counters.block_reads.add(1);
        self.location(&self.path(), handle).decode(bytes)
    }

    /// Fills `buf` from `offset` of the file.
    pub(super) fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<()> {
        self.opened()?.file.read_exact_at(buf, offset).map_err(Error::io("read", &self.path()))
    }

    fn location<'a>(&self, path: &'a Path, handle: Handle) -> BlockLocation<'a> {
        BlockLocation { path, number: self.number(), handle }
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        let is_obsolete = *self.is_obsolete.get_mut();
        if is_obsolete {
            self.forget_partitions();
        }
        self.slot.close();
        if is_obsolete {
            self.tables.add_obsolete(self.number());
        }
    }
}
