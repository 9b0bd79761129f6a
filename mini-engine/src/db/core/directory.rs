//! The directory itself: its creation, its lock, and the check whether a database may be created in it.
//!
//! A database is useless if a power failure removes the name of its directory. As long as there is no `CURRENT`, no write was acknowledged. So each
//! open then syncs the name of the directory again: an earlier open may have ended between the creation and that sync, or another program may have
//! created the directory. Missing parent directories are created one at a time, and each name is synced before the next: every parent of a database
//! has a durable name.
//!
//! The directory is opened before its contents are read, and all later calls use the open directory, even if its path then refers to another one
//! (`FileSystem::open_dir`).

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::lost_pointer::{check_is_no_leftover, check_nothing_is_lost};
use crate::error::{Error, Result};
use crate::fs::{FileSystem, in_open_directory};
use crate::manifest::{CURRENT, FileKind, LOCK};
use crate::options::Options;

/// A directory that file systems create in their topmost directory, which may be that of a database.
const LOST_AND_FOUND: &str = "lost+found";

/// The holder of the lock if it is not another process.
const OPEN_HERE: &str = "this process has the database open: a handle, a snapshot or an iterator of it is still there";

/// The lock on a database's directory, held until dropped.
pub(crate) struct DirectoryLock {
    /// `None` for a reader that follows a writer, and for one in a directory without a lock file, where there was never a writer.
    _held: Option<Box<dyn Send + Sync>>,
}

impl fmt::Debug for DirectoryLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DirectoryLock")
    }
}

/// The absolute path of a database's directory, which stays valid if the process changes its working directory.
pub(crate) fn absolute(dir: &Path) -> Result<PathBuf> {
    if dir.as_os_str().is_empty() {
        return Err(Error::InvalidArgument("expected the path of a directory, found an empty one".to_owned()));
    }
    std::path::absolute(dir).map_err(Error::io("find", dir))
}

/// A directory's lock, and the file system in which the directory is open.
pub(crate) type Locked = (DirectoryLock, Arc<dyn FileSystem>);

/// Takes the directory's lock; a reader shares it with others, and takes none if it follows a writer. A directory that is not a database is left
/// unchanged: no lock file is created in it.
pub(crate) fn lock_directory(fs: &Arc<dyn FileSystem>, dir: &Path, options: &Options) -> Result<Locked> {
    let creates = options.create_if_missing && !options.read_only;
    if !fs.exists(dir).map_err(Error::io("look for", dir))? {
        if !creates {
            return Err(Error::not_a_database(dir, "expected a directory, found nothing"));
        }
        create(&**fs, dir)?;
    }
    let opened = open(fs, dir)?;
    let fs = &*opened;
    let names = list(fs, dir)?;
    let kinds: Vec<FileKind> = names.iter().map(|name| FileKind::of(name)).collect();
    check_is_no_leftover(dir, &kinds)?;
    if !kinds.contains(&FileKind::Current) {
        let lost = check_nothing_is_lost(fs, dir, &kinds);
        // Another process may have just created the database.
        if lost.is_err() && !fs.exists(&dir.join(CURRENT)).map_err(Error::io("look for", dir))? {
            lost?;
        }
        let is_foreign = |name: &&OsString| FileKind::of(name) == FileKind::Foreign && **name != LOST_AND_FOUND;
        if let Some(name) = names.iter().find(is_foreign) {
            return Err(Error::not_a_database(
                dir,
                format!("expected {CURRENT} or an empty directory, found {name:?}"),
            ));
        }
        if !creates {
            return Err(Error::not_a_database(dir, format!("expected {CURRENT}, found no such file")));
        }
        sync_name(fs, dir)?;
    }
    let lock = if options.follows { DirectoryLock { _held: None } } else { lock(fs, dir, options.read_only)? };
    Ok((lock, opened))
}

/// Creates the directory, unless it exists, and takes its lock, whatever it contains. Its name is not durable on return.
pub(crate) fn create_locked(fs: &Arc<dyn FileSystem>, dir: &Path) -> Result<Locked> {
    if !fs.exists(dir).map_err(Error::io("look for", dir))? {
        create(&**fs, dir)?;
    }
    let opened = open(fs, dir)?;
    Ok((lock(&*opened, dir, false)?, opened))
}

