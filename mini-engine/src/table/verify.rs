//! Reads a whole table and checks everything that its parts say about each other.

use super::entry::RESTART_INTERVAL;
use super::filter::Filter;
use super::format::Handle;
use super::partition::Partition;
use super::properties::Properties;
use super::reader::Table;
use super::root::Root;
use crate::cache::CacheUse;
use crate::codec;
use crate::error::{Error, Result};
use crate::types::{MAX_SEQNO, SeqNo, entry_order};

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
    /// both sides of it, each key against the filter of its partition, that the groups of partitions follow each other without
    /// gaps; then the counts and bounds against the properties. Of a narrowed table those blocks are left out in which no key from
    /// `from` on can be: nothing reads them, so damage there is no loss. Nothing is read from the cache or left there.
    ///
    /// # Errors
    /// The first thing found wrong, as [`Error::Corruption`]; [`Error::Io`].
    pub(super) fn verify(&self, from: Option<&[u8]>) -> Result<TableReport> {
        let root = self.root()?;
        let mut verifier = Verifier { table: self, seen: Properties::default(), last_seqno: 0, fence: None };
        let first = from.map_or(0, |from| root.index.find(from, MAX_SEQNO));
        let (mut blocks, mut end, mut is_whole) = (0, None, first == 0);
        for at in first..root.index.len() {
            let Some(partition) = self.partition(root, at, CacheUse::Bypass)? else { break };
            let expected = end.unwrap_or(if at == 0 { 0 } else { partition.start() });
            if partition.start() != expected {
                return Err(self.gap(root, at, expected, partition.start()));
            }
            let skipped = from.filter(|_| at == first).map_or(0, |from| partition.find(from, MAX_SEQNO));
            is_whole &= skipped == 0;
            (skipped..partition.len()).try_for_each(|block| verifier.verify_block(&partition, block))?;
            blocks += (partition.len() - skipped.min(partition.len())) as u64;
            end = Some(partition.end());
        }
        if let Some(end) = end.filter(|end| *end != root.data_end) {
            return Err(self.gap(root, root.index.len() - 1, root.data_end, end));
        }
        let mut seen = verifier.seen;
        seen.cover(&root.range_tombstones);
        let agrees = if is_whole { seen == root.properties } else { seen.is_end_of(&root.properties) };
        if !agrees {
            let what = format!("properties: expected {seen:?} from the entries, found {:?}", root.properties);
            return Err(Error::corruption(&self.path(), self.meta().size, what));
        }
        Ok(TableReport { blocks, entries: seen.entries, bytes: self.meta().size })
    }

    /// Data blocks that no partition leads to, or two do.
    fn gap(&self, root: &Root, partition: usize, expected: u64, found: u64) -> Error {
        let offset = root.index.handle(partition).map_or(0, |handle| handle.offset);
        let what = format!("groups of data blocks without gaps: expected one to meet {expected}, found {found}");
        Error::corruption(&self.path(), offset, what)
    }
}

/// What the entries so far say.
struct Verifier<'a> {
    table: &'a Table,
    seen: Properties,
    last_seqno: SeqNo,
    /// The fence of the block before.
    fence: Option<(Vec<u8>, SeqNo)>,
}

impl Verifier<'_> {
    fn verify_block(&mut self, partition: &Partition, block: usize) -> Result<()> {
        let table = self.table;
        let (Some(handle), Some(fence)) = (partition.handle(block), partition.fence(block)) else { return Ok(()) };
        let malformed = |error| table.malformed(handle, error);
        let mut cursor = table.cursor(handle, table.read_block(handle)?)?;
        table.counters().verify_bytes_read.add(handle.len);
        cursor.seek_to_first().map_err(malformed)?;
        let (mut starts, mut is_first) = (Vec::new(), block == 0);
        while cursor.valid() {
            starts.push(cursor.offset());
            let entry = (cursor.key(), cursor.seqno());
            if let Some(what) = self.wrong_place(entry, fence) {
                return Err(self.corrupt(handle, entry, what));
            }
            let is_new = self.seen.count(entry.0, entry.1, cursor.kind());
            let denies = |filter: Filter<'_>| !filter.may_contain(codec::key_hash(entry.0));
            // A key that goes on here from the partition before is in both filters (P1).
            if (is_new || is_first) && partition.filter().is_some_and(denies) {
                return Err(self.corrupt(handle, entry, "entry whose key the filter denies"));
            }
            (self.last_seqno, is_first) = (entry.1, false);
            cursor.next().map_err(malformed)?;
        }
        self.fence = Some((fence.0.to_vec(), fence.1));
        let restarts: Vec<usize> = starts.into_iter().step_by(RESTART_INTERVAL).collect();
        cursor.check_restarts(&restarts).map_err(malformed)
    }

    /// What is wrong with the place of an entry of the block that has this fence.
    fn wrong_place(&self, entry: (&[u8], SeqNo), fence: (&[u8], SeqNo)) -> Option<&'static str> {
        let last = (&self.seen.largest[..], self.last_seqno);
        let before = self.fence.as_ref().map(|(key, seqno)| (&key[..], *seqno));
        if self.seen.entries > 0 && entry_order(last, entry).is_ge() {
            return Some("entry not after the one before it");
        }
        if entry_order(entry, fence).is_gt() {
            return Some("entry after its block's fence");
        }
        before
            .is_some_and(|fence| entry_order(entry, fence).is_le())
            .then_some("entry not after the fence of the block before")
    }

    fn corrupt(&self, handle: Handle, (key, seqno): (&[u8], SeqNo), what: &str) -> Error {
        let what = format!("{what}: \"{}\" at seqno {seqno}", key.escape_ascii());
        Error::corruption(&self.table.path(), handle.offset, what)
    }
}
