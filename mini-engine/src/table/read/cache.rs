//! [`TableCache`]: which files of tables are open, bounded by a number of file handles.
//!
//! A table opens its file when it reads it and has it not open. Then this lets another one go, if there are too many: one that was not read
//! since the hand last passed it (CLOCK, Corbató 1968). A read of an open file costs a load of its slot, and at most one store. So the
//! bound costs reads nothing, and it is one on the average of time: a thread that reads a block keeps its file a moment longer.
//!
//! Obsolete files: a reader may have pinned a view of before and may have to open the table again. So a file is removed when the last
//! view lets go of its table, and not by the reader, which would wait for the file system: it is noted here, and
//! [`TableCache::remove_obsolete`] is for the threads of the engine. What a crash leaves of them the next open removes as orphans.

use std::fmt;
use std::io;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use arc_swap::{ArcSwapOption, Guard};

use crate::cache;
use crate::error::is_want_of_handles;
use crate::fs::{self, File, FileSystem};
use crate::lock::{lock, wait};
use crate::metrics::Counters;
use crate::options::TableReads;
use crate::table::block::frame::OwnBlock;
use crate::table::format::footer::file_name;
use crate::table::index::partition::Partition;
use crate::types::MappedBytes;

/// The block cache of one database.
pub(crate) type BlockCache = cache::BlockCache<Partition, OwnBlock>;
/// A partition in memory, with places for its data blocks.
pub(in crate::table) type CachedPartition = cache::CachedPartition<Partition, OwnBlock>;
/// The places of a table's partitions.
pub(in crate::table) type Partitions = cache::Partitions<Partition, OwnBlock>;

/// The file of an open table.
#[derive(Debug)]
pub(in crate::table) struct Opened {
    pub(in crate::table) file: Arc<dyn File>,
}

/// What all tables of one database share.
pub(crate) struct TableCache {
    fs: Arc<dyn FileSystem>,
    pub(in crate::table) dir: PathBuf,
    pub(in crate::table) blocks: Arc<BlockCache>,
    pub(in crate::table) counters: Arc<Counters>,
    /// How many tables may be open.
    limit: usize,
    reads: TableReads,
    clock: Mutex<Clock>,
    obsolete: Mutex<Obsolete>,
    obsolete_added: Condvar,
    /// Held while files are removed, so that whoever asks for that finds it done.
    removing: Mutex<()>,
}

/// The slots of the open tables, in a circle.
#[derive(Default)]
struct Clock {
    slots: Vec<Arc<Slot>>,
    hand: usize,
}

#[derive(Default)]
struct Obsolete {
    numbers: Vec<u64>,
    /// The thread that removes them is to end.
    is_ending: bool,
}

/// Where a table is while it is open.
#[derive(Debug, Default)]
pub(in crate::table) struct Slot {
    opened: ArcSwapOption<Opened>,
    /// Set by reads, unset by the hand of the clock.
    is_used: AtomicBool,
    turn: Mutex<()>,
}

/// An open table, for a read.
pub(in crate::table) struct OpenGuard(Guard<Option<Arc<Opened>>>);

impl Deref for OpenGuard {
    type Target = Opened;

    fn deref(&self) -> &Opened {
        // Both places that make one have looked.
        self.0.as_ref().expect("a guard of an open table")
    }
}

impl Slot {
    /// The table, if it is open.
    #[inline]
    pub(in crate::table) fn get(&self) -> Option<OpenGuard> {
        let opened = self.peek()?;
        // Relaxed, both: a lost mark only makes the table close earlier. Most reads find it set and write nothing.
        if !self.is_used.load(Ordering::Relaxed) {
            self.is_used.store(true, Ordering::Relaxed);
        }
        Some(opened)
    }

    /// As [`Slot::get`], and the clock does not count it as a read.
    pub(in crate::table) fn peek(&self) -> Option<OpenGuard> {
        let opened = self.opened.load();
        opened.is_some().then_some(OpenGuard(opened))
    }

    /// Held by the thread that opens the table.
    pub(in crate::table) fn turn(&self) -> MutexGuard<'_, ()> {
        // Guards nothing that a panic could have torn.
        lock(&self.turn)
    }

    pub(in crate::table) fn close(&self) {
        self.opened.store(None);
    }
}

