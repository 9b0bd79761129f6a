//! Creates, opens and removes tables: sorted inputs in, durable tables out.
//!
//! The functions here return a table only after it and its name in the directory are synced, so that a manifest edit may refer to it (rules 4, 6). A
//! failure before that leaves no file behind (rule 8).

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::compaction::inputs::Inputs;
use crate::compaction::live_keys::LiveKeys;
use crate::compaction::retention::{Covering, Retention, Shadowing};
use crate::epoch::Slot;
use crate::error::{Error, Result};
use crate::fs::{self, FileSystem};
use crate::iter::{EntryIter, MergeIter};
use crate::manifest::{CompactionStats, FileNumbers, KeyspaceSet, RunId, VersionEdit};
use crate::metrics::Counters;
use crate::options::Options;
use crate::table::{self, BlockCache, Table, TableCache, TableMeta, TableOptions};
use crate::types::{
    Kind, MAX_STORED_KEY_LEN, RangeTombstones, SeqNo, ShownKey, Slice, is_stored_plain, place_after, split_stored,
};

/// A table ends before a key of another keyspace if its size is at least this part of a full one: then it is no crumb (`plan.rs`).
const BORDER_PART: u64 = 4;

/// The run of an output, and the rule for cutting it into tables.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OutputSpec {
    pub(crate) level: usize,
    /// A table ends with the last version of the key that makes it reach this size.
    pub(crate) table_bytes: u64,
    /// Bits of filter for each key; need not be whole.
    pub(crate) filter_bits: f64,
}

impl OutputSpec {
    /// One table of level 0, however large: there each table is a run.
    pub(crate) fn flush(filter_bits: f64) -> OutputSpec {
        OutputSpec { level: 0, table_bytes: u64::MAX, filter_bits }
    }
}

/// The conditions under which a compaction or flush ends before it has read everything.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits<'a> {
    pub(crate) cancel: &'a AtomicBool,
    /// Bytes of entries that are read before `cancel` is checked.
    pub(crate) share_bytes: u64,
    /// The piece ends with the first table that makes the outputs reach this size. `None` if the compaction cannot be cut.
    pub(crate) piece_bytes: Option<u64>,
}

impl Limits<'_> {
    /// Limits without pieces: a cancelled copy has no result.
    pub(crate) fn whole(cancel: &AtomicBool) -> Limits<'_> {
        Limits { cancel, share_bytes: 0, piece_bytes: None }
    }
}

/// The result of a copy.
#[derive(Debug, Default)]
pub(crate) struct Written {
    /// In key order, disjoint, durable; empty if no entry had to be kept.
    pub(crate) tables: Vec<Arc<Table>>,
    pub(crate) entries: u64,
    /// Bytes of keys and values of all entries that were read.
    pub(crate) entry_bytes: u64,
    /// If the copy ended early, the first key of which no version was read, or a place before that key.
    pub(crate) next: Option<Slice>,
}

impl Written {
    /// Removes the tables, which no edit will refer to.
    pub(crate) fn remove_from(&self, store: &TableStore) {
        self.tables.iter().for_each(|table| store.remove(table.number()));
    }

    pub(crate) fn table_bytes(&self) -> u64 {
        self.tables.iter().map(|table| table.meta().size).sum()
    }

    /// The edit that adds the tables, whose entries were in no table before, to run `run_id`.
    pub(crate) fn as_edit(&self, run_id: RunId) -> VersionEdit {
        VersionEdit {
            added: self.tables.iter().map(|table| (run_id, table.meta().clone())).collect(),
            stats: CompactionStats::of_new(run_id.level, self.entry_bytes, self.table_bytes()),
            ..VersionEdit::default()
        }
    }
}

/// The store of the tables of one database.
#[derive(Debug)]
pub(crate) struct TableStore {
    pub(crate) fs: Arc<dyn FileSystem>,
    pub(crate) dir: PathBuf,
    pub(crate) options: Options,
    pub(crate) numbers: Arc<FileNumbers>,
    pub(crate) tables: Arc<TableCache>,
    pub(crate) cache: Arc<BlockCache>,
    pub(crate) counters: Arc<Counters>,
    /// The live keyspaces: new tables keep only their entries.
    keyspaces: Slot<KeyspaceSet>,
}

