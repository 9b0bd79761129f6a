//! [`StdFs`]: the operating system's file system, by positioned reads and writes.
//!
//! The Windows half is written from the documentation and has not been run.

use std::ffi::OsString;
use std::fs::{self, OpenOptions, TryLockError};
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

#[cfg(unix)]
use super::mapping::MappedFile;
use super::{File, FileSystem};
#[cfg(unix)]
use super::{MappedBytes, Mapping};

/// The operating system's file system.
#[derive(Clone, Copy, Debug, Default)]
pub struct StdFs;

impl FileSystem for StdFs {
    fn create_new(&self, path: &Path) -> Result<Arc<dyn File>> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
        Ok(Arc::new(StdFile(file)))
    }

    fn open(&self, path: &Path) -> Result<Arc<dyn File>> {
        Ok(Arc::new(StdFile(fs::File::open(path)?)))
    }

    fn open_write(&self, path: &Path) -> Result<Arc<dyn File>> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        Ok(Arc::new(StdFile(file)))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        fs::remove_file(path)
    }

    fn link(&self, from: &Path, to: &Path) -> Result<()> {
        fs::hard_link(from, to)
    }

    fn remove_dir(&self, dir: &Path) -> Result<()> {
        fs::remove_dir(dir)
    }

    fn read_dir(&self, dir: &Path) -> Result<Vec<OsString>> {
        fs::read_dir(dir)?.map(|entry| Ok(entry?.file_name())).collect()
    }

    fn create_dir_all(&self, dir: &Path) -> Result<()> {
        fs::create_dir_all(dir)
    }

    #[cfg(unix)]
    fn sync_dir(&self, dir: &Path) -> Result<()> {
        fs::File::open(dir)?.sync_all()
    }

    /// Does nothing: directories cannot be synced here, their entries are journaled by the file system.
    #[cfg(not(unix))]
    fn sync_dir(&self, _dir: &Path) -> Result<()> {
        Ok(())
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        path.try_exists()
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn Send + Sync>> {
        Ok(Box::new(HeldLock::of_writer(path)?))
    }

    fn lock_shared(&self, path: &Path) -> Result<Box<dyn Send + Sync>> {
        let file = match fs::File::open(path) {
            // A writer may hold a lock file that was removed.
            Err(error) if error.kind() == ErrorKind::NotFound => {
                lock_directory_of(path, fs::File::try_lock_shared)?;
                return Err(error);
            }
            file => file?,
        };
        taken(file.try_lock_shared())?;
        let directory = lock_directory_of(path, fs::File::try_lock_shared)?;
        Ok(Box::new(HeldLock { file, directory, process: std::process::id(), is_writer: false }))
    }

    fn lock_holder(&self, path: &Path) -> Option<u32> {
        let file = fs::File::open(path).ok()?;
        // If readers hold it, the number is that of a killed writer.
        if taken(file.try_lock_shared()).is_ok() {
            return None;
        }
        let mut text = String::new();
        file.take(MOST_DIGITS).read_to_string(&mut text).ok()?;
        text.trim().parse().ok()
    }
}

/// More digits than a process id has.
const MOST_DIGITS: u64 = 32;

/// More time than a process needs to check whether a writer has the database open.
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

/// A lock on the lock file, and on the directory if that can be locked.
struct HeldLock {
    file: fs::File,
    directory: Option<fs::File>,
    /// The process that took it.
    process: u32,
    is_writer: bool,
}

impl HeldLock {
    fn of_writer(path: &Path) -> Result<Self> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        tried_twice(|| taken(file.try_lock()))?;
        let directory = tried_twice(|| lock_directory_of(path, fs::File::try_lock))?;
        tell_holder(&file);
        Ok(Self { file, directory, process: std::process::id(), is_writer: true })
    }
}

/// Writes the process id into the lock file, for people who want to know who holds it: the lock works without it.
fn tell_holder(file: &fs::File) {
    let id = format!("{}\n", std::process::id());
    let mut file = file;
    drop(file.set_len(0).and_then(|()| file.write_all(id.as_bytes())));
}

impl Drop for HeldLock {
    /// Unlocks explicitly, because closing the files ends the locks only once every process has closed them: a child that another thread has just
    /// forked, to start a program, has them open until then. A fork itself does not unlock: only the process that took the lock does.
    fn drop(&mut self) {
        if self.process != std::process::id() {
            return;
        }
        if self.is_writer {
            drop(self.file.set_len(0));
        }
        if let Some(directory) = &self.directory {
            drop(directory.unlock());
        }
        drop(self.file.unlock());
    }
}

