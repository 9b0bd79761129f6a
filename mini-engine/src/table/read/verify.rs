//! Reads a whole table, checks that its parts agree with each other, and continues after damage.

use crate::cache::CacheUse;
use crate::codec;
use crate::error::{Error, Result};
use crate::iter::EntryIter;
use crate::table::format::{Handle, Properties};
use crate::table::index::{Filter, Partition};
use crate::table::read::{Root, Table};
use crate::table::salvage::Lost;
use crate::types::{MAX_SEQNO, SeqNo, Slice, entry_order};

/// The amounts that were read and found sound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TableReport {
    pub(crate) blocks: u64,
    /// Entries, tombstones included.
    pub(crate) entries: u64,
    pub(crate) tombstones: u64,
}

impl Table {
    /// Checks every block: its checksum, the order of entries within and across blocks, its restarts, each fence against the entries on both sides
    /// of it, each key against the filter of its partition, and that the groups of partitions follow each other without gaps. Then, if there is no
    /// other problem, the counts and bounds are checked against the properties. Adds all problems to `problems`: each unreadable part that leads to
    /// data blocks, and each damaged data block, once. For a narrowed table, blocks that can only hold keys below `from` are left out: nothing
    /// reads them, so damage there is no loss. Reads everything from the file, and puts nothing into the cache.
    pub(crate) fn verify_all(&self, from: Option<&[u8]>, problems: &mut Vec<Error>) -> TableReport {
        let (seen, blocks, found) = (Properties::default(), 0, Vec::new());
        let mut verifier = Verifier { table: self, seen, last_seqno: 0, fence: None, blocks, found };
        match self.file().map(|file| Root::read(&**file, self.path(), self.number())) {
            Ok(root) => {
                let root = root.and_then(|(root, found)| self.meta().check_is(&found, self.path()).map(|()| root));
                let verified = root.map(|root| verifier.verify_partitions(&root, from));
                let leads_everywhere = verified.unwrap_or_else(|error| {
                    verifier.found.push(error);
                    false
                });
                if !leads_everywhere {
                    verifier.find_further(from);
                }
            }
            Err(error) => verifier.found.push(error),
        }
        let Verifier { seen, blocks, found, .. } = verifier;
        problems.extend(found);
        TableReport { blocks, entries: seen.entries, tombstones: seen.tombstones }
    }

    /// Like [`Table::verify_all`].
    ///
    /// # Errors
    /// The first problem, as [`Error::Corruption`]; [`Error::Io`].
    pub(crate) fn verify(&self, from: Option<&[u8]>) -> Result<TableReport> {
        let mut problems = Vec::new();
        let report = self.verify_all(from, &mut problems);
        problems.into_iter().next().map_or(Ok(report), Err)
    }

    /// The error for data blocks to which no partition leads, or two.
    fn gap(&self, root: &Root, partition: usize, expected: u64, found: u64) -> Error {
        let offset = root.index.handle(partition).map_or(0, |handle| handle.offset);
        let what = format!("groups of data blocks without gaps: expected one to meet {expected}, found {found}");
        Error::corruption(self.path(), offset, what)
    }
}

/// The state of a verification.
struct Verifier<'a> {
    table: &'a Table,
    seen: Properties,
    last_seqno: SeqNo,
    /// The fence of the block before.
    fence: Option<(Vec<u8>, SeqNo)>,
    /// The blocks so far that are sound.
    blocks: u64,
    /// The problems so far.
    found: Vec<Error>,
}

