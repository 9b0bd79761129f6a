//! Shows a table: its properties, its partitions, their data blocks, their entries.

use std::fmt;
use std::ops::{ControlFlow, Range};
use std::path::Path;
use std::sync::Arc;

use super::{Entries, Entry, PartKind, Parts, Show, kind, wrong_name};
use crate::codec::Malformed;
use crate::db::care::salvage::{Lost, SalvageIter};
use crate::error::{Error, Result};
use crate::fs::FileSystem;
use crate::iter::EntryIter;
use crate::manifest::FileKind;
use crate::table::{self, Block, Cursor, FencePlace, Partition, Properties, Source, Walk};
use crate::types::{Kind, MAX_SEQNO, ShownKey};

/// Shows the contents of the table at `path` in `fs`: its counts and bounds, each data block with its offset and fence, and each entry.
///
/// # Errors
/// The same as for [`log`](super::log()).
pub fn table(fs: &Arc<dyn FileSystem>, path: impl AsRef<Path>, parts: &mut Parts<'_>) -> Result<()> {
    let path = path.as_ref();
    let number = number_of(path)?;
    let file = fs.open(path).map_err(Error::io("open", path))?;
    let mut walk = Walk::open(Source::Open(file), path.to_path_buf(), number, None)?;
    let mut shown = ShownTable { path, partition: None, blocks: 0, show: Show::new(parts) };
    let mut going = shown.head(&walk);
    while going.is_continue() {
        let Some(part) = walk.next()? else { return shown.show.damage.map_or(Ok(()), Err) };
        going = shown.part(part);
    }
    Ok(())
}

/// Passes to `entries` the ranges that the table at `path` in `fs` removes, and then the newest version of each key outside these ranges, skipping
/// damage.
///
/// # Errors
/// The same as for [`log`](super::log()).
pub fn table_entries(fs: &Arc<dyn FileSystem>, path: impl AsRef<Path>, entries: &mut Entries<'_>) -> Result<()> {
    let path = path.as_ref();
    let lost = Lost::default();
    let mut table = SalvageIter::open(fs.clone(), path.to_path_buf(), number_of(path)?, None, lost.clone())?;
    let ranges = table.range_tombstones();
    for part in ranges.parts() {
        let seqno = part.seqnos().next().unwrap_or(0);
        if entries(Entry::new(seqno, part.start, Some(part.end), (Kind::Tombstone, &[]))).is_break() {
            return Ok(());
        }
    }
    table.seek_to_first()?;
    while table.valid() {
        let (key, seqno) = (table.key(), table.seqno());
        let is_shown = !table.repeats() && ranges.covering(key, MAX_SEQNO) < Some(seqno);
        if is_shown && entries(Entry::new(seqno, key, None, (table.kind(), table.value()))).is_break() {
            return Ok(());
        }
        table.next()?;
    }
    lost.take().into_iter().next().map_or(Ok(()), |lost| Err(lost.cause))
}

fn number_of(path: &Path) -> Result<u64> {
    match kind(path) {
        Some(FileKind::Table(number)) => Ok(number),
        _ => Err(wrong_name(path, "000012.sst")),
    }
}

struct ShownTable<'a> {
    path: &'a Path,
    partition: Option<Partition>,
    /// The number of data blocks so far.
    blocks: usize,
    show: Show<'a>,
}

impl ShownTable<'_> {
    /// Shows the counts and bounds, and the range tombstones.
    fn head(&mut self, walk: &Walk) -> ControlFlow<()> {
        if let (Some(meta), Some(Properties { keys, .. })) = (&walk.meta, &walk.properties) {
            let partitions = walk.partition_count();
            self.show.part(
                PartKind::Table,
                0..meta.size,
                format_args!("{meta}, {keys} keys, {partitions} partitions"),
            )?;
        }
        for part in walk.range_tombstones.iter().flat_map(|ranges| ranges.parts()) {
            for seqno in part.seqnos() {
                self.show.entry(0, Entry::new(seqno, part.start, Some(part.end), (Kind::Tombstone, &[])))?;
            }
        }
        ControlFlow::Continue(())
    }

    fn part(&mut self, part: table::Part) -> ControlFlow<()> {
        match part {
            table::Part::Partition(at, partition) => {
                let index = &partition.index;
                let (bytes, blocks, filter) = (index.start..index.end(), index.len(), partition.filter_len());
                let fence = Fence(index.last());
                self.show.part(
                    PartKind::Partition,
                    bytes,
                    format_args!("partition {at}: {blocks} data blocks, filter of {filter} bytes{fence}"),
                )?;
                self.partition = Some(partition);
                ControlFlow::Continue(())
            }
            table::Part::Block { block, bytes, at } => self.block(block, bytes, at),
            table::Part::Damage(error) => {
                let at = if let Error::Corruption { offset, .. } = error { offset } else { 0 };
                self.show.damage(at..at, format_args!("table"), error)
            }
            table::Part::Lost { bytes, cause, .. } => {
                self.blocks += 1;
                self.show.damage(bytes, format_args!("data block {}", self.blocks - 1), cause)
            }
        }
    }

    fn block(&mut self, block: Block, bytes: Range<u64>, at: Option<usize>) -> ControlFlow<()> {
        let (number, offset, len) = (self.blocks, bytes.start, bytes.end - bytes.start);
        self.blocks += 1;
        let fence = Fence(at.and_then(|at| self.partition.as_ref()?.index.fence(at)));
        let text = format_args!("data block {number} at {offset}: {len} bytes{fence}");
        self.show.part(PartKind::Block, bytes.clone(), text)?;
        let mut show = |block| {
            let mut cursor = Cursor::checked(block)?;
            cursor.seek_to_first();
            while cursor.valid() {
                let entry = Entry::new(cursor.seqno(), cursor.key(), None, (cursor.kind(), cursor.value()));
                if self.show.entry(offset, entry).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
                cursor.next();
            }
            Ok(ControlFlow::Continue(()))
        };
        show(block).unwrap_or_else(|malformed: Malformed| {
            let error = malformed.in_file(self.path, offset);
            self.show.damage(bytes, format_args!("data block {number}"), error)
        })
    }
}

/// Displays the fence of a block or a partition, if the fence is known.
struct Fence<'a>(Option<FencePlace<'a>>);

impl fmt::Display for Fence<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_ref().map_or(Ok(()), |(key, seqno)| write!(f, ", fence {} at seqno {seqno}", ShownKey(key)))
    }
}
