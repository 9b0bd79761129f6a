//! Makes a directory a database of its own, out of tables.
//!
//! It is written under another name, beside its own, so that its own name is there only with the whole of it. Order (rules 4 and 6):
//! 1. `NEW.incomplete` is created and its lock taken; in it a file that says that the directory is incomplete.
//! 2. the caller puts tables there, whose bytes and names are synced.
//! 3. an empty log, then a manifest that names all of it, then `CURRENT`: each synced before the next.
//! 4. the directory is renamed to `NEW`, and that is synced. The file of step 1 is of no meaning beside `CURRENT`; it is removed.
//!
//! After an error what was made is removed, `CURRENT` first and the file of step 1 last. A crash, or a removal that fails, leaves
//! `NEW.incomplete`. The next try removes it: it is known by that file, nothing else than ours is in it, and nobody holds its lock. An open
//! says what it is.

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

/// Where [`Db::checkpoint`](crate::Db::checkpoint) and [`Salvage::write_to`](crate::Salvage::write_to) write `dir` before it has its name:
/// `dir.incomplete`. If one was interrupted, the next one to `dir` removes it.
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

/// Makes `dir`, which must not exist, a database of the tables that `fill` puts into the directory that it is given. It returns what the
/// manifest is to say of them, and numbers above theirs.
pub(super) fn make_database(
    fs: &Arc<dyn FileSystem>,
    dir: &Path,
    fill: impl FnOnce(&Path) -> Result<(ManifestState, Arc<FileNumbers>)>,
) -> Result<()> {
    check_free(&**fs, dir)?;
    let incomplete = incomplete_directory(dir);
    let lock = create_locked(&**fs, &incomplete).inspect_err(|_| remove_dir(&**fs, &incomplete)).map_err(being_made)?;
    clear(&**fs, &incomplete)?;
    let mut at = &*incomplete;
    let made = mark(&**fs, at)
        .and_then(|()| fill(at))
        .and_then(|(state, numbers)| make_current(fs, at, state, numbers))
        .and_then(|()| {
            fs.rename(&incomplete, dir).map_err(Error::io("rename", &incomplete))?;
            at = dir;
            sync_name(&**fs, dir)
        });
    match made {
        // It is whole; the next open removes the file as well.
        Ok(()) => crate::fs::unlink(&**fs, &dir.join(INCOMPLETE)),
        Err(_) => {
            let removed = remove_files(&**fs, at).and_then(|()| fs.remove(&at.join(LOCK)));
            if let Err(error) = removed {
                tracing::warn!(dir = %at.display(), %error, "could not undo a new database that failed");
            }
            drop(lock);
            remove_dir(&**fs, at);
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

/// Removes what an interrupted try has left in `dir`, whose lock is held. Anything else is left alone.
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
    wal::Writer::create(&**fs, dir, log_number, None, Arc::new(Counters::default()))?;
    Manifest::create(fs.clone(), dir, numbers, ManifestState { log_number, ..state })?;
    Ok(())
}

/// Removes all but the lock file, once nothing there opens as a database any more, and last what says that it is incomplete. After an
/// error all others are left, so that what opens is whole.
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
