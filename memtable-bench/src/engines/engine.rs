//! What an engine does while the clock runs, and the settings that all of them get alike.

use std::error::Error;
use std::path::PathBuf;

use mini_engine::Metrics;

use crate::spec::Subject;
use crate::tables::Record;

/// Bytes of a data block, and bits of filter for each key, where they can be chosen.
pub(crate) const BLOCK_BYTES: usize = 4096;
pub(crate) const FILTER_BITS: u32 = 10;

/// What an operation comes to: each engine has errors of its own.
pub(crate) type Done<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

/// How a database is opened. Nothing is compressed.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) subject: Subject,
    pub(crate) dir: PathBuf,
    pub(crate) cache_bytes: u64,
    /// Bytes of a memtable, of a full table on disk, and of the first level that has a bound.
    pub(crate) memtable_bytes: u64,
    /// Whether each write is synced before it is acknowledged. If not it is left to the operating system, or less: see the book.
    pub(crate) synced: bool,
}

/// A database that many threads use. Generic, so that the clock sees no calls through a vtable.
///
/// Those that only write, by `Subject::can`, are never asked for the rest.
pub(crate) trait Engine: Sync + Sized {
    /// Opens the database in an existing directory; makes one if there is none.
    fn open(settings: &Settings) -> Done<Self>;

    fn put(&self, record: Record<'_>) -> Done;

    /// Stores the records as one write, all of them or none. What has no such write stores one by one.
    fn put_batch<'a>(&self, mut records: impl Iterator<Item = Record<'a>>) -> Done {
        records.try_for_each(|record| self.put(record))
    }

    /// What `read` makes of the key's value, which it sees in place where the engine lends it.
    fn get<R>(&self, _key: &[u8], _read: impl FnOnce(&[u8]) -> R) -> Done<Option<R>> {
        unable()
    }

    /// Calls `each` with the first `most` keys that are not below `from`, and their values, in order.
    fn scan(&self, from: &[u8], most: usize, each: impl FnMut(&[u8], &[u8])) -> Done;

    /// Returns when everything is on stable storage, and in no memtable where there are any.
    fn flush(&self) -> Done {
        Ok(())
    }

    /// Returns when no compaction is due.
    fn settle(&self) -> Done {
        Ok(())
    }

    /// Ends everything: the directory may be opened again.
    fn close(self) -> Done {
        Ok(())
    }

    /// Our engine's account of what it has done.
    fn metrics(&self) -> Option<Metrics> {
        None
    }
}

fn unable() -> ! {
    unreachable!("Subject::can excludes this workload")
}
