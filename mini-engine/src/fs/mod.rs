//! The file system as the engine sees it: every access to a file goes through [`FileSystem`] and [`File`].
//!
//! [`StdFs`] is the real one. With the feature `simulation` there are two for tests: `FaultFs`, which wraps another and fails
//! chosen operations, and `MemFs`, in memory, which knows what a power cut leaves.
//!
//! Files are read and written at explicit offsets, by any number of threads; nothing here has a position.
//! A call of the traits may be short or interrupted, as the system's own is; [`File::read_exact_at`] and
//! [`File::write_all_at`] are the only places that deal with that.

#[cfg(any(test, feature = "simulation"))]
mod fault;
mod link_or_copy;
#[cfg(unix)]
mod mapping;
#[cfg(any(test, feature = "simulation"))]
mod mem;
mod std_fs;

use std::ffi::OsString;
use std::fmt::Debug;
use std::io::{Error, ErrorKind, Result};
use std::path::Path;
use std::sync::Arc;

#[cfg(any(test, feature = "simulation"))]
pub use fault::{Fault, FaultFs, Repeat, Synced};
pub(crate) use link_or_copy::link_or_copy;
#[cfg(any(test, feature = "simulation"))]
pub use mem::{Disk, Losses, MemFs, Operation, Step};
pub use std_fs::StdFs;
pub(crate) use std_fs::handle_limit;

pub use crate::types::MappedBytes;

/// What the engine asks of a file system.
pub trait FileSystem: Send + Sync + Debug + 'static {
    /// Creates a file for reading and writing; [`ErrorKind::AlreadyExists`] if it exists.
    fn create_new(&self, path: &Path) -> Result<Arc<dyn File>>;
    /// Opens an existing file for reading.
    fn open(&self, path: &Path) -> Result<Arc<dyn File>>;
    /// Opens an existing file for reading and writing.
    fn open_write(&self, path: &Path) -> Result<Arc<dyn File>>;
    /// Renames a file and replaces the target, atomically; or a directory, to a name that is free. Durable after
    /// [`FileSystem::sync_dir`].
    fn rename(&self, from: &Path, to: &Path) -> Result<()>;
    /// Unlinks a file; open handles keep it. Durable after [`FileSystem::sync_dir`].
    fn remove(&self, path: &Path) -> Result<()>;
    /// Gives the file `from` the further name `to`: both are then names of one file. [`ErrorKind::AlreadyExists`] if `to` is
    /// taken. Durable after [`FileSystem::sync_dir`]. Any error means that the caller has to copy the file instead, as
    /// where the two names would be on different devices; a file system without links needs no more than this default.
    fn link(&self, from: &Path, to: &Path) -> Result<()> {
        Err(Error::new(ErrorKind::Unsupported, format!("no links: {} to {}", from.display(), to.display())))
    }
    /// Removes an empty directory. Durable after [`FileSystem::sync_dir`] of the one above.
    fn remove_dir(&self, dir: &Path) -> Result<()> {
        Err(Error::new(ErrorKind::Unsupported, format!("directories stay: {}", dir.display())))
    }
    /// The names in a directory, in no particular order.
    fn read_dir(&self, dir: &Path) -> Result<Vec<OsString>>;
    /// Creates a directory and those above it; no error if it exists.
    fn create_dir_all(&self, dir: &Path) -> Result<()>;
    /// Makes the entries of a directory durable: creations, renames and removals so far.
    fn sync_dir(&self, dir: &Path) -> Result<()>;
    /// Whether something has this path.
    fn exists(&self, path: &Path) -> Result<bool>;
    /// Locks a file exclusively, creating it if absent, until the result is dropped or the process ends;
    /// [`ErrorKind::WouldBlock`] if anyone, this process included, holds the lock.
    fn lock(&self, path: &Path) -> Result<Box<dyn Send + Sync>>;
    /// Locks a file that exists for as long as [`FileSystem::lock`] does, beside others that lock it in this way, and changes
    /// nothing: no right to write is needed. [`ErrorKind::WouldBlock`] if anyone, this process included, holds the exclusive
    /// lock; [`ErrorKind::NotFound`] if there is no such file. By default the lock is exclusive, so that there is one reader
    /// at a time.
    fn lock_shared(&self, path: &Path) -> Result<Box<dyn Send + Sync>> {
        if self.exists(path)? { self.lock(path) } else { Err(ErrorKind::NotFound.into()) }
    }
    /// The id of the process that holds the exclusive lock of a file, if that is known. By default it is not.
    fn lock_holder(&self, _path: &Path) -> Option<u32> {
        None
    }
}

