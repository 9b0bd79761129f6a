//! The file system interface of the engine: every access to a file goes through [`FileSystem`] and [`File`].
//!
//! [`StdFs`] is the real one.
//!
//! Files are read and written at explicit offsets, by any number of threads; no type here has a position. Calls of the trait methods may be short or
//! interrupted, like system calls; only [`File::read_exact_at`] and [`File::write_all_at`] handle that.

#[cfg(unix)]
mod dir_fs;
mod held_lock;
mod link_or_copy;
#[cfg(unix)]
mod mapping;
mod std_file;
mod std_fs;

use std::ffi::OsString;
use std::fmt::Debug;
use std::io::{Error, ErrorKind, Result};
use std::path::Path;
use std::sync::Arc;

pub(crate) use link_or_copy::link_or_copy;
pub use std_fs::StdFs;
pub(crate) use std_fs::handle_limit;

pub use crate::types::MappedBytes;

/// The operations that the engine needs from a file system.
pub trait FileSystem: Send + Sync + Debug + 'static {
    /// This file system with `dir` kept open: a path below `dir` refers to the directory that has the name `dir` now, even after it was moved and
    /// another one was created under its name. The default is `None`; then [`in_open_directory`] uses paths.
    fn open_dir(&self, _dir: &Path) -> Result<Option<Arc<dyn FileSystem>>> {
        Ok(None)
    }
    /// Creates a file for reading and writing; [`ErrorKind::AlreadyExists`] if it exists.
    fn create_new(&self, path: &Path) -> Result<Arc<dyn File>>;
    /// Opens an existing file for reading.
    fn open(&self, path: &Path) -> Result<Arc<dyn File>>;
    /// Opens an existing file for reading and writing.
    fn open_write(&self, path: &Path) -> Result<Arc<dyn File>>;
    /// Renames a file and atomically replaces the target; or renames a directory to an unused name. Durable after [`FileSystem::sync_dir`].
    fn rename(&self, from: &Path, to: &Path) -> Result<()>;
    /// Unlinks a file; open handles can still use it. Durable after [`FileSystem::sync_dir`].
    fn remove(&self, path: &Path) -> Result<()>;
    /// Gives the file `from` the additional name `to`: both names then refer to one file. [`ErrorKind::AlreadyExists`] if `to` is taken. Durable
    /// after [`FileSystem::sync_dir`]. After any error the caller has to copy the file instead, for example if the two names would be on different
    /// devices; so a file system without links can use this default.
    fn link(&self, from: &Path, to: &Path) -> Result<()> {
        Err(Error::new(ErrorKind::Unsupported, format!("no links: {} to {}", from.display(), to.display())))
    }
    /// Removes an empty directory. Durable after [`FileSystem::sync_dir`] of its parent.
    fn remove_dir(&self, dir: &Path) -> Result<()> {
        Err(Error::new(ErrorKind::Unsupported, format!("directories stay: {}", dir.display())))
    }
    /// The names in a directory, in no particular order.
    fn read_dir(&self, dir: &Path) -> Result<Vec<OsString>>;
    /// Creates a directory and its parents; no error if it exists.
    fn create_dir_all(&self, dir: &Path) -> Result<()>;
    /// Makes the entries of a directory durable: all creations, renames and removals so far.
    fn sync_dir(&self, dir: &Path) -> Result<()>;
    /// Whether a file or directory has this path.
    fn exists(&self, path: &Path) -> Result<bool>;
    /// Locks a file exclusively, creating it if absent, until the result is dropped or the process ends; [`ErrorKind::WouldBlock`] if any process,
    /// including this one, holds the lock.
    fn lock(&self, path: &Path) -> Result<Box<dyn Send + Sync>>;
    /// Locks an existing file for as long as [`FileSystem::lock`] does, but shared with other holders of a shared lock. The call changes nothing and
    /// needs no permission to write. [`ErrorKind::WouldBlock`] if any process, including this one, holds the exclusive lock; [`ErrorKind::NotFound`]
    /// if there is no such file. By default the lock is exclusive, so that there can be only one reader at a time.
    fn lock_shared(&self, path: &Path) -> Result<Box<dyn Send + Sync>> {
        if self.exists(path)? { self.lock(path) } else { Err(ErrorKind::NotFound.into()) }
    }
    /// The id of the process that holds the exclusive lock of a file, if it is known. The default is `None`.
    fn lock_holder(&self, _path: &Path) -> Option<u32> {
        None
    }
}

/// The result of [`FileSystem::open_dir`], or `fs` itself, which uses paths, if that is not implemented.
pub fn in_open_directory(fs: &Arc<dyn FileSystem>, dir: &Path) -> Result<Arc<dyn FileSystem>> {
    Ok(fs.open_dir(dir)?.unwrap_or_else(|| Arc::clone(fs)))
}

/// Removes a directory with all of its contents, if it exists.
pub fn remove_dir_all(fs: &dyn FileSystem, dir: &Path) -> Result<()> {
    if !fs.exists(dir)? {
        return Ok(());
    }
    for path in fs.read_dir(dir)?.into_iter().map(|name| dir.join(name)) {
        match fs.remove(&path) {
            Err(error) if fs.read_dir(&path).is_err() => return Err(error),
            Err(_) => remove_dir_all(fs, &path)?,
            Ok(()) => {}
        }
    }
    fs.remove_dir(dir)
}