/// Locks the directory that holds the lock file. If only the file were locked, anyone who removes it would let another process lock a new one.
/// `None` where directories cannot be locked, as on some network file systems.
fn lock_directory_of(
    path: &Path,
    lock: fn(&fs::File) -> std::result::Result<(), TryLockError>,
) -> Result<Option<fs::File>> {
    let Some(directory) = path.parent().and_then(|directory| fs::File::open(directory).ok()) else { return Ok(None) };
    match taken(lock(&directory)) {
        Err(error) if error.kind() == ErrorKind::WouldBlock => Err(error),
        locked => Ok(locked.ok().map(|()| directory)),
    }
}

fn taken(lock: std::result::Result<(), TryLockError>) -> Result<()> {
    match lock {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(Error::new(ErrorKind::WouldBlock, "the lock is held")),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// The number of files that this process may have open at once.
pub(crate) fn handle_limit() -> u64 {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, getrlimit};
        getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
    }
    // Windows has no limit that matters.
    #[cfg(not(unix))]
    u64::MAX
}

#[derive(Debug)]
struct StdFile(fs::File);

impl File for StdFile {
    #[cfg(unix)]
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        std::os::unix::fs::FileExt::read_at(&self.0, buf, offset)
    }

    #[cfg(unix)]
    fn write_at(&self, buf: &[u8], offset: u64) -> Result<usize> {
        std::os::unix::fs::FileExt::write_at(&self.0, buf, offset)
    }

    // Both move the handle's position as well, which is not used here.
    #[cfg(windows)]
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        match std::os::windows::fs::FileExt::seek_read(&self.0, buf, offset) {
            // Windows reports a read past the end as an error.
            Err(error) if error.raw_os_error() == Some(38) => Ok(0),
            result => result,
        }
    }

    #[cfg(windows)]
    fn write_at(&self, buf: &[u8], offset: u64) -> Result<usize> {
        std::os::windows::fs::FileExt::seek_write(&self.0, buf, offset)
    }

    fn sync(&self) -> Result<()> {
        self.0.sync_data()
    }

    fn truncate(&self, len: u64) -> Result<()> {
        self.0.set_len(len)
    }

    /// Without writing, where that is sure to give the space: then it costs no transfer to the device.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn allocate(&self, len: u64) -> Result<()> {
        use rustix::fs::{FallocateFlags, fallocate};
        use rustix::io::{Errno, retry_on_intr};
        if super::mapping::writes_in_place(&self.0) {
            match retry_on_intr(|| fallocate(&self.0, FallocateFlags::empty(), 0, len)) {
                // ext3.
                Err(Errno::OPNOTSUPP) => {}
                allocated => return Ok(allocated?),
            }
        }
        super::write_zeros_upto(self, len)
    }

    fn len(&self) -> Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    #[cfg(unix)]
    fn map(&self) -> Result<MappedBytes> {
        super::mapping::map(&self.0)
    }

    #[cfg(unix)]
    fn map_mut(&self, len: u64) -> Result<Box<dyn Mapping>> {
        Ok(Box::new(MappedFile::new(&self.0, len)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::TempDir;

    #[test]
    fn a_lock_ends_when_it_is_dropped_though_a_forked_child_has_its_files_open() {
        // Catches a database that cannot be opened directly after it was closed, because another thread has just forked to start a program: the
        // child shares the open files, like these copies. Also catches a fork that ends the lock of its parent.
        let dir = TempDir::new().expect("a directory");
        let path = dir.path().join("LOCK");
        let held = HeldLock::of_writer(&path).expect("free");
        let copies = (held.file.try_clone(), held.directory.as_ref().map(fs::File::try_clone));
        assert!(HeldLock::of_writer(&path).is_err());
        drop(held);
        let held = HeldLock::of_writer(&path).expect("free again");
        drop(copies);
        let copy = |file: &fs::File| file.try_clone().expect("a handle");
        let of_a_fork = HeldLock {
            file: copy(&held.file),
            directory: held.directory.as_ref().map(copy),
            process: held.process.wrapping_add(1),
            is_writer: true,
        };
        drop(of_a_fork);
        assert!(HeldLock::of_writer(&path).is_err());
    }
}
