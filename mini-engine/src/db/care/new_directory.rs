//! Turns a directory into a separate database, made of tables.
//!
//! The database is written under another name in the same parent directory, so its own name exists only once it is complete. Order (rules 4 and 6):
//! 1. `NEW.incomplete` is created and locked; a file in it marks the directory as incomplete.
//! 2. the caller puts tables into it; their contents and names are synced.
//! 3. an empty log is written, then a manifest that refers to all files, then `CURRENT`: each is synced before the next.
//! 4. the directory is renamed to `NEW`, and the rename is synced. Once `CURRENT` exists, the file of step 1 has no meaning; it is removed.
//!
//! After an error the new files are removed, `CURRENT` first and the file of step 1 last. A crash, or a removal that fails, leaves `NEW.incomplete`.
//! The next attempt removes it, if it has the file of step 1, holds only files of this engine, and no process holds its lock. An open of the remains
//! fails with an error that explains them.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::db::core::{create_locked, sync_name};
use crate::error::{Error, Result};
use crate::fs::FileSystem;
use crate::manifest::{CURRENT, FileKind, FileNumbers, INCOMPLETE, LOCK, Manifest, ManifestState, REPAIRED};
use crate::metrics::Counters;
use crate::wal;

/// The name under which [`Db::checkpoint`](crate::Db::checkpoint) and [`Salvage::write_to`](crate::Salvage::write_to) write `dir` before it is
/// complete: `dir.incomplete`. If such a call was interrupted, the next one for `dir` removes the remains.
pub fn incomplete_directory(dir: impl AsRef<Path>) -> PathBuf {
    let dir = dir.as_ref();
    let mut name = dir.file_name().unwrap_or_default().to_os_string();
    name.push(".incomplete");
    dir.with_file_name(name)
}

/// Fails if a file or directory `dir` exists.
pub(super) fn check_free(fs: &dyn FileSystem, dir: &Path) -> Result<()> {
    match fs.exists(dir).map_err(Error::io("look for", dir))? {
        true => Err(taken(dir)),
        false => Ok(()),
    }
}

/// Marks the new directory `dir` as a repaired database, durably with the names of its tables.
pub(super) fn mark_repaired(fs: &dyn FileSystem, dir: &Path) -> Result<()> {
    let mark = dir.join(REPAIRED);
    fs.create_new(&mark).map(drop).map_err(Error::io("create", &mark))
}

fn taken(dir: &Path) -> Error {
    Error::InvalidArgument(format!(
        "cannot make a database: expected a name that is free, found that {} exists",
        dir.display()
    ))
}

/// Turns `dir`, which must not exist, into a database of the tables that `fill` writes. `fill` gets the new directory and a file system in which the
/// directory is open. `fill` returns the manifest's state for its tables, and file numbers above theirs.
pub(super) fn make_database(
    fs: &Arc<dyn FileSystem>,
    dir: &Path,
    fill: impl FnOnce(&Arc<dyn FileSystem>, &Path) -> Result<(ManifestState, Arc<FileNumbers>)>,
) -> Result<()> {
    check_free(&**fs, dir)?;
    let incomplete = incomplete_directory(dir);
    let locked = create_locked(fs, &incomplete).inspect_err(|_| remove_dir(&**fs, &incomplete));
    let (lock, fs) = locked.map_err(being_made)?;
    clear(&*fs, &incomplete)?;
    let mut at = &*incomplete;
    let made = mark(&*fs, at)
        .and_then(|()| fill(&fs, at))
        .and_then(|(state, numbers)| make_current(&fs, at, state, numbers))
        .and_then(|()| {
            fs.rename(&incomplete, dir).map_err(Error::io("rename", &incomplete))?;
            at = dir;
            sync_name(&*fs, dir)
        });
    match made {
        // The directory is complete now; if the mark cannot be removed, the next open removes it.
        Ok(()) => crate::fs::unlink(&*fs, &dir.join(INCOMPLETE)),
        Err(_) => {
            let removed = remove_files(&*fs, at).and_then(|()| fs.remove(&at.join(LOCK)));
            if let Err(error) = removed {
                tracing::warn!(dir = %at.display(), %error, "could not undo a new database that failed");
            }
            drop(lock);
            remove_dir(&*fs, at);
        }
    }
    made
}

fn being_made(error: Error) -> Error {
    match error {
        Error::Locked { path, holder, .. } => {
            Error::Locked { path, what: "another checkpoint or repair is writing there", holder }
        }
        error => error,
    }
}

/// Removes the files of an interrupted attempt from `dir`, whose lock is held. A directory with any other file is left alone.
fn clear(fs: &dyn FileSystem, dir: &Path) -> Result<()> {
    let names = fs.read_dir(dir).map_err(Error::io("list", dir))?;
    if names.iter().all(|name| name == LOCK) {
        return Ok(());
    }
    let kinds: Vec<FileKind> = names.iter().map(|name| FileKind::of(name)).collect();
    if !kinds.contains(&FileKind::Incomplete) || kinds.contains(&FileKind::Foreign) {
        return Err(taken(dir));
    }
    tracing::debug!(dir = %dir.display(), "removes what an interrupted checkpoint or salvage has left");
    remove_files(fs, dir).map_err(Error::io("remove the interrupted", dir))
}

/// The end of step 1: the mark is durable before any other file exists.
fn mark(fs: &dyn FileSystem, dir: &Path) -> Result<()> {
    let path = dir.join(INCOMPLETE);
    fs.create_new(&path).map_err(Error::io("create", &path))?;
    fs.sync_dir(dir).map_err(Error::io("sync", dir))
}

/// Step 3.
fn make_current(fs: &Arc<dyn FileSystem>, dir: &Path, state: ManifestState, numbers: Arc<FileNumbers>) -> Result<()> {
    let log_number = numbers.allocate()?;
    wal::Writer::create(&**fs, dir, log_number, Arc::new(Counters::default()))?;
    Manifest::create(fs.clone(), dir, numbers, ManifestState { log_number, ..state })?;
    Ok(())
}

/// Removes everything except the lock file: the files that make the directory a database first, and the file that marks it as incomplete last. After
/// an error all remaining files are kept, so that a directory that still opens is complete.
fn remove_files(fs: &dyn FileSystem, dir: &Path) -> io::Result<()> {
    let pointer = dir.join(CURRENT);
    if fs.exists(&pointer)? {
        fs.remove(&pointer)?;
        fs.sync_dir(dir)?;
    }
    let names: Vec<OsString> = fs.read_dir(dir)?;
    let mut removed = Ok(());
    for name in names.iter().filter(|name| *name != LOCK && *name != INCOMPLETE) {
        removed = removed.and(fs.remove(&dir.join(name)));
    }
    removed?;
    match names.iter().any(|name| name == INCOMPLETE) {
        true => fs.remove(&dir.join(INCOMPLETE)),
        false => Ok(()),
    }
}

/// Removes the directory if it is empty; otherwise it belongs to another process, or could not be emptied.
fn remove_dir(fs: &dyn FileSystem, dir: &Path) {
    if let Err(error) = fs.remove_dir(dir) {
        tracing::warn!(dir = %dir.display(), %error, "could not remove the directory of a new database that failed");
    }
}
