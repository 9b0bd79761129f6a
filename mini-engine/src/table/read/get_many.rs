//! Point reads of many keys: each data block that they need ([`WantedBlocks`]) is read once, and adjacent blocks in one call.
//!
//! All blocks are known before the first one is read. So if a block is not in the cache, it is read together with the wanted blocks after it that are
//! not in the cache either, up to 256 KiB. Each block is verified by itself: damage to one does not prevent reads of the others.

use std::ops::ControlFlow;

use crate::cache::CacheUse;
use crate::epoch::pin;
use crate::error::Result;
use crate::table::block::Block;
use crate::table::format::Handle;
use crate::table::index::Partition;
use crate::table::read::reader::TableEntry;
use crate::table::read::{BytesAhead, Group, Root, Table, WINDOW};
use crate::types::{Kind, SeqNo, Slice, entry_order};

impl Table {
    /// Like [`Table::get`] for each of `keys`, which must ascend: passes each result with the key's position to `found`, until `found` returns
    /// `Break`. If a partition covers several keys, it is looked up once, and its filter is probed for all of them at once. Each data block is looked
    /// up once, and adjacent blocks are read in one call ([`WantedBlocks`]).
    ///
    /// # Errors
    /// The error of [`Table::get`] for the first key that has one.
    pub(crate) fn get_many(
        &self,
        keys: &[&[u8]],
        hashes: &[u64],
        seqno: SeqNo,
        mut found: impl FnMut(usize, Kind, Slice) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        let root = self.root()?;
        let (mut from, mut passing) = (0, Vec::new());
        while let Some(&first) = keys.get(from) {
            let at = root.index.find(first, seqno);
            let (Some(partition), Some((fence, upto))) =
                (self.partition(root, at, CacheUse::Fill)?, root.index.fence(at))
            else {
                break;
            };
            let reaches = |key: &&&[u8]| entry_order((key, seqno), (&fence, upto)).is_le();
            let count = keys.split_at(from).1.iter().take_while(reaches).count();
            let to = from + count.max(1);
            let asked = match hashes.get(from..to).unwrap_or_default() {
                // This case is common if the keys are few and random.
                [hash] => match self.get_within(root, &partition, first, *hash, seqno)? {
                    Some((kind, _, value)) => found(from, kind, value),
                    None => ControlFlow::Continue(()),
                },
                hashes => {
                    passing.clear();
                    self.pass_filter(&partition, from, hashes, &mut passing);
                    self.get_passing((root, partition.group()), keys, &passing, seqno, &mut found)?
                }
            };
            if asked.is_break() {
                return Ok(asked);
            }
            from = to;
        }
        Ok(ControlFlow::Continue(()))
    }

    /// The positions, from `from` on, of the hashes that pass the filter; all of them if there is no filter.
    fn pass_filter(&self, partition: &Partition, from: usize, hashes: &[u64], passing: &mut Vec<usize>) {
        let Some(filter) = partition.filter() else { return passing.extend(from..from + hashes.len()) };
        filter.may_contain_many(hashes, passing);
        passing.iter_mut().for_each(|at| *at += from);
        self.counters().filter_negatives.add((hashes.len() - passing.len()) as u64);
    }

    /// Searches for the keys at these positions, all of which belong to the partition.
    fn get_passing(
        &self,
        (root, partition): (&Root, &Group),
        keys: &[&[u8]],
        passing: &[usize],
        seqno: SeqNo,
        found: &mut impl FnMut(usize, Kind, Slice) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        let place = |&at: &usize| Some((at, partition.index.locate(keys.get(at)?, seqno)?));
        let places: Vec<(usize, (usize, Handle))> = passing.iter().filter_map(place).collect();
        let mut wanted: Vec<(usize, Handle)> = places.iter().map(|(_, place)| *place).collect();
        wanted.dedup();
        self.counters().get_blocks.add(wanted.len() as u64);
        let (mut blocks, mut useless) = (WantedBlocks::new(self, root, partition, &wanted), 0);
        let (mut rest, mut asked) = (&places[..], ControlFlow::Continue(()));
        for (nth, &(index, handle)) in wanted.iter().enumerate() {
            let here = rest.iter().take_while(|(_, (_, place))| *place == handle).count();
            let (now, later) = rest.split_at(here);
            rest = later;
            let mut search = |get: &dyn Fn(&[u8]) -> Result<Option<TableEntry>>| {
                for &(at, _) in now {
                    let Some(&key) = keys.get(at).filter(|_| asked.is_continue()) else { break };
                    match get(key)? {
                        Some((kind, _, value)) => asked = found(at, kind, value),
                        None => useless += 1,
                    }
                }
                Ok(())
            };
            let pinned = pin();
            if let Some(block) = self.cached(&pinned, root, partition, index) {
                search(&|key| self.get_from(partition, (index, &*block), key, seqno))?;
            } else {
                drop(pinned);
                let Some(block) = blocks.block(nth)? else { break };
                search(&|key| {
                    let place = self.look_up(handle, &block, key, seqno)?;
                    Ok(place.and_then(|place| place.with_value(|value| block.slice(value))))
                })?;
            }
            if asked.is_break() {
                break;
            }
        }
        if useless > 0 && partition.filter().is_some() {
            self.counters().filter_false_positives.add(useless);
        }
        Ok(asked)
    }
}

/// The wanted blocks by their index in the partition and their position, ascending.
pub(crate) struct WantedBlocks<'a> {
    table: &'a Table,
    root: &'a Root,
    partition: &'a Group,
    wanted: &'a [(usize, Handle)],
    ahead: BytesAhead,
}

impl<'a> WantedBlocks<'a> {
    pub(crate) fn new(table: &'a Table, root: &'a Root, partition: &'a Group, wanted: &'a [(usize, Handle)]) -> Self {
        Self { table, root, partition, wanted, ahead: BytesAhead::default() }
    }

    /// The `nth` of the wanted blocks.
    pub(crate) fn block(&mut self, nth: usize) -> Result<Option<Block>> {
        let Some(&(at, handle)) = self.wanted.get(nth) else { return Ok(None) };
        if let Some(block) = self.table.block_in_memory(self.root, self.partition, (at, handle))? {
            return Ok(Some(block));
        }
        if self.ahead.get(handle).is_none() {
            self.table.note_use();
            self.read_from(nth);
        }
        let block = self.ahead.block(self.table, handle)?;
        Ok(Some(self.table.keep(self.partition, (at, handle), block)))
    }

    /// Reads the `nth` block and the following wanted ones that are not in memory; nothing if there are none. An error is ignored here: the later
    /// read of each single block will return the errors of that block.
    fn read_from(&mut self, nth: usize) {
        self.ahead.clear();
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
            self.ahead.read(self.table, first.offset, end - first.offset);
        }
    }
}
