//! Readahead: a scan reads many adjacent blocks in one call of the file system.
//!
//! A scan is recognised when blocks are entered one after the other, in either direction. Then the next read takes the same number of bytes that were
//! read so far, up to a window of 256 KiB; a jump to another block resets this. So a scan reads at most twice the bytes that it needs, and a short
//! scan reads no unneeded blocks. The ends of blocks need not be known, since there are no gaps between them: a block that was read only in part is
//! read again. Blocks that were read ahead are kept here unverified. Each block is verified, decompressed and put into the cache when the scan enters
//! it, so a damaged block does not affect earlier ones.

use crate::cache::CacheUse;
use crate::error::Result;
use crate::iter::Direction;
use crate::table::block::Block;
use crate::table::format::Handle;
use crate::table::read::{Group, Root, Table};

/// The number of adjacent blocks that are entered one by one before several are read at once.
const BLOCKS_BEFORE: u32 = 2;
/// The maximum number of bytes that are read ahead.
pub(crate) const WINDOW: u64 = 256 << 10;
/// The first window of a scan, when it was just recognised.
const FIRST_WINDOW: u64 = 16 << 10;

/// Bytes of the file that were read together and not verified yet.
#[derive(Debug, Default)]
pub(crate) struct BytesAhead {
    bytes: Vec<u8>,
    start: u64,
}

impl BytesAhead {
    /// The bytes of the block at `handle`, if they were read ahead.
    pub(crate) fn get(&self, handle: Handle) -> Option<&[u8]> {
        let from = usize::try_from(handle.offset.checked_sub(self.start)?).ok()?;
        let to = from.checked_add(usize::try_from(handle.len).ok()?)?;
        self.bytes.get(from..to)
    }

    /// The block at `handle`, from these bytes or otherwise from the file.
    pub(crate) fn block(&self, table: &Table, handle: Handle) -> Result<Block> {
        match self.get(handle) {
            Some(bytes) => table.decode_block(handle, bytes),
            None => table.read_block(handle),
        }
    }

    /// Reads `len` bytes, at most a window, from `start` on; after an error no bytes are kept.
    pub(crate) fn read(&mut self, table: &Table, start: u64, len: u64) {
        self.bytes.resize(len as usize, 0);
        self.start = start;
        if table.read_at(&mut self.bytes, start).is_err() {
            self.clear();
        }
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
    }
}

/// The blocks that one iterator reads, including those read ahead.
#[derive(Debug)]
pub(crate) struct ReadAhead {
    cache: CacheUse,
    /// The last block that was read.
    last: Option<Handle>,
    direction: Direction,
    /// The number of adjacent blocks entered in this direction.
    streak: u32,
    window: u64,
    bytes: BytesAhead,
}

impl ReadAhead {
    pub(crate) fn new(cache: CacheUse) -> Self {
        // A compaction reads all blocks, so it reads ahead from the start.
        let (streak, window) = match cache {
            CacheUse::Bypass => (BLOCKS_BEFORE, WINDOW),
            CacheUse::Fill => (0, FIRST_WINDOW),
        };
        Self { cache, last: None, direction: Direction::Forward, streak, window, bytes: BytesAhead::default() }
    }

    /// The data block with this index and handle, which belongs to `partition` of the table with this root.
    pub(crate) fn block(
        &mut self,
        table: &Table,
        root: &Root,
        (partition, at, handle): (&Group, usize, Handle),
    ) -> Result<Block> {
        self.follow(handle);
        if self.cache == CacheUse::Fill
            && let Some(block) = table.block_in_memory(root, partition, (at, handle))?
        {
            return Ok(block);
        }
        if self.bytes.get(handle).is_none() && self.streak >= BLOCKS_BEFORE {
            self.read_span(table, root, handle);
        }
        let block = self.bytes.block(table, handle)?;
        Ok(match self.cache {
            CacheUse::Fill => table.keep(partition, (at, handle), block),
            CacheUse::Bypass => block,
        })
    }

    /// Records that the block at `handle` is entered.
    fn follow(&mut self, handle: Handle) {
        let direction = match self.last {
            Some(last) if last.end() == Some(handle.offset) => Some(Direction::Forward),
            Some(last) if handle.end() == Some(last.offset) => Some(Direction::Backward),
            Some(last) if handle == last => return,
            None if self.streak > 0 => Some(Direction::Forward),
            Some(_) | None => None,
        };
        self.last = Some(handle);
        if direction == Some(self.direction) {
            self.streak = self.streak.saturating_add(1);
            return;
        }
        self.direction = direction.unwrap_or(Direction::Forward);
        self.streak = u32::from(direction.is_some());
        self.window = FIRST_WINDOW;
        self.bytes = BytesAhead::default();
    }

    /// Reads the block at `handle` and the bytes next to it, in the direction of the scan, up to the size of the window; nothing if the window has no
    /// room for a second block of this length. An error is ignored here: the later read of the single block will return it if it concerns that block.
    #[cold]
    fn read_span(&mut self, table: &Table, root: &Root, handle: Handle) {
        let window = self.window;
        self.window = WINDOW.min(window * 2);
        self.bytes.clear();
        let Some(end) = handle.end().filter(|_| handle.len <= window / 2) else { return };
        let (start, end) = match self.direction {
            Direction::Forward => (handle.offset, handle.offset.saturating_add(window).min(root.data_end)),
            Direction::Backward => (end.saturating_sub(window), end),
        };
        let len = end.saturating_sub(start);
        if len > handle.len {
            self.bytes.read(table, start, len);
        }
    }
}
