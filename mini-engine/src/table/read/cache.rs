//! [`TableCache`]: the open files of tables, up to a maximum number of file handles.
//!
//! A table opens its file when a read needs it. If too many files are open then, the [`Clock`] closes another one. A read of an open file locks its
//! slot for a moment and stores at most one mark. The limit may be exceeded for moments: a thread that reads a block keeps its file open a little longer.
//!
//! Obsolete files: a reader may have pinned an earlier view and may have to open the table's file again. So a file is removed only when the last view
//! with its table is dropped. Readers do not wait for the removal: they record the file here, and a thread of the engine removes it
//! ([`TableCache::remove_obsolete`]). Files that remain after a crash are orphans, which the next open removes.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use crate::cache;
use crate::cache::clock::{CacheSlot, Cached, Clock};
use crate::error::is_want_of_handles;
use crate::fs::{self, File, FileSystem};
use crate::lock::{lock, wait, wait_timeout};
use crate::metrics::Counters;
use crate::options::TableReads;
use crate::table::block::SampledBlock;
use crate::table::format::file_name;
use crate::table::index::Partition;
use crate::types::MappedBytes;

/// The block cache of one database.
pub(crate) type BlockCache = cache::BlockCache<Partition, SampledBlock>;
/// A partition in memory, with slots for its data blocks.
pub(crate) type CachedPartition = cache::CachedPartition<Partition, SampledBlock>;
/// A partition in the cache, as a pinned reader finds it.
pub(crate) type Group = cache::Group<Partition, SampledBlock>;
/// The slots of a table's partitions.
pub(crate) type Partitions = cache::Partitions<Partition, SampledBlock>;

/// The slot for a table's file, which is filled while the file is open.
pub(crate) type FileSlot = Arc<[FilePlace]>;
type FilePlace = Mutex<Option<OpenFile>>;
/// An open file, for a read.
pub(crate) type OpenFile = Arc<Cached<Arc<dyn File>>>;

/// The time after which a retired view that was in use is looked at again.
const BETWEEN_REMOVALS: Duration = Duration::from_millis(1);

/// The state that all tables of one database share.
pub(crate) struct TableCache {
    pub(crate) fs: Arc<dyn FileSystem>,
    pub(crate) dir: PathBuf,
    pub(crate) blocks: Arc<BlockCache>,
    pub(crate) counters: Arc<Counters>,
    reads: TableReads,
    open: Mutex<Clock<FilePlace>>,
    obsolete: Mutex<Obsolete>,
    obsolete_added: Condvar,
    /// Held while files are removed, so that a second caller waits until the removal is done.
    removing: Mutex<()>,
}

#[derive(Default)]
struct Obsolete {
    numbers: Vec<u64>,
    /// Whether a view was retired, which may make tables obsolete.
    has_views: bool,
    /// Whether the thread that removes files must end.
    is_ending: bool,
}

impl TableCache {
    /// The limit with which no file is closed as long as its table exists: another process may have unlinked it.
    pub(crate) const ALL: usize = u32::MAX as usize;

    /// Keeps up to `limit` files of tables in `dir` open, and reads them as `reads` selects.
    pub(crate) fn new(
        fs: Arc<dyn FileSystem>,
        dir: PathBuf,
        blocks: Arc<BlockCache>,
        counters: Arc<Counters>,
        (limit, reads): (usize, TableReads),
    ) -> Arc<Self> {
        Arc::new(Self {
            fs,
            dir,
            blocks,
            counters,
            reads,
            open: Mutex::new(Clock::new(limit as u64)),
            obsolete: Mutex::default(),
            obsolete_added: Condvar::new(),
            removing: Mutex::default(),
        })
    }

    /// Opens a file. If the process has no free handle, half of the open tables are closed first.
    pub(crate) fn open_file(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        match self.fs.open(path) {
            Err(error) if is_want_of_handles(&error) => {
                self.make_way();
                self.fs.open(path)
            }
            opened => opened,
        }
    }

