//! Opens a directory: locks it, loads or creates the manifest, replays the logs, and completes all interrupted work.
//!
//! The steps, and the effect of a crash after each one on the next open:
//! 1. the directory is created if necessary, and the lock is taken; nothing is changed before that.
//! 2. manifest and tables are read. If there is damage, the open ends here, with nothing changed.
//! 3. a torn tail is copied to a file that is set aside, cut off and synced, logs after it are renamed, and the names are synced (rules 2, 3). A
//!    crash: the next open replays the same history, which ends at the same place, without a tail.
//! 4. the replayed writes are in tables, which are synced (rules 4, 7). A crash: these tables are orphans, and replay writes them again. After a torn
//!    manifest, some older tables are not in the manifest. Those that hold more than was recovered are suspects: they are renamed, and the names
//!    synced (rule 10). A crash: the manifest is still torn, and the next open finds the same state; of the tables written here, only unfinished ones
//!    count as suspects.
//! 5. a new log is created and synced, its name not yet. A crash: it has no frame, so it is replayed as an empty log.
//! 6. a new manifest is written and synced; the names of log and manifest are synced together; then `CURRENT` is set to the manifest. The manifest
//!    refers to the tables of step 4, and its log number is that of the log of step 5. After a crash before `CURRENT` is durable, the old manifest
//!    and all old logs are used. After a later crash the old logs are obsolete.
//! 7. orphans and obsolete logs are removed, since nothing can refer to them any more (rule 10). If many useless files were set aside, the oldest are
//!    removed too (`aside.rs`).
//!
//! If there is not enough space for these steps, the open starts again without the reserve (`core/reserve.rs`), with the lock held. If the space
//! still does not suffice, because a crash has left files while the database was tight, the open starts once more and first removes the files that
//! step 7 would remove last. After a torn manifest it removes no table, since a table that the manifest does not name may be the only one with some
//! data. Each attempt removes its own files; the files that it has set aside stay so, and are in the report. After step 7 the reserve gets its
//! required size, if there is space.
//!
//! After a close without errors, steps 3 to 6 are left out: only a new log is created (`resume.rs`).
//!
//! No write is acknowledged before step 6 is done, so the new log has no contents before the manifest refers to it.
//!
//! A read-only open takes the lock that readers share, executes step 2, replays into memory, and ends there (`read_only.rs`): it changes nothing, so
//! a crash has no effect.

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use super::aside::bound_aside;
use super::read_only;
use super::replay::{Replayed, replay};
use super::report::RecoveryReport;
use super::resume;
use super::tables::{OpenedTables, forget_removed, open_tables, set_suspects_aside, set_unnamed_aside};
use crate::compaction::TableStore;
use crate::db::core::{
    Clock, Core, Opened, ScanCount, View, absolute, check_nothing_is_lost, give_up, lock_directory,
    needed_besides_memtables, open_reserve, open_runs,
};
use crate::error::{Error, Result};
use crate::fs::{FileSystem, unlink};
use crate::manifest::{
    self, CURRENT, FileKind, FileNumbers, Manifest, ManifestState, RunId, VersionEdit, manifest_name,
};
use crate::memtables::LoggedMemtable;
use crate::options::{Compaction, Options, RecoveryMode};
use crate::table::Table;
use crate::types::MAX_SEQNO;
use crate::wal;

/// More file numbers than can be used between two edits of the manifest, since each number stands for an attempt to write a file.
const MAX_UNRECORDED: u64 = 1 << 32;

/// Opens the database in `dir`, creating it if the options allow.
pub(crate) fn open(fs: Arc<dyn FileSystem>, dir: &Path, options: Options) -> Result<(Core, RecoveryReport)> {
    options.validate()?;
    // The path is made absolute before any other step.
    let dir = &absolute(dir)?;
    let (lock, fs) = lock_directory(&fs, dir, &options)?;
    let (read_only, mut report) = (options.read_only, RecoveryReport::default());
    let mut recover = |orphans| recover(fs.clone(), dir, options.clone(), orphans, &mut report);
    let mut opened = recover(Orphans::Last);
    let is_full = |opened: &Result<Opened>| opened.as_ref().is_err_and(Error::is_want_of_space) && !read_only;
    if is_full(&opened) && give_up(&*fs, dir) {
        opened = recover(Orphans::Last);
    }
    if is_full(&opened) {
        opened = recover(Orphans::First);
    }
    let opened = opened?;
    for finding in report.findings() {
        tracing::warn!("{finding}");
    }
    tracing::debug!(?report, "opened");
    let core = Core::new(opened, lock);
    core.clock.ahead();
    if read_only {
        core.refuse_writes();
    }
    Ok((core, report))
}

