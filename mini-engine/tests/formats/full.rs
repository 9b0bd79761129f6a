//! A file system without room for tables, so that memtables stay in their logs.

use std::ffi::OsString;
use std::io::{ErrorKind, Result};
use std::path::Path;
use std::sync::Arc;

use mini_engine::fs::{File, FileSystem, StdFs};

#[derive(Debug)]
pub(crate) struct NoRoomForTables;

impl FileSystem for NoRoomForTables {
    fn create_new(&self, path: &Path) -> Result<Arc<dyn File>> {
        if path.extension().is_some_and(|extension| extension == "sst") {
            return Err(ErrorKind::StorageFull.into());
        }
        StdFs.create_new(path)
    }

    fn open(&self, path: &Path) -> Result<Arc<dyn File>> {
        StdFs.open(path)
    }

    fn open_write(&self, path: &Path) -> Result<Arc<dyn File>> {
        StdFs.open_write(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        StdFs.rename(from, to)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        StdFs.remove(path)
    }

    fn read_dir(&self, dir: &Path) -> Result<Vec<OsString>> {
        StdFs.read_dir(dir)
    }

    fn create_dir_all(&self, dir: &Path) -> Result<()> {
        StdFs.create_dir_all(dir)
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        StdFs.sync_dir(dir)
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        StdFs.exists(path)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn Send + Sync>> {
        StdFs.lock(path)
    }
}
