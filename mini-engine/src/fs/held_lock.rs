//! [`HeldLock`]: the lock of a database's directory, on files that the caller has opened.

use std::fs::{File, TryLockError};
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use crate::lock::lock;

/// The lock files that this process has locked as writer. The process id in the file does not suffice: processes in two containers may share it.
static OWN: Mutex<Vec<FileId>> = Mutex::new(Vec::new());

/// Device and inode number; `None` if files have none.
type FileId = Option<(u64, u64)>;

#[cfg(unix)]
fn id(file: &File) -> FileId {
    use std::os::unix::fs::MetadataExt;
    file.metadata().ok().map(|file| (file.dev(), file.ino()))
}

#[cfg(not(unix))]
fn id(_file: &File) -> FileId {
    None
}

/// The process that holds a writer's lock on a lock file, if that is this process or has another id.
pub(super) fn writer_of(file: File) -> Option<u32> {
    // If readers hold the lock, the number in the file is that of a killed writer.
    if taken(file.try_lock_shared()).is_ok() {
        return None;
    }
    let is_own = lock(&OWN).contains(&id(&file));
    let mut text = String::new();
    file.take(MOST_DIGITS).read_to_string(&mut text).ok()?;
    text.trim().parse().ok().filter(|holder| is_own == (*holder == std::process::id()))
}

/// More digits than a process id can have.
const MOST_DIGITS: u64 = 32;

/// Longer than a process needs to check whether a writer has opened the database.
const BETWEEN_TRIES: Duration = Duration::from_millis(5);

/// The result of `lock`, tried a second time if the lock was held at first: a process that only checks for a writer holds it for a moment.
pub(super) fn tried_twice<T>(mut lock: impl FnMut() -> Result<T>) -> Result<T> {
    match lock() {
        Err(error) if error.kind() == ErrorKind::WouldBlock => {
            thread::sleep(BETWEEN_TRIES);
            lock()
        }
        locked => locked,
    }
}

/// A lock on the lock file, and on the directory if that can be locked. If only the file were locked, a user could remove it, and another process
/// could lock a new file.
pub(super) struct HeldLock {
    file: File,
    /// `None` if directories cannot be locked, as on some network file systems.
    directory: Option<File>,
    /// The process that took the lock.
    process: u32,
    is_writer: bool,
}

impl HeldLock {
    pub(super) fn of_writer(file: File, directory: Option<File>) -> Result<Self> {
        tried_twice(|| taken(file.try_lock()))?;
        let is_locked = tried_twice(|| lock_directory(directory.as_ref(), File::try_lock))?;
        lock(&OWN).push(id(&file));
        tell_holder(&file);
        Ok(Self { file, directory: directory.filter(|_| is_locked), process: std::process::id(), is_writer: true })
    }

    /// The lock of a reader. `file` is the lock file, if it could be opened.
    pub(super) fn of_reader(file: Result<File>, directory: Option<File>) -> Result<Self> {
        let lock_directory = || lock_directory(directory.as_ref(), File::try_lock_shared);
        let file = match file {
            // A writer may hold a lock file that was removed.
            Err(error) if error.kind() == ErrorKind::NotFound => return Err(lock_directory().err().unwrap_or(error)),
            file => file?,
        };
        taken(file.try_lock_shared())?;
        let is_locked = lock_directory()?;
        Ok(Self { file, directory: directory.filter(|_| is_locked), process: std::process::id(), is_writer: false })
    }
}

/// Writes the process id into the lock file, to help users find the holder: the lock works without it.
fn tell_holder(file: &File) {
    let id = format!("{}\n", std::process::id());
    let mut file = file;
    drop(file.set_len(0).and_then(|()| file.write_all(id.as_bytes())));
}

impl Drop for HeldLock {
    /// Unlocks explicitly, because closing the files ends the locks only once every process has closed them: a child process just forked by another
    /// thread, to start a program, has them open until then. A drop in a forked process does not unlock: only the process that took the lock may
    /// unlock it.
    fn drop(&mut self) {
        if self.process != std::process::id() {
            return;
        }
        if self.is_writer {
            let (mut own, id) = (lock(&OWN), id(&self.file));
            if let Some(at) = own.iter().position(|held| *held == id) {
                own.swap_remove(at);
            }
            drop(self.file.set_len(0));
        }
        if let Some(directory) = &self.directory {
            drop(directory.unlock());
        }
        drop(self.file.unlock());
    }
}

/// Locks the directory that contains the lock file; returns false if that is impossible.
fn lock_directory(directory: Option<&File>, lock: fn(&File) -> std::result::Result<(), TryLockError>) -> Result<bool> {
    match directory.map(|directory| taken(lock(directory))) {
        Some(Err(error)) if error.kind() == ErrorKind::WouldBlock => Err(error),
        locked => Ok(locked.is_some_and(|locked| locked.is_ok())),
    }
}

fn taken(lock: std::result::Result<(), TryLockError>) -> Result<()> {
    match lock {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(Error::new(ErrorKind::WouldBlock, "the lock is held")),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proof::TempDir;

    #[test]
    fn a_lock_ends_when_it_is_dropped_though_a_forked_child_has_its_files_open() {
        // Catches a database that cannot be opened directly after it was closed, because another thread has just forked to start a program: the child
        // process shares the open files, like the copies here. Also catches a fork that releases the lock of its parent.
        let dir = TempDir::new().expect("a directory");
        let path = dir.path().join("LOCK");
        let lock = || {
            let file = File::options().read(true).write(true).create(true).truncate(false).open(&path);
            HeldLock::of_writer(file.expect("a file"), File::open(dir.path()).ok())
        };
        let held = lock().expect("free");
        let copies = (held.file.try_clone(), held.directory.as_ref().map(File::try_clone));
        assert!(lock().is_err());
        drop(held);
        let held = lock().expect("free again");
        drop(copies);
        let copy = |file: &File| file.try_clone().expect("a handle");
        let of_a_fork = HeldLock {
            file: copy(&held.file),
            directory: held.directory.as_ref().map(copy),
            process: held.process.wrapping_add(1),
            is_writer: true,
        };
        drop(of_a_fork);
        assert!(lock().is_err());
    }
}
