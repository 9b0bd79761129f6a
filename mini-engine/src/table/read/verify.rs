//! Reads a whole table, checks that its parts agree with each other, and continues after damage.

use std::sync::Arc;

use crate::codec;
use crate::error::{Error, Result};
use crate::table::block::{Block, Cursor};
use crate::table::format::{Handle, Properties};
use crate::table::index::{Filter, Partition};
use crate::table::read::Table;
use crate::table::walk::{Part, Source, Walk};
use crate::types::{RangeTombstones, SeqNo, Slice, entry_order};

/// The numbers of valid blocks and entries that were read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TableReport {
    pub(crate) blocks: u64,
    /// The number of entries, including tombstones.
    pub(crate) entries: u64,
    pub(crate) tombstones: u64,
}

impl Table {
    /// Checks every block: its checksum, the order of entries within and across blocks, its offsets, each fence against the entries on both sides of
    /// it, each key against the filter of its partition, and that the groups of partitions are adjacent without gaps. Then, if there is no other
    /// problem, the counts and bounds are checked against the properties. Adds all problems to `problems`: one for each unreadable part, and one for
    /// each damaged data block. For a narrowed table, blocks that can only contain keys below `from` are skipped: no read uses them, so damage to
    /// them loses nothing. Reads everything from the file, and puts nothing into the cache.
    pub(crate) fn verify_all(&self, from: Option<&[u8]>, problems: &mut Vec<Error>) -> TableReport {
        let mut verifier = Verifier {
            table: self,
            partition: None,
            seen: Properties::default(),
            last_seqno: 0,
            fence: None,
            blocks: 0,
            lost: Vec::new(),
            found: Vec::new(),
        };
        let verified = verifier.verify(from);
        let Verifier { seen, blocks, found, lost, .. } = verifier;
        problems.extend(found.into_iter().chain(lost).chain(verified.err()));
        TableReport { blocks, entries: seen.entries, tombstones: seen.tombstones }
    }

    /// Like [`Table::verify_all`], but returns a problem as an error.
    ///
    /// # Errors
    /// This is the first problem that is not damage, such as [`Error::Unsupported`], since it may be the only cause. If there is none, it is the
    /// first problem, as [`Error::Corruption`] or [`Error::Io`].
    pub(crate) fn verify(&self, from: Option<&[u8]>) -> Result<TableReport> {
        let mut problems = Vec::new();
        let report = self.verify_all(from, &mut problems);
        let first = problems.iter().position(|problem| !problem.is_damage()).unwrap_or(0);
        problems.into_iter().nth(first).map_or(Ok(report), Err)
    }
}

/// The state of a verification.
struct Verifier<'a> {
    table: &'a Table,
    partition: Option<Partition>,
    seen: Properties,
    last_seqno: SeqNo,
    /// The fence of the previous block.
    fence: Option<(Vec<u8>, SeqNo)>,
    /// The number of valid blocks so far.
    blocks: u64,
    /// The unreadable parts since the last block: whether they contain wanted keys is known when the next block is read.
    lost: Vec<Error>,
    /// The problems so far.
    found: Vec<Error>,
}

impl Verifier<'_> {
    fn verify(&mut self, from: Option<&[u8]>) -> Result<()> {
        let table = self.table;
        let source = Source::Open(Arc::clone(&*table.file()?));
        let mut walk = Walk::open(source, table.path().to_path_buf(), table.number(), from.map(Slice::from))?;
        walk.check_is(table.meta())?;
        while let Some(part) = walk.next()? {
            match part {
                Part::Partition(_, partition) => self.partition = Some(partition),
                Part::Damage(error) => self.found.push(error),
                Part::Lost { fence, cause, .. } => {
                    self.fence = fence.map(|(key, seqno)| (key.to_vec(), seqno));
                    self.lost.push(cause);
                }
                Part::Block { block, bytes, at } => {
                    let handle = Handle { offset: bytes.start, len: bytes.end - bytes.start };
                    let partition = self.partition.take();
                    let verified = self.verify_block((handle, block), from, partition.as_ref().zip(at));
                    let fence = partition.as_ref().zip(at).and_then(|(partition, at)| partition.index.fence(at));
                    self.fence = fence.map(|(key, seqno)| (key.into_owned(), seqno));
                    self.partition = partition;
                    match verified {
                        Ok(()) => self.blocks += 1,
                        Err(error) => self.found.push(error),
                    }
                }
            }
        }
        self.found.append(&mut self.lost);
        if self.found.is_empty() { self.verify_properties(&walk) } else { Ok(()) }
    }

    fn verify_properties(&self, walk: &Walk) -> Result<()> {
        let mut seen = self.seen.clone();
        seen.finish(walk.range_tombstones.as_ref().unwrap_or(&RangeTombstones::default()));
        let properties = walk.properties.as_ref();
        if properties
            .is_some_and(|properties| if walk.is_partial { seen.is_end_of(properties) } else { seen == *properties })
        {
            return Ok(());
        }
        let what = format!("properties: expected {seen:?} from the entries, found {properties:?}");
        Err(Error::corruption(self.table.path(), walk.size(), what))
    }

    /// Checks a block; `at` is its index in the partition to which it belongs, if there is one.
    fn verify_block(
        &mut self,
        (handle, block): (Handle, Block),
        from: Option<&[u8]>,
        place: Option<(&Partition, usize)>,
    ) -> Result<()> {
        let table = self.table;
        table.counters().verify_bytes_read.add(handle.len);
        let fence = place.and_then(|(partition, at)| partition.index.fence(at));
        let filter = place.and_then(|(partition, _)| partition.filter());
        let mut is_first = place.is_some_and(|(_, at)| at == 0);
        let mut cursor = Cursor::new(block).map_err(|malformed| table.malformed(handle, malformed))?;
        cursor.check(
            |malformed| table.malformed(handle, malformed),
            |cursor| {
                let entry = (cursor.key(), cursor.seqno());
                // The lost keys are at most this key.
                if from.is_none_or(|from| *entry.0 >= *from) {
                    self.found.append(&mut self.lost);
                }
                self.lost.clear();
                if let Some(what) = self.wrong_place(entry, fence.as_ref().map(|(key, seqno)| (&**key, *seqno))) {
                    return Err(self.corrupt(handle, entry, what));
                }
                let is_new = self.seen.count(entry.0, entry.1, cursor.kind(), cursor.value());
                let denies = |filter: Filter<'_>| !filter.may_contain(codec::key_hash(entry.0));
                // A key that continues here from the previous partition is in both filters (partition G1).
                if (is_new || is_first) && filter.is_some_and(denies) {
                    return Err(self.corrupt(handle, entry, "entry whose key the filter denies"));
                }
                (self.last_seqno, is_first) = (entry.1, false);
                Ok(())
            },
        )
    }

    /// The problem with the position of an entry in the block with this fence, if there is one.
    fn wrong_place(&self, entry: (&[u8], SeqNo), fence: Option<(&[u8], SeqNo)>) -> Option<&'static str> {
        let last = (&self.seen.largest[..], self.last_seqno);
        let before = self.fence.as_ref().map(|(key, seqno)| (&key[..], *seqno));
        if self.seen.entries > 0 && entry_order(last, entry).is_ge() {
            return Some("entry not after the one before it");
        }
        if fence.is_some_and(|fence| entry_order(entry, fence).is_gt()) {
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
