//! Reads a database while another process, the writer, has it open: [`Follower`] reads the state of the moment, and later the changes since.
//!
//! The follower takes no lock and changes no file. It reads the manifest, then the logs from the manifest's log number on, and applies their frames to
//! memtables of its own. An incomplete last frame is one that the writer is filling, and not a tear. So the follower sees all writes that were
//! acknowledged before it began: each is in a table of the manifest that it reads, or in one of the logs.
//!
//! The writer may flush a log and recycle its file in the middle of this. Three facts show it:
//! * F1 The edit that makes a log obsolete is in the manifest before the log is touched. So the manifest is read again after the logs: if it still needs
//!   the oldest of them, all of them were in use while they were read. Otherwise the follower begins again, and keeps all memtables whose logs are still
//!   needed.
//! * F2 The numbers of a history are contiguous, across logs too (rule 11). If the first frame of a log does not follow, the log before it has got more
//!   frames since it was read, and is read again. If it has not, it is the torn end that a crash has left.
//! * F3 A file that is missing, or damaged, was removed or is being written if the manifest has changed meanwhile: the follower begins again.
//!
//! Each such attempt reads only what is new, and the writer must complete a flush to cause another one. So the number of attempts is bounded, and a
//! follower that is slower than the writer for all that time gets [`Error::Overtaken`].
//!
//! All tables of the moment are opened at once and stay open: their files can be read after the writer has unlinked them.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use fastskip::InsertError;

use super::replay::check_batch;
use super::report::RecoveryReport;
use crate::compaction::TableStore;
use crate::db::core::{
    Core, FlushableMemtable, OPENED_READ_ONLY, Opened, ScanCount, View, absolute, lock_directory, open_runs,
};
use crate::error::{Error, Result};
use crate::fs::{FileSystem, handle_limit};
use crate::manifest::{CloseNote, FileKind, FileNumbers, ManifestTail};
use crate::memtables::{LoggedMemtable, MemtableFactory, memory_for};
use crate::options::{MemtableKind, Options, RecoveryMode};
use crate::table::Table;
use crate::types::{BatchOp, BatchOps, SeqNo};
use crate::wal::{self, Frame, LogTail, Position, Tail};

/// The number of attempts to read a state before the writer has changed it.
const ATTEMPTS: u32 = 100;
/// The number of attempts that fail although the manifest has not changed: a file that is being created may look damaged for a moment.
const UNCHANGED: u32 = 3;
const BETWEEN_FAILURES: Duration = Duration::from_millis(1);
/// If a memtable refuses a batch, the next one has this many times the estimated memory.
const SECOND_TRY_FACTOR: usize = 4;

/// A memtable of the writes of one log, or of a part of them.
struct FollowedMemtable {
    memtable: LoggedMemtable,
    /// The last sequence number before its first one.
    before: SeqNo,
}

/// The files of the database, as far as they were read.
pub(crate) struct Follower {
    manifest: ManifestTail,
    tables: HashMap<u64, Arc<Table>>,
    /// The logs that the manifest needs, oldest first.
    logs: Vec<LogTail>,
    /// Oldest first. The last one may get more writes.
    memtables: Vec<FollowedMemtable>,
    factory: MemtableFactory,
    last_seqno: SeqNo,
    /// The log whose first frame did not follow at the last attempt, and the expected number.
    gap: Option<(u64, SeqNo)>,
    /// The number of refreshes that have found no new write.
    idle: u64,
    batches: u64,
    operations: u64,
}

impl std::fmt::Debug for Follower {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Follower").field("manifest", &self.manifest.number()).finish_non_exhaustive()
    }
}

