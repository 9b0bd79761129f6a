//! Reads a whole table and checks everything that its parts say about each other.

use std::cmp::Ordering;

use super::block::RESTART_INTERVAL;
use super::format::Handle;
use super::properties::Properties;
use super::reader::Table;
use super::root::Root;
use crate::codec;
use crate::error::{Error, Result};
use crate::types::{Kind, MAX_SEQNO, SeqNo, entry_order};

/// What was read and found sound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TableReport {
    /// Data blocks.
    pub(crate) blocks: u64,
    /// Entries, tombstones included.
    pub(crate) entries: u64,
    /// Bytes of the file.
    pub(crate) bytes: u64,
}

impl Table {
    /// Checks every block: its checksum, the order of entries within and across blocks, its restarts, each fence against the entries on
    /// both sides of it, each key against the filter; then the counts and bounds against the properties.
    /// Of a narrowed table those blocks are left out in which no key from `from` on can be: nothing reads them, so damage there is no
    /// loss. Nothing is read from the cache or left there.
    ///
    /// # Errors
    /// The first thing found wrong, as [`Error::Corruption`]; [`Error::Io`].
    pub(super) fn verify(&self, from: Option<&[u8]>) -> Result<TableReport> {
        let mut seen = Seen { properties: Properties::default(), last_seqno: 0 };
        let root = self.root()?;
        let first = from.map_or(0, |from| root.index.find(from, MAX_SEQNO));
        for index in first..root.index.len() {
            verify_block(self, &root, index, &mut seen)?;
        }
        let blocks = root.index.len().saturating_sub(first);
        let agrees = match first {
            0 => seen.properties == root.properties,
            _ => seen.properties.is_end_of(&root.properties),
        };
        if !agrees {
            let what =
                format!("properties: expected {:?} from the entries, found {:?}", seen.properties, root.properties);
            return Err(Error::corruption(&self.path(), self.meta().size, what));
        }
        Ok(TableReport { blocks: blocks as u64, entries: seen.properties.entries, bytes: self.meta().size })
    }
}

/// What the entries so far say.
struct Seen {
    properties: Properties,
    last_seqno: SeqNo,
}

fn verify_block(table: &Table, root: &Root, index: usize, seen: &mut Seen) -> Result<()> {
    let Some(handle) = root.index.handle(index) else { return Ok(()) };
    let malformed = |error| table.malformed(handle, error);
    let mut cursor = table.cursor(handle, table.read_block(handle)?)?;
    cursor.seek_to_first().map_err(malformed)?;
    let mut starts = Vec::new();
    while cursor.valid() {
        starts.push(cursor.offset());
        verify_entry(table, root, (index, handle), (cursor.key(), cursor.seqno(), cursor.kind()), seen)?;
        cursor.next().map_err(malformed)?;
    }
    let restarts: Vec<usize> = starts.into_iter().step_by(RESTART_INTERVAL).collect();
    cursor.check_restarts(&restarts).map_err(malformed)
}

fn verify_entry(
    table: &Table,
    root: &Root,
    (index, handle): (usize, Handle),
    (key, seqno, kind): (&[u8], SeqNo, Kind),
    seen: &mut Seen,
) -> Result<()> {
    let corrupt = |what: &str| {
        let what = format!("{what}: \"{}\" at seqno {seqno}", key.escape_ascii());
        Err(Error::corruption(&table.path(), handle.offset, what))
    };
    let last = (&seen.properties.largest[..], seen.last_seqno);
    if seen.properties.entries > 0 && entry_order(last, (key, seqno)) != Ordering::Less {
        return corrupt("entry not after the one before it");
    }
    if root.index.fence(index).is_none_or(|fence| entry_order((key, seqno), fence) == Ordering::Greater) {
        return corrupt("entry after its block's fence");
    }
    let fence_before = index.checked_sub(1).and_then(|before| root.index.fence(before));
    if fence_before.is_some_and(|fence| entry_order((key, seqno), fence) != Ordering::Greater) {
        return corrupt("entry not after the fence of the block before");
    }
    let new_key = seen.properties.count(key, seqno, kind);
    if new_key && root.filter.as_ref().is_some_and(|filter| !filter.may_contain(codec::key_hash(key))) {
        return corrupt("entry whose key the filter denies");
    }
    seen.last_seqno = seqno;
    Ok(())
}
