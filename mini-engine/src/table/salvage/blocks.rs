//! The data blocks of a damaged table, in order, found through its readable parts.
//!
//! A readable partition gives the places and fences of its blocks. The blocks of an unreadable one are found without it: a block begins where the
//! previous one ends, and its own end is the first offset at which its trailer is right, because the checksum is seeded with the block's place.
//! Without a footer all blocks are found in this way, from the start of the file on; the first block that holds no entries is a partition, after
//! the last data block. Properties and range tombstones are then found from the end.
//!
//! The search hashes no more than [`HASHED_PER_BYTE`] times the file, whatever its bytes are: the length in the trailer excludes nearly all ends.

use std::collections::VecDeque;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::codec::Malformed;
use crate::error::{Error, Result};
use crate::fs::{File, FileSystem};
use crate::table::block::{Block, BlockLocation, Cursor, TRAILER_LEN};
use crate::table::format::range_block;
use crate::table::format::{FOOTER_LEN, Handle, Properties, TableMeta};
use crate::table::index::{FileEnd, Partition};
use crate::types::{MAX_STORED_KEY_LEN, MAX_VALUE_LEN, RangeTombstones, SeqNo, Slice, entry_order};

/// The size of the first window in which the end of a block is searched.
const FIRST_WINDOW: u64 = 64 << 10;
/// The number of times that a byte of the file may be hashed while ends of blocks are searched.
const HASHED_PER_BYTE: u64 = 16;

/// An upper bound of the bytes of a block with the longest entry.
const MOST_BLOCK_BYTES: u64 = (MAX_VALUE_LEN + 2 * MAX_STORED_KEY_LEN) as u64;

/// The next part of a table.
pub(super) enum Next {
    /// A data block, and the bytes that it takes.
    Block(Block, Range<u64>),
    /// Bytes that hold data blocks and cannot be read; the last key that they can hold, where that is known.
    Lost { bytes: Range<u64>, to: Option<Slice>, cause: Error },
    /// There are no more data blocks, as far as is known.
    End,
}

/// The data blocks of one table that were not read yet.
pub(super) struct Blocks {
    fs: Arc<dyn FileSystem>,
    path: PathBuf,
    number: u64,
    size: u64,
    /// The file's own metadata, if it can be read.
    pub(super) meta: Option<TableMeta>,
    /// Its range tombstones; `None` while it is unknown whether there are any, or if they cannot be read.
    pub(super) range_tombstones: Option<RangeTombstones>,
    /// The damage to the footer, the root or a partition, if any.
    damage: Option<Error>,
    /// Whether there is no data block behind the last one that was found.
    end_is_known: bool,
    /// The end of the data blocks, if the footer gives it.
    data_end: Option<u64>,
    partitions: VecDeque<Handle>,
    /// Data blocks that a partition leads to, and their fences.
    known: VecDeque<(Handle, Slice)>,
    /// Bytes before the known blocks in which blocks have to be searched.
    unknown: Range<u64>,
    /// The end of the last block.
    at: u64,
    may_hash: u64,
}

