//! Opens a directory: locks it, loads or creates the manifest, replays the logs, and leaves nothing half done.
//!
//! Order, and what a crash after each step leaves to the next open:
//! 1. the lock is taken; nothing is changed before that but the directory itself.
//! 2. manifest and tables are read. Any damage ends here, with nothing changed.
//! 3. a torn tail is cut off and synced, logs behind it are renamed, the names are synced (rule 3). A crash: the same
//!    history is found again, it stops at the same place, and there is nothing left to decide.
//! 4. what was replayed is in tables, synced (rules 4, 7). A crash: they are orphans, and replay makes them again.
//! 5. a new log is created and synced. A crash: it has no frame, so it adds nothing to the history and is replayed as
//!    such.
//! 6. a new manifest is written, synced and made current. It names the tables of step 4 and says that replay starts
//!    from the log of step 5. A crash before the pointer is durable: the old manifest is in force, and with it all old
//!    logs. After it: the old logs are obsolete.
//! 7. orphans and obsolete logs are removed, now that nothing can refer to them (rule 10).
//!
//! Nothing is acknowledged before step 6 is done, so the new log never matters before the manifest knows it.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use super::replay::{Replayed, replay};
use super::report::RecoveryReport;
use super::state::{Core, DirectoryLock, Opened};
use super::view::View;
use crate::cache::BlockCache;
use crate::compaction::{OpenTable, TableStore};
use crate::error::{Error, Result};
use crate::fs::FileSystem;
use crate::manifest::{
    self, ASIDE, CURRENT, FileKind, FileNumbers, LOCK, Manifest, ManifestState, VersionEdit, manifest_name,
};
use crate::memtables::LoggedMemtable;
use crate::metrics::Counters;
use crate::options::Options;
use crate::wal;

/// Opens the database in `dir`, creating it if the options allow.
pub(super) fn open(fs: Arc<dyn FileSystem>, dir: &Path, options: Options) -> Result<(Core, RecoveryReport)> {
    options.validate()?;
    let lock = lock_directory(&*fs, dir, &options)?;
    let names = list(&*fs, dir)?;
    let loaded = manifest::load(&*fs, dir)?;
    let mut report = RecoveryReport { created: loaded.is_none(), ..RecoveryReport::default() };
    let state = match loaded {
        Some(loaded) => {
            report.manifest_tail_dropped = loaded.tail_dropped;
            loaded.state
        }
        None => {
            check_nothing_is_lost(&*fs, dir, &names)?;
            ManifestState::default()
        }
    };
    let store = table_store(fs, dir, options, &state, &names);
    let tables: Vec<OpenTable> = state.version.tables().map(|meta| store.open(meta)).collect::<Result<_>>()?;
    let logs = logs_to_replay(&store, &state, &names, report.created)?;
    let replayed = replay(&store, &state, &logs, &mut report)?;
    report.last_seqno = replayed.last_seqno;
    let opened = begin(store, state, tables, replayed, lock)?;
    remove_orphans(&opened, &mut report)?;
    tracing::debug!(?report, "opened");
    Ok((Core::new(opened), report))
}

/// Takes the directory's lock. A directory that is not ours is left exactly as it was: no lock file appears in it.
fn lock_directory(fs: &dyn FileSystem, dir: &Path, options: &Options) -> Result<DirectoryLock> {
    let not_a_database = |what: &str| Error::NotADatabase { path: dir.to_path_buf(), what: what.to_owned() };
    if !fs.exists(dir).map_err(Error::io("look for", dir))? {
        if !options.create_if_missing {
            return Err(not_a_database("expected a directory, found nothing"));
        }
        create_directory(fs, dir)?;
    }
    let names = match fs.read_dir(dir) {
        Err(error) if error.kind() == ErrorKind::NotADirectory => {
            return Err(not_a_database("expected a directory, found a file"));
        }
        names => names.map_err(Error::io("list", dir))?,
    };
    let kinds: Vec<FileKind> = names.iter().map(|name| FileKind::of(name)).collect();
    if !kinds.contains(&FileKind::Current) {
        if let Some((name, _)) = names.iter().zip(&kinds).find(|(_, kind)| **kind == FileKind::Foreign) {
            return Err(not_a_database(&format!("expected {CURRENT} or an empty directory, found {name:?}")));
        }
        if !options.create_if_missing {
            return Err(not_a_database(&format!("expected {CURRENT}, found no such file")));
        }
    }
    let path = dir.join(LOCK);
    match fs.lock(&path) {
        Ok(lock) => Ok(DirectoryLock::new(lock)),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Err(Error::Locked { path }),
        Err(error) => Err(Error::io("lock", &path)(error)),
    }
}

/// Creates `dir` and what is missing above it, durably: a database is of no use in a directory that a power cut takes
/// away.
fn create_directory(fs: &dyn FileSystem, dir: &Path) -> Result<()> {
    let mut grown = Vec::new();
    for parent in dir.ancestors().skip(1) {
        // The parent of a relative name is the current directory.
        let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        grown.push(parent);
        if fs.exists(parent).map_err(Error::io("look for", parent))? {
            break;
        }
    }
    fs.create_dir_all(dir).map_err(Error::io("create", dir))?;
    for parent in grown {
        fs.sync_dir(parent).map_err(Error::io("sync", parent))?;
    }
    Ok(())
}