impl TableStore {
    /// Creates the store of the database in `dir`, with caches of the sizes in `options`.
    pub(crate) fn new(fs: Arc<dyn FileSystem>, dir: &Path, options: Options, numbers: Arc<FileNumbers>) -> TableStore {
        let (dir, counters) = (dir.to_path_buf(), Arc::new(Counters::default()));
        let cache = Arc::new(BlockCache::new(options.cache_bytes, counters.clone()));
        let opened = (open_files_limit(&options), options.table_reads);
        let tables = TableCache::new(fs.clone(), dir.clone(), cache.clone(), counters.clone(), opened);
        TableStore { fs, dir, options, numbers, tables, cache, counters, keyspaces: Slot::new(Some(Arc::default())) }
    }

    /// The live keyspaces: new tables keep only their entries.
    pub(crate) fn keyspaces(&self) -> Arc<KeyspaceSet> {
        self.keyspaces.get().unwrap_or_default()
    }

    pub(crate) fn set_keyspaces(&self, keyspaces: Arc<KeyspaceSet>) {
        self.keyspaces.swap(Some(keyspaces));
    }

    /// Copies the newest versions of `inputs`, tombstones too, to new tables: for a database without readers.
    pub(crate) fn write_all<I: EntryIter>(&self, inputs: Inputs<I>, spec: OutputSpec) -> Result<Written> {
        let written = self.write(inputs, Retention::NEWEST, spec, Limits::whole(&AtomicBool::new(false)))?;
        Ok(written.unwrap_or_default())
    }

    /// Copies the entries of `inputs` that must be kept to new tables; `None` if the copy was cancelled and cannot be a piece. No file is left if it
    /// returns `None` or an error. Inputs with equal entries do not occur: sequence numbers are unique.
    pub(crate) fn write<I: EntryIter>(
        &self,
        inputs: Inputs<I>,
        retention: Retention<'_>,
        spec: OutputSpec,
        limits: Limits<'_>,
    ) -> Result<Option<Written>> {
        let live = || LiveKeys::new(self.keyspaces());
        let mut output = Output::new(self, spec, live().kept(&retention.kept_ranges(&inputs.ranges)));
        let Some(copied) = copy(inputs, (retention, live()), limits, &mut output)? else { return Ok(None) };
        let written = Written { tables: output.finish(copied.next.clone())?, ..copied };
        let (tables, bytes) = (written.tables.len(), written.table_bytes());
        tracing::debug!(level = spec.level, tables, bytes, "wrote tables");
        Ok(Some(written))
    }

    /// Writes `entries` from outside, with ascending distinct keys, their kinds and stored values, to new tables. All entries of a table have the
    /// same sequence number: `first` for the first table, and the next number for each later one. After an error no file is left.
    ///
    /// # Errors
    /// Errors: the first one that `entries` yields; [`Error::InvalidArgument`] for a key that is not after the one before it, or a key or value past
    /// its limit; [`Error::Io`].
    pub(crate) fn write_new<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        entries: impl IntoIterator<Item = Result<(K, Kind, V)>>,
        first: SeqNo,
        spec: OutputSpec,
    ) -> Result<Written> {
        let mut output = Output::new(self, spec, RangeTombstones::default());
        let (mut last, mut count, mut entry_bytes) = (None::<Vec<u8>>, 0, 0);
        for entry in entries {
            let entry = entry?;
            let (key, kind, stored) = (entry.0.as_ref(), entry.1, entry.2.as_ref());
            if let Some(last) = last.as_deref().filter(|last| *last >= key) {
                let what = format!("expected a key after {}, found {}", ShownKey(last), ShownKey(key));
                return Err(Error::InvalidArgument(format!("sorted entries: {what}")));
            }
            output.cut(key)?;
            output.add(key, first + output.finished.len() as u64, kind, stored)?;
            let last = last.get_or_insert_default();
            last.clear();
            last.extend_from_slice(key);
            count += 1;
            entry_bytes += key.len() as u64 + stored.len() as u64;
        }
        Ok(Written { tables: output.finish(None)?, entries: count, entry_bytes, next: None })
    }

    /// Unlinks table `number`, which no version refers to any more. Readers that have the file open keep its contents (rule 14). A failure leaves an
    /// orphan, which the next open removes.
    pub(crate) fn remove(&self, number: u64) {
        self.unlink(&self.path(number));
    }

    /// Unlinks an unreferenced file; a failure is logged.
    pub(crate) fn unlink(&self, path: &Path) {
        fs::unlink(&*self.fs, path);
    }

    fn builder(&self, spec: &OutputSpec) -> Result<table::Builder> {
        let options = TableOptions::at_level(&self.options, spec.level, spec.filter_bits);
        let mut builder = table::Builder::new(&self.fs, &self.dir, self.numbers.allocate()?, options)?;
        builder.set_compressions(self.keyspaces().compressions().clone());
        Ok(builder)
    }

    fn path(&self, number: u64) -> PathBuf {
        self.dir.join(table::file_name(number))
    }
}

