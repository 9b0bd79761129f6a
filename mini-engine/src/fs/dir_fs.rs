//! [`DirFs`]: the operating system's file system, which looks up paths below some directories relative to the open handles of these.
//!
//! A path always refers to whatever has that name at the time of the call. While a database is open, its directory can be moved or removed, and
//! another database can be created under the old name. If files were looked up by path, the first database would read, replace and remove the files
//! of the second. So [`FileSystem::open_dir`] keeps the directory open, and looks up every later path below it relative to that handle (`openat` and
//! similar calls). A moved database continues in its directory; a removed one gets errors. Error messages contain the path at the time of the open.
//!
//! This is implemented only for Unix. Windows needs it less: it does not move a directory with an open file, and the lock file is open.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{Error, ErrorKind, Result};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, fstat, linkat, mkdirat, openat, renameat, statat, unlinkat};
use rustix::io::{Errno, retry_on_intr};

use super::held_lock::{HeldLock, writer_of};
use super::std_file::StdFile;
use super::{File, FileSystem};

#[derive(Debug)]
struct OpenDir {
    /// The path under which the directory was opened.
    path: PathBuf,
    handle: fs::File,
}

/// See the module's documentation. Outside of such directories it is like [`StdFs`](super::StdFs).
#[derive(Clone, Debug, Default)]
pub(super) struct DirFs {
    /// The directory that was opened last comes last; if several contain a path, the last one is used.
    dirs: Vec<Arc<OpenDir>>,
}

impl DirFs {
    /// The same file system with one more directory.
    pub(super) fn with(&self, dir: &Path) -> Result<DirFs> {
        let handle = self.open_directory(dir)?;
        let mut dirs = self.dirs.clone();
        dirs.push(Arc::new(OpenDir { path: dir.to_path_buf(), handle }));
        Ok(DirFs { dirs })
    }

    /// The innermost open directory that contains `path`, and the rest of the path. `is_entry` is for operations on the name of a directory, which is
    /// in its parent.
    fn holder<'a>(&'a self, path: &'a Path, is_entry: bool) -> Option<(&'a OpenDir, &'a Path)> {
        let below = |dir: &'a Arc<OpenDir>| Some((&**dir, path.strip_prefix(&dir.path).ok()?));
        self.dirs.iter().rev().filter_map(below).find(|(_, rest)| !is_entry || *rest != Path::new(""))
    }

    /// The handle and the path by which `path` is looked up.
    fn place<'a>(&'a self, path: &'a Path) -> (BorrowedFd<'a>, &'a Path) {
        match self.holder(path, false) {
            Some((dir, rest)) if rest == Path::new("") => (dir.handle.as_fd(), Path::new(".")),
            Some((dir, rest)) => (dir.handle.as_fd(), rest),
            None => (CWD, path),
        }
    }

    /// Like [`place`](DirFs::place), for operations that change the name itself.
    fn entry<'a>(&'a self, path: &'a Path) -> (BorrowedFd<'a>, &'a Path) {
        self.holder(path, true).map_or((CWD, path), |(dir, rest)| (dir.handle.as_fd(), rest))
    }

    /// The same, with a check. If the path is the name of an open directory, it must still refer to that directory.
    fn entry_of_same<'a>(&'a self, path: &'a Path) -> Result<(BorrowedFd<'a>, &'a Path)> {
        let (from, rest) = self.entry(path);
        if let Some(dir) = self.dirs.iter().find(|dir| dir.path == path) {
            let (opened, found) = (fstat(&dir.handle)?, statat(from, rest, AtFlags::empty())?);
            if (opened.st_dev, opened.st_ino) != (found.st_dev, found.st_ino) {
                return Err(Error::new(ErrorKind::NotFound, "it was moved, and something else has its name"));
            }
        }
        Ok((from, rest))
    }

    fn open_at(&self, path: &Path, flags: OFlags) -> Result<fs::File> {
        let ((from, rest), mode) = (self.place(path), Mode::from_raw_mode(0o666));
        Ok(retry_on_intr(|| openat(from, rest, flags | OFlags::CLOEXEC, mode))?.into())
    }

    fn open_directory(&self, dir: &Path) -> Result<fs::File> {
        self.open_at(dir, OFlags::RDONLY | OFlags::DIRECTORY)
    }

    /// The directory of a lock file, to be locked as well; `None` if it cannot be opened.
    fn directory_of(&self, path: &Path) -> Option<fs::File> {
        self.open_directory(path.parent()?).ok()
    }
}

impl FileSystem for DirFs {
    fn open_dir(&self, dir: &Path) -> Result<Option<Arc<dyn FileSystem>>> {
        Ok(Some(Arc::new(self.with(dir)?)))
    }

    fn create_new(&self, path: &Path) -> Result<Arc<dyn File>> {
        let file = self.open_at(path, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL)?;
        Ok(Arc::new(StdFile(file)))
    }

    fn open(&self, path: &Path) -> Result<Arc<dyn File>> {
        Ok(Arc::new(StdFile(self.open_at(path, OFlags::RDONLY)?)))
    }

    fn open_write(&self, path: &Path) -> Result<Arc<dyn File>> {
        Ok(Arc::new(StdFile(self.open_at(path, OFlags::RDWR)?)))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        let ((from, old), (to, new)) = (self.entry_of_same(from)?, self.entry(to));
        Ok(renameat(from, old, to, new)?)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        let (from, rest) = self.place(path);
        Ok(unlinkat(from, rest, AtFlags::empty())?)
    }

    fn link(&self, from: &Path, to: &Path) -> Result<()> {
        let ((from, old), (to, new)) = (self.place(from), self.place(to));
        Ok(linkat(from, old, to, new, AtFlags::empty())?)
    }

    fn remove_dir(&self, dir: &Path) -> Result<()> {
        let (from, rest) = self.entry_of_same(dir)?;
        Ok(unlinkat(from, rest, AtFlags::REMOVEDIR)?)
    }

    fn read_dir(&self, dir: &Path) -> Result<Vec<OsString>> {
        let is_name = |name: &[u8]| !matches!(name, b"." | b"..");
        let mut names = Vec::new();
        for entry in Dir::new(self.open_directory(dir)?)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if is_name(name) {
                names.push(OsStr::from_bytes(name).to_os_string());
            }
        }
        Ok(names)
    }

    fn create_dir_all(&self, dir: &Path) -> Result<()> {
        let Some((holder, rest)) = self.holder(dir, false) else { return fs::create_dir_all(dir) };
        let mut made = PathBuf::new();
        for name in rest {
            made.push(name);
            match mkdirat(&holder.handle, &made, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        match self.holder(dir, false) {
            // Uses no new handle, since handles may be lacking.
            Some((open, rest)) if rest == Path::new("") => open.handle.sync_all(),
            _ => self.open_directory(dir)?.sync_all(),
        }
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        let (from, rest) = self.place(path);
        match statat(from, rest, AtFlags::empty()) {
            Err(Errno::NOENT) => Ok(false),
            found => Ok(found.map(|_| true)?),
        }
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn Send + Sync>> {
        let file = self.open_at(path, OFlags::RDWR | OFlags::CREATE)?;
        Ok(Box::new(HeldLock::of_writer(file, self.directory_of(path))?))
    }

    fn lock_shared(&self, path: &Path) -> Result<Box<dyn Send + Sync>> {
        let file = self.open_at(path, OFlags::RDONLY);
        Ok(Box::new(HeldLock::of_reader(file, self.directory_of(path))?))
    }

    fn lock_holder(&self, path: &Path) -> Option<u32> {
        writer_of(self.open_at(path, OFlags::RDONLY).ok()?)
    }
}
