//! [`WantedBlocks`]: data blocks of a partition that a batch of point reads wants, each read once, and neighbours in one call.
//!
//! The blocks are known before the first is read. So a block that is not in the cache is read together with those behind it that are wanted
//! too and not in the cache either, up to 256 KiB. Each is checked by itself: damage to one does not stop reads of the others.

use super::format::Handle;
use super::frame::Block;
use super::partition::Partition;
use super::readahead::{Span, WINDOW};
use super::reader::Table;
use super::root::Root;
use crate::cache::CachedPartition;
use crate::error::Result;

/// Blocks by their index in the partition and their place, ascending.
pub(super) struct WantedBlocks<'a> {
    table: &'a Table,
    root: &'a Root,
    partition: &'a CachedPartition<Partition>,
    wanted: &'a [(usize, Handle)],
    span: Span,
}

impl<'a> WantedBlocks<'a> {
    pub(super) fn new(
        table: &'a Table,
        root: &'a Root,
        partition: &'a CachedPartition<Partition>,
        wanted: &'a [(usize, Handle)],
    ) -> Self {
        Self { table, root, partition, wanted, span: Span::default() }
    }

    /// The `nth` of the wanted blocks.
    pub(super) fn block(&mut self, nth: usize) -> Result<Option<Block>> {
        let Some(&(at, handle)) = self.wanted.get(nth) else { return Ok(None) };
        if let Some(block) = self.table.mapped_block(self.root, self.partition, (at, handle))? {
            return Ok(Some(block));
        }
        if let Some(block) = self.table.cached(self.partition, at) {
            return Ok(Some(block));
        }
        if self.span.get(handle).is_none() {
            self.read_from(nth);
        }
        let block = match self.span.get(handle) {
            Some(bytes) => self.table.decode_block(handle, bytes)?,
            None => self.table.read_block(handle)?,
        };
        self.table.keep(self.partition, (at, handle), &block);
        Ok(Some(block))
    }

    /// Reads the `nth` block and those right behind it that are to be read too; nothing if there are none. An error is not reported:
    /// reading each block alone will tell which it is of.
    fn read_from(&mut self, nth: usize) {
        self.span.clear();
        let Some(((_, first), rest)) = self.wanted.split_at_checked(nth).and_then(|(_, from)| from.split_first())
        else {
            return;
        };
        let mut end = first.end().unwrap_or(first.offset);
        for (at, handle) in rest {
            let next = handle.end().filter(|next| handle.offset == end && next - first.offset <= WINDOW);
            let Some(next) = next.filter(|_| !self.table.is_cached(self.partition, *at)) else { break };
            end = next;
        }
        if end - first.offset > first.len {
            self.span.read(self.table, first.offset, end - first.offset);
        }
    }
}
