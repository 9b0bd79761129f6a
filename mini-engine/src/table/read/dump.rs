//! Dumps the contents of a table: its parts, its partitions, their data blocks, their entries. Damage in one does not hide the others.

use std::ops::ControlFlow;

use crate::cache::CacheUse;
use crate::error::{Error, Result};
use crate::table::index::Partition;
use crate::table::read::{Root, Table};
use crate::types::{Kind, Lines, Shown, ShownKey, split_expiry};

impl Table {
    /// Writes a line for the table, each partition, each data block and each entry.
    ///
    /// # Errors
    /// The first damage, after the lines of everything that could be read.
    pub(crate) fn dump(&self, lines: &mut Lines<'_>) -> Result<()> {
        let root = self.root()?;
        let mut dump = Dump { table: self, blocks: 0, first_error: None };
        // It does not matter whether everything was dumped or the receiver wanted no more.
        let _: ControlFlow<()> = dump.table(root, lines);
        dump.first_error.map_or(Ok(()), Err)
    }
}

struct Dump<'a> {
    table: &'a Table,
    /// The number of data blocks so far.
    blocks: usize,
    first_error: Option<Error>,
}

impl Dump<'_> {
    fn table(&mut self, root: &Root, lines: &mut Lines<'_>) -> ControlFlow<()> {
        let meta = self.table.meta();
        lines(format_args!(
            "table {}: {} bytes, {} partitions, {} entries of {} keys, {} of them tombstones, {}{}seqnos {} to {}, keys {} to {}",
            meta.number,
            meta.size,
            root.index.len(),
            meta.entries,
            root.properties.keys,
            meta.tombstones,
            meta.expiring.in_words(),
            meta.ranges_in_words(),
            meta.min_seqno,
            meta.max_seqno,
            ShownKey(&meta.smallest),
            ShownKey(&meta.largest)
        ))?;
        for part in root.range_tombstones.parts() {
            let seqnos: Vec<String> = part.seqnos().map(|seqno| seqno.to_string()).collect();
            let (start, end) = (ShownKey(part.start), ShownKey(part.end));
            lines(format_args!("range {start} to before {end} removed at {}", seqnos.join(", ")))?;
        }
        for at in 0..root.index.len() {
            match self.table.partition(root, at, CacheUse::Bypass) {
                Ok(Some(partition)) => self.partition(root, at, &partition, lines)?,
                Ok(None) => {}
                Err(error) => self.damaged(format_args!("partition {at}"), error, lines)?,
            }
        }
        ControlFlow::Continue(())
    }

    fn partition(&mut self, root: &Root, at: usize, partition: &Partition, lines: &mut Lines<'_>) -> ControlFlow<()> {
        let Some((fence, seqno)) = root.index.fence(at) else { return ControlFlow::Continue(()) };
        let (blocks, filter, fence) = (partition.index.len(), partition.filter_len(), ShownKey(&fence));
        lines(format_args!(
            "partition {at}: {blocks} data blocks, filter of {filter} bytes, fence {fence} at seqno {seqno}"
        ))?;
        for block in 0..blocks {
            let number = self.blocks;
            match self.block(partition, block, lines) {
                Ok(told) => told?,
                Err(error) => self.damaged(format_args!("data block {number}"), error, lines)?,
            }
            self.blocks += 1;
        }
        ControlFlow::Continue(())
    }

    fn block(&self, partition: &Partition, block: usize, lines: &mut Lines<'_>) -> Result<ControlFlow<()>> {
        let (Some(handle), Some((fence, seqno))) = (partition.index.handle(block), partition.index.fence(block)) else {
            return Ok(ControlFlow::Continue(()));
        };
        let malformed = |error| self.table.malformed(handle, error);
        let mut cursor = self.table.cursor(handle, self.table.read_block(handle)?)?;
        cursor.seek_to_first().map_err(malformed)?;
        let (number, at, len) = (self.blocks, handle.offset, handle.len);
        let mut told = lines(format_args!(
            "data block {number} at {at}: {len} bytes, fence {} at seqno {seqno}",
            ShownKey(&fence)
        ));
        while told.is_continue() && cursor.valid() {
            let (key, seqno) = (ShownKey(cursor.key()), cursor.seqno());
            told = match cursor.kind() {
                Kind::Value => lines(format_args!("  {key} at {seqno} = {}", Shown(&cursor.value_slice()))),
                Kind::Tombstone => lines(format_args!("  {key} at {seqno} removed")),
                Kind::Expiring => {
                    let (at, value) = split_expiry(cursor.value());
                    lines(format_args!("  {key} at {seqno} = {}, expires at {at}", Shown(value)))
                }
            };
            cursor.next().map_err(malformed)?;
        }
        Ok(told)
    }

    fn damaged(&mut self, what: std::fmt::Arguments<'_>, error: Error, lines: &mut Lines<'_>) -> ControlFlow<()> {
        let told = lines(format_args!("{what} is damaged: {error}"));
        self.first_error.get_or_insert(error);
        told
    }
}
