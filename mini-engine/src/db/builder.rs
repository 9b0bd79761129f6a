//! Opening a database with the caller's options.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use super::background::Workers;
use super::care::Salvage;
use super::handle::Handle;
use super::{Db, recovery};
use crate::error::Result;
use crate::fs::{FileSystem, StdFs};
use crate::options::{
    Compaction, Compression, MemtableKind, Options, RecoveryMode, TableReads, TimeSource, define_setters, with_options,
};
use crate::types::Durability;

/// The settings for opening a database: created by [`Db::builder`], used by [`Builder::open`].
///
/// ```
/// # fn main() -> mini_engine::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path();
/// let db = mini_engine::Db::builder(path).memtable_bytes(1 << 20).open()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing is opened before `open`"]
pub struct Builder {
    path: PathBuf,
    options: Options,
    fs: Arc<dyn FileSystem>,
}

impl Db {
    /// Opens the database in directory `path` with the default options, creating it if there is none. See [`Builder::open`] for details and errors.
    ///
    /// ```
    /// # fn main() -> mini_engine::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// let db = mini_engine::Db::open(dir.path())?; // created if there is none
    /// assert!(matches!(mini_engine::Db::open(dir.path()), Err(mini_engine::Error::Locked { .. })));
    /// # Ok(())
    /// # }
    /// ```
    pub fn open(path: impl AsRef<Path>) -> Result<Db> {
        Db::builder(path).open()
    }

    /// Creates a builder that opens the database in directory `path` with the caller's options.
    ///
    /// ```
    /// # fn main() -> mini_engine::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// use mini_engine::{Compression, Db, Durability};
    ///
    /// let db = Db::builder(dir.path()).cache_bytes(256 << 20).durability(Durability::Synced).compression(Compression::Lz4).open()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn builder(path: impl AsRef<Path>) -> Builder {
        Builder::new(path.as_ref())
    }
}

with_options!(define_setters Builder);

impl Builder {
    pub(super) fn new(path: &Path) -> Builder {
        Builder { path: path.to_path_buf(), options: Options::default(), fs: Arc::new(StdFs) }
    }

    fn options_mut(&mut self) -> &mut Options {
        &mut self.options
    }

    /// Replaces all options.
    pub fn options(mut self, options: Options) -> Builder {
        self.options = options;
        self
    }

    /// Sets the file system of the database; the default is that of the operating system. Tests use one that injects faults.
    pub fn file_system(mut self, fs: Arc<dyn FileSystem>) -> Builder {
        self.fs = fs;
        self
    }

    /// Reads all readable entries of a damaged database, skipping all damage, and changes nothing in it. The options are used for the database that
    /// [`Salvage::write_to`] creates.
    ///
    /// # Errors
    /// [`Error::Locked`](crate::Error::Locked) while a writer has it open; [`Error::NotADatabase`](crate::Error::NotADatabase) if there
    /// is no file of a database; [`Error::UnsupportedVersion`](crate::Error::UnsupportedVersion); [`Error::Io`](crate::Error::Io).
    pub fn salvage(self) -> Result<Salvage> {
        Salvage::open(self.fs, &self.path, self.options)
    }

    /// Opens the database: recovers it, or creates it if the options allow.
    ///
    /// Writes that were logged and not flushed are first written to tables and synced, which takes time in proportion to their bytes; all other steps
    /// take time in proportion to the number of tables. With [`Builder::read_only`] those writes are kept in memory, and nothing is written to disk.
    ///
    /// A relative path is resolved against the working directory at the time of the call; later changes of the working directory have no effect.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) for an option out of range; [`Error::Locked`](crate::Error::Locked) while
    /// another handle, snapshot or iterator has it open, in this process too, unless both are read-only;
    /// [`Error::NotADatabase`](crate::Error::NotADatabase); [`Error::UnsupportedVersion`](crate::Error::UnsupportedVersion);
    /// [`Error::Corruption`](crate::Error::Corruption) if durable data is damaged or missing; nothing is changed then;
    /// [`Error::Io`](crate::Error::Io).
    pub fn open(self) -> Result<Db> {
        if self.options.follows {
            let (core, report, follower) = recovery::open_following(&self.fs, &self.path, self.options)?;
            let follower = Some(Mutex::new(follower));
            return Ok(Db::of(Handle { core: Arc::new(core), workers: Mutex::default(), report, follower }));
        }
        let (core, report) = recovery::open(self.fs, &self.path, self.options)?;
        let core = Arc::new(core);
        // A read-only database has nothing to flush or compact.
        let workers = if report.read_only { None } else { Some(Workers::start(&core)?) };
        Ok(Db::of(Handle { core, workers: Mutex::new(workers), report, follower: None }))
    }
}
