//! Writes a table: entries in order, block by block, with large write calls.
//!
//! The file has its name from the start, but is not a table before [`Builder::finish`] has synced it: a crash leaves an orphan to which no manifest
//! refers. A builder that is dropped unfinished, or fails to finish, removes its file.
//!
//! Written bytes are synced in steps while the table is written (like RocksDB's `bytes_per_sync`). Correctness does not depend on these syncs: they
//! only keep the device's queue short, so that the sync of a flush has little to wait for. A failure of such a sync counts like one of the final
//! sync.

use std::cmp::Ordering;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::columns::BlockBuilder;
use crate::error::{Error, Result};
use crate::fs::{File, FileSystem, unlink};
use crate::options::{Compression, Compressions, Options};
use crate::table::block::frame::{self, MAX_CONTENTS_LEN};
use crate::table::format::range_block;
use crate::table::format::{Footer, Handle, Properties, TableMeta, file_name};
use crate::table::index::{IndexBuilder, PartitionBuilder, last_fence};
use crate::types::{
    DEFAULT_KEYSPACE, KeyspaceId, Kind, MAX_SEQNO, MAX_STORED_KEY_LEN, MAX_VALUE_LEN, RangeTombstones, SeqNo,
    entry_order, is_stored_plain, split_stored,
};

/// The number of bytes that are collected before they are written.
const WRITE_LEN: usize = 256 << 10;

/// The settings of one table, chosen for its level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TableOptions {
    pub(crate) compression: Compression,
    /// Bits of filter for each key, not necessarily whole: 0 (no filter) to 32.
    pub(crate) filter_bits_per_key: f64,
    pub(crate) block_bytes: usize,
    pub(crate) partition_bytes: usize,
    pub(crate) bytes_per_sync: u64,
}