fn list(fs: &dyn FileSystem, dir: &Path) -> Result<Vec<FileKind>> {
    let names: Vec<OsString> = fs.read_dir(dir).map_err(Error::io("list", dir))?;
    Ok(names.iter().map(|name| FileKind::of(name)).collect())
}

/// Without `CURRENT` there is no database yet, unless there are files that only a database has: an interrupted creation
/// leaves a manifest and a log without frames, nothing else.
fn check_nothing_is_lost(fs: &dyn FileSystem, dir: &Path, names: &[FileKind]) -> Result<()> {
    let lost = |what: String| {
        Err(Error::corruption(
            &dir.join(CURRENT),
            0,
            format!("expected a pointer to a manifest, since {what}; found no such file"),
        ))
    };
    for kind in names {
        match *kind {
            FileKind::Table(number) => return lost(format!("table {number} exists")),
            FileKind::Aside(number) => return lost(format!("file {number} was set aside")),
            FileKind::Log(number) => {
                let mut frames = 0u64;
                let count = |_: wal::Frame<'_>| {
                    frames += 1;
                    Ok(())
                };
                wal::replay(fs, &dir.join(wal::file_name(number)), number, count)?;
                if frames > 0 {
                    return lost(format!("log {number} holds writes"));
                }
            }
            FileKind::Lock | FileKind::Current | FileKind::CurrentTmp | FileKind::Manifest(_) | FileKind::Foreign => {}
        }
    }
    Ok(())
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
    let counters = Arc::new(Counters::default());
    let cache = Arc::new(BlockCache::new(options.cache_bytes, options.block_bytes, counters.clone()));
    TableStore { fs, dir: dir.to_path_buf(), options, numbers, cache, counters }
}

/// The numbers of the logs that no table holds, ascending. The oldest must be there (rule 10): it was created and named
/// in the directory before the manifest named it.
fn logs_to_replay(store: &TableStore, state: &ManifestState, names: &[FileKind], created: bool) -> Result<Vec<u64>> {
    if created {
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
        return Err(Error::corruption(&path, 0, "expected the log that the manifest names, found no such file"));
    }
    Ok(logs)
}

/// Steps 5 and 6: the new log, and the manifest that starts from it.
fn begin(
    store: TableStore,
    state: ManifestState,
    mut tables: Vec<OpenTable>,
    replayed: Replayed,
    lock: DirectoryLock,
) -> Result<Opened> {
    let number = store.numbers.allocate();
    let created = wal::Writer::create(&*store.fs, &store.dir, number, None, store.counters.clone());
    let log = created.inspect_err(|_| replayed.remove_tables(&store))?;
    let edit = VersionEdit {
        added: replayed.tables.iter().map(|open| (0, open.meta.clone())).collect(),
        ..VersionEdit::default()
    };
    let version = state.version.apply(&edit);
    let inconsistent = |what: String| {
        Error::corruption(&store.dir.join(CURRENT), 0, format!("replayed logs do not fit the version: {what}"))
    };
    let version = Arc::new(version.map_err(inconsistent)?);
    let state =
        ManifestState { version: version.clone(), log_number: number, last_seqno: replayed.last_seqno, ..state };
    let manifest = Manifest::create(store.fs.clone(), &store.dir, store.numbers.clone(), state)?;
    tables.extend(replayed.tables);
    let ordered =
        version.tables().filter_map(|meta| tables.iter().find(|open| open.meta.number == meta.number).cloned());
    let active = LoggedMemtable::new(number, store.options.memtable_bytes)?;
    let view = View { active, frozen: Vec::new(), tables: ordered.collect(), version };
    Ok(Opened { store, view, log, last_seqno: replayed.last_seqno, manifest, lock })
}

/// Step 7. What the version and the manifest in force do not name is left from an interrupted step, or obsolete. After
/// a torn manifest the tables among it could be what the lost record named, so they are suspects: renamed, not removed.
fn remove_orphans(opened: &Opened, report: &mut RecoveryReport) -> Result<()> {
    let store = &opened.store;
    for kind in list(&*store.fs, &store.dir)? {
        let (name, suspect) = match kind {
            FileKind::Table(number) if !opened.view.version.contains(number) => {
                (crate::table::file_name(number), report.manifest_tail_dropped)
            }
            FileKind::Log(number) if number < opened.view.active.log => (wal::file_name(number), false),
            FileKind::Manifest(number) if number != opened.manifest.number() => (manifest_name(number), false),
            FileKind::CurrentTmp => (manifest::CURRENT_TMP.to_owned(), false),
            _ => continue,
        };
        let path = store.dir.join(&name);
        if suspect {
            let aside = store.dir.join(name + ASIDE);
            store.fs.rename(&path, &aside).map_err(Error::io("rename", &path))?;
            report.set_aside.push(aside);
        } else {
            store.unlink(&path);
            report.orphans_removed += 1;
        }
    }
    Ok(())
}