    /// Maps a table's whole file, if mapping is enabled and possible for this file.
    pub(crate) fn map(&self, file: &dyn File) -> Option<Arc<MappedBytes>> {
        if self.reads != TableReads::Mmap {
            return None;
        }
        let mapped = file.map().inspect_err(|error| tracing::debug!(%error, "a table is not mapped"));
        mapped.ok().map(Arc::new)
    }

    /// Closes half of the open tables, to free handles.
    pub(crate) fn make_way(&self) {
        self.close_until(|open| open / 2);
    }

    /// Closes all open tables; a reader opens its table again. Closing them one by one would require a search for each.
    pub(crate) fn close_all(&self) {
        self.close_until(|_| 0);
    }

    fn close_until(&self, left: impl FnOnce(u64) -> u64) {
        // Files are closed after the lock is released, as everywhere in this file.
        let mut closed = Vec::new();
        let mut open = lock(&self.open);
        if open.capacity() == Self::ALL as u64 {
            return;
        }
        let left = left(open.bytes());
        open.shrink_to(left, &mut closed);
    }

    /// Keeps the file of table `number`, which was just opened, open.
    pub(crate) fn keep(&self, slot: &FileSlot, number: u64, file: Arc<dyn File>) -> OpenFile {
        let mut closed = Vec::new();
        lock(&self.open).insert((slot, 0), number, Cached::new(file, 1), &mut closed)
    }

    /// Closes the file in `slot`, if there is one. It is searched for among all open files, which takes some microseconds: little compared with the
    /// compaction that has made the table obsolete.
    pub(crate) fn close(&self, slot: &FileSlot) {
        if let Some(_file) = slot.first().and_then(CacheSlot::get) {
            let mut closed = Vec::new();
            lock(&self.open).forget(slot, &mut closed);
        }
    }

    pub(crate) fn open_tables(&self) -> usize {
        lock(&self.open).len()
    }

    /// Records that the file of table `number` may be removed: no reader can open it any more.
    pub(crate) fn add_obsolete(&self, number: u64) {
        lock(&self.obsolete).numbers.push(number);
        self.obsolete_added.notify_all();
    }

    /// Removes the files of the recorded obsolete tables. A failure leaves an orphan, which the next open removes.
    pub(crate) fn remove_obsolete(&self) {
        let _turn = lock(&self.removing);
        let numbers = std::mem::take(&mut lock(&self.obsolete).numbers);
        for number in numbers {
            fs::unlink(&*self.fs, &self.dir.join(file_name(number)));
        }
    }

    /// Records that a view was retired.
    pub(crate) fn note_retired_view(&self) {
        lock(&self.obsolete).has_views = true;
        self.obsolete_added.notify_all();
    }

    /// Calls `remove` when views or tables may have become obsolete, on a thread of its own, until [`TableCache::end_removing`] is called. `remove`
    /// returns the number of retired views that are in use; if there are any, it is called again soon.
    pub(crate) fn keep_removing(&self, remove: impl Fn() -> usize) {
        let mut obsolete = lock(&self.obsolete);
        loop {
            if obsolete.has_views || !obsolete.numbers.is_empty() {
                obsolete.has_views = false;
                drop(obsolete);
                let in_use = remove();
                obsolete = lock(&self.obsolete);
                // At the end, the readers of other databases are not waited for: `CurrentView` tries once more.
                if in_use > 0 && !obsolete.is_ending {
                    obsolete.has_views = true;
                    obsolete = wait_timeout(&self.obsolete_added, obsolete, BETWEEN_REMOVALS);
                }
            } else if obsolete.is_ending {
                return;
            } else {
                obsolete = wait(&self.obsolete_added, obsolete);
            }
        }
    }

    /// Ends [`TableCache::keep_removing`].
    pub(crate) fn end_removing(&self) {
        lock(&self.obsolete).is_ending = true;
        self.obsolete_added.notify_all();
    }
}

impl Drop for TableCache {
    fn drop(&mut self) {
        // Removes the files that became obsolete with the last snapshot, after the engine's threads have ended.
        self.remove_obsolete();
    }
}

impl fmt::Debug for TableCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableCache").field("dir", &self.dir).finish_non_exhaustive()
    }
}
