//! Reads a table and skips damage: it yields every readable entry, in order, and reports the key ranges of the others.
//!
//! [`SalvageIter`] goes forward only. It holds one data block and one partition, and opens the file for each read. It adds each part that it could
//! not read to [`Lost`], at the latest when it moves to the first entry after that part. So when a merge of such iterators reaches a key, all losses
//! that may affect the key are known.

use std::ops::{Bound, Range};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use super::lost::LostKeys;
use crate::error::{Error, Result};
use crate::fs::FileSystem;
use crate::iter::{EntryIter, show_entry_of};
use crate::lock::lock;
use crate::table::{Block, Cursor, Part, Source, TableMeta, Walk};
use crate::types::{MAX_SEQNO, RangeTombstones, SeqNo, Slice, entry_order};

/// The list to which iterators add the parts that they could not read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lost(Arc<Mutex<Vec<LostKeys>>>);

impl Lost {
    pub(crate) fn add(&self, keys: LostKeys) {
        lock(&self.0).push(keys);
    }

    /// Returns and removes the parts that were added since the last call.
    pub(crate) fn take(&self) -> Vec<LostKeys> {
        std::mem::take(&mut *lock(&self.0))
    }
}

/// The entries of a table that can be read.
pub(crate) struct SalvageIter {
    walk: Walk,
    /// The metadata of the table from a manifest, or otherwise from the file.
    meta: Option<TableMeta>,
    lost: Lost,
    /// The unreadable part since the last entry. Its upper bound is open until the next key is known, unless a fence pointer gives it.
    gap: Option<LostKeys>,
    cursor: Option<Cursor>,
    /// The bytes of the file that hold the cursor's block.
    at: Range<u64>,
    /// The last entry that was read.
    last: Option<(Vec<u8>, SeqNo)>,
    /// The number of entries read.
    entries: u64,
    is_started: bool,
    repeats: bool,
}

impl SalvageIter {
    /// Reads table `number` in the file `path`, with the manifest's `meta`.
    ///
    /// # Errors
    /// [`Error::UnsupportedVersion`]; [`Error::Io`] if the file cannot be opened; [`Error::Corruption`] if it is not the table that the manifest
    /// describes.
    pub(crate) fn open(
        fs: Arc<dyn FileSystem>,
        path: PathBuf,
        number: u64,
        meta: Option<TableMeta>,
        lost: Lost,
    ) -> Result<Self> {
        let walk = Walk::open(Source::Reopened(fs), path, number, None)?;
        meta.as_ref().map_or(Ok(()), |meta| walk.check_is(meta))?;
        let meta = meta.or_else(|| walk.meta.clone());
        Ok(Self {
            walk,
            meta,
            lost,
            gap: None,
            cursor: None,
            at: 0..0,
            last: None,
            entries: 0,
            is_started: false,
            repeats: false,
        })
    }

    /// The range tombstones from the lower bound of a narrowed table on. If they cannot be read, older versions of the covered keys may return.
    pub(crate) fn range_tombstones(&self) -> RangeTombstones {
        if let Some(ranges) = &self.walk.range_tombstones {
            let bound = self.meta.as_ref().filter(|meta| meta.narrowed).map(|meta| meta.smallest.clone());
            return ranges.within(&bound.unwrap_or_default(), &Slice::default());
        }
        // A readable footer shows whether the table has range tombstones. Without a footer, only a manifest does.
        if let Some(meta) = self.meta.as_ref().filter(|meta| meta.range_tombstones > 0 || self.walk.meta.is_some()) {
            let what = "range tombstones: expected a block that can be read, found none";
            let cause = Error::corruption(self.walk.path(), 0, what);
            let (from, to) = (Bound::Included(meta.smallest.clone()), Bound::Included(meta.largest.clone()));
            let file = self.walk.path().to_path_buf();
            self.lost.add(LostKeys { file, bytes: 0..0, from, to, newest: meta.max_seqno, cause });
        }
        RangeTombstones::default()
    }

    /// Moves to the next entry at or above the bound, or becomes invalid.
    fn advance(&mut self) -> Result<()> {
        loop {
            while self.step() {
                if self.counts() {
                    self.close_gap(|iter| Some(Slice::from(iter.key())));
                    return Ok(());
                }
            }
            match self.walk.next()? {
                Some(Part::Block { block, bytes, .. }) => self.enter(block, bytes),
                Some(Part::Lost { bytes, fence, cause }) => self.lose(bytes, fence.map(|(key, _)| key), cause),
                // The data blocks that follow are yielded later, or reported as damage.
                Some(Part::Damage(_) | Part::Partition(..)) => {}
                None => {
                    self.end();
                    return Ok(());
                }
            }
        }
    }