/// The time at which unreferenced files are removed: when the open has succeeded, or before it if space is lacking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Orphans {
    Last,
    First,
}

/// One attempt to open the database. The report still contains the files that an earlier attempt has set aside.
fn recover(
    fs: Arc<dyn FileSystem>,
    dir: &Path,
    options: Options,
    orphans: Orphans,
    report: &mut RecoveryReport,
) -> Result<Opened> {
    let names = list(&*fs, dir)?;
    let loaded = manifest::load(&*fs, dir)?;
    let current = loaded.as_ref().map(|loaded| loaded.number);
    let created = loaded.is_none();
    let read_only = options.read_only;
    let earlier = std::mem::take(report);
    *report = RecoveryReport { directory: dir.to_owned(), created, read_only, ..RecoveryReport::default() };
    (report.torn, report.set_aside) = (earlier.torn, earlier.set_aside);
    let state = match &loaded {
        Some(loaded) => {
            report.manifest_tail_dropped = loaded.tail_bytes > 0;
            report.manifest_tail_bytes = loaded.tail_bytes;
            loaded.state.clone()
        }
        None if read_only => {
            // The database was removed after the directory was locked. If the open continued, it would create a new database.
            return Err(Error::not_a_database(dir, format!("expected {CURRENT}, found no such file")));
        }
        None => {
            check_nothing_is_lost(&*fs, dir, &names)?;
            ManifestState::default()
        }
    };
    check_numbers(dir, &state, &names)?;
    // The policy of the last open, unless the caller sets another.
    let policy = options.compaction.or_else(|| state.policy.and_then(Compaction::from_id)).unwrap_or_default();
    let store = table_store(fs, dir, options.compaction(policy), &state, &names);
    let OpenedTables { state, tables, suspects } = open_tables(&store, forget_removed(state, &names), &names, report)?;
    let is_whole = !report.manifest_tail_dropped && report.damage.is_empty();
    if let Some(current) = current.filter(|_| orphans == Orphans::First) {
        let named = state.version.named_numbers();
        let kept = if is_whole { named } else { names.iter().filter_map(FileKind::table).collect() };
        // A killed process may have left a manifest, or its name, that is not synced and that a power failure could remove (rule 6).
        sync_manifest(&store, current)?;
        remove_orphans(&store, &kept, (state.log_number, current), report)?;
    }
    let logs = logs_to_replay(&store, &state, &names, report)?;
    let is_usual = store.options.recovery_mode == RecoveryMode::Strict && orphans == Orphans::Last && !read_only;
    let closed = loaded.as_ref().and_then(|loaded| loaded.closed);
    if let (Some(note), Some(loaded)) = (closed.filter(|_| is_usual && is_whole), loaded)
        && loaded.state == state
        && let Some(logged) = resume::read(&store, &note, &loaded, &logs, report)?
    {
        let (fs, log) = (store.fs.clone(), dir.join(wal::file_name(logged.0.log)));
        let opened = resume::begin(store, &loaded, &tables, logged, report.last_seqno)?;
        // If the new log stayed, the note would not describe the next open's logs.
        return complete(opened, report).inspect_err(|_| unlink(&*fs, &log));
    }
    let replayed = replay(&store, &state, &logs, closed.map(|note| note.synced()), report)?;
    let clock = Clock::new(store.options.time_source.clone(), state.clock);
    let clock = if replayed.has_expiring { clock.begin() } else { clock.now() };
    let state = ManifestState { clock, ..state };
    report.last_seqno = replayed.last_seqno;
    match current.filter(|_| read_only) {
        Some(current) => read_only::begin(store, state, current, &tables, replayed),
        None => {
            let aside = set_unnamed_aside(&store, &state, &names, &suspects, report)
                .and_then(|()| set_suspects_aside(&store, &suspects, report));
            aside.inspect_err(|_| replayed.remove_tables(&store))?;
            complete(begin(store, state, current, tables, replayed)?, report)
        }
    }
}