impl Verifier<'_> {
    /// Checks the partitions of `root` and all their blocks. Returns whether each partition could be read.
    fn verify_partitions(&mut self, root: &Root, from: Option<&[u8]>) -> bool {
        let first = from.map_or(0, |from| root.index.find(from, MAX_SEQNO));
        let (mut leads_everywhere, mut is_whole) = (true, first == 0);
        // The required start of the next group; unknown after an unreadable partition.
        let mut start = (first == 0).then_some(0);
        for at in first..root.index.len() {
            let partition = match self.table.partition(root, at, CacheUse::Bypass) {
                Ok(Some(partition)) => partition,
                Ok(None) => break,
                Err(error) => {
                    self.found.push(error);
                    (leads_everywhere, start) = (false, None);
                    self.fence = root.index.fence(at).map(|(key, seqno)| (key.into_owned(), seqno));
                    continue;
                }
            };
            if let Some(start) = start.filter(|start| *start != partition.index.start) {
                self.found.push(self.table.gap(root, at, start, partition.index.start));
            }
            let skipped = from.filter(|_| at == first).map_or(0, |from| partition.index.find(from, MAX_SEQNO));
            is_whole &= skipped == 0;
            for block in skipped..partition.index.len() {
                match self.verify_block(&partition, block) {
                    Ok(()) => self.blocks += 1,
                    Err(error) => self.found.push(error),
                }
                self.fence = partition.index.fence(block).map(|(key, seqno)| (key.into_owned(), seqno));
            }
            start = Some(partition.index.end());
        }
        if let Some(end) = start.filter(|end| *end != root.data_end && first < root.index.len()) {
            self.found.push(self.table.gap(root, root.index.len() - 1, root.data_end, end));
        }
        if self.found.is_empty() {
            self.found.extend(self.verify_properties(root, is_whole).err());
        }
        leads_everywhere
    }

    fn verify_properties(&self, root: &Root, is_whole: bool) -> Result<()> {
        let mut seen = self.seen.clone();
        seen.finish(&root.range_tombstones);
        let agrees = if is_whole { seen == root.properties } else { seen.is_end_of(&root.properties) };
        if agrees {
            return Ok(());
        }
        let what = format!("properties: expected {seen:?} from the entries, found {:?}", root.properties);
        Err(Error::corruption(self.table.path(), self.table.meta().size, what))
    }

    /// Finds the damaged data blocks to which no readable part leads, as salvage does. Each problem is reported once.
    fn find_further(&mut self, from: Option<&[u8]>) {
        let (table, lost) = (self.table, Lost::default());
        let meta = from.map_or(table.meta().clone(), |from| table.meta().narrowed_to(Slice::from(from)));
        let salvaged = table.salvage(meta, lost.clone()).and_then(|mut entries| {
            entries.seek_to_first()?;
            while entries.valid() {
                entries.next()?;
            }
            Ok(())
        });
        let place = |error: &Error| if let Error::Corruption { offset, .. } = error { Some(*offset) } else { None };
        let further = lost.take().into_iter().map(|lost| lost.cause).chain(salvaged.err());
        for error in further {
            if !self.found.iter().any(|found| place(found) == place(&error)) {
                self.found.push(error);
            }
        }
    }

    fn verify_block(&mut self, partition: &Partition, block: usize) -> Result<()> {
        let table = self.table;
        let (Some(handle), Some(fence)) = (partition.index.handle(block), partition.index.fence(block)) else {
            return Ok(());
        };
        let mut cursor = table.cursor(handle, table.read_block(handle)?)?;
        table.counters().verify_bytes_read.add(handle.len);
        let mut is_first = block == 0;
        cursor.check(
            |malformed| table.malformed(handle, malformed),
            |cursor| {
                let entry = (cursor.key(), cursor.seqno());
                if let Some(what) = self.wrong_place(entry, (&fence.0, fence.1)) {
                    return Err(self.corrupt(handle, entry, what));
                }
                let is_new = self.seen.count(entry.0, entry.1, cursor.kind(), cursor.value());
                let denies = |filter: Filter<'_>| !filter.may_contain(codec::key_hash(entry.0));
                // A key that continues here from the previous partition is in both filters (partition G1).
                if (is_new || is_first) && partition.filter().is_some_and(denies) {
                    return Err(self.corrupt(handle, entry, "entry whose key the filter denies"));
                }
                (self.last_seqno, is_first) = (entry.1, false);
                Ok(())
            },
        )
    }

    /// The problem with the place of an entry in the block with this fence, if any.
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
        Error::corruption(self.table.path(), handle.offset, what)
    }
}
