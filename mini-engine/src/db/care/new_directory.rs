//! Turns a directory into a separate database, made of tables.
//!
//! It is written under another name in the same parent, so that its own name exists only once it is complete. Order (rules 4 and 6):
//! 1. `NEW.incomplete` is created and its lock taken; a file in it marks the directory as incomplete.
//! 2. the caller puts tables there, whose bytes and names are synced.
//! 3. an empty log is written, then a manifest that names everything, then `CURRENT`: each synced before the next.
//! 4. the directory is renamed to `NEW`, and that is synced. Beside `CURRENT`, the file of step 1 has no meaning; it is removed.
//!
//! After an error the new files are removed, `CURRENT` first and the file of step 1 last. A crash, or a removal that fails, leaves
//! `NEW.incomplete`. The next try removes it, if it has the file of step 1, holds only files of this engine, and nobody holds its lock. An open
//! reports what it is.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::db::core::{create_locked, sync_name};
use crate::error::{Error, Result};
use crate::fs::FileSystem;
use crate::manifest::{CURRENT, FileKind, FileNumbers, INCOMPLETE, LOCK, Manifest, ManifestState};
use crate::metrics::Counters;
use crate::wal;

/// The name under which [`Db::checkpoint`](crate::Db::checkpoint) and [`Salvage::write_to`](crate::Salvage::write_to) write `dir` before it is
/// complete: `dir.incomplete`. If one was interrupted, the next one to `dir` removes its remains.
pub fn incomplete_directory(dir: impl AsRef<Path>) -> PathBuf {
    let dir = dir.as_ref();
    let mut name = dir.file_name().unwrap_or_default().to_os_string();
    name.push(".incomplete");
    dir.with_file_name(name)
}

/// Fails if something has the name `dir`.
pub(super) fn check_free(fs: &dyn FileSystem, dir: &Path) -> Result<()> {
    match fs.exists(dir).map_err(Error::io("look for", dir))? {
        true => Err(taken(dir)),
        false => Ok(()),
    }
}

fn taken(dir: &Path) -> Error {
    Error::InvalidArgument(format!(
        "cannot make a database: expected a name that is free, found that {} exists",
        dir.display()
    ))
}

/// Makes `dir`, which must not exist, a database of the tables that `fill` puts into the directory that it is given, by the file system in which
/// that is open. `fill` returns the manifest's state for them, and file numbers above theirs.
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
        // The directory is complete; otherwise the next open removes the file.
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

/// Removes the files of an interrupted try from `dir`, whose lock is held. Anything else is left alone.
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

/// The end of step 1, durable before anything else is there.
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

/// Removes everything except the lock file: first the files that make it a database, and last the file that marks it as incomplete. After an error
/// all remaining files are left, so that a directory that still opens is complete.
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

/// Removes the directory, if it is empty: one that holds anything belongs to another process, or could not be emptied.
fn remove_dir(fs: &dyn FileSystem, dir: &Path) {
    if let Err(error) = fs.remove_dir(dir) {
        tracing::warn!(dir = %dir.display(), %error, "could not remove the directory of a new database that failed");
    }
}