/// The maximum number of open tables. By default it is half of the process's file handles, since logs, the manifest and the application need some
/// too, and limited so that the tables' memory stays below 64 MiB; a table of 64 MiB takes about 5 KiB.
fn open_files_limit(options: &Options) -> usize {
    const MOST: u64 = 1 << 13;
    if options.follows {
        return TableCache::ALL;
    }
    options.max_open_files.unwrap_or_else(|| (fs::handle_limit() / 2).clamp(1, MOST) as usize)
}

/// The tables that a compaction or flush writes. If it is dropped before `finish`, it removes all of them.
struct Output<'a> {
    store: &'a TableStore,
    spec: OutputSpec,
    current: Option<table::Builder>,
    /// The range tombstones of all tables; each table gets those within its key range.
    ranges: RangeTombstones,
    /// The start of the current table's key range: directly after the last key of the previous table.
    from: Slice,
    /// Tables that are synced, but whose names in the directory are not yet durable.
    finished: Vec<TableMeta>,
}

impl<'a> Output<'a> {
    fn new(store: &'a TableStore, spec: OutputSpec, ranges: RangeTombstones) -> Output<'a> {
        Output { store, spec, current: None, ranges, from: Slice::default(), finished: Vec::new() }
    }

    /// Whether the last table is full, and all tables together have reached `bytes`.
    fn reaches(&self, bytes: u64) -> bool {
        let Some(last) = self.current.as_ref().map(table::Builder::bytes) else { return false };
        let finished = || self.finished.iter().map(|meta| meta.size).sum::<u64>();
        last >= self.spec.table_bytes && last + finished() >= bytes
    }

    /// Ends the current table if it is full and `key` is not its last, or if `key` begins another keyspace and the table is not small. So most
    /// entries of a keyspace are in tables of their own, which are removed whole when it is dropped, and many small keyspaces share tables.
    fn cut(&mut self, key: &[u8]) -> Result<()> {
        // A table never ends between two versions of a key: a read searches one table of a run (V3).
        let cuts_ranges = !self.ranges.is_empty();
        let ends = |builder: &mut table::Builder| {
            let (last, full) = (builder.last_key(), self.spec.table_bytes);
            let reached = if begins_keyspace(last, key) { full / BORDER_PART } else { full };
            builder.bytes() >= reached && last != key && (!cuts_ranges || is_followed_by_a_place(last))
        };
        if let Some(full) = self.current.take_if(ends) {
            let end = if cuts_ranges { Slice::from(place_after(full.last_key())) } else { Slice::default() };
            self.end_table(full, end)?;
        }
        Ok(())
    }

    /// Finishes a table whose key range ends at `end`. Range tombstones are cut at `end`: so the table has no keys beyond it, and the next table may
    /// begin directly after it (V3).
    fn end_table(&mut self, mut table: table::Builder, end: Slice) -> Result<()> {
        table.set_range_tombstones(self.ranges.within(&self.from, &end));
        self.from = end;
        self.finished.push(table.finish()?);
        Ok(())
    }

    fn add(&mut self, key: &[u8], seqno: SeqNo, kind: Kind, value: &[u8]) -> Result<()> {
        let builder = match &mut self.current {
            Some(builder) => builder,
            none => none.insert(self.store.builder(&self.spec)?),
        };
        builder.add(key, seqno, kind, value)
    }

    /// Ends the last table at `next`, where the copy ended. The files are synced first, and then their names. The tables are opened before any edit
    /// refers to them, so that nothing can fail afterwards.
    fn finish(mut self, next: Option<Slice>) -> Result<Vec<Arc<Table>>> {
        let end = next.unwrap_or_default();
        let last = match self.current.take() {
            // Range tombstones may remain in a place without entries.
            None if !self.ranges.within(&self.from, &end).is_empty() => Some(self.store.builder(&self.spec)?),
            last => last,
        };
        if let Some(last) = last {
            self.end_table(last, end)?;
        }
        if self.finished.is_empty() {
            return Ok(Vec::new());
        }
        self.store.fs.sync_dir(&self.store.dir).map_err(Error::io("sync", &self.store.dir))?;
        let tables: Vec<_> = self.finished.iter().map(|meta| Table::new(&self.store.tables, meta.clone())).collect();
        tables.iter().try_for_each(|table| table.check())?;
        self.finished.clear();
        Ok(tables)
    }
}

impl Drop for Output<'_> {
    fn drop(&mut self) {
        // The builder of an unfinished table removes its file itself.
        for meta in &self.finished {
            self.store.remove(meta.number);
        }
    }
}

