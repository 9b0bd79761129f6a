//! [`StdFs`]: the operating system's file system, accessed by path.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::Result;
use std::path::Path;
use std::sync::Arc;

#[cfg(unix)]
use super::dir_fs::DirFs;
use super::held_lock::{HeldLock, writer_of};
use super::std_file::StdFile;
use super::{File, FileSystem};

/// The operating system's file system.
#[derive(Clone, Copy, Debug, Default)]
pub struct StdFs;

impl FileSystem for StdFs {
    #[cfg(unix)]
    fn open_dir(&self, dir: &Path) -> Result<Option<Arc<dyn FileSystem>>> {
        DirFs::default().open_dir(dir)
    }

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

    /// Does nothing: directories cannot be synced on this system; its file systems journal directory entries.
    #[cfg(not(unix))]
    fn sync_dir(&self, _dir: &Path) -> Result<()> {
        Ok(())
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        path.try_exists()
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn Send + Sync>> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        Ok(Box::new(HeldLock::of_writer(file, directory_of(path))?))
    }

    fn lock_shared(&self, path: &Path) -> Result<Box<dyn Send + Sync>> {
        Ok(Box::new(HeldLock::of_reader(fs::File::open(path), directory_of(path))?))
    }

    fn lock_holder(&self, path: &Path) -> Option<u32> {
        writer_of(fs::File::open(path).ok()?)
    }
}

/// The directory of a lock file, to be locked as well. `None` if directories cannot be opened.
fn directory_of(path: &Path) -> Option<fs::File> {
    fs::File::open(path.parent()?).ok()
}

/// The maximum number of files that this process may have open at once.
pub(crate) fn handle_limit() -> u64 {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, getrlimit};
        getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
    }
    // Windows has no relevant limit.
    #[cfg(not(unix))]
    u64::MAX
}
