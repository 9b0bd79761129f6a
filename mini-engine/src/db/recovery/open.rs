//! Opens a directory: locks it, loads or creates the manifest, replays the logs, and leaves nothing half done.
//!
//! Order, and what a crash after each step leaves to the next open:
//! 1. the directory is created if need be, and the lock is taken; nothing is changed before that.
//! 2. manifest and tables are read. Any damage ends here, with nothing changed.
//! 3. a torn tail is copied aside, cut off and synced, logs behind it are renamed, the names are synced (rules 2, 3). A
//!    crash: the same history is found again, it stops at the same place, and there is nothing left to decide.
//! 4. what was replayed is in tables, synced (rules 4, 7). A crash: they are orphans, and replay makes them again. After
//!    a torn manifest, tables of before that it does not name, and that hold more than was recovered, are suspects: renamed, the
//!    names synced (rule 10). A crash: the manifest is as torn as before, and what is found is what was found here; of the tables
//!    made here only those that were not finished count as suspects.
//! 5. a new log is created and synced. A crash: it has no frame, so it adds nothing to the history and is replayed as
//!    such.
//! 6. a new manifest is written, synced and made current. It names the tables of step 4 and says that replay starts
//!    from the log of step 5. A crash before the pointer is durable: the old manifest is in force, and with it all old
//!    logs. After it: the old logs are obsolete.
//! 7. orphans and obsolete logs are removed, now that nothing can refer to them (rule 10); of many files aside that hold nothing, the
//!    oldest (`aside.rs`).
//!
//! Nothing is acknowledged before step 6 is done, so the new log never matters before the manifest knows it.
//!
//! An open that only reads takes the lock that readers share, does step 2, replays into memory, and ends there (`read_only.rs`): it
//! changes nothing, so that there is nothing for a crash to leave.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use super::aside::bound_aside;
use super::read_only;
use super::replay::{Replayed, replay};
use super::report::RecoveryReport;
use super::tables::{OpenedTables, forget_removed, open_tables, set_suspects_aside, set_unnamed_aside};
use crate::compaction::TableStore;
use crate::db::core::{Core, DirectoryLock, Opened, View, check_nothing_is_lost, lock_directory, open_runs};
use crate::error::{Error, Result};
use crate::fs::FileSystem;
use crate::manifest::{
    self, CURRENT, FileKind, FileNumbers, Manifest, ManifestState, RunId, VersionEdit, manifest_name,
};
use crate::memtables::LoggedMemtable;
use crate::options::{Compaction, Options, RecoveryMode};
use crate::table::Table;
use crate::wal;

/// More file numbers than are ever used between two edits of the manifest: each takes a try to write a file.
const MAX_UNRECORDED: u64 = 1 << 32;

/// Opens the database in `dir`, creating it if the options allow.
pub(crate) fn open(fs: Arc<dyn FileSystem>, dir: &Path, options: Options) -> Result<(Core, RecoveryReport)> {
    options.validate()?;
    // Before anything else: the directory stays the same whatever the process's working directory becomes.
    let dir = &std::path::absolute(dir).map_err(Error::io("find", dir))?;
    let lock = lock_directory(&*fs, dir, &options)?;
    let names = list(&*fs, dir)?;
    let loaded = manifest::load(&*fs, dir)?;
    let current = loaded.as_ref().map(|loaded| loaded.number);
    let created = loaded.is_none();
    let read_only = options.read_only;
    let mut report = RecoveryReport { directory: dir.clone(), created, read_only, ..RecoveryReport::default() };
    let state = match loaded {
        Some(loaded) => {
            report.manifest_tail_dropped = loaded.tail_dropped;
            report.manifest_tail_bytes = loaded.tail_bytes;
            loaded.state
        }
        None if read_only => {
            // It went since the directory was locked. To go on would be to create a database.
            return Err(Error::not_a_database(dir, format!("expected {CURRENT}, found no such file")));
        }
        None => {
            check_nothing_is_lost(&*fs, dir, &names)?;
            ManifestState::default()
        }
    };
    check_numbers(dir, &state, &names)?;
    // The policy of the last open, unless the caller wants another.
    let policy = options.compaction.or_else(|| state.policy.and_then(Compaction::from_id)).unwrap_or_default();
    let store = table_store(fs, dir, options.compaction(policy), &state, &names);
    let OpenedTables { state, tables, suspects } =
        open_tables(&store, forget_removed(state, &names), &names, &mut report)?;
    let logs = logs_to_replay(&store, &state, &names, &mut report)?;
    let replayed = replay(&store, &state, &logs, &mut report)?;
    report.last_seqno = replayed.last_seqno;
    let opened = match current.filter(|_| read_only) {
        Some(current) => read_only::begin(store, state, current, &tables, replayed, lock)?,
        None => {
            let aside = set_unnamed_aside(&store, &state, &names, &suspects, &mut report)
                .and_then(|()| set_suspects_aside(&store, &suspects, &mut report));
            aside.inspect_err(|_| replayed.remove_tables(&store))?;
            let opened = begin(store, state, current, tables, replayed, lock)?;
            remove_orphans(&opened, &mut report)?;
            bound_aside(&opened.store, &opened.view.version, &mut report)?;
            opened
        }
    };
    for finding in report.findings() {
        tracing::warn!("{finding}");
    }
    tracing::debug!(?report, "opened");
    let core = Core::new(opened);
    if read_only {
        core.refuse_writes();
    }
    Ok((core, report))
}