impl TableOptions {
    /// The settings of a table of `level` with filters of `filter_bits` for each key.
    pub(crate) fn at_level(options: &Options, level: usize, filter_bits: f64) -> Self {
        Self {
            compression: options.compression_at(level),
            filter_bits_per_key: filter_bits,
            block_bytes: options.block_bytes,
            partition_bytes: options.partition_bytes,
            bytes_per_sync: options.bytes_per_sync,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Builder {
    output: Output,
    options: TableOptions,
    /// The compression of those keyspaces that set their own.
    compressions: Compressions,
    /// The keyspace of the entries of the current block.
    keyspace: KeyspaceId,
    block: BlockBuilder,
    partition: PartitionBuilder,
    /// The contents of the finished partitions. In the file they follow the data blocks, so they are kept in memory: 1 to 4 % of the table.
    partitions: Vec<Vec<u8>>,
    properties: Properties,
    last_seqno: SeqNo,
    range_tombstones: RangeTombstones,
}

impl Builder {
    /// Starts table `number` in `dir`; its file must not exist.
    pub(crate) fn new(fs: &Arc<dyn FileSystem>, dir: &Path, number: u64, options: TableOptions) -> Result<Self> {
        Ok(Self {
            output: Output::create(fs, dir, number, options.bytes_per_sync)?,
            options,
            compressions: Compressions::default(),
            keyspace: DEFAULT_KEYSPACE,
            block: BlockBuilder::default(),
            partition: PartitionBuilder::new(options.filter_bits_per_key),
            partitions: Vec::new(),
            properties: Properties::default(),
            last_seqno: 0,
            range_tombstones: RangeTombstones::default(),
        })
    }

    /// Adds range tombstones to the table; all must have an end, and starts within the length limit. A table needs at least one entry: if it has none
    /// when it is finished, an ordinary tombstone is added for the first key that the range tombstones cover.
    pub(crate) fn set_range_tombstones(&mut self, tombstones: RangeTombstones) {
        self.range_tombstones = tombstones;
    }

    /// Sets the compression of the blocks of these keyspaces.
    pub(crate) fn set_compressions(&mut self, compressions: Compressions) {
        self.compressions = compressions;
    }

    /// Adds an entry, which must come after all earlier ones: keys ascend, and within a key seqnos descend.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for an entry out of order or past a limit; then nothing is added. [`Error::Io`] if writing fails; then the table
    /// cannot be finished.
    pub(crate) fn add(&mut self, key: &[u8], seqno: SeqNo, kind: Kind, value: &[u8]) -> Result<()> {
        self.check(key, seqno, value)?;
        if !is_stored_plain(key) {
            self.enter_keyspace(key)?;
        }
        let mut sizes = self.block.sizes_with(key, seqno, kind, value);
        if !self.block.is_empty() && sizes.len() > self.options.block_bytes {
            self.finish_block(Some(key))?;
            sizes = self.block.sizes_with(key, seqno, kind, value);
        }
        self.block.add_sized(sizes, (key, seqno, kind, value));
        let is_new = self.properties.count(key, seqno, kind, value);
        self.partition.add_key(key, is_new);
        self.last_seqno = seqno;
        Ok(())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.properties.entries == 0
    }

    /// The key of the last entry; empty before the first.
    pub(crate) fn last_key(&self) -> &[u8] {
        &self.properties.largest
    }

    /// Bytes of the blocks so far; the current block is counted before compression.
    pub(crate) fn bytes(&self) -> u64 {
        self.output.offset() + self.block.len() as u64
    }

    /// Writes the remaining parts and syncs the file. The caller syncs the directory before any durable record refers to the table.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a table without entries; [`Error::Io`]. After an error the file is removed, if possible.
    pub(crate) fn finish(mut self) -> Result<TableMeta> {
        let ranges = std::mem::take(&mut self.range_tombstones);
        if let Some(first) = ranges.first_key().filter(|_| self.is_empty()) {
            self.add(first, ranges.covering(first, MAX_SEQNO).unwrap_or(0), Kind::Tombstone, &[])?;
        }
        if self.is_empty() {
            return Err(Error::InvalidArgument(format!("table {} has no entry", self.output.number)));
        }
        self.finish_block(None)?;
        let (partitions, root) = self.write_partitions()?;
        if !ranges.is_empty() {
            self.write_block(&range_block::encode(&ranges))?;
        }
        self.properties.finish(&ranges);
        let properties = self.write_block(&self.properties.encode())?;
        let offset = self.output.offset();
        let footer = Footer { partitions, root, properties };
        footer.encode(&mut self.output.buffer, self.output.number, offset);
        let size = self.output.finish()?;
        Ok(self.properties.meta(self.output.number, size, &ranges))
    }

    /// Ends the block before the first key of another keyspace, because keyspaces may differ in compression.
    fn enter_keyspace(&mut self, key: &[u8]) -> Result<()> {
        let keyspace = split_stored(key).map_or(DEFAULT_KEYSPACE, |(keyspace, _)| keyspace);
        if keyspace == self.keyspace {
            return Ok(());
        }
        if !self.block.is_empty() {
            self.finish_block(Some(key))?;
        }
        self.keyspace = keyspace;
        Ok(())
    }

    fn check(&self, key: &[u8], seqno: SeqNo, value: &[u8]) -> Result<()> {
        let invalid = |what: String| Err(Error::InvalidArgument(format!("table {}: {what}", self.output.number)));
        if key.len() > MAX_STORED_KEY_LEN || value.len() > MAX_VALUE_LEN || seqno > MAX_SEQNO {
            let (key, value) = (key.len(), value.len());
            return invalid(format!("an entry past its limits: key {key} bytes, value {value} bytes, seqno {seqno}"));
        }
        let last = (&self.properties.largest[..], self.last_seqno);
        if !self.is_empty() && entry_order(last, (key, seqno)) != Ordering::Less {
            return invalid(format!(
                "expected an entry after \"{}\" at seqno {}, found \"{}\" at seqno {seqno}",
                last.0.escape_ascii(),
                last.1,
                key.escape_ascii()
            ));
        }
        Ok(())
    }

    /// Writes the current block; `next` is the first key after it.
    fn finish_block(&mut self, next: Option<&[u8]>) -> Result<()> {
        let compression = self.compressions.get(&self.keyspace).copied().unwrap_or(self.options.compression);
        let output = &mut self.output;
        let handle = self.block.finish(|contents| output.write_block(contents, compression))?;
        self.partition.fences.push((&self.properties.largest, self.last_seqno), next, handle.len);
        if next.is_none() || self.partition.is_full(self.options.partition_bytes) {
            self.partitions.push(self.partition.finish(self.output.offset()));
        }
        Ok(())
    }

    /// Writes the partitions and the root. Returns their positions.
    fn write_partitions(&mut self) -> Result<(Handle, Handle)> {
        let start = self.output.offset();
        let mut root = IndexBuilder::default();
        for contents in std::mem::take(&mut self.partitions) {
            let handle = self.write_block(&contents)?;
            // Every partition has a fence pointer.
            let (key, seqno) = last_fence(&contents).unwrap_or_default();
            root.push_fence((&key, seqno), handle.len);
        }
        let partitions = Handle { offset: start, len: self.output.offset() - start };
        let mut contents = Vec::new();
        root.finish(&mut contents);
        Ok((partitions, self.write_block(&contents)?))
    }

    /// Writes a block uncompressed, because it is small and often read.
    fn write_block(&mut self, contents: &[u8]) -> Result<Handle> {
        if contents.len() > MAX_CONTENTS_LEN {
            let what =
                format!("a part of the index of table {} would have {} bytes", self.output.number, contents.len());
            return Err(Error::Full(what));
        }
        self.output.write_block(contents, Compression::None)
    }
}

/// The unfinished file, which is removed on drop.
#[derive(Debug)]
struct Output {
    fs: Arc<dyn FileSystem>,
    path: PathBuf,
    file: Arc<dyn File>,
    /// The number of the table.
    number: u64,
    written: u64,
    /// The number of bytes that were synced.
    synced: u64,
    bytes_per_sync: u64,
    buffer: Vec<u8>,
    is_finished: bool,
}

impl Output {
    fn create(fs: &Arc<dyn FileSystem>, dir: &Path, number: u64, bytes_per_sync: u64) -> Result<Self> {
        let path = dir.join(file_name(number));
        let file = fs.create_new(&path).map_err(Error::io("create", &path))?;
        let fs = Arc::clone(fs);
        let buffer = Vec::new();
        Ok(Self { fs, path, file, number, written: 0, synced: 0, bytes_per_sync, buffer, is_finished: false })
    }

    /// The offset at which the next byte is written.
    fn offset(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    fn write_block(&mut self, contents: &[u8], compression: Compression) -> Result<Handle> {
        if contents.len() >= WRITE_LEN {
            return self.write_long_block(contents, compression);
        }
        let offset = self.offset();
        frame::encode(&mut self.buffer, contents, compression, self.number, offset);
        let len = self.offset() - offset;
        if self.buffer.len() >= WRITE_LEN {
            self.write_buffer()?;
        }
        Ok(Handle { offset, len })
    }

    /// Writes the block directly from its memory, so that a long value is not copied again.
    #[cold]
    fn write_long_block(&mut self, contents: &[u8], compression: Compression) -> Result<Handle> {
        self.write_buffer()?;
        let (offset, stored) = (self.written, frame::Stored::of(contents, compression));
        for part in stored.bytes.chunks(WRITE_LEN) {
            self.file.write_all_at(part, self.written).map_err(Error::io("write", &self.path))?;
            self.written += part.len() as u64;
            self.sync_if_due()?;
        }
        self.buffer.extend(stored.trailer(self.number, offset));
        Ok(Handle { offset, len: self.offset() - offset })
    }

    fn write_buffer(&mut self) -> Result<()> {
        self.file.write_all_at(&self.buffer, self.written).map_err(Error::io("write", &self.path))?;
        self.written = self.offset();
        self.buffer.clear();
        self.sync_if_due()
    }

    fn sync_if_due(&mut self) -> Result<()> {
        if self.written - self.synced < self.bytes_per_sync {
            return Ok(());
        }
        self.sync()
    }

    fn sync(&mut self) -> Result<()> {
        self.file.sync().map_err(Error::io("sync", &self.path))?;
        self.synced = self.written;
        Ok(())
    }

    /// Writes the remaining bytes and syncs the file. Returns the length of the file.
    fn finish(&mut self) -> Result<u64> {
        self.write_buffer()?;
        self.sync()?;
        self.is_finished = true;
        Ok(self.written)
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if !self.is_finished {
            unlink(&*self.fs, &self.path);
        }
    }
}
