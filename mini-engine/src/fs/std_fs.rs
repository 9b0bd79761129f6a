//! [`StdFs`]: the operating system's file system, by positioned reads and writes.
//!
//! The Windows half is written from the documentation and has not been run.

use std::ffi::OsString;
use std::fs::{self, OpenOptions, TryLockError};
use std::io::{Error, ErrorKind, Result};
use std::path::Path;
use std::sync::Arc;

#[cfg(unix)]
use super::Mapping;
#[cfg(unix)]
use super::mapping::MappedFile;
use super::{File, FileSystem};

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
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        held(file.try_lock(), file)
    }

    fn lock_shared(&self, path: &Path) -> Result<Box<dyn Send + Sync>> {
        let file = fs::File::open(path)?;
        held(file.try_lock_shared(), file)
    }
}

/// The lock on `file`, if it was taken.
fn held(taken: std::result::Result<(), TryLockError>, file: fs::File) -> Result<Box<dyn Send + Sync>> {
    match taken {
        Ok(()) => Ok(Box::new(file)),
        Err(TryLockError::WouldBlock) => Err(Error::new(ErrorKind::WouldBlock, "the lock is held")),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// How many files this process may have open at once.
pub(crate) fn handle_limit() -> u64 {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, getrlimit};
        getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
    }
    // Windows has no limit worth counting.
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

    // Both move the handle's position as well, which nothing here reads.
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

    fn len(&self) -> Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    #[cfg(unix)]
    fn map_mut(&self, len: u64) -> Result<Box<dyn Mapping>> {
        Ok(Box::new(MappedFile::new(&self.0, len)?))
    }
}