impl Blocks {
    /// The data blocks of table `number` in the file `path`.
    ///
    /// # Errors
    /// [`Error::UnsupportedVersion`]; [`Error::Io`] if the file cannot be opened.
    pub(super) fn open(fs: Arc<dyn FileSystem>, path: PathBuf, number: u64) -> Result<Self> {
        let file = fs.open(&path).map_err(Error::io("open", &path))?;
        let size = file.len().map_err(Error::io("read the length of", &path))?;
        let mut blocks = Self {
            fs,
            path,
            number,
            size,
            meta: None,
            range_tombstones: None,
            damage: None,
            end_is_known: false,
            data_end: None,
            partitions: VecDeque::new(),
            known: VecDeque::new(),
            unknown: 0..0,
            at: 0,
            may_hash: size.saturating_mul(HASHED_PER_BYTE),
        };
        match blocks.read_end(&*file) {
            Err(error) if error.is_damage() => blocks.damage = Some(error),
            read => read?,
        }
        // Each further read opens the file for itself.
        drop(file);
        if blocks.data_end.is_none() {
            blocks.unknown = 0..size;
            blocks.read_before_footer();
        }
        Ok(blocks)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The loss at the end, if nothing says where the table should end.
    pub(super) fn missing_end(&mut self) -> Option<Next> {
        let unknown = |error: Error| Next::Lost { bytes: self.size..self.size, to: None, cause: error };
        if self.end_is_known { None } else { self.damage.take().map(unknown) }
    }

    /// Reads the footer, the properties and the root, as far as possible. Each is useful without the others.
    fn read_end(&mut self, file: &dyn File) -> Result<()> {
        let path = self.path.clone();
        let end = FileEnd::read(file, &path, self.number, FOOTER_LEN as u64)?;
        let footer = end.footer()?;
        self.data_end = Some(footer.partitions.offset);
        self.end_is_known = true;
        self.range_tombstones = end.range_tombstones(&footer).ok();
        let ranges = self.range_tombstones.clone().unwrap_or_default();
        self.meta = end.properties(&footer).ok().map(|properties| properties.meta(self.number, self.size, &ranges));
        let index = end.index(&footer)?;
        self.partitions = (0..index.len()).filter_map(|at| index.handle(at)).collect();
        Ok(())
    }

    /// Reads the parts before an unreadable footer: the properties, the range tombstones if there are any, and the root. None of these is ever
    /// compressed, so the length in the trailer gives the start of each.
    fn read_before_footer(&mut self) {
        let end = self.size.saturating_sub(FOOTER_LEN as u64);
        let Some((handle, block)) = self.block_before(end) else { return };
        let Ok(properties) = Properties::decode(block.contents()) else { return };
        let Some((_, block)) = self.block_before(handle.offset) else { return };
        // A root cannot be mistaken for a list of ranges: its last fence has the sequence number 0, which would be an empty end. If its fences share a
        // prefix, its last byte is 0x80 or more, with which no list of ranges ends.
        let ranges = range_block::decode(block.contents()).unwrap_or_default();
        self.meta = Some(properties.meta(self.number, self.size, &ranges));
        self.range_tombstones = Some(ranges);
    }

    /// The block that ends at `end`, if it is not compressed.
    fn block_before(&self, end: u64) -> Option<(Handle, Block)> {
        let trailer = self.read(end.checked_sub(TRAILER_LEN as u64)?, TRAILER_LEN as u64).ok()?;
        let (&compression, rest) = trailer.split_first()?;
        let len = u64::from(u32::from_le_bytes(*rest.first_chunk()?)) + TRAILER_LEN as u64;
        let handle = Handle { offset: end.checked_sub(len)?, len };
        if compression == 0 { Some((handle, self.block(handle).ok()?)) } else { None }
    }

    /// The next data block, or the next loss.
    ///
    /// # Errors
    /// [`Error::Io`] for lack of file handles.
    pub(super) fn next(&mut self) -> Result<Next> {
        loop {
            if !self.unknown.is_empty() {
                return self.find_next();
            }
            if let Some((handle, fence)) = self.known.pop_front() {
                let bytes = handle.offset..handle.offset.saturating_add(handle.len);
                self.at = bytes.end;
                return match self.block(handle) {
                    Err(error) if error.is_damage() => Ok(Next::Lost { bytes, to: Some(fence), cause: error }),
                    block => Ok(Next::Block(block?, bytes)),
                };
            }
            if !self.load_next()? {
                return Ok(Next::End);
            }
        }
    }

    /// Makes the blocks of the next partition that can be read known, and those before it unknown; false past the last.
    fn load_next(&mut self) -> Result<bool> {
        let data_end = self.data_end.unwrap_or(self.at);
        while let Some(handle) = self.partitions.pop_front() {
            let read = self.block(handle).and_then(|block| {
                let malformed = |error: Malformed| error.in_file(&self.path, handle.offset);
                Partition::decode(block, data_end, None).map_err(malformed)
            });
            match read {
                Err(error) if error.is_damage() => self.damage = Some(error),
                // It would lead back to blocks that were already read.
                Ok(partition) if partition.index.start < self.at => {}
                read => {
                    let partition = read?;
                    self.unknown = self.at..partition.index.start;
                    let index = &partition.index;
                    let known = |at| Some((index.handle(at)?, Slice::from(&*index.fence(at)?.0)));
                    self.known.extend((0..index.len()).filter_map(known));
                    return Ok(true);
                }
            }
        }
        self.unknown = self.at..data_end;
        Ok(!self.unknown.is_empty())
    }

    /// Finds the next block in bytes to which nothing leads.
    fn find_next(&mut self) -> Result<Next> {
        let Range { start, end } = self.unknown.clone();
        let lost = |cause: Error| Next::Lost { bytes: start..end, to: None, cause };
        (self.unknown, self.at) = (end..end, end);
        let found = match self.find(start, end) {
            Err(error) if error.is_damage() => return Ok(lost(error)),
            found => found?,
        };
        let Some((handle, block)) = found else {
            return Ok(lost(Error::corruption(&self.path, start, "no block with a valid checksum begins here")));
        };
        let (at, bytes) = (start + handle.len, start..start + handle.len);
        if let Err(malformed) = check_entries(&block) {
            // Without a footer the data blocks end where the partitions begin.
            let ends = self.data_end.is_none() && start > 0;
            self.end_is_known |= ends;
            return Ok(if ends { Next::End } else { lost(malformed.in_file(&self.path, start)) });
        }
        (self.unknown, self.at) = (at..end, at);
        Ok(Next::Block(block, bytes))
    }

    /// The block that begins at `start` and ends at `limit` or before.
    fn find(&mut self, start: u64, limit: u64) -> Result<Option<(Handle, Block)>> {
        let room = (limit - start).min(MOST_BLOCK_BYTES);
        let (mut window, mut tried) = (FIRST_WINDOW.min(room), TRAILER_LEN);
        loop {
            let bytes = self.read(start, window)?;
            while tried < bytes.len() {
                tried += 1;
                let candidate = bytes.split_at(tried).0;
                if !can_end_here(candidate) {
                    continue;
                }
                let Some(left) = self.may_hash.checked_sub(tried as u64) else { return Ok(None) };
                self.may_hash = left;
                let handle = Handle { offset: start, len: tried as u64 };
                if let Ok(block) = self.location(handle).decode(candidate) {
                    return Ok(Some((handle, block)));
                }
            }
            if window == room {
                return Ok(None);
            }
            window = window.saturating_mul(4).min(room);
        }
    }

    fn block(&self, handle: Handle) -> Result<Block> {
        let file = self.fs.open(&self.path).map_err(Error::io("open", &self.path))?;
        self.location(handle).read(&*file).map(Block::Own)
    }

    /// The bytes at `offset`: `len` of them, or up to the end of the file. The file is opened for each read, because a database may have more
    /// tables than a process may have open files.
    fn read(&self, offset: u64, len: u64) -> Result<Vec<u8>> {
        let len = self.size.saturating_sub(offset).min(len);
        let too_long = || Error::corruption(&self.path, offset, format!("{len} bytes do not fit into memory"));
        let mut bytes = Vec::new();
        let wanted = usize::try_from(len).map_err(|_| too_long())?;
        bytes.try_reserve_exact(wanted).map_err(|_| too_long())?;
        bytes.resize(wanted, 0);
        let file = self.fs.open(&self.path).map_err(Error::io("open", &self.path))?;
        file.read_exact_at(&mut bytes, offset).map_err(Error::io("read", &self.path))?;
        Ok(bytes)
    }

    fn location(&self, handle: Handle) -> BlockLocation<'_> {
        BlockLocation { path: &self.path, number: self.number, handle }
    }
}

