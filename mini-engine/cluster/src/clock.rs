//! [`ClockFs`]: the file system of a group's database, on which the time is the instant that the group has applied.
//!
//! Entries expire by the clock of the file system. If that were the machine's clock, a key could be there for one node and not for another when they
//! apply the same INCR. So the time comes with each proposal, and moves only when one is applied.

use std::ffi::OsString;
use std::io::Result;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use mini_engine::fs::{File, FileSystem};
use mini_engine_server::replicated::AppliedInstant;

/// The machine's clock, in milliseconds since 1970. Tests set it wrong.
pub(crate) type WallClock = Arc<dyn Fn() -> u64 + Send + Sync>;

/// The system's clock.
pub(crate) fn system_clock() -> WallClock {
    Arc::new(|| {
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        since_1970.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    })
}

/// The files of another file system, with another time.
#[derive(Debug)]
pub(crate) struct ClockFs {
    pub(crate) instant: AppliedInstant,
    pub(crate) files: Arc<dyn FileSystem>,
}

impl FileSystem for ClockFs {
    fn open_dir(&self, dir: &Path) -> Result<Option<Arc<dyn FileSystem>>> {
        let with_time = |files| Arc::new(Self { instant: self.instant.clone(), files }) as _;
        Ok(self.files.open_dir(dir)?.map(with_time))
    }

    fn now(&self) -> SystemTime {
        self.instant.system_time()
    }

    fn create_new(&self, path: &Path) -> Result<Arc<dyn File>> {
        self.files.create_new(path)
    }

    fn open(&self, path: &Path) -> Result<Arc<dyn File>> {
        self.files.open(path)
    }

    fn open_write(&self, path: &Path) -> Result<Arc<dyn File>> {
        self.files.open_write(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.files.rename(from, to)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.files.remove(path)
    }

    fn link(&self, from: &Path, to: &Path) -> Result<()> {
        self.files.link(from, to)
    }

    fn remove_dir(&self, dir: &Path) -> Result<()> {
        self.files.remove_dir(dir)
    }

    fn read_dir(&self, dir: &Path) -> Result<Vec<OsString>> {
        self.files.read_dir(dir)
    }

    fn create_dir_all(&self, dir: &Path) -> Result<()> {
        self.files.create_dir_all(dir)
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        self.files.sync_dir(dir)
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        self.files.exists(path)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn Send + Sync>> {
        self.files.lock(path)
    }

    fn lock_shared(&self, path: &Path) -> Result<Box<dyn Send + Sync>> {
        self.files.lock_shared(path)
    }

    fn lock_holder(&self, path: &Path) -> Option<u32> {
        self.files.lock_holder(path)
    }
}