/// Opens the database in `dir` beside a process that may write to it.
pub(crate) fn open_following(
    fs: &Arc<dyn FileSystem>,
    dir: &Path,
    options: Options,
) -> Result<(Core, RecoveryReport, Follower)> {
    if options.recovery_mode == RecoveryMode::Quarantine {
        let what = "a reader cannot quarantine tables: open the database read-only, while no process writes to it";
        return Err(Error::InvalidArgument(what.to_owned()));
    }
    if cfg!(not(unix)) {
        let what =
            "a reader needs a Unix system, where a file that is removed can still be read: open the database read-only";
        return Err(Error::InvalidArgument(what.to_owned()));
    }
    options.validate()?;
    let dir = &absolute(dir)?;
    let options = Options { read_only: true, memtable_kind: MemtableKind::SkipList, ..options };
    let (lock, fs) = lock_directory(fs, dir, &options)?;
    let manifest = open_manifest(&*fs, dir)?;
    // No file gets such a number.
    let numbers = Arc::new(FileNumbers::starting_at(manifest.state().next_file_number));
    let store = TableStore::new(fs, dir, options, numbers);
    let mut follower = Follower {
        manifest,
        tables: HashMap::new(),
        logs: Vec::new(),
        memtables: Vec::new(),
        factory: MemtableFactory::new(store.options.memtable_kind, store.options.memtable_bytes),
        last_seqno: 0,
        gap: None,
        idle: 0,
        batches: 0,
        operations: 0,
    };
    follower.read(&store)?;
    follower.read_to_synced_end(&store)?;
    let (number, state) = (follower.manifest.number(), follower.manifest.state().clone());
    store.set_keyspaces(state.keyspaces.clone());
    let view = follower.view(&store, None)?;
    let report = RecoveryReport {
        directory: dir.to_owned(),
        read_only: true,
        logs_replayed: follower.logs.iter().filter(|log| !log.is_at_start()).count(),
        batches_replayed: follower.batches,
        operations_replayed: follower.operations,
        last_seqno: follower.last_seqno,
        ..RecoveryReport::default()
    };
    let log = refusing_log(&store)?;
    let manifest = follower.manifest.refusing(store.fs.clone(), dir, store.numbers.clone());
    let last_seqno = follower.last_seqno;
    let core = Core::new(Opened::new(store, view.clone(), log, last_seqno, manifest), lock);
    core.refuse_writes();
    core.show(number, &state, view);
    Ok((core, report, follower))
}

impl Follower {
    /// Shows the present state of the files in `core`, and returns the number of its last write. Takes time in proportion to what was written since the
    /// last call; if the manifest has changed, to its length and the number of tables, too; and sometimes to the length of the logs.
    pub(crate) fn refresh(&mut self, core: &Core) -> Result<SeqNo> {
        let before = self.last_seqno;
        self.read(&core.store)?;
        self.check_for_damage(&core.store, self.last_seqno > before)?;
        let view = self.view(&core.store, Some(&core.view.get()))?;
        core.show(self.manifest.number(), self.manifest.state(), view);
        core.remove_obsolete();
        Ok(self.last_seqno)
    }

    /// Looks for synced writes behind the present end, as an open does (rule 2): if a later log has frames that do not follow, and otherwise from time
    /// to time, because a writer that is idle looks like a frame that is damaged. The search reads whole logs, so a reader that often finds nothing new
    /// searches at each doubling of their number. The writer's next log ends such a wait.
    fn check_for_damage(&mut self, store: &TableStore, has_news: bool) -> Result<()> {
        let idle = self.idle + u64::from(!has_news);
        if self.gap.is_some() || !has_news && idle > 1 && idle.is_power_of_two() {
            self.read_to_synced_end(store)?;
        }
        self.idle = idle;
        Ok(())
    }

    /// Reads up to the newest sync that any frame of the logs records. Fails if a write before it is missing.
    fn read_to_synced_end(&mut self, store: &TableStore) -> Result<()> {
        let synced = self.sync_records(store);
        self.read(store)?;
        self.check_ends(synced)
    }

    /// Reads the present state of the files.
    fn read(&mut self, store: &TableStore) -> Result<()> {
        let mut failures = 0;
        for _ in 0..ATTEMPTS {
            match self.attempt(store) {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(error) if error.is_damage() => {
                    // If this fails too, the next attempt may succeed.
                    if !self.manifest.advance(&*store.fs, &store.dir).unwrap_or(false) {
                        failures += 1;
                    }
                    if failures > UNCHANGED {
                        return Err(error);
                    }
                    thread::sleep(BETWEEN_FAILURES);
                }
                Err(error) => return Err(error),
            }
        }
        let what = format!("replaced its logs and tables {ATTEMPTS} times while they were read; try again");
        Err(Error::Overtaken { path: store.dir.clone(), what })
    }

    /// One attempt. Returns false if the state has changed too much meanwhile.
    fn attempt(&mut self, store: &TableStore) -> Result<bool> {
        self.manifest.advance(&*store.fs, &store.dir)?;
        let (log_number, keyspaces) = (self.manifest.state().log_number, self.manifest.state().keyspaces.clone());
        self.logs.retain(|log| log.number() >= log_number);
        self.memtables.retain(|followed| followed.memtable.log >= log_number);
        self.last_seqno = self.last_seqno.max(self.manifest.state().last_seqno);
        self.open_logs(store, log_number)?;
        if !self.read_logs(store)? {
            return Ok(false);
        }
        self.manifest.advance(&*store.fs, &store.dir)?;
        let state = self.manifest.state();
        if (state.log_number, &state.keyspaces) != (log_number, &keyspaces) {
            return Ok(false);
        }
        self.last_seqno = self.last_seqno.max(state.last_seqno);
        self.open_tables(store)?;
        Ok(true)
    }

