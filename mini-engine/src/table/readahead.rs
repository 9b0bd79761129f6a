//! Readahead: a scan reads many neighbouring blocks in one call of the file system.
//!
//! A scan shows itself by entering blocks one after the other, in either direction. Then the next read takes as many bytes as were
//! read so far, up to a window of 256 KiB; a jump starts again. So a scan reads at most twice what it needs, and a short one reads
//! nothing in vain. Blocks that were read ahead stay here unchecked. Each is checked, decompressed and put into the cache when the
//! scan enters it, so a damaged block does not stop those before it.

use super::format::Handle;
use super::frame::Block;
use super::reader::Table;
use super::root::Root;
use crate::error::Result;

/// Neighbours that are entered one by one before more are read at once.
const BLOCKS_BEFORE: u32 = 2;
/// The most bytes that are read ahead.
const WINDOW: u64 = 256 << 10;
/// The first window of a scan that has just shown itself.
const FIRST_WINDOW: u64 = 16 << 10;

/// What a read does with the block cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CacheUse {
    /// Looks there first and leaves there what it read.
    Fill,
    /// Reads from the file and leaves the cache as it is.
    Bypass,
}

/// Where the scan goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Forward,
    Backward,
}

/// The blocks that one iterator reads, and those that it has read ahead.
#[derive(Debug)]
pub(super) struct ReadAhead {
    cache: CacheUse,
    /// The block that was asked for last.
    last: Option<usize>,
    direction: Direction,
    /// Neighbours entered in this direction.
    streak: u32,
    window: u64,
    /// Bytes of the file from `start` on.
    span: Vec<u8>,
    start: u64,
}

impl ReadAhead {
    pub(super) fn new(cache: CacheUse) -> Self {
        // A merge reads all there is, so it need not show itself first.
        let (streak, window) = match cache {
            CacheUse::Bypass => (BLOCKS_BEFORE, WINDOW),
            CacheUse::Fill => (0, FIRST_WINDOW),
        };
        Self { cache, last: None, direction: Direction::Forward, streak, window, span: Vec::new(), start: 0 }
    }

    /// Block `index` of the table, which has one of that number.
    pub(super) fn block(&mut self, table: &Table, root: &Root, index: usize) -> Result<Block> {
        let handle = root.index.handle(index).unwrap_or_default();
        self.follow(index);
        if self.cache == CacheUse::Fill
            && let Some(block) = table.cached(handle)
        {
            return Ok(block);
        }
        if self.bytes_of(handle).is_none() && self.streak >= BLOCKS_BEFORE {
            self.read_span(table, root, index);
        }
        let block = match self.bytes_of(handle) {
            Some(bytes) => table.decode_block(handle, bytes)?,
            None => table.read_block(handle)?,
        };
        if self.cache == CacheUse::Fill {
            table.keep(handle, &block);
        }
        Ok(block)
    }

    /// Notes that block `index` is entered.
    fn follow(&mut self, index: usize) {
        let direction = match self.last {
            Some(last) if last + 1 == index => Some(Direction::Forward),
            Some(last) if index + 1 == last => Some(Direction::Backward),
            Some(last) if index == last => return,
            None if self.streak > 0 => Some(Direction::Forward),
            Some(_) | None => None,
        };
        self.last = Some(index);
        if direction == Some(self.direction) {
            self.streak = self.streak.saturating_add(1);
            return;
        }
        self.direction = direction.unwrap_or(Direction::Forward);
        self.streak = u32::from(direction.is_some());
        self.window = FIRST_WINDOW;
        self.span = Vec::new();
    }

    fn bytes_of(&self, handle: Handle) -> Option<&[u8]> {
        let from = usize::try_from(handle.offset.checked_sub(self.start)?).ok()?;
        let to = from.checked_add(usize::try_from(handle.len).ok()?)?;
        self.span.get(from..to)
    }

    /// Reads block `index` and the next ones in the direction of the scan, as many as fit the window; nothing if only the one does.
    /// An error is not reported: reading the one block alone will tell whether it is its own.
    #[cold]
    fn read_span(&mut self, table: &Table, root: &Root, index: usize) {
        let handle = root.index.handle(index).unwrap_or_default();
        let (mut start, mut end) = (handle.offset, handle.offset.saturating_add(handle.len));
        let mut at = index;
        loop {
            let next = match self.direction {
                Direction::Forward => at.checked_add(1),
                Direction::Backward => at.checked_sub(1),
            };
            let Some((next, neighbour)) = next.and_then(|next| Some((next, root.index.handle(next)?))) else {
                break;
            };
            let (low, high) = (start.min(neighbour.offset), end.max(neighbour.offset.saturating_add(neighbour.len)));
            if high - low > self.window {
                break;
            }
            (start, end, at) = (low, high, next);
        }
        self.window = WINDOW.min(self.window * 2);
        self.span.clear();
        if at == index {
            return;
        }
        // At most the window, which the last comparison has seen to.
        self.span.resize((end - start) as usize, 0);
        self.start = start;
        if table.read_at(&mut self.span, start).is_err() {
            self.span.clear();
        }
    }
}