/// Takes the lock of a directory that is only read, even if the directory has no lock file.
pub(crate) fn lock_for_reading(fs: &Arc<dyn FileSystem>, dir: &Path) -> Result<Locked> {
    let opened = open(fs, dir)?;
    list(&*opened, dir)?;
    Ok((lock(&*opened, dir, true)?, opened))
}

fn open(fs: &Arc<dyn FileSystem>, dir: &Path) -> Result<Arc<dyn FileSystem>> {
    in_open_directory(fs, dir).map_err(not_listed(dir))
}

fn list(fs: &dyn FileSystem, dir: &Path) -> Result<Vec<OsString>> {
    fs.read_dir(dir).map_err(not_listed(dir))
}

fn not_listed(dir: &Path) -> impl FnOnce(io::Error) -> Error {
    move |error| match error.kind() {
        ErrorKind::NotADirectory => Error::not_a_database(dir, "expected a directory, found a file"),
        ErrorKind::NotFound => Error::not_a_database(dir, "expected a directory, found nothing"),
        _ => Error::io("list", dir)(error),
    }
}

fn lock(fs: &dyn FileSystem, dir: &Path, read_only: bool) -> Result<DirectoryLock> {
    let path = dir.join(LOCK);
    let (locked, what) = match read_only {
        true => (fs.lock_shared(&path), "a writer has the database open"),
        false => (fs.lock(&path), "the database is open elsewhere"),
    };
    match locked {
        Ok(lock) => Ok(DirectoryLock { _held: Some(lock) }),
        // Creating the lock file would be a write. Every writer creates one, so this is a copy of a database without its lock file.
        Err(error) if read_only && error.kind() == ErrorKind::NotFound => Ok(DirectoryLock { _held: None }),
        Err(error) if error.kind() == ErrorKind::WouldBlock => {
            let holder = fs.lock_holder(&path);
            let what = if holder == Some(std::process::id()) { OPEN_HERE } else { what };
            Err(Error::Locked { path, what, holder })
        }
        Err(error) => Err(Error::io("lock", &path)(error)),
    }
}

/// Creates `dir` and its missing parents, the topmost first. On return the name of `dir` is not yet durable, but those of its parents are.
fn create(fs: &dyn FileSystem, dir: &Path) -> Result<()> {
    let mut missing = Vec::new();
    for path in dir.ancestors().filter(|path| !path.as_os_str().is_empty()) {
        if fs.exists(path).map_err(Error::io("look for", path))? {
            // The parent may have been created by an open that ended before the name was durable.
            sync_name(fs, path)?;
            break;
        }
        missing.push(path);
    }
    while let Some(path) = missing.pop() {
        fs.create_dir_all(path).map_err(Error::io("create", path))?;
        if !missing.is_empty() {
            sync_name(fs, path)?;
        }
    }
    Ok(())
}

/// Makes the name of directory `dir` durable.
pub(crate) fn sync_name(fs: &dyn FileSystem, dir: &Path) -> Result<()> {
    let parent = parent(dir);
    match fs.sync_dir(&parent) {
        // A user without permission to read the parent can never sync it. Rejecting the directory would not help: only its creator can make its name
        // durable.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            tracing::warn!(dir = %parent.display(), %error, "could not sync the directory above");
            Ok(())
        }
        synced => synced.map_err(Error::io("sync", &parent)),
    }
}

/// The directory that contains the name of `dir`.
fn parent(dir: &Path) -> PathBuf {
    match (dir.parent(), dir.file_name()) {
        // The parent of a relative name is the current directory.
        (Some(parent), Some(_)) if parent.as_os_str() == OsStr::new("") => PathBuf::from("."),
        (Some(parent), Some(_)) => parent.to_path_buf(),
        // The textual parent does not contain the names `.`, `..` and `/`.
        _ => dir.join(".."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_of_any_spelling_is_the_directory_that_holds_the_name() {
        // Catches an empty path, which no system can open, and `.` used as its own parent.
        for (dir, expected) in
            [("db", "."), ("a/db", "a"), ("/db", "/"), (".", "./.."), ("/", "/.."), ("a/..", "a/../..")]
        {
            assert_eq!(parent(Path::new(dir)), Path::new(expected), "{dir}");
        }
    }
}