    /// Opens the logs that are new.
    fn open_logs(&mut self, store: &TableStore, log_number: u64) -> Result<()> {
        // An open of the writer that has failed leaves its number, which no frame had, to another file.
        self.logs.retain(|log| !log.is_at_start());
        let names = store.fs.read_dir(&store.dir).map_err(Error::io("list", &store.dir))?;
        let new = |name: &std::ffi::OsString| match FileKind::of(name) {
            FileKind::Log(number) if self.logs.iter().all(|log| log.number() != number) => Some(number),
            _ => None,
        };
        let new: Vec<u64> = names.iter().filter_map(new).filter(|&number| number >= log_number).collect();
        for number in new {
            self.logs.push(LogTail::open(&*store.fs, &store.dir, number)?);
        }
        self.logs.sort_unstable_by_key(LogTail::number);
        if self.logs.first().is_some_and(|log| log.number() == log_number) {
            return Ok(());
        }
        let path = store.dir.join(wal::file_name(log_number));
        Err(Error::corruption(&path, 0, "expected the log that the manifest names, found no such file"))
    }

    /// Reads the frames that are new. Returns false if more may have come before those that were read last (F2).
    fn read_logs(&mut self, store: &TableStore) -> Result<bool> {
        let mut logs = std::mem::take(&mut self.logs);
        let (mut gap, mut is_rewritten) = (None, false);
        let read = logs.iter_mut().try_for_each(|log| {
            if gap.is_some() {
                return Ok(());
            }
            let (number, path) = (log.number(), log.path().to_path_buf());
            let mut is_first = log.is_at_start();
            log.advance(|frame| {
                let expected = self.last_seqno + 1;
                if is_first && frame.first_seqno > expected {
                    gap = Some((number, expected));
                    return Ok(ControlFlow::Break(()));
                }
                is_first = false;
                if frame.first_seqno != expected {
                    is_rewritten = true;
                    let what = format!("frame: expected sequence number {expected}, found {}", frame.first_seqno);
                    return Err(Error::corruption(&path, frame.offset, what));
                }
                self.take(store, number, &path, frame).map(|()| ControlFlow::Continue(()))
            })
        });
        self.logs = logs;
        if is_rewritten {
            // A frame that was read was cut off: its write had failed for lack of space. All is read again.
            (self.logs, self.memtables, self.last_seqno) = (Vec::new(), Vec::new(), 0);
        }
        read?;
        let is_settled = gap.is_none() || gap == self.gap;
        self.gap = gap;
        Ok(is_settled)
    }

    /// Applies a frame of log `number`, in the file `path`, which continues the history.
    fn take(&mut self, store: &TableStore, number: u64, path: &Path, frame: Frame<'_>) -> Result<()> {
        let memory = memory_for(frame.count as usize, check_batch(path, &frame)?, frame.payload.len());
        self.check_memory(store, memory)?;
        let batch: Vec<BatchOp<'_>> = BatchOps::new(frame.payload).flatten().collect();
        for memory in [0, memory, memory.saturating_mul(SECOND_TRY_FACTOR)] {
            match self.memtable(number, memory)?.add(&batch, frame.first_seqno) {
                Ok(()) => {
                    self.last_seqno += u64::from(frame.count);
                    self.batches += 1;
                    self.operations += u64::from(frame.count);
                    return Ok(());
                }
                Err(InsertError::Full) => {}
                Err(error) => return Err(Error::Full(format!("a memtable refuses a batch of the log: {error}"))),
            }
        }
        Err(Error::Full(format!("a batch of {} bytes does not fit into any memtable", frame.payload.len())))
    }

    /// The memtable for the next writes, which are from `log`: the last one, or another one for `memory` bytes, if that is not 0.
    fn memtable(&mut self, log: u64, memory: usize) -> Result<LoggedMemtable> {
        if let Some(last) = self.memtables.last_mut().filter(|last| last.memtable.log == log && memory == 0) {
            if last.memtable.table.is_empty() {
                last.before = self.last_seqno;
            }
            return Ok(last.memtable.clone());
        }
        self.memtables.pop_if(|last| last.memtable.table.is_empty());
        let memtable = self.factory.make(log, memory)?;
        self.memtables.push(FollowedMemtable { memtable: memtable.clone(), before: self.last_seqno });
        Ok(memtable)
    }

    fn check_memory(&self, store: &TableStore, memory: usize) -> Result<()> {
        let held: usize = self.memtables.iter().map(|followed| followed.memtable.memory_usage()).sum();
        let limit = store.options.replay_memory_bytes;
        if held.saturating_add(memory) as u64 <= limit {
            return Ok(());
        }
        Err(Error::Full(format!(
            "the writes that are only in logs of {} take more than {limit} bytes of memory: raise replay_memory_bytes",
            store.dir.display()
        )))
    }

