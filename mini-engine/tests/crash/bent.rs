//! A file system that lies, or has no room for tables.

use std::ffi::OsString;
use std::io::{ErrorKind, Result};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mini_engine::fs::{File, FileSystem};

/// Which syncs do nothing and say that they have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lie {
    None,
    AllFiles,
    Manifest,
    Directories,
    /// Files of checkpoints.
    Copies,
}

#[derive(Clone, Debug)]
pub(crate) struct Bent {
    inner: Arc<dyn FileSystem>,
    lie: Lie,
    tables_refused: Arc<AtomicBool>,
}

impl Bent {
    pub(crate) fn over(inner: Arc<dyn FileSystem>, lie: Lie) -> Bent {
        Bent { inner, lie, tables_refused: Arc::default() }
    }

    /// Whether new tables are refused for want of space from now on.
    pub(crate) fn refuse_tables(&self, refused: bool) {
        self.tables_refused.store(refused, Ordering::SeqCst);
    }

    fn wrap(&self, file: Arc<dyn File>, path: &Path) -> Arc<dyn File> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let deaf = match self.lie {
            Lie::None | Lie::Directories => false,
            Lie::AllFiles => true,
            Lie::Manifest => name.starts_with("MANIFEST"),
            Lie::Copies => path.starts_with("/copies"),
        };
        Arc::new(BentFile { file, deaf })
    }
}

impl FileSystem for Bent {
    fn create_new(&self, path: &Path) -> Result<Arc<dyn File>> {
        if self.tables_refused.load(Ordering::SeqCst) && path.extension().is_some_and(|kind| kind == "sst") {
            return Err(ErrorKind::StorageFull.into());
        }
        self.inner.create_new(path).map(|file| self.wrap(file, path))
    }

    fn open(&self, path: &Path) -> Result<Arc<dyn File>> {
        self.inner.open(path).map(|file| self.wrap(file, path))
    }

    fn open_write(&self, path: &Path) -> Result<Arc<dyn File>> {
        self.inner.open_write(path).map(|file| self.wrap(file, path))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.inner.rename(from, to)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.inner.remove(path)
    }

    fn link(&self, from: &Path, to: &Path) -> Result<()> {
        self.inner.link(from, to)
    }

    fn remove_dir(&self, dir: &Path) -> Result<()> {
        self.inner.remove_dir(dir)
    }

    fn read_dir(&self, dir: &Path) -> Result<Vec<OsString>> {
        self.inner.read_dir(dir)
    }

    fn create_dir_all(&self, dir: &Path) -> Result<()> {
        self.inner.create_dir_all(dir)
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        if self.lie == Lie::Directories { Ok(()) } else { self.inner.sync_dir(dir) }
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        self.inner.exists(path)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn Send + Sync>> {
        self.inner.lock(path)
    }
}

#[derive(Debug)]
struct BentFile {
    file: Arc<dyn File>,
    deaf: bool,
}

impl File for BentFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        self.file.read_at(buf, offset)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> Result<usize> {
        self.file.write_at(buf, offset)
    }

    fn sync(&self) -> Result<()> {
        if self.deaf { Ok(()) } else { self.file.sync() }
    }

    fn truncate(&self, len: u64) -> Result<()> {
        self.file.truncate(len)
    }

    fn len(&self) -> Result<u64> {
        self.file.len()
    }
}