fn list(fs: &dyn FileSystem, dir: &Path) -> Result<Vec<FileKind>> {
    let names: Vec<OsString> = fs.read_dir(dir).map_err(Error::io("list", dir))?;
    Ok(names.iter().map(|name| FileKind::of(name)).collect())
}

/// A number that the counter cannot have reached is not the database's. Counting on above it could use the numbers up, so
/// that nothing could be written any more.
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
    // Above what the directory shows, too: a file whose edit was never written has a number as well.
    let used = names.iter().filter_map(|kind| kind.number()).max().unwrap_or(0);
    let numbers = Arc::new(FileNumbers::starting_at(state.next_file_number.max(used + 1)));
    TableStore::new(fs, dir, options, numbers)
}

/// The numbers of the logs that no table holds, ascending. The oldest must be there (rule 10): it was created and named
/// in the directory before the manifest named it.
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
        // Where the manifest may have lost its end, that is what the log is missing for: it was replaced by a table that
        // the manifest does not know any more. Nothing could be said of the keys in such a table.
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

/// Steps 5 and 6. Until the new manifest is current, which `current` is the number of before, nothing refers to what
/// recovery has made: after an error it is removed, or each try to open a database on a full disk would take more of it.
fn begin(
    store: TableStore,
    state: ManifestState,
    current: Option<u64>,
    tables: Vec<Arc<Table>>,
    replayed: Replayed,
    lock: DirectoryLock,
) -> Result<Opened> {
    let made: Vec<u64> = replayed.tables.iter().map(|table| table.number()).collect();
    let remove_made = || made.iter().for_each(|&number| store.remove(number));
    let number = store.numbers.allocate().inspect_err(|_| remove_made())?;
    let created = wal::Writer::create(&*store.fs, &store.dir, number, None, store.counters.clone());
    let log = created.inspect_err(|_| remove_made())?;
    let last_seqno = replayed.last_seqno;
    let (manifest, view) = make_current(&store, state, &log, tables, replayed).inspect_err(|error| {
        if manifest::is_still_current(&*store.fs, &store.dir, current, error) {
            store.unlink(&store.dir.join(wal::file_name(number)));
            remove_made();
        }
    })?;
    Ok(Opened { store, view, log, last_seqno, manifest, lock })
}

/// Step 6: the version with what was replayed, in a manifest that is current and says that replay starts from `log`, which is new.
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
    // The last of what can fail without a trace, so before what leaves one.
    let number = log.segment().number();
    let active = LoggedMemtable::new(store.options.memtable_kind, number, store.options.memtable_bytes)?;
    let log = log.segment().clone();
    let view = View { active, log, frozen: Vec::new(), runs, stats, version: version.clone() };
    let policy = store.options.compaction.map(Compaction::id);
    let state = ManifestState { version, log_number: number, last_seqno: replayed.last_seqno, policy, stats, ..state };
    let manifest = Manifest::create(store.fs.clone(), &store.dir, store.numbers.clone(), state)?;
    Ok((manifest, view))
}

/// Step 7. What the version and the manifest in force do not name is left from an interrupted step, or obsolete.
fn remove_orphans(opened: &Opened, report: &mut RecoveryReport) -> Result<()> {
    let store = &opened.store;
    let named = opened.view.version.named_numbers();
    for kind in list(&*store.fs, &store.dir)? {
        let name = match kind {
            FileKind::Table(number) if !named.contains(&number) => crate::table::file_name(number),
            FileKind::Log(number) if number < opened.view.active.log => wal::file_name(number),
            FileKind::Manifest(number) if number != opened.manifest.number() => manifest_name(number),
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
