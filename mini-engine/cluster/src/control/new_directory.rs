//! Directories that have their names only once they are complete.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::Path;

use mini_engine::incomplete_directory;

use crate::error::{Error, Result, io};

/// Makes a directory of what `fill` writes, durably, to `DIR.incomplete`, which then gets its name. After an error it is removed; a killed process, or a
/// future that is dropped, leaves it. Nothing that another process has left or is writing is used or removed.
pub(super) async fn make_directory<T>(dir: &Path, fill: impl AsyncFnOnce(&Path) -> Result<T>) -> Result<T> {
    let dir = std::path::absolute(dir).map_err(io("find", dir.display()))?;
    if dir.symlink_metadata().is_ok() {
        return Err(Error::unusable(dir, "expected a name that is free, found that it exists"));
    }
    let incomplete = incomplete_directory(&dir);
    fs::create_dir(&incomplete).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => {
            Error::unusable(&incomplete, "another command is writing it, or was interrupted: then delete it")
        }
        _ => io("create", incomplete.display())(error),
    })?;
    let renamed = || sync_dir(&incomplete).and_then(|()| fs::rename(&incomplete, &dir));
    let made = fill(&incomplete).await;
    let made = made.and_then(|made| renamed().map(|()| made).map_err(io("rename", incomplete.display())));
    if made.is_err()
        && let Err(error) = fs::remove_dir_all(&incomplete)
    {
        tracing::warn!(dir = %incomplete.display(), %error, "could not remove an incomplete directory");
    }
    let made = made?;
    dir.parent().map_or(Ok(()), sync_dir).map_err(io("sync", dir.display()))?;
    Ok(made)
}

fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}
