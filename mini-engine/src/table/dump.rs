//! Says what a table holds: its parts, its blocks, its entries. A damaged block does not hide the others.

use std::ops::ControlFlow;

use super::reader::Table;
use super::root::Root;
use crate::error::{Error, Result};
use crate::types::{Kind, Lines, Shown};

impl Table {
    /// Writes a line for the table, each data block and each entry.
    ///
    /// # Errors
    /// The first damage, after the lines of all that could be read.
    pub(crate) fn dump(&self, lines: &mut Lines<'_>) -> Result<()> {
        dump(self, lines)
    }
}

fn dump(table: &Table, lines: &mut Lines<'_>) -> Result<()> {
    let (meta, root) = (table.meta(), table.root()?);
    let told = lines(format_args!(
        "table {}: {} bytes, {} data blocks, {} entries of {} keys, {} of them tombstones, seqnos {} to {}, keys {} to {}",
        meta.number,
        meta.size,
        root.index.len(),
        meta.entries,
        root.properties.keys,
        meta.tombstones,
        meta.min_seqno,
        meta.max_seqno,
        Shown(&meta.smallest),
        Shown(&meta.largest)
    ));
    let mut first_error = None;
    if told.is_continue() {
        for index in 0..root.index.len() {
            match dump_block(table, &root, index, lines) {
                Ok(ControlFlow::Continue(())) => {}
                Ok(ControlFlow::Break(())) => break,
                Err(error) => {
                    let told = lines(format_args!("data block {index} is damaged: {error}"));
                    first_error.get_or_insert(error);
                    if told.is_break() {
                        break;
                    }
                }
            }
        }
    }
    first_error.map_or(Ok(()), |error: Error| Err(error))
}

fn dump_block(table: &Table, root: &Root, index: usize, lines: &mut Lines<'_>) -> Result<ControlFlow<()>> {
    let (Some(handle), Some((fence, seqno))) = (root.index.handle(index), root.index.fence(index)) else {
        return Ok(ControlFlow::Continue(()));
    };
    let malformed = |error| table.malformed(handle, error);
    let mut cursor = table.cursor(handle, table.read_block(handle)?)?;
    cursor.seek_to_first().map_err(malformed)?;
    let (at, len) = (handle.offset, handle.len);
    let mut told =
        lines(format_args!("data block {index} at {at}: {len} bytes, fence {} at seqno {seqno}", Shown(fence)));
    while told.is_continue() && cursor.valid() {
        let (key, seqno) = (Shown(cursor.key()), cursor.seqno());
        told = match cursor.kind() {
            Kind::Value => lines(format_args!("  {key} at {seqno} = {}", Shown(&cursor.value_slice()))),
            Kind::Tombstone => lines(format_args!("  {key} at {seqno} removed")),
        };
        cursor.next().map_err(malformed)?;
    }
    Ok(told)
}