/// An open file.
pub trait File: Send + Sync + Debug {
    /// Reads up to `buf.len()` bytes from `offset`. It may read fewer at the end of the file or whenever the system returns fewer, and reads 0 only
    /// at the end or for an empty `buf`.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize>;
    /// Writes some bytes of `buf` at `offset`, growing the file as needed. Returns their number.
    fn write_at(&self, buf: &[u8], offset: u64) -> Result<usize>;
    /// Makes the file's bytes and its length durable.
    fn sync(&self) -> Result<()>;
    /// Truncates the file to `len` bytes, or extends it with zeros.
    fn truncate(&self, len: u64) -> Result<()>;
    /// Allocates space for the file up to `len` bytes; the space after its present end is filled with zeros. After an error a part of the space may
    /// be allocated. By default the missing zeros are written, which reserves nothing on a file system that compresses them.
    fn allocate(&self, len: u64) -> Result<()> {
        write_zeros_upto(self, len)
    }
    /// The length in bytes.
    fn len(&self) -> Result<u64>;
    /// Numbers that differ from those of every other file, and from those before the last change of this file, as far as the system shows it: device,
    /// inode and time of the change. The default is `None`: then a database is recovered at each open, even after a close.
    fn stamp(&self) -> Result<Option<[u64; 4]>> {
        Ok(None)
    }

    /// Maps the first `len` bytes into memory for writing. The file may be shorter, as long as no thread writes beyond its end. A file system may
    /// allow this only if a write into existing space of the file never needs new space: such a write cannot return an error, and kills the process
    /// instead. The default is [`ErrorKind::Unsupported`]: then, as after any other error, the caller uses [`write_at`](Self::write_at) instead.
    fn map_mut(&self, _len: u64) -> Result<Box<dyn Mapping>> {
        Err(ErrorKind::Unsupported.into())
    }

    /// Maps the whole file into memory for reading. As long as the result exists, nobody writes to the file or truncates it; it may be renamed and
    /// unlinked.
    ///
    /// An error of the device under a mapped page cannot be returned, and kills the process. The default is [`ErrorKind::Unsupported`]: then, as
    /// after any other error, the caller uses [`read_at`](Self::read_at) instead.
    fn map(&self) -> Result<MappedBytes> {
        Err(ErrorKind::Unsupported.into())
    }

    /// Whether the length is 0.
    fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Fills `buf` from `offset`; [`ErrorKind::UnexpectedEof`] if the file ends before that. An error contains the offset.
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
            // A read longer than the buffer would be a bug of the file system: the excess is ignored.
            buf = buf.split_at_mut(n.min(buf.len())).1;
            offset += n as u64;
        }
        Ok(())
    }

    /// Writes all of `buf` at `offset`. After an error an unknown part of `buf` is in the file.
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

/// The bytes of a file in memory, for any number of concurrent writers. Written bytes are in the file at once, and survive a killed process;
/// [`File::sync`] makes them durable.
pub trait Mapping: Send + Sync + Debug {
    /// Copies `bytes` to `offset`, a multiple of 8. If the length of `bytes` is not a multiple of 8, zeros follow up to the next multiple.
    ///
    /// # Panics
    /// Panics if any byte is outside the mapping. If the range is beyond the end of the file, or the device has failed, the system kills the process.
    fn write(&self, bytes: &[u8], offset: u64);

    /// Prepares the pages of `len` bytes at `offset` for writing, if possible: when two threads touch a new page at once, one of them has to sleep.
    /// By default this does nothing.
    fn populate(&self, _offset: u64, _len: u64) {}
}

/// The number in a file name of the form `{number:06}{suffix}`; `None` for other names.
pub(crate) fn number_in(name: &str, suffix: &str) -> Option<u64> {
    let number = name.strip_suffix(suffix)?.parse().ok()?;
    // The name must be spelled as the engine spells it: "+1.sst" and "1.sst" belong to others.
    (format!("{number:06}{suffix}") == name).then_some(number)
}

/// The zeros for one write.
pub(crate) static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// The `len` zeros from `at` on, in parts, each with its offset.
pub(crate) fn zeros_at(at: u64, len: u64) -> impl Iterator<Item = (u64, &'static [u8])> {
    let part = move |done| &ZEROS[..ZEROS.len().min((len - done) as usize)];
    (0..len).step_by(ZEROS.len()).map(move |done| (at + done, part(done)))
}

/// Implements [`File::allocate`] by writing zeros.
fn write_zeros_upto(file: &(impl File + ?Sized), len: u64) -> Result<()> {
    let end = file.len()?;
    zeros_at(end, len.saturating_sub(end)).try_for_each(|(at, zeros)| file.write_all_at(zeros, at))
}

/// Reads the `len` bytes at `offset` of the file at `path`. `len` may come from damaged bytes.
pub(crate) fn read_bytes(file: &dyn File, path: &Path, offset: u64, len: u64) -> crate::error::Result<Vec<u8>> {
    let too_long = || crate::error::Error::corruption(path, offset, format!("{len} bytes do not fit into memory"));
    let len = usize::try_from(len).map_err(|_| too_long())?;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(len).map_err(|_| too_long())?;
    bytes.resize(len, 0);
    file.read_exact_at(&mut bytes, offset).map_err(crate::error::Error::io("read", path))?;
    Ok(bytes)
}

/// Unlinks an unreferenced file; a failure is logged. After a failure an orphan is left, which the next open removes.
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
