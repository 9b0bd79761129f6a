//! Walks through a table: the only reader of its parts in file order, for a salvage, a dump and a verification.
//!
//! A readable partition gives the positions and fences of its blocks. The blocks of an unreadable partition are found without it: a block begins
//! where the previous one ends, and its own end is the first offset at which its trailer is valid, because the checksum is seeded with the block's
//! offset. Without a footer all blocks are found in this way, from the start of the file on; the first block that contains no entries is a partition,
//! after the last data block. Properties and range tombstones are then found from the end of the file.
//!
//! The search hashes at most [`HASHED_PER_BYTE`] times the bytes of the file, whatever they are: the trailer's length excludes nearly all ends.

use std::collections::VecDeque;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::codec::Malformed;
use crate::error::{Error, Result};
use crate::fs::{File, FileSystem, read_bytes};
use crate::table::block::{Block, BlockLocation, Cursor, TRAILER_LEN};
use crate::table::format::range_block;
use crate::table::format::{FOOTER_LEN, Handle, Properties, TableMeta};
use crate::table::index::{FileEnd, Index, Partition};
use crate::types::{MAX_SEQNO, MAX_STORED_KEY_LEN, MAX_VALUE_LEN, RangeTombstones, SeqNo, Slice, entry_order};

/// The size of the first window in which the end of a block is searched for.
const FIRST_WINDOW: u64 = 64 << 10;
/// The number of times that a byte of the file may be hashed while ends of blocks are searched for.
const HASHED_PER_BYTE: u64 = 16;

/// An upper bound of the length of a block with the longest entry.
const MOST_BLOCK_BYTES: u64 = (MAX_VALUE_LEN + 2 * MAX_STORED_KEY_LEN) as u64;

/// The next part of a table.
pub(crate) enum Part {
    /// A partition, with its index; its data blocks follow.
    Partition(usize, Partition),
    /// A data block, its byte range in the file, and its index in the partition to which it belongs, if that is known.
    Block { block: Block, bytes: Range<u64>, at: Option<usize> },
    /// Bytes with data blocks that cannot be read, and the fence of the last of these blocks, if it is known.
    Lost { bytes: Range<u64>, fence: Option<(Slice, SeqNo)>, cause: Error },
    /// Damage to a part that is not a data block. The data blocks that this part would have located are searched for.
    Damage(Error),
}

/// How the file of a table is accessed.
pub(crate) enum Source {
    Open(Arc<dyn File>),
    /// Opened for each read, because a database may have more tables than a process may have open files.
    Reopened(Arc<dyn FileSystem>),
}

/// The parts of one table that were not read yet.
pub(crate) struct Walk {
    source: Source,
    path: PathBuf,
    number: u64,
    size: u64,
    /// The first wanted key: blocks that can only contain lower keys are skipped, if their fences are known.
    from: Option<Slice>,
    /// Whether data blocks were skipped.
    pub(crate) is_partial: bool,
    /// The file's own metadata and properties, if they can be read.
    pub(crate) meta: Option<TableMeta>,
    pub(crate) properties: Option<Properties>,
    /// The table's range tombstones; `None` while it is unknown whether there are any, or if they cannot be read.
    pub(crate) range_tombstones: Option<RangeTombstones>,
    /// The fence pointers of the partitions, if the root can be read.
    index: Option<Index>,
    /// The last damage to the footer, the root or a partition, if any.
    damage: Option<Error>,
    /// Damage that was found and not yet returned.
    found: VecDeque<Error>,
    /// Whether it is known that no data block follows the last one that was found.
    end_is_known: bool,
    /// The end of the data blocks, if it is known from the footer.
    data_end: Option<u64>,
    /// The index of the first wanted partition, and of the next one to be read.
    first_partition: usize,
    next_partition: usize,
    /// The partition of the known blocks, until the partition was returned.
    entered: Option<(usize, Partition)>,
    /// Data blocks that a partition has located, with their indexes and fences.
    known: VecDeque<(usize, Handle, (Slice, SeqNo))>,
    /// Bytes before the known blocks in which blocks must be searched for.
    unknown: Range<u64>,
    /// The end of the last block that was returned.
    at: u64,
    /// The end of the group of data blocks of the last partition, if it could be read: the next group begins there.
    group_end: Option<u64>,
    may_hash: u64,
}