/// An open file.
pub trait File: Send + Sync + Debug {
    /// Reads up to `buf.len()` bytes from `offset`; fewer than asked only at the end of the file or by the
    /// system's whim, 0 only at the end or for an empty `buf`.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize>;
    /// Writes some bytes of `buf` at `offset`, growing the file as needed; how many is the result.
    fn write_at(&self, buf: &[u8], offset: u64) -> Result<usize>;
    /// Makes the file's bytes and its length durable.
    fn sync(&self) -> Result<()>;
    /// Cuts or grows (with zeros) the file to `len` bytes.
    fn truncate(&self, len: u64) -> Result<()>;
    /// The length in bytes.
    fn len(&self) -> Result<u64>;

    /// Maps the first `len` bytes into memory for writing. The file may be shorter, as long as nobody writes behind its end.
    ///
    /// A file system allows this only if a write into space that the file has can never want new space: an error of such a write
    /// has no caller to go to, it ends the process. By default it is [`ErrorKind::Unsupported`]: the caller uses
    /// [`write_at`](Self::write_at) instead, as after any other error.
    fn map_mut(&self, _len: u64) -> Result<Box<dyn Mapping>> {
        Err(ErrorKind::Unsupported.into())
    }

    /// Maps the whole file into memory for reading. Nothing writes to it or cuts it as long as the result lives; it may be renamed and unlinked.
    ///
    /// An error of the device under a mapped page has no caller to go to, it ends the process. By default it is
    /// [`ErrorKind::Unsupported`]: the caller uses [`read_at`](Self::read_at) instead, as after any other error.
    fn map(&self) -> Result<MappedBytes> {
        Err(ErrorKind::Unsupported.into())
    }

    /// Whether the length is 0.
    fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Fills `buf` from `offset`; [`ErrorKind::UnexpectedEof`] if the file ends before. An error says at which offset.
    fn read_exact_at(&self, mut buf: &mut [u8], mut offset: u64) -> Result<()> {
        while !buf.is_empty() {
            let at = |error: Error| Error::new(error.kind(), format!("at offset {offset}: {error}"));
            let n = retry_interrupted(|| self.read_at(buf, offset)).map_err(at)?;
            if n == 0 {
                return Err(Error::new(
                    ErrorKind::UnexpectedEof,
                    format!("file ends at offset {offset}, {} bytes too early", buf.len()),
                ));
            }
            // A read longer than asked would be the file system's bug: take what was asked.
            buf = buf.split_at_mut(n.min(buf.len())).1;
            offset += n as u64;
        }
        Ok(())
    }

    /// Writes all of `buf` at `offset`. After an error an unknown part of it is in the file.
    fn write_all_at(&self, mut buf: &[u8], mut offset: u64) -> Result<()> {
        while !buf.is_empty() {
            let n = retry_interrupted(|| self.write_at(buf, offset))?;
            if n == 0 {
                return Err(Error::new(
                    ErrorKind::WriteZero,
                    format!("no byte of {} accepted at offset {offset}", buf.len()),
                ));
            }
            buf = buf.split_at(n.min(buf.len())).1;
            offset += n as u64;
        }
        Ok(())
    }
}

/// A file's bytes in memory, for any number of writers at once. What is written is in the file at once, and survives the process;
/// [`File::sync`] makes it durable.
pub trait Mapping: Send + Sync + Debug {
    /// Copies `bytes` to `offset`, a multiple of 8. If their number is not one, zeros follow up to the next.
    ///
    /// # Panics
    /// If any of it is outside the mapping. Behind the end of the file, or after its device has failed, the system ends the process.
    fn write(&self, bytes: &[u8], offset: u64);

    /// Makes the pages of `len` bytes at `offset` ready to be written, as far as that is possible: a page that is first touched by
    /// two threads at once puts one of them to sleep. By default nothing.
    fn populate(&self, _offset: u64, _len: u64) {}
}

/// The number in a file name of the form `{number:06}{suffix}`; `None` for other names.
pub(crate) fn number_in(name: &str, suffix: &str) -> Option<u64> {
    let number = name.strip_suffix(suffix)?.parse().ok()?;
    // The name must be the one we would give: "+1.sst" and "1.sst" are somebody else's.
    (format!("{number:06}{suffix}") == name).then_some(number)
}

/// Unlinks a file that nothing refers to; a failure is traced. It leaves an orphan, which the next open removes.
pub(crate) fn unlink(fs: &dyn FileSystem, path: &Path) {
    if let Err(error) = fs.remove(path) {
        tracing::warn!(file = %path.display(), %error, "could not remove a file that nothing refers to");
    }
}

fn retry_interrupted(mut call: impl FnMut() -> Result<usize>) -> Result<usize> {
    loop {
        match call() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests;