impl Clock {
    /// Closes tables until at most `limit` are open. The last one in the circle has just been opened and is passed over at first.
    fn shrink(&mut self, limit: usize) {
        // Within two rounds every mark is unset.
        let mut steps = self.slots.len() * 2;
        while self.slots.len() > limit && steps > 0 {
            steps -= 1;
            self.hand %= self.slots.len();
            let slot = &self.slots[self.hand];
            // Nobody else has a slot whose table was dropped.
            let is_dropped = Arc::strong_count(slot) == 1;
            if slot.is_used.swap(false, Ordering::Relaxed) && !is_dropped {
                self.hand += 1;
                continue;
            }
            slot.close();
            self.slots.swap_remove(self.hand);
        }
    }
}

impl TableCache {
    /// Keeps up to `limit` of the tables in `dir` open, and reads them as `reads` says.
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
            limit,
            reads,
            clock: Mutex::default(),
            obsolete: Mutex::default(),
            obsolete_added: Condvar::new(),
            removing: Mutex::default(),
        })
    }

    /// Opens a file. Where the process has no handle left, half of the open tables are closed for it.
    pub(in crate::table) fn fs(&self) -> &Arc<dyn FileSystem> {
        &self.fs
    }

    pub(in crate::table) fn open_file(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        match self.fs.open(path) {
            Err(error) if is_want_of_handles(&error) => {
                self.make_way();
                self.fs.open(path)
            }
            opened => opened,
        }
    }

    /// The whole of a table's file, if tables are mapped and this one can be.
    pub(in crate::table) fn map(&self, file: &dyn File) -> Option<Arc<MappedBytes>> {
        if self.reads != TableReads::Mmap {
            return None;
        }
        let mapped = file.map().inspect_err(|error| tracing::debug!(%error, "a table is not mapped"));
        mapped.ok().map(Arc::new)
    }

    /// Closes half of the open tables, for a file that finds no handle.
    pub(crate) fn make_way(&self) {
        let mut clock = lock(&self.clock);
        let half = clock.slots.len() / 2;
        clock.shrink(half);
    }

    /// Keeps a table open that was opened just now.
    pub(in crate::table) fn keep(&self, slot: &Arc<Slot>, opened: Arc<Opened>) -> OpenGuard {
        slot.opened.store(Some(opened.clone()));
        slot.is_used.store(true, Ordering::Relaxed);
        let mut clock = lock(&self.clock);
        clock.slots.push(slot.clone());
        clock.shrink(self.limit);
        OpenGuard(Guard::from_inner(Some(opened)))
    }

    /// How many tables are open.
    pub(crate) fn open_tables(&self) -> usize {
        lock(&self.clock).slots.iter().filter(|slot| slot.peek().is_some()).count()
    }

    /// Notes that the file of table `number` may be removed: nobody can open it any more.
    pub(in crate::table) fn add_obsolete(&self, number: u64) {
        lock(&self.obsolete).numbers.push(number);
        self.obsolete_added.notify_all();
    }

    /// Removes the files of the obsolete tables that nobody has any more. A failure leaves an orphan, which the next open removes.
    pub(crate) fn remove_obsolete(&self) {
        let _turn = lock(&self.removing);
        let numbers = std::mem::take(&mut lock(&self.obsolete).numbers);
        for number in numbers {
            fs::unlink(&*self.fs, &self.dir.join(file_name(number)));
        }
    }

    /// Removes what becomes obsolete until [`TableCache::end_removing`] is called: the life of a thread.
    pub(crate) fn keep_removing(&self) {
        let mut obsolete = lock(&self.obsolete);
        loop {
            if !obsolete.numbers.is_empty() {
                drop(obsolete);
                self.remove_obsolete();
                obsolete = lock(&self.obsolete);
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
        // What the last snapshot has let go of, after the engine's threads have ended.
        self.remove_obsolete();
    }
}

impl fmt::Debug for TableCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableCache").field("dir", &self.dir).field("limit", &self.limit).finish_non_exhaustive()
    }
}