/// Whether the keyspace of `key`, which comes after `last`, is another one.
fn begins_keyspace(last: &[u8], key: &[u8]) -> bool {
    !is_stored_plain(key) && split_stored(last).map(|(id, _)| id) != split_stored(key).map(|(id, _)| id)
}

/// Whether the position right after `key` can be the first key of a table.
fn is_followed_by_a_place(key: &[u8]) -> bool {
    key.len() < MAX_STORED_KEY_LEN
}

/// Copies the entries of `inputs` that must be kept. The result contains no tables yet. `None` if the copy was cancelled and cannot be a piece.
fn copy<I: EntryIter>(
    inputs: Inputs<I>,
    (retention, mut live): (Retention<'_>, LiveKeys),
    limits: Limits<'_>,
    output: &mut Output<'_>,
) -> Result<Option<Written>> {
    let Inputs { entries, ranges, upto } = inputs;
    let mut merged = MergeIter::new(entries);
    let (mut shadowing, mut covering) = (Shadowing::new(retention), Covering::new(retention, &ranges));
    let mut copied = Written::default();
    merged.seek_to_first()?;
    while merged.valid() {
        if merged.seqno() > upto {
            merged.next()?;
            continue;
        }
        // Relaxed: reading the flag late costs time, not correctness.
        let is_cancelled = copied.entry_bytes >= limits.share_bytes && limits.cancel.load(Ordering::Relaxed);
        if is_cancelled && (limits.piece_bytes.is_none() || copied.entries == 0) {
            return Ok(None);
        }
        let ends = is_cancelled || limits.piece_bytes.is_some_and(|bytes| output.reaches(bytes));
        let can_end = ranges.is_empty() || is_followed_by_a_place(shadowing.key());
        if ends && can_end && shadowing.is_new(merged.key()) {
            // Range tombstones are cut directly after the last key that was read, as at the end of a table.
            copied.next = Some(match ranges.is_empty() {
                true => Slice::from(merged.key()),
                false => Slice::from(place_after(shadowing.key())),
            });
            break;
        }
        copied.entries += 1;
        copied.entry_bytes += merged.key().len() as u64 + merged.value().len() as u64;
        let (key, seqno, stored) = (merged.key(), merged.seqno(), merged.value());
        let kind = retention.kind(seqno, merged.kind(), stored);
        let is_kept = shadowing.keeps(key, seqno, kind);
        if is_kept && live.contains(key) && !covering.covers(key, seqno) {
            output.cut(key)?;
            output.add(key, seqno, kind, if kind == Kind::Tombstone { &[] } else { stored })?;
        }
        merged.next()?;
    }
    Ok(Some(copied))
}