impl Walk {
    /// The parts of table `number` in the file `path`, beginning with the block that can contain the key `from`.
    ///
    /// # Errors
    /// [`Error::UnsupportedVersion`]; [`Error::Io`] if the file cannot be opened.
    pub(crate) fn open(source: Source, path: PathBuf, number: u64, from: Option<Slice>) -> Result<Self> {
        let file = source.file(&path)?;
        let size = file.len().map_err(Error::io("read the length of", &path))?;
        let mut walk = Self {
            source,
            path,
            number,
            size,
            from,
            is_partial: false,
            meta: None,
            properties: None,
            range_tombstones: None,
            index: None,
            damage: None,
            found: VecDeque::new(),
            end_is_known: false,
            data_end: None,
            first_partition: 0,
            next_partition: 0,
            entered: None,
            known: VecDeque::new(),
            unknown: 0..0,
            at: 0,
            group_end: None,
            may_hash: size.saturating_mul(HASHED_PER_BYTE),
        };
        if let Some(damage) = unless_damage(walk.read_end(&*file))?.err() {
            walk.lose_way(damage);
        }
        // Each further read may open the file itself.
        drop(file);
        if walk.data_end.is_none() {
            walk.unknown = 0..size;
            walk.read_before_footer();
        }
        Ok(walk)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The number of partitions in the root.
    pub(crate) fn partition_count(&self) -> usize {
        self.index.as_ref().map_or(0, Index::len)
    }

    /// Fails if the file shows that this is not the table that `meta`, from a version, describes.
    pub(crate) fn check_is(&self, meta: &TableMeta) -> Result<()> {
        let Some(found) = &self.meta else { return Ok(()) };
        // If the block of range tombstones cannot be read, their number is unknown.
        let counted = if self.range_tombstones.is_some() { found } else { meta };
        meta.check_is(&TableMeta { range_tombstones: counted.range_tombstones, ..found.clone() }, &self.path)
    }

    /// The damage because of which it is unknown whether the table ends here.
    pub(crate) fn missing_end(&self) -> Option<Error> {
        self.damage.clone().filter(|_| !self.end_is_known)
    }

    /// The length of the file.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Records damage to a part that locates data blocks.
    fn lose_way(&mut self, damage: Error) {
        self.found.push_back(damage.clone());
        self.damage = Some(damage);
    }

    /// Returns the part, or `None` after recording its damage.
    fn part<T>(&mut self, read: Result<T>) -> Result<Option<T>> {
        let read = unless_damage(read)?;
        Ok(read.map_err(|damage| self.found.push_back(damage)).ok())
    }

    /// Reads the footer, the properties and the root, as far as possible. Each of them is useful without the others.
    fn read_end(&mut self, file: &dyn File) -> Result<()> {
        let path = self.path.clone();
        let end = FileEnd::read(file, &path, self.number, FOOTER_LEN as u64)?;
        let footer = end.footer()?;
        self.data_end = Some(footer.partitions.offset);
        self.end_is_known = true;
        self.properties = self.part(end.properties(&footer))?;
        let index = unless_damage(end.index(&footer))?;
        self.range_tombstones = self.part(end.range_tombstones(&footer))?;
        let ranges = self.range_tombstones.clone().unwrap_or_default();
        self.meta = self.properties.as_ref().map(|properties| properties.meta(self.number, self.size, &ranges));
        let index = index?;
        let first = self.from.as_ref().map_or(0, |from| index.find(from, MAX_SEQNO));
        (self.first_partition, self.next_partition, self.is_partial) = (first, first, first > 0);
        self.group_end = Some(0).filter(|_| first == 0);
        self.index = Some(index);
        Ok(())
    }

    /// Reads the parts before an unreadable footer: the properties, the range tombstones if there are any, and the root. None of these is ever
    /// compressed, so the length in the trailer determines the start of each.
    fn read_before_footer(&mut self) {
        let end = self.size.saturating_sub(FOOTER_LEN as u64);
        let Some((handle, block)) = self.block_before(end) else { return };
        let Ok(properties) = Properties::decode(block.contents()) else { return };
        let Some((_, block)) = self.block_before(handle.offset) else { return };
        // A root cannot be mistaken for a list of ranges: its last fence has the sequence number 0, which would be an empty end. If its fences share
        // a prefix, its last byte is 0x80 or more, which never ends a list of ranges.
        let ranges = range_block::decode(block.contents()).unwrap_or_default();
        self.meta = Some(properties.meta(self.number, self.size, &ranges));
        (self.properties, self.range_tombstones) = (Some(properties), Some(ranges));
    }

    /// The block that ends at `end`, if it is not compressed.
    fn block_before(&self, end: u64) -> Option<(Handle, Block)> {
        let trailer = self.read(end.checked_sub(TRAILER_LEN as u64)?, TRAILER_LEN as u64).ok()?;
        let (&compression, rest) = trailer.split_first()?;
        let len = u64::from(u32::from_le_bytes(*rest.first_chunk()?)) + TRAILER_LEN as u64;
        let handle = Handle { offset: end.checked_sub(len)?, len };
        if compression == 0 { Some((handle, self.block(handle).ok()?)) } else { None }
    }

    /// The next part; `None` if no more data blocks are known.
    ///
    /// # Errors
    /// [`Error::Io`] for lack of file handles.
    pub(crate) fn next(&mut self) -> Result<Option<Part>> {
        loop {
            if let Some(damage) = self.found.pop_front() {
                return Ok(Some(Part::Damage(damage)));
            }
            if !self.unknown.is_empty() {
                return self.find_next();
            }
            if let Some((at, partition)) = self.entered.take() {
                return Ok(Some(Part::Partition(at, partition)));
            }
            if let Some((at, handle, fence)) = self.known.pop_front() {
                let bytes = handle.offset..handle.offset.saturating_add(handle.len);
                self.at = bytes.end;
                return Ok(Some(match unless_damage(self.block(handle))? {
                    Ok(block) => Part::Block { block, bytes, at: Some(at) },
                    Err(cause) => Part::Lost { bytes, fence: Some(fence), cause },
                }));
            }
            if !self.load_next()? && self.found.is_empty() {
                return Ok(None);
            }
        }
    }

    /// Adds the blocks of the next readable partition to the known ones, and the bytes before them to the unknown; false after the last partition.
    fn load_next(&mut self) -> Result<bool> {
        let data_end = self.data_end.unwrap_or(self.at);
        while let Some(handle) = self.index.as_ref().and_then(|index| index.handle(self.next_partition)) {
            let number = self.next_partition;
            self.next_partition += 1;
            let read = self.block(handle).and_then(|block| {
                let malformed = |error: Malformed| error.in_file(&self.path, handle.offset);
                let fence = self.index.as_ref().and_then(|index| index.fence(number));
                Partition::decode(block, data_end, fence).map_err(malformed)
            });
            match unless_damage(read)? {
                Err(error) => {
                    self.lose_way(error);
                    self.group_end = None;
                }
                Ok(partition) => {
                    self.check_group(number, self.group_end, partition.index.start);
                    self.group_end = Some(partition.index.end());
                    // An earlier start would refer to blocks that were already read.
                    if partition.index.start >= self.at {
                        self.enter(number, partition);
                        return Ok(true);
                    }
                }
            }
        }
        // `take` lets this be checked only once.
        if let Some(end) = self.group_end.take().filter(|_| self.next_partition > 0) {
            self.check_group(self.next_partition - 1, Some(data_end), end);
        }
        self.unknown = self.at..data_end;
        Ok(!self.unknown.is_empty())
    }

    /// Records data blocks that belong to no partition, or to more than one.
    fn check_group(&mut self, partition: usize, expected: Option<u64>, found: u64) {
        if let Some(expected) = expected.filter(|expected| *expected != found) {
            let handle = self.index.as_ref().and_then(|index| index.handle(partition)).unwrap_or_default();
            let what = format!("groups of data blocks without gaps: expected one to meet {expected}, found {found}");
            self.found.push_back(Error::corruption(&self.path, handle.offset, what));
        }
    }

    /// Adds the blocks of `partition` to the known ones, beginning with the one that can contain the first wanted key.
    fn enter(&mut self, number: usize, partition: Partition) {
        let index = &partition.index;
        let is_first = number == self.first_partition;
        let first = self.from.as_ref().filter(|_| is_first).map_or(0, |from| index.find(from, MAX_SEQNO));
        self.is_partial |= first > 0;
        if is_first && self.is_partial {
            self.at = index.handle(first).map_or(index.end(), |handle| handle.offset);
        }
        self.unknown = self.at..index.start.max(self.at);
        let fence = |at| index.fence(at).map(|(key, seqno)| (Slice::from(&*key), seqno));
        let known = |at| Some((at, index.handle(at)?, fence(at)?));
        self.known.extend((first..index.len()).filter_map(known));
        self.entered = Some((number, partition));
    }

    /// Finds the next block in the unknown bytes.
    fn find_next(&mut self) -> Result<Option<Part>> {
        let Range { start, end } = self.unknown.clone();
        let lost = |cause: Error| Ok(Some(Part::Lost { bytes: start..end, fence: None, cause }));
        (self.unknown, self.at) = (end..end, end);
        let found = match unless_damage(self.find(start, end))? {
            Err(error) => return lost(error),
            Ok(found) => found,
        };
        let Some((handle, block)) = found else {
            return lost(Error::corruption(&self.path, start, "no block with a valid checksum begins here"));
        };
        let (at, bytes) = (start + handle.len, start..start + handle.len);
        if let Err(malformed) = check_entries(&block) {
            // Without a footer, the data blocks end where the partitions begin.
            let ends = self.data_end.is_none() && start > 0;
            self.end_is_known |= ends;
            return if ends { Ok(None) } else { lost(malformed.in_file(&self.path, start)) };
        }
        (self.unknown, self.at) = (at..end, at);
        Ok(Some(Part::Block { block, bytes, at: None }))
    }

    /// The block that begins at `start` and ends at or before `limit`.
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
                match self.location(handle).decode(candidate) {
                    Ok(block) => return Ok(Some((handle, block))),
                    // A block that another build can read is not damaged.
                    Err(error) if !error.is_damage() => return Err(error),
                    Err(_) => {}
                }
            }
            if window == room {
                return Ok(None);
            }
            window = window.saturating_mul(4).min(room);
        }
    }

    fn block(&self, handle: Handle) -> Result<Block> {
        let file = self.source.file(&self.path)?;
        self.location(handle).read(&*file).map(Block::Own)
    }

    /// Reads `len` bytes at `offset`, or fewer if the file ends before.
    fn read(&self, offset: u64, len: u64) -> Result<Vec<u8>> {
        let len = self.size.saturating_sub(offset).min(len);
        read_bytes(&*self.source.file(&self.path)?, &self.path, offset, len)
    }

    fn location(&self, handle: Handle) -> BlockLocation<'_> {
        BlockLocation { path: &self.path, number: self.number, handle }
    }
}

impl Source {
    fn file(&self, path: &Path) -> Result<Arc<dyn File>> {
        match self {
            Self::Open(file) => Ok(Arc::clone(file)),
            Self::Reopened(fs) => fs.open(path).map_err(Error::io("open", path)),
        }
    }
}

/// Returns damage as the inner result, and any other error as the outer one.
fn unless_damage<T>(read: Result<T>) -> Result<Result<T>> {
    match read {
        Err(error) if !error.is_damage() => Err(error),
        read => Ok(read),
    }
}

/// Whether the length in the trailer at the end of `bytes` fits a block that consists of them.
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

/// Checks that these are the contents of a data block, with entries in order.
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