/// Whether the length in the trailer at the end of `bytes` fits a block that begins with them.
fn can_end_here(bytes: &[u8]) -> bool {
    let Some((stored, trailer)) = bytes.split_last_chunk::<TRAILER_LEN>() else { return false };
    let [compression, a, b, c, d, ..] = *trailer;
    let (stored, len) = (stored.len() as u64, u64::from(u32::from_le_bytes([a, b, c, d])));
    match compression {
        0 => len == stored,
        1 | 2 => stored < len && len <= (stored + 1) << 15,
        _ => false,
    }
}

/// Checks that these are the contents of a data block: entries in order, and restarts in the right places.
fn check_entries(block: &Block) -> Result<(), Malformed> {
    let mut last: Option<(Vec<u8>, SeqNo)> = None;
    Cursor::new(block.clone())?.check(
        |malformed| malformed,
        |cursor| {
            let entry = (cursor.key(), cursor.seqno());
            let is_after = |(key, seqno): &(Vec<u8>, SeqNo)| entry_order((key, *seqno), entry).is_lt();
            if !last.as_ref().is_none_or(is_after) {
                return Err(Malformed { offset: cursor.offset(), expected: "an entry after the one before it" });
            }
            last = Some((entry.0.to_vec(), entry.1));
            Ok(())
        },
    )
}
