//! Opening a database with options of the caller's.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use super::background::Workers;
use super::{Db, Handle, recovery};
use crate::error::Result;
use crate::fs::{FileSystem, StdFs};
use crate::options::{Compaction, Compression, MemtableKind, Options, RecoveryMode};
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

    /// Starts to open the database in directory `path` with options of the caller's.
    pub fn builder(path: impl AsRef<Path>) -> Builder {
        Builder::new(path.as_ref())
    }
}

impl Builder {
    pub(super) fn new(path: &Path) -> Builder {
        Builder { path: path.to_path_buf(), options: Options::default(), fs: Arc::new(StdFs) }
    }

    /// Replaces all options.
    pub fn options(mut self, options: Options) -> Builder {
        self.options = options;
        self
    }

    /// See [`Options::memtable_bytes`].
    pub fn memtable_bytes(self, bytes: usize) -> Builder {
        self.with(|options| options.memtable_bytes(bytes))
    }

    /// See [`Options::memtable_kind`].
    pub fn memtable_kind(self, kind: MemtableKind) -> Builder {
        self.with(|options| options.memtable_kind(kind))
    }

    /// See [`Options::immutable_memtables`].
    pub fn immutable_memtables(self, count: usize) -> Builder {
        self.with(|options| options.immutable_memtables(count))
    }

    /// See [`Options::compaction`].
    pub fn compaction(self, policy: Compaction) -> Builder {
        self.with(|options| options.compaction(policy))
    }

    /// See [`Options::size_ratio`].
    pub fn size_ratio(self, ratio: u64) -> Builder {
        self.with(|options| options.size_ratio(ratio))
    }

    /// See [`Options::l0_trigger`].
    pub fn l0_trigger(self, tables: usize) -> Builder {
        self.with(|options| options.l0_trigger(tables))
    }

    /// See [`Options::l0_slowdown`].
    pub fn l0_slowdown(self, tables: usize) -> Builder {
        self.with(|options| options.l0_slowdown(tables))
    }

    /// See [`Options::l0_stop`].
    pub fn l0_stop(self, tables: usize) -> Builder {
        self.with(|options| options.l0_stop(tables))
    }

    /// See [`Options::level1_bytes`].
    pub fn level1_bytes(self, bytes: u64) -> Builder {
        self.with(|options| options.level1_bytes(bytes))
    }

    /// See [`Options::table_file_bytes`].
    pub fn table_file_bytes(self, bytes: u64) -> Builder {
        self.with(|options| options.table_file_bytes(bytes))
    }

    /// See [`Options::compaction_threads`].
    pub fn compaction_threads(self, threads: usize) -> Builder {
        self.with(|options| options.compaction_threads(threads))
    }

    /// See [`Options::block_bytes`].
    pub fn block_bytes(self, bytes: usize) -> Builder {
        self.with(|options| options.block_bytes(bytes))
    }

    /// See [`Options::filter_bits_per_key`].
    pub fn filter_bits_per_key(self, bits: u32) -> Builder {
        self.with(|options| options.filter_bits_per_key(bits))
    }

    /// See [`Options::compression`].
    pub fn compression(self, compression: Compression) -> Builder {
        self.with(|options| options.compression(compression))
    }

    /// See [`Options::compression_per_level`].
    pub fn compression_per_level(self, levels: impl Into<Vec<Compression>>) -> Builder {
        self.with(|options| options.compression_per_level(levels))
    }

    /// See [`Options::cache_bytes`].
    pub fn cache_bytes(self, bytes: u64) -> Builder {
        self.with(|options| options.cache_bytes(bytes))
    }

    /// See [`Options::durability`].
    pub fn durability(self, durability: Durability) -> Builder {
        self.with(|options| options.durability(durability))
    }

    /// See [`Options::log_compression`].
    pub fn log_compression(self, compress: bool) -> Builder {
        self.with(|options| options.log_compression(compress))
    }

    /// See [`Options::recovery_mode`].
    pub fn recovery_mode(self, mode: RecoveryMode) -> Builder {
        self.with(|options| options.recovery_mode(mode))
    }

    /// See [`Options::create_if_missing`].
    pub fn create_if_missing(self, create: bool) -> Builder {
        self.with(|options| options.create_if_missing(create))
    }

    /// The file system that the database lives in; the machine's own by default. Fault doubles go in here.
    pub fn file_system(mut self, fs: Arc<dyn FileSystem>) -> Builder {
        self.fs = fs;
        self
    }

    /// Opens the database: recovers it, or creates it if the options allow.
    ///
    /// Writes that were logged and not flushed are written to tables and synced first, so this takes time in proportion
    /// to them; the rest is in proportion to the number of tables.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) for an option out of range;
    /// [`Error::Locked`](crate::Error::Locked) while another handle, snapshot or iterator has it open, in this process
    /// too; [`Error::NotADatabase`](crate::Error::NotADatabase);
    /// [`Error::UnsupportedVersion`](crate::Error::UnsupportedVersion); [`Error::Corruption`](crate::Error::Corruption)
    /// if what was durable is damaged or missing; nothing is changed then; [`Error::Io`](crate::Error::Io).
    pub fn open(self) -> Result<Db> {
        let (core, report) = recovery::open(self.fs, &self.path, self.options)?;
        let core = Arc::new(core);
        let workers = Mutex::new(Some(Workers::start(&core)?));
        Ok(Db { handle: Arc::new(Handle { core, workers, report }) })
    }

    fn with(mut self, set: impl FnOnce(Options) -> Options) -> Builder {
        self.options = set(self.options);
        self
    }
}
