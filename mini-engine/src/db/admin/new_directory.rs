//! Makes a directory a database of its own, out of tables.
//!
//! Order (rules 4 and 6), so that `CURRENT`, by which a directory is a database, is there only with all it leads to:
//! 1. the directory is created, its name synced, and its lock taken, so that no open sees it half made.
//! 2. the caller puts tables there, whose bytes and names are synced.
//! 3. an empty log, then a manifest that names all of it, then `CURRENT`: each synced before the next.
//!
//! A crash before the end leaves tables without `CURRENT`, which no open takes for a database; with `CURRENT` it is whole.
//! After an error what was made is removed, `CURRENT` first.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::db::core::lock_directory;
use crate::error::{Error, Result};
use crate::fs::FileSystem;
use crate::manifest::{CURRENT, FileNumbers, LOCK, Manifest, ManifestState};
use crate::metrics::Counters;
use crate::options::Options;
use crate::wal;

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

/// Makes `dir`, which must not exist, a database of the tables that `fill` puts there. It returns what the manifest is to say of them,
/// and numbers above theirs.
pub(super) fn make_database(
    fs: &Arc<dyn FileSystem>,
    dir: &Path,
    options: &Options,
    fill: impl FnOnce() -> Result<(ManifestState, Arc<FileNumbers>)>,
) -> Result<()> {
    check_free(&**fs, dir)?;
    let options = Options { create_if_missing: true, read_only: false, ..options.clone() };
    let lock = lock_directory(&**fs, dir, &options).inspect_err(|_| remove_dir(&**fs, dir))?;
    let names = fs.read_dir(dir).map_err(Error::io("list", dir))?;
    if names.iter().any(|name| name != LOCK) {
        // It was made by another process since.
        return Err(taken(dir));
    }
    let made = fill().and_then(|(state, numbers)| make_current(fs, dir, state, numbers));
    if made.is_err() {
        remove_all(&**fs, dir);
        drop(lock);
        remove_dir(&**fs, dir);
    }
    made
}

/// Step 3.
fn make_current(fs: &Arc<dyn FileSystem>, dir: &Path, state: ManifestState, numbers: Arc<FileNumbers>) -> Result<()> {
    let log_number = numbers.allocate()?;
    wal::Writer::create(&**fs, dir, log_number, None, Arc::new(Counters::default()))?;
    Manifest::create(fs.clone(), dir, numbers, ManifestState { log_number, ..state })?;
    Ok(())
}

/// Removes what was made, once nothing there opens as a database any more. Where that cannot be had all is left, so that what
/// opens is whole.
fn remove_all(fs: &dyn FileSystem, dir: &Path) {
    if let Err(error) = remove_pointer(fs, dir) {
        tracing::warn!(dir = %dir.display(), %error, "could not undo a new database that failed");
        return;
    }
    let names: Vec<OsString> = fs.read_dir(dir).unwrap_or_default();
    for path in names.iter().map(|name| dir.join(name)) {
        if let Err(error) = fs.remove(&path) {
            tracing::warn!(file = %path.display(), %error, "could not remove a file of a new database that failed");
        }
    }
}

/// Removes the pointer of the database in `dir`, if there is one, durably.
fn remove_pointer(fs: &dyn FileSystem, dir: &Path) -> io::Result<()> {
    let pointer = dir.join(CURRENT);
    if fs.exists(&pointer)? {
        fs.remove(&pointer)?;
        fs.sync_dir(dir)?;
    }
    Ok(())
}

/// Removes the directory, if it is empty: one that holds anything belongs to another process, or could not be emptied.
fn remove_dir(fs: &dyn FileSystem, dir: &Path) {
    if let Err(error) = fs.remove_dir(dir) {
        tracing::warn!(dir = %dir.display(), %error, "could not remove the directory of a new database that failed");
    }
}
