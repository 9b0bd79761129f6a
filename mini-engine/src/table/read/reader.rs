//! [`Table`]: a table of a version, opened when it is first read.
//!
//! A table is reference-counted and never changes, so reads take no lock. An error in one block does not affect reads of others (durability rule 9).
//! The [`TableCache`] decides which files are open, and for how long; the [`Root`] is kept from the first read on, so that a read of cached blocks
//! needs no file.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use crate::cache::CacheUse;
use crate::cache::clock::{CacheSlot, Cached};
use crate::codec::Malformed;
use crate::epoch::{Loaded, Pin, pin};
use crate::error::{Error, Result};
use crate::fs::File;
use crate::lock::lock;
use crate::metrics::Counters;
use crate::table::block::{Block, BlockLocation, Found, SampledBlock, is_raw};
use crate::table::format::{Handle, TableMeta, file_name};
use crate::table::index::Partition;
use crate::table::read::{CachedPartition, FileSlot, Group, OpenFile, Root, TableCache};
use crate::types::{Kind, MAX_SEQNO, MappedBytes, SeqNo, Slice};

/// The kind, the number and the value of an entry.
pub(crate) type TableEntry = (Kind, SeqNo, Slice);

/// A table of a version. Its file is opened on demand, and is not removed as long as this value exists: the file of an obsolete table is removed when
/// the last view that contains the table drops it.
#[derive(Debug)]
pub(crate) struct Table {
    meta: TableMeta,
    path: Box<Path>,
    root: OnceLock<Arc<Root>>,
    slot: FileSlot,
    /// Held by the thread that opens the file or reads the root. It guards no data that a panic could leave inconsistent.
    opening: Mutex<()>,
    is_obsolete: AtomicBool,
    tables: Arc<TableCache>,
}

impl Table {
    /// The table that the version's `meta` describes. Nothing is read from its file yet.
    pub(crate) fn new(tables: &Arc<TableCache>, meta: TableMeta) -> Arc<Self> {
        let path = tables.dir.join(file_name(meta.number));
        Arc::new(Self::at(tables, meta, path))
    }

    /// Opens table `number`, without metadata from a version, in `path` or under its own name: reads and checks the footer, the root and the
    /// properties.
    ///
    /// # Errors
    /// [`Error::Io`], also for a missing file; [`Error::Corruption`]; [`Error::UnsupportedVersion`].
    pub(crate) fn open(tables: &Arc<TableCache>, number: u64, path: Option<PathBuf>) -> Result<Arc<Self>> {
        let path = path.unwrap_or_else(|| tables.dir.join(file_name(number)));
        let mut table = Self::at(tables, TableMeta { number, ..TableMeta::default() }, path);
        let file = tables.open_file(&table.path).map_err(Error::io("open", &table.path))?;
        let (root, meta) = table.read_root_of(&file)?;
        table.meta = meta;
        table.keep_root(root);
        Ok(Arc::new(table))
    }

    fn at(tables: &Arc<TableCache>, meta: TableMeta, path: PathBuf) -> Self {
        let (path, root, slot) = (path.into_boxed_path(), OnceLock::new(), Mutex::several(1));
        let is_obsolete = AtomicBool::new(false);
        Self { meta, path, root, slot, opening: Mutex::default(), is_obsolete, tables: Arc::clone(tables) }
    }

    /// Reads the root of the table, unless that was done, and checks that the table agrees with the version.
    ///
    /// # Errors
    /// The errors of [`Table::open`]; a missing file is corruption, since a manifest refers to it (rule 10).
    pub(crate) fn check(&self) -> Result<()> {
        self.root().map(drop)
    }

    /// The root of the table. Only the first call takes a lock and needs the file.
    #[inline]
    pub(crate) fn root(&self) -> Result<&Arc<Root>> {
        match self.root.get() {
            Some(root) => Ok(root),
            None => self.read_root(),
        }
    }

    #[cold]
    fn read_root(&self) -> Result<&Arc<Root>> {
        // If several threads need the root, only one of them reads it.
        let _turn = lock(&self.opening);
        if let Some(root) = self.root.get() {
            return Ok(root);
        }
        let file = match self.slot[0].get() {
            Some(file) => Arc::clone(&**file),
            None => self.open_file()?,
        };
        let (root, found) = self.read_root_of(&file)?;
        self.meta.check_is(&found, &self.path)?;
        Ok(self.keep_root(root))
    }

    fn keep_root(&self, root: Root) -> &Arc<Root> {
        self.root.get_or_init(|| {
            self.tables.blocks.add_root(root.memory_len() as u64);
            Arc::new(root)
        })
    }