/// Step 7, and the reserve.
fn complete(opened: Opened, report: &mut RecoveryReport) -> Result<Opened> {
    let (store, version) = (&opened.store, &opened.view.version);
    let needed = (opened.manifest.state().log_number, opened.manifest.number());
    remove_orphans(store, &version.named_numbers(), needed, report)?;
    bound_aside(store, version, report)?;
    let besides = needed_besides_memtables(&store.options, version, opened.manifest.bytes());
    let reserve = (open_reserve(&*store.fs, &store.dir, &store.options, besides), besides);
    Ok(Opened { reserve, ..opened })
}

/// Makes manifest `current`, and the pointer to it, durable.
fn sync_manifest(store: &TableStore, current: u64) -> Result<()> {
    for name in [&*manifest_name(current), CURRENT] {
        let path = store.dir.join(name);
        store.fs.open_write(&path).and_then(|file| file.sync()).map_err(Error::io("sync", &path))?;
    }
    store.fs.sync_dir(&store.dir).map_err(Error::io("sync", &store.dir))
}

fn list(fs: &dyn FileSystem, dir: &Path) -> Result<Vec<FileKind>> {
    let names: Vec<OsString> = fs.read_dir(dir).map_err(Error::io("list", dir))?;
    Ok(names.iter().map(|name| FileKind::of(name)).collect())
}

/// A number that the counter cannot have reached does not belong to the database. If the counter continued above it, the numbers could run out, and
/// no file could be created any more.
fn check_numbers(dir: &Path, state: &ManifestState, names: &[FileKind]) -> Result<()> {
    let limit = state.next_file_number.saturating_add(MAX_UNRECORDED);
    match names.iter().filter_map(|kind| kind.number()).find(|&number| number > limit) {
        None => Ok(()),
        Some(number) => {
            let what = format!(
                "file names: expected numbers up to {limit}, found {number}; such a file is not of this database, and \
                 can be moved elsewhere"
            );
            Err(Error::corruption(dir, 0, what))
        }
    }
}

fn table_store(
    fs: Arc<dyn FileSystem>,
    dir: &Path,
    options: Options,
    state: &ManifestState,
    names: &[FileKind],
) -> TableStore {
    // The counter also passes all numbers in the directory: a file whose edit was never written has a number too.
    let used = names.iter().filter_map(|kind| kind.number()).max().unwrap_or(0);
    let numbers = Arc::new(FileNumbers::starting_at(state.next_file_number.max(used + 1)));
    let store = TableStore::new(fs, dir, options, numbers);
    store.set_keyspaces(state.keyspaces.clone());
    store
}

/// The numbers of the logs that are not in tables, ascending. The oldest must exist (rule 10): its name was synced before the manifest became
/// current.
fn logs_to_replay(
    store: &TableStore,
    state: &ManifestState,
    names: &[FileKind],
    report: &mut RecoveryReport,
) -> Result<Vec<u64>> {
    if report.created {
        return Ok(Vec::new());
    }
    let number = |kind: &FileKind| match *kind {
        FileKind::Log(number) if number >= state.log_number => Some(number),
        _ => None,
    };
    let mut logs: Vec<u64> = names.iter().filter_map(number).collect();
    logs.sort_unstable();
    if logs.first() != Some(&state.log_number) {
        let path = store.dir.join(wal::file_name(state.log_number));
        let missing = Error::corruption(&path, 0, "expected the log that the manifest names, found no such file");
        // If the end of the manifest may be lost, this explains the missing log: a table has replaced it, and the edit for that table is lost. The
        // keys of such a table are unknown.
        let named = state.version.named_numbers();
        let all_are_named = names.iter().filter_map(FileKind::table).all(|number| named.contains(&number));
        let manifest_is_whole = !report.manifest_tail_dropped && all_are_named;
        if store.options.recovery_mode != RecoveryMode::Quarantine || !manifest_is_whole {
            return Err(missing);
        }
        report.damage.push(missing.to_string());
        report.logs_end_at = Some(state.last_seqno);
    }
    Ok(logs)
}