    /// The newest sync that any frame of the logs records, also behind the end of what was read.
    fn sync_records(&self, store: &TableStore) -> Option<Position> {
        // A log that cannot be read is one that the writer has removed, or its readable part was read before.
        let newest = |log: &LogTail| wal::newest_sync_record(&*store.fs, log.path(), log.number()).ok()?;
        let closed = CloseNote::load(&*store.fs, &store.dir).map(|note| note.synced());
        self.logs.iter().filter_map(newest).chain(closed).max()
    }

    /// Fails if a write that was synced is missing (rule 2). The logs were read after a frame that records the sync: a frame that was incomplete only
    /// because the writer was filling it is complete then.
    fn check_ends(&self, synced: Option<Position>) -> Result<()> {
        let Some(synced) = synced else { return Ok(()) };
        let tail = |log: &LogTail| match self.gap {
            Some(_) => Tail::Torn { offset: log.end(), dropped_bytes: 0 },
            None => Tail::Clean { end: log.end() },
        };
        let last = self.logs.iter().rposition(|log| !log.is_at_start()).unwrap_or(0);
        let mut ends = self.logs.iter().skip(last);
        ends.find_map(|log| tail(log).contradicted_by(log.path(), log.number(), synced)).map_or(Ok(()), Err)
    }

    /// Opens the tables that are new, and drops the others.
    fn open_tables(&mut self, store: &TableStore) -> Result<()> {
        let version = self.manifest.state().version.clone();
        let named = version.named_numbers();
        let limit = store.options.max_open_files.unwrap_or(usize::MAX);
        let limit = limit.min(usize::try_from(handle_limit()).unwrap_or(usize::MAX));
        let lack = || {
            let (count, dir) = (named.len(), store.dir.display());
            let what =
                format!("a reader of {dir} needs a file handle for each of its {count} tables, and may have {limit}");
            Error::Full(format!("{what}: raise the process's limit of open files, or max_open_files if it is set"))
        };
        if named.len() > limit {
            return Err(lack());
        }
        // After an error they are closed again.
        let mut opened = Vec::new();
        for meta in version.tables().filter(|meta| !self.tables.contains_key(&meta.number)) {
            let table = Table::new(&store.tables, meta.clone());
            table.file().map_err(|error| if error.is_want_of_handles() { lack() } else { error })?;
            opened.push((meta.number, table));
        }
        self.tables.extend(opened);
        self.tables.retain(|number, _| named.contains(number));
        Ok(())
    }

    /// The view of what was read. `before` is the view of the last call.
    fn view(&mut self, store: &TableStore, before: Option<&View>) -> Result<View> {
        let state = self.manifest.state();
        let (version, stats, log_number) = (state.version.clone(), state.stats, state.log_number);
        let newest = self.memtables.last().map_or(log_number, |last| last.memtable.log);
        self.memtable(newest, 0)?;
        let unchanged = before.filter(|before| Arc::ptr_eq(&before.version, &version));
        let (runs, scans) = match unchanged {
            Some(before) => (before.runs.clone(), before.scans.clone()),
            None => (open_runs(&version, self.tables.values()), Arc::new(ScanCount::new(&version))),
        };
        let [older @ .., active] = &*self.memtables else { unreachable!("one was begun") };
        let newer = self.memtables.iter().skip(1).map(|next| next.before);
        let frozen = older.iter().zip(newer).rev();
        let frozen =
            frozen.map(|(followed, last_seqno)| FlushableMemtable { memtable: followed.memtable.clone(), last_seqno });
        let log =
            before.map_or_else(|| refusing_log(store).map(|log| log.segment().clone()), |view| Ok(view.log.clone()))?;
        let (active, before_active, frozen) = (active.memtable.clone(), active.before, frozen.collect());
        Ok(View { active, before_active, upto: self.last_seqno, log, frozen, version, runs, scans, stats })
    }
}

/// Opens the manifest. As in [`Follower::read`], a file that the writer replaces or appends to may look missing or damaged for a moment.
fn open_manifest(fs: &dyn FileSystem, dir: &Path) -> Result<ManifestTail> {
    let mut failures = 0;
    loop {
        match ManifestTail::open(fs, dir) {
            Err(error) if error.is_damage() && failures < UNCHANGED => failures += 1,
            opened => return opened,
        }
        thread::sleep(BETWEEN_FAILURES);
    }
}

fn refusing_log(store: &TableStore) -> Result<wal::Writer> {
    Ok(wal::Writer::refusing(&store.dir, store.numbers.allocate()?, OPENED_READ_ONLY, store.counters.clone()))
}