    /// Reads the root, and maps the file if that is enabled and possible. Otherwise the file stays open.
    fn read_root_of(&self, file: &Arc<dyn File>) -> Result<(Root, TableMeta)> {
        let (mut root, meta) = Root::read(&**file, &self.path, self.number())?;
        match self.tables.map(&**file) {
            Some(map) => root.map = Some(map),
            None => drop(self.tables.keep(&self.slot, self.number(), file.clone())),
        }
        Ok((root, meta))
    }

    /// The table's open file. Takes a lock only if the file is not open.
    pub(crate) fn file(&self) -> Result<OpenFile> {
        self.slot[0].get().map_or_else(|| self.reopen(), Ok)
    }

    /// Records that a point read is about to use the file.
    pub(crate) fn note_use(&self) {
        if let Some(file) = self.slot[0].get() {
            file.mark();
        }
    }

    #[cold]
    fn reopen(&self) -> Result<OpenFile> {
        // If several threads need the file, only one of them opens it.
        let _turn = lock(&self.opening);
        match self.slot[0].get() {
            Some(file) => Ok(file),
            None => Ok(self.tables.keep(&self.slot, self.number(), self.open_file()?)),
        }
    }

    fn open_file(&self) -> Result<Arc<dyn File>> {
        self.tables.open_file(&self.path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                Error::corruption(&self.path, 0, "expected a table that the manifest names, found no such file")
            }
            _ => Error::io("open", &self.path)(error),
        })
    }

    pub(crate) fn number(&self) -> u64 {
        self.meta.number
    }

    #[inline]
    pub(crate) fn meta(&self) -> &TableMeta {
        &self.meta
    }

    /// Marks the table as one that no version refers to any more: its file is removed when this value is dropped.
    pub(crate) fn set_obsolete(&self) {
        // Relaxed: the thread that drops the table last has synchronised with all others through the reference count.
        self.is_obsolete.store(true, Ordering::Relaxed);
    }

    /// The newest version of `key` with a number <= `seqno`; `hash` must be the [`key_hash`](crate::codec::key_hash) of `key`. A longer value shares
    /// its block. At most two blocks are read: a partition and a data block.
    ///
    /// # Errors
    /// [`Error::Io`] and [`Error::Corruption`] if a block that can contain the key cannot be read.
    pub(crate) fn get(&self, key: &[u8], hash: u64, seqno: SeqNo) -> Result<Option<TableEntry>> {
        let root = self.root()?;
        let Some(partition) = self.partition(root, root.index.find(key, seqno), CacheUse::Fill)? else {
            return Ok(None);
        };
        self.get_within(root, &partition, key, hash, seqno)
    }

    /// Like `get`, for a pinned reader, which reads no file (Z1); `None` if a block is not in memory.
    #[inline(always)]
    pub(crate) fn get_pinned(
        &self,
        pin: &Pin,
        key: &[u8],
        hash: u64,
        seqno: SeqNo,
    ) -> Option<Result<Option<TableEntry>>> {
        // A page of a mapped file may have to be read from the disk.
        let root = self.root.get().filter(|root| root.map.is_none())?;
        let hit = self.tables.blocks.get_partition(pin, &root.partitions, root.index.find(key, seqno))?;
        let partition = hit.get();
        let found = self.get_unless_filtered(partition, hash, || {
            let at = partition.index.find(key, seqno);
            Some(self.get_from(partition, (at, &*self.tables.blocks.get(pin, partition, at)?), key, seqno))
        })?;
        self.tables.blocks.count_partition(&hit);
        Some(found)
    }

    /// Like `get`, for a key that belongs to `partition`.
    pub(crate) fn get_within(
        &self,
        root: &Root,
        partition: &Group,
        key: &[u8],
        hash: u64,
        seqno: SeqNo,
    ) -> Result<Option<TableEntry>> {
        let found = self.get_unless_filtered(partition, hash, || {
            let at = partition.index.find(key, seqno);
            let handle = partition.index.handle(at)?;
            Some(self.get_from_block(root, partition, (at, handle), key, seqno))
        });
        found.unwrap_or(Ok(None))
    }

    #[inline(always)]
    fn get_unless_filtered(
        &self,
        partition: &Group,
        hash: u64,
        get: impl FnOnce() -> Option<Result<Option<TableEntry>>>,
    ) -> Option<Result<Option<TableEntry>>> {
        let filter = partition.filter();
        if let Some(filter) = filter
            && !filter.may_contain(hash)
        {
            self.tables.counters.filter_negatives.add(1);
            return Some(Ok(None));
        }
        let found = get()?;
        self.tables.counters.get_blocks.add(1);
        if matches!(found, Ok(None)) && filter.is_some() {
            self.tables.counters.filter_false_positives.add(1);
        }
        Some(found)
    }

    /// Partition `at` of the table, found in the cache or read, and checked when it is read; `None` after the last.
    pub(crate) fn partition(&self, root: &Root, at: usize, cache: CacheUse) -> Result<Option<CachedPartition>> {
        let found = match cache {
            CacheUse::Fill => self.tables.blocks.hold_partition(&root.partitions, at),
            CacheUse::Bypass => None,
        };
        found.map_or_else(|| self.read_partition(root, at, cache), |found| Ok(Some(found)))
    }

    #[cold]
    fn read_partition(&self, root: &Root, at: usize, cache: CacheUse) -> Result<Option<CachedPartition>> {
        let Some(handle) = root.index.handle(at) else { return Ok(None) };
        let malformed = |error| self.malformed(handle, error);
        self.tables.counters.partition_reads.add(1);
        if cache == CacheUse::Fill {
            self.tables.counters.partition_misses.add(1);
        }
        let block = match root.map.as_ref().filter(|_| cache == CacheUse::Fill) {
            Some(map) => self.location(handle).read_mapped(map)?,
            None => Block::Own(self.location(handle).read(&***self.file()?)?),
        };
        let partition = Partition::decode(block, root.data_end, root.index.fence(at)).map_err(malformed)?;
        if cache == CacheUse::Bypass {
            return Ok(Some(CachedPartition::uncached(partition)));
        }
        let (id, size) = ((self.number(), handle.offset), (partition.memory_len(), partition.index.len()));
        Ok(Some(self.tables.blocks.insert_partition(&root.partitions, at, id, partition, size)))
    }

    /// The bytes of the data blocks before the one that can contain `key`. This is for statistics: it counts all blocks if the root cannot be read.
    pub(crate) fn bytes_before(&self, key: &[u8]) -> u64 {
        let handle = || {
            let root = self.root().ok()?;
            let partition = self.partition(root, root.index.find(key, MAX_SEQNO), CacheUse::Bypass).ok()??;
            Some(partition.index.locate(key, MAX_SEQNO)?.1)
        };
        handle().map_or(self.meta.size, |handle| handle.offset)
    }

    /// The memory of the root in bytes; 0 if it was not read.
    pub(crate) fn memory_len(&self) -> u64 {
        self.root.get().map_or(0, |root| root.memory_len() as u64)
    }

    #[cfg(test)]
    pub(crate) fn cache(&self) -> Arc<crate::table::BlockCache> {
        self.tables.blocks.clone()
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.tables.counters
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The corruption error for undecodable contents of the block at `handle`.
    pub(crate) fn malformed(&self, handle: Handle, malformed: Malformed) -> Error {
        malformed.in_file(&self.path, handle.offset)
    }

    /// The newest version of `key` in data block `at` of `partition`. If the version is not in this block, it is not in the next one either: otherwise
    /// the fence would be different.
    #[inline(always)]
    pub(crate) fn get_from(
        &self,
        partition: &Group,
        (at, block): (usize, &SampledBlock),
        key: &[u8],
        seqno: SeqNo,
    ) -> Result<Option<TableEntry>> {
        let malformed = |malformed| self.malformed(partition.index.handle(at).unwrap_or_default(), malformed);
        let found = block.find(key, seqno).map_err(malformed)?;
        Ok(found.and_then(|Found { kind, seqno, value }| {
            let bytes = &block.block.bytes;
            let copied = bytes.get(value.clone()).and_then(Slice::copied);
            let value = copied.or_else(|| Slice::view(bytes, value))?;
            Some((kind, seqno, value))
        }))
    }

    /// Like `get_from`, for a block that may have to be read.
    #[cold]
    fn get_from_block(
        &self,
        root: &Root,
        partition: &Group,
        (at, handle): (usize, Handle),
        key: &[u8],
        seqno: SeqNo,
    ) -> Result<Option<TableEntry>> {
        let pinned = pin();
        if let Some(block) = self.cached(&pinned, root, partition, at) {
            return self.get_from(partition, (at, &*block), key, seqno);
        }
        drop(pinned);
        let block = match self.block_in_memory(root, partition, (at, handle))? {
            Some(block) => block,
            None => {
                self.note_use();
                self.keep(partition, (at, handle), self.read_block(handle)?)
            }
        };
        let found = self.look_up(handle, &block, key, seqno)?;
        Ok(found.and_then(|found| found.with_value(|value| block.slice(value))))
    }

    /// The newest version of `key` in the data block at `handle`.
    pub(crate) fn look_up(&self, handle: Handle, block: &Block, key: &[u8], seqno: SeqNo) -> Result<Option<Found>> {
        block.find(key, seqno).map_err(|malformed| self.malformed(handle, malformed))
    }

    /// The range in the mapped file of the data block of `partition` with this index and handle; `None` if the file is not mapped, or the block is
    /// compressed. The block is verified once while its partition stays in memory.
    #[inline]
    fn mapped<'a>(
        &self,
        root: &'a Root,
        partition: &Partition,
        (at, handle): (usize, Handle),
    ) -> Result<Option<(&'a Arc<MappedBytes>, Range<usize>)>> {
        let Some(file) = &root.map else { return Ok(None) };
        if partition.is_checked(at) {
            return Ok(handle.within(file.len()).map(|within| (file, within)));
        }
        let bytes = handle.within(file.len()).and_then(|within| file.get(within));
        if bytes.is_some_and(|bytes| !is_raw(bytes)) {
            return Ok(None);
        }
        self.tables.counters.block_reads.add(1);
        let block = self.location(handle).data(self.location(handle).read_mapped(file)?)?;
        let Block::Mapped { place, .. } = block else { return Ok(None) };
        partition.set_checked(at);
        Ok(Some((file, place)))
    }

    /// The data block of `partition` with this index and handle, if it is in the mapped file or the cache, so that nothing must be read.
    pub(crate) fn block_in_memory(
        &self,
        root: &Root,
        partition: &Group,
        place: (usize, Handle),
    ) -> Result<Option<Block>> {
        if let Some((file, place)) = self.mapped(root, partition, place)? {
            return Ok(Some(Block::Mapped { file: Arc::clone(file), place }));
        }
        let pin = pin();
        let Some(block) = self.tables.blocks.get(&pin, partition, place.0) else {
            self.tables.counters.cache_misses.add(1);
            return Ok(None);
        };
        block.block.prefetch();
        Ok(Some(Block::Own(block.block.clone())))
    }

    /// Data block `at` of `partition`, if the file is not mapped and the block is in the cache.
    #[inline]
    pub(crate) fn cached<'a>(
        &self,
        pin: &'a Pin,
        root: &Root,
        partition: &'a Group,
        at: usize,
    ) -> Option<Loaded<'a, Cached<SampledBlock>>> {
        root.map.is_none().then(|| self.tables.blocks.get(pin, partition, at)).flatten()
    }

    /// Whether data block `at` of `partition` is in the cache.
    pub(crate) fn is_cached(&self, partition: &Group, at: usize) -> bool {
        self.tables.blocks.has(partition, at)
    }

    /// Puts the data block of `partition` with this index and handle into the cache, and returns it.
    pub(crate) fn keep(&self, partition: &Group, (at, handle): (usize, Handle), block: Block) -> Block {
        let Block::Own(block) = block else { return block };
        let (id, sampled) = ((self.number(), handle.offset), SampledBlock::new(block.clone()));
        let len = sampled.memory_len();
        self.tables.blocks.insert((partition, at), id, sampled, len);
        Block::Own(block)
    }

    /// Reads the data block at `handle` from the file.
    pub(crate) fn read_block(&self, handle: Handle) -> Result<Block> {
        self.tables.counters.block_reads.add(1);
        let block = self.location(handle).read(&***self.file()?).map(Block::Own)?;
        self.location(handle).data(block)
    }

    /// Decodes the data block at `handle`, whose bytes were read from the file.
    pub(crate) fn decode_block(&self, handle: Handle, bytes: &[u8]) -> Result<Block> {
        self.tables.counters.block_reads.add(1);
        self.location(handle).data(self.location(handle).decode(bytes)?)
    }

    /// Fills `buf` from `offset` of the file.
    pub(crate) fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<()> {
        self.file()?.read_exact_at(buf, offset).map_err(Error::io("read", &self.path))
    }

    fn location(&self, handle: Handle) -> BlockLocation<'_> {
        BlockLocation { path: &self.path, number: self.number(), handle }
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        let is_obsolete = *self.is_obsolete.get_mut();
        // Frees room in the cache: no reader needs the partitions again.
        if let Some(root) = self.root.get() {
            self.tables.blocks.remove_root(root.memory_len() as u64);
            if is_obsolete {
                self.tables.blocks.remove_partitions(&root.partitions);
            }
        }
        self.tables.close(&self.slot);
        if is_obsolete {
            self.tables.add_obsolete(self.number());
        }
    }
}