    fn enter(&mut self, block: Block, at: Range<u64>) {
        self.at = at;
        match Cursor::checked(block) {
            Ok(cursor) => self.cursor = Some(cursor),
            Err(malformed) => self.lose(self.at.clone(), None, malformed.in_file(self.walk.path(), self.at.start)),
        }
    }

    /// Moves to the next entry of the block; false at its end, and at an entry that is out of order: the rest of that block is ignored.
    fn step(&mut self) -> bool {
        let Some(cursor) = &mut self.cursor else { return false };
        if cursor.valid() {
            cursor.next()
        } else {
            cursor.seek_to_first()
        }
        if !cursor.valid() {
            self.cursor = None;
            return false;
        }
        let entry = (cursor.key(), cursor.seqno());
        let order = self.last.as_ref().map(|(key, seqno)| entry_order((key, *seqno), entry));
        if order.is_none_or(|order| order.is_lt()) {
            self.repeats = self.last.as_ref().is_some_and(|(key, _)| *key == entry.0);
            let (key, seqno) = self.last.get_or_insert_default();
            key.clear();
            key.extend_from_slice(entry.0);
            *seqno = entry.1;
            self.entries += 1;
            return true;
        }
        let cause = Error::corruption(self.walk.path(), self.at.start, "expected an entry after the one before it");
        self.cursor = None;
        self.lose(self.at.clone(), None, cause);
        false
    }

    /// Whether the entry is at or above the bound of a narrowed table.
    fn counts(&self) -> bool {
        let below = |meta: &TableMeta| meta.narrowed && *self.key() < *meta.smallest;
        !self.meta.as_ref().is_some_and(below)
    }

    fn lose(&mut self, bytes: Range<u64>, to: Option<Slice>, cause: Error) {
        let to = to.map_or(Bound::Unbounded, Bound::Included);
        match &mut self.gap {
            Some(gap) => (gap.bytes.end, gap.to) = (bytes.end, to),
            None => {
                let last = self.last.as_ref().map(|(key, _)| Bound::Excluded(Slice::from(&key[..])));
                let first = || self.meta.as_ref().map(|meta| Bound::Included(meta.smallest.clone()));
                let from = last.or_else(first).unwrap_or(Bound::Unbounded);
                let newest = self.meta.as_ref().map_or(MAX_SEQNO, |meta| meta.max_seqno);
                let file = self.walk.path().to_path_buf();
                self.gap = Some(LostKeys { file, bytes, from, to, newest, cause });
            }
        }
    }

    /// Reports the gap, if there is one. The gap ends at `end` unless a fence pointer gives a closer bound.
    fn close_gap(&mut self, end: impl FnOnce(&Self) -> Option<Slice>) {
        let Some(mut gap) = self.gap.take() else { return };
        if gap.to == Bound::Unbounded {
            gap.to = end(self).map_or(Bound::Unbounded, Bound::Included);
        }
        // Entries below the bound of a narrowed table were compacted into other tables.
        if !self.meta.as_ref().is_some_and(|meta| gap.ends_before(&meta.smallest)) {
            self.lost.add(gap);
        }
    }

    fn end(&mut self) {
        self.cursor = None;
        // If all entries of a table were read, it has lost nothing.
        let is_whole = self.meta.as_ref().is_some_and(|meta| meta.entries == self.entries);
        if is_whole {
            self.gap = None;
            return;
        }
        if let Some(cause) = self.walk.missing_end() {
            self.lose(self.walk.size()..self.walk.size(), None, cause);
        }
        self.close_gap(|iter| iter.meta.as_ref().map(|meta| meta.largest.clone()));
    }
}

impl EntryIter for SalvageIter {
    show_entry_of!(cursor: Cursor);

    fn repeats(&self) -> bool {
        self.repeats
    }

    /// Moves to the first entry; may be called once.
    fn seek_to_first(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.is_started, true) { forward_only() } else { self.advance() }
    }

    fn seek_to_last(&mut self) -> Result<()> {
        forward_only()
    }

    fn seek(&mut self, _: &[u8], _: SeqNo) -> Result<()> {
        forward_only()
    }

    fn seek_for_prev(&mut self, _: &[u8], _: SeqNo) -> Result<()> {
        forward_only()
    }

    fn prev(&mut self) -> Result<()> {
        forward_only()
    }

    fn next(&mut self) -> Result<()> {
        if self.valid() { self.advance() } else { Ok(()) }
    }
}

/// The error of every move other than that to the next entry.
fn forward_only() -> Result<()> {
    Err(Error::InvalidArgument("what is salvaged is read forward only".into()))
}