/// Steps 5 and 6. `current` is the number of the manifest that is current before. Until the new manifest is current, no manifest refers to the files
/// that recovery has written. After an error these files are removed; otherwise each attempt to open a database on a full disk would take more space.
fn begin(
    store: TableStore,
    state: ManifestState,
    current: Option<u64>,
    tables: Vec<Arc<Table>>,
    replayed: Replayed,
) -> Result<Opened> {
    let made: Vec<u64> = replayed.tables.iter().map(|table| table.number()).collect();
    let remove_made = || made.iter().for_each(|&number| store.remove(number));
    let number = store.numbers.allocate().inspect_err(|_| remove_made())?;
    let created = wal::Writer::create_unnamed(&*store.fs, &store.dir, number, store.counters.clone());
    let log = created.inspect_err(|_| remove_made())?;
    let last_seqno = replayed.last_seqno;
    let (manifest, view) = make_current(&store, state, &log, tables, replayed).inspect_err(|error| {
        if manifest::is_still_current(&*store.fs, &store.dir, current, error) {
            store.unlink(&store.dir.join(wal::file_name(number)));
            remove_made();
        }
    })?;
    Ok(Opened::new(store, view, log, last_seqno, manifest))
}

/// Step 6: writes the version with the replayed tables to a new manifest whose log number is that of the new `log`, and makes the manifest current.
fn make_current(
    store: &TableStore,
    state: ManifestState,
    log: &wal::Writer,
    mut tables: Vec<Arc<Table>>,
    replayed: Replayed,
) -> Result<(Manifest, View)> {
    let edit = VersionEdit {
        added: replayed.tables.iter().map(|open| (RunId::LEVEL_0, open.meta().clone())).collect(),
        ..VersionEdit::default()
    };
    let version = state.version.apply(&edit);
    let inconsistent = |what: String| {
        Error::corruption(&store.dir.join(CURRENT), 0, format!("replayed logs do not fit the version: {what}"))
    };
    let version = Arc::new(version.map_err(inconsistent)?);
    tables.extend(replayed.tables);
    let runs = open_runs(&version, tables.iter());
    let stats = state.stats.plus(&replayed.stats);
    // This can fail without leaving any file, so it comes before the steps that leave one.
    let number = log.segment().number();
    let active = LoggedMemtable::new(store.options.memtable_kind, number, store.options.memtable_bytes)?;
    let log = log.segment().clone();
    let before_active = replayed.last_seqno;
    let (scans, frozen) = (Arc::new(ScanCount::new(&version)), Vec::new());
    let view =
        View { active, before_active, upto: MAX_SEQNO, log, frozen, runs, scans, stats, version: version.clone() };
    let policy = store.options.compaction.map(Compaction::id);
    let state = ManifestState { version, log_number: number, last_seqno: replayed.last_seqno, policy, stats, ..state };
    let manifest = Manifest::create(store.fs.clone(), &store.dir, store.numbers.clone(), state)?;
    Ok((manifest, view))
}

/// Step 7. A file that neither the version nor the current manifest refers to was left by an interrupted step, or is obsolete. `named` are the tables
/// of the version; replay begins at `log`.
fn remove_orphans(
    store: &TableStore,
    named: &HashSet<u64>,
    (log, manifest): (u64, u64),
    report: &mut RecoveryReport,
) -> Result<()> {
    for kind in list(&*store.fs, &store.dir)? {
        let name = match kind {
            FileKind::Table(number) if !named.contains(&number) => crate::table::file_name(number),
            FileKind::Log(number) if number < log => wal::file_name(number),
            FileKind::Manifest(number) if number != manifest => manifest_name(number),
            FileKind::CurrentTmp => manifest::CURRENT_TMP.to_owned(),
            FileKind::Spare => wal::SPARE.to_owned(),
            FileKind::Incomplete => manifest::INCOMPLETE.to_owned(),
            _ => continue,
        };
        store.unlink(&store.dir.join(&name));
        report.orphans_removed += 1;
    }
    Ok(())
}
