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
    Compaction, Compression, MemtableKind, Options, RecoveryMode, TableReads, define_setters, with_options,
};
use crate::types::Durability;

/// How a database is to be opened: made by [`Db::builder`], ends with [`Builder::open`].
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
    /// Opens the database in directory `path` with the default options, creating it if there is none. See
    /// [`Builder::open`] for what it does and how it fails.
    pub fn open(path: impl AsRef<Path>) -> Result<Db> {
        Db::builder(path).open()
    }

    /// Starts to open the database in directory `path` with the caller's options.
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

    /// The file system of the database; the machine's own by default. Tests set one that injects faults.
    pub fn file_system(mut self, fs: Arc<dyn FileSystem>) -> Builder {
        self.fs = fs;
        self
    }

    /// Reads everything that can still be read in a damaged database, around all damage, and changes nothing in it. The options are used for the
    /// database that [`Salvage::write_to`] makes.
    ///
    /// # Errors
    /// [`Error::Locked`](crate::Error::Locked) while a writer has it open; [`Error::NotADatabase`](crate::Error::NotADatabase) if there
    /// is no file of a database; [`Error::UnsupportedVersion`](crate::Error::UnsupportedVersion); [`Error::Io`](crate::Error::Io).
    pub fn salvage(self) -> Result<Salvage> {
        Salvage::open(self.fs, &self.path, self.options)
    }

    /// Opens the database: recovers it, or creates it if the options allow.
    ///
    /// Writes that were logged and not flushed are first written to tables and synced, which takes time in proportion to them; the rest takes time
    /// in proportion to the number of tables. With [`Builder::read_only`] the writes are kept in memory, and nothing is written to disk.
    ///
    /// A relative path is relative to the present working directory; a later change of the working directory does not matter.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) for an option out of range; [`Error::Locked`](crate::Error::Locked) while
    /// another handle, snapshot or iterator has it open, in this process too, unless both are read-only;
    /// [`Error::NotADatabase`](crate::Error::NotADatabase); [`Error::UnsupportedVersion`](crate::Error::UnsupportedVersion);
    /// [`Error::Corruption`](crate::Error::Corruption) if durable data is damaged or missing; nothing is changed then;
    /// [`Error::Io`](crate::Error::Io).
    pub fn open(self) -> Result<Db> {
        let (core, report) = recovery::open(self.fs, &self.path, self.options)?;
        let core = Arc::new(core);
        // A database that is only read has nothing to flush or compact.
        let workers = if report.read_only { None } else { Some(Workers::start(&core)?) };
        Ok(Db::of(Handle { core, workers: Mutex::new(workers), report }))
    }
}
