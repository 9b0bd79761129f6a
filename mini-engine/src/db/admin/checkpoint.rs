//! Makes a checkpoint: a directory that is a database of its own, out of the tables of this one.
//!
//! Order (rules 4 and 6), so that `CURRENT`, by which a directory is a database, is there only with all it leads to:
//! 1. everything written so far is flushed: the copy needs tables and no log.
//! 2. the directory is created, its name synced, and its lock taken, so that no open sees it half made.
//! 3. each table gets a further name there, or is copied and synced; the names are synced. Tables never change (rule 14),
//!    so both databases can have one file. A merge may replace a table meanwhile; its file stays as long as this has the table.
//! 4. an empty log, then a manifest that names all of it, then `CURRENT`: each synced before the next.
//!
//! A crash before the end leaves tables without `CURRENT`, which no open takes for a database; with `CURRENT` it is whole.
//! After an error what was made is removed, `CURRENT` first. Hard links as in the checkpoints of RocksDB.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::{Arc, PoisonError};

use crate::db::background::flush_all;
use crate::db::core::{Core, lock_directory};
use crate::error::{Error, Result};
use crate::fs::{FileSystem, link_or_copy};
use crate::manifest::{CURRENT, FileNumbers, LOCK, Manifest, ManifestState};
use crate::metrics::Counters;
use crate::options::Options;
use crate::table::{self, RunTable, Table};
use crate::wal;

/// Makes `dir` a copy of the database as it is now.
pub(crate) fn checkpoint(core: &Core, dir: &Path) -> Result<()> {
    let fs = &core.store.fs;
    // Asked first: a flush for nothing would be a waste.
    if fs.exists(dir).map_err(Error::io("look for", dir))? {
        return Err(taken(dir));
    }
    flush_all(core)?;
    let (state, tables) = durable_state(core);
    let options = Options { create_if_missing: true, ..core.store.options.clone() };
    let lock = lock_directory(&**fs, dir, &options).inspect_err(|_| remove_dir(&**fs, dir))?;
    let names = fs.read_dir(dir).map_err(Error::io("list", dir))?;
    if names.iter().any(|name| name != LOCK) {
        // It was made by another process since.
        return Err(taken(dir));
    }
    let filled = fill(core, dir, state, &tables);
    if filled.is_err() {
        remove_all(&**fs, dir);
        drop(lock);
        remove_dir(&**fs, dir);
    }
    filled
}

fn taken(dir: &Path) -> Error {
    Error::InvalidArgument(format!("checkpoint: expected a name that is free, found that {} exists", dir.display()))
}

/// What the manifest says and the open tables of the same version.
fn durable_state(core: &Core) -> (ManifestState, Vec<Arc<Table>>) {
    // Both change together, under the manifest's lock.
    let manifest = core.manifest.lock().unwrap_or_else(PoisonError::into_inner);
    (manifest.state().clone(), core.view.load().tables().map(RunTable::table).cloned().collect())
}

/// Steps 3 and 4.
fn fill(core: &Core, dir: &Path, state: ManifestState, tables: &[Arc<Table>]) -> Result<()> {
    let fs = &core.store.fs;
    for table in tables {
        let name = table::file_name(table.number());
        let (from, to) = (core.dir().join(&name), dir.join(&name));
        link_or_copy(&**fs, || table.file(), &from, &to)?;
    }
    fs.sync_dir(dir).map_err(Error::io("sync", dir))?;
    // Above the numbers of all tables, so that no later file of the copy takes the name of one.
    let numbers = Arc::new(FileNumbers::starting_at(state.next_file_number));
    let log_number = numbers.allocate()?;
    wal::Writer::create(&**fs, dir, log_number, None, Arc::new(Counters::default()))?;
    Manifest::create(fs.clone(), dir, numbers, ManifestState { log_number, ..state })?;
    Ok(())
}

/// Removes what was made, once nothing there opens as a database any more. Where that cannot be had all is left, so that what
/// opens is whole.
fn remove_all(fs: &dyn FileSystem, dir: &Path) {
    if let Err(error) = remove_pointer(fs, dir) {
        tracing::warn!(dir = %dir.display(), %error, "could not undo a checkpoint that failed");
        return;
    }
    let names: Vec<OsString> = fs.read_dir(dir).unwrap_or_default();
    for path in names.iter().map(|name| dir.join(name)) {
        if let Err(error) = fs.remove(&path) {
            tracing::warn!(file = %path.display(), %error, "could not remove a file of a checkpoint that failed");
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
        tracing::warn!(dir = %dir.display(), %error, "could not remove the directory of a checkpoint that failed");
    }
}
