//! [`NewDirectory`]: a directory that has its name only once it is complete.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use mini_engine::incomplete_directory;

use crate::error::{Error, Result, io};

/// A new directory. It is written as `DIR.incomplete`, and renamed when it is complete. If this is dropped before, the directory is removed; a killed
/// process leaves it. Nothing that another process has left or is writing is used or removed.
pub(super) struct NewDirectory {
    dir: PathBuf,
    incomplete: PathBuf,
    is_complete: bool,
}

impl NewDirectory {
    pub(super) fn create(dir: &Path) -> Result<Self> {
        let dir = std::path::absolute(dir).map_err(io("find", dir.display()))?;
        if dir.symlink_metadata().is_ok() {
            return Err(unusable(&dir, "expected a name that is free, found that it exists"));
        }
        let incomplete = incomplete_directory(&dir);
        match fs::create_dir(&incomplete) {
            Ok(()) => Ok(Self { dir, incomplete, is_complete: false }),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                Err(unusable(&incomplete, "another command is writing it, or was interrupted: then delete it"))
            }
            Err(error) => Err(io("create", incomplete.display())(error)),
        }
    }

    /// The present path.
    pub(super) fn path(&self) -> &Path {
        &self.incomplete
    }

    /// Adds a file, durably.
    pub(super) fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let path = self.incomplete.join(name);
        let written = || {
            let mut file = File::create_new(&path)?;
            file.write_all(bytes)?;
            file.sync_all()
        };
        written().map_err(io("write", path.display()))
    }

    /// Gives the directory its name, durably. The directories in it must be durable.
    pub(super) fn complete(mut self) -> Result<()> {
        let renamed = || {
            sync_dir(&self.incomplete)?;
            fs::rename(&self.incomplete, &self.dir)
        };
        renamed().map_err(io("rename", self.incomplete.display()))?;
        self.is_complete = true;
        self.dir.parent().map_or(Ok(()), sync_dir).map_err(io("sync", self.dir.display()))
    }
}

impl Drop for NewDirectory {
    fn drop(&mut self) {
        if !self.is_complete
            && let Err(error) = fs::remove_dir_all(&self.incomplete)
        {
            tracing::warn!(dir = %self.incomplete.display(), %error, "could not remove an incomplete directory");
        }
    }
}

fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

/// The error for a directory of an operator that cannot be used.
pub(super) fn unusable(dir: &Path, reason: impl Into<String>) -> Error {
    Error::Identity { file: dir.to_owned(), reason: reason.into() }
}
