//! The reserve: disk space, in the file [`RESERVE`], that lets the database free space when the disk is full.
//!
//! R1 *Size.* It is the sum of the memory of all memtables, about as much as a flush, or an open after a crash, writes to tables; the space that a
//!    compaction needs besides its inputs ([`needed_besides_memtables`]); [`BASE`] for the manifest and a log; and the removals of each memtable. So
//!    it grows with the data, up to a few tables and memtables. The file is never read. When the database closes, it is truncated to this size.
//! R2 *Who may add.* A write is logged only while the reserve has the size of R1, including that write. So every logged write can be flushed to
//!    tables, whatever else fills the disk. If the reserve cannot grow, the write is rejected, and nothing else changes.
//! R3 *Who may use it.* A step of the engine that finds no space (a new log, a flush, a compaction, an edit, an open) gives up the whole reserve and
//!    is tried once more ([`Core::with_reserve`]). No such step adds data to the database: only writes do, and they are checked by R2. The step may
//!    free space only at its end, so the reserve is not taken back before that. A compaction that runs at that moment may take the space first. Then
//!    both steps fail and free the space that they took. Both are tried again, and the compaction then runs in a small piece.
//! R4 The database is *tight* until the reserve has its required size again. Insertions are rejected. Batches of removals of at most [`MAX_REMOVAL`]
//!    bytes are accepted. They are flushed at every [`REMOVALS`] bytes, even if level 0 is full, and within a second. Logs get no space in advance
//!    and no spare file is kept. Compactions run one at a time, in pieces of one table. Each that removals make useful is due, and level 0 moves
//!    down, oldest table first, even if the compaction began before with more of them ([`Plan::leave_newest`](crate::compaction::Plan::leave_newest)).
//!    So an endless series of removals becomes compactions that take no more space than R1 includes and free more.
//! R5 *The way back.* The thread of the logs tries to take the reserve when a write needs it, after each edit, and at least every second, so that it
//!    also notices space that other programs free. If the space does not suffice, it takes none of it.
//! R6 *Crashes.* Nothing depends on the file's contents, so it is not synced: a part that a power failure removes is free space. An open takes the
//!    missing part. If the open itself needs the space, it gives the reserve up and starts again; then it first removes the orphans that a crash left
//!    while the database was tight (`recovery/open.rs`).
//!
//! The reserve cannot help if other programs take the space that was given up: then removals are rejected too, until there is space. Space is really
//! reserved on file systems that write in place (ext4, XFS, tmpfs: `fallocate`). On others zeros are written: a file system that compresses them has
//! reserved nothing, and one that copies on write may need space to remove the file; such file systems keep some space for this.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::MutexGuard;
use std::sync::atomic::Ordering;

use super::recycle::drop_spare;
use super::state::{Core, State};
use crate::compaction::OutputSizes;
use crate::error::{Error, Result};
use crate::fs::{FileSystem, unlink};
use crate::lock::lock;
use crate::manifest::{RESERVE, Version};
use crate::options::Options;

/// The part of the reserve, in bytes, for a manifest, its `CURRENT` and a log.
const BASE: u64 = 64 << 10;
/// In a tight database, removals are flushed when they take this much memory, in bytes.
pub(crate) const REMOVALS: usize = 32 << 10;
/// The maximum memory of a batch of removals that a tight database accepts, in bytes. A single key has up to 64 KiB.
pub(crate) const MAX_REMOVAL: usize = 80 << 10;

/// The bytes of the reserve besides those for memtables. A piece of a compaction writes one table before it frees any, and then frees all but one
/// table of each run that it has read; and no compaction writes more than there is in the database. O(runs).
pub(crate) fn needed_besides_memtables(options: &Options, version: &Version, manifest: u64) -> u64 {
    let (mut data, mut largest, mut runs) = (0, OutputSizes::small(options, version).table_bytes, 1);
    for (level, run) in version.all_runs() {
        data += run.bytes();
        largest = largest.max(run.largest_table());
        runs = runs.max(if level == 0 { 1 } else { version.runs(level).len() as u64 });
    }
    let removals = (options.immutable_memtables as u64 + 1) * (REMOVALS + MAX_REMOVAL) as u64;
    BASE + removals + manifest + data.min(largest.saturating_mul(2 + runs))
}

/// The preferred size of a reserve that needs `needed` bytes: larger, so that it rarely has to grow, but no larger than full memtables need.
fn preferred_len(options: &Options, needed: u64, besides: u64) -> u64 {
    let memtable = (options.memtable_bytes as u64).saturating_mul(3) / 2;
    let full = memtable.saturating_mul(options.immutable_memtables as u64 + 1).saturating_add(besides);
    needed.saturating_mul(2).min(full).max(needed)
}

/// Makes the reserve in `dir` at least `needed` bytes long, and `most` if there is space; truncates a longer one. Returns its length. After an error
/// it is unchanged.
fn resize(fs: &dyn FileSystem, path: &Path, needed: u64, most: u64) -> io::Result<u64> {
    let file = match fs.open_write(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => fs.create_new(path)?,
        file => file?,
    };
    let before = file.len()?;
    if before > most {
        return file.truncate(most).map(|()| most);
    }
    // In a copy of a database, the file may have holes instead of allocated space.
    let sizes = if before < needed { [most, needed] } else { [before, before] };
    let allocate = |bytes| file.allocate(bytes).map(|()| bytes).inspect_err(|_| drop(file.truncate(before)));
    let allocated = allocate(sizes[0]).or_else(|_| allocate(sizes[1]));
    allocated.inspect_err(|_| {
        if before == 0 {
            unlink(fs, path)
        }
    })
}

/// Opens the reserve of a database that needs `besides` bytes besides memtables; returns its length. If there is no space, the file stays as the last
/// process left it: too small, or missing.
pub(crate) fn open(fs: &dyn FileSystem, dir: &Path, options: &Options, besides: u64) -> u64 {
    let path = dir.join(RESERVE);
    resize(fs, &path, besides, preferred_len(options, besides, besides)).unwrap_or_else(|error| {
        tracing::warn!(file = %path.display(), %error, "no space for the reserve: only removals are accepted until there is");
        // If the reserve exists, the first step that needs its space gives it up.
        fs.open(&path).and_then(|file| file.len()).unwrap_or(0)
    })
}

/// Gives up the reserve while the database is being opened. Returns whether it existed.
pub(crate) fn give_up(fs: &dyn FileSystem, dir: &Path) -> bool {
    fs.remove(&dir.join(RESERVE)).is_ok()
}

/// Marks a step that may use the space of the reserve, until it is dropped.
struct ReserveUse<'a>(&'a Core);

impl<'a> ReserveUse<'a> {
    fn begin(core: &'a Core, _file: &MutexGuard<'_, ()>) -> ReserveUse<'a> {
        core.reserve.users.fetch_add(1, Ordering::Relaxed);
        ReserveUse(core)
    }
}

impl Drop for ReserveUse<'_> {
    fn drop(&mut self) {
        self.0.reserve.users.fetch_sub(1, Ordering::Relaxed);
        // After the lock was taken once, the thread of the logs has either seen the change, or waits and is woken.
        drop(self.0.lock());
        self.0.work.notify_all();
    }
}

impl Core {
    /// Whether the database is tight (R4).
    #[inline]
    pub(crate) fn is_tight(&self) -> bool {
        self.reserve.is_tight.load(Ordering::Relaxed)
    }

    /// Runs `step`; if it finds no space, gives up the reserve and runs it again (R3). Must not be called with the write lock held.
    pub(crate) fn with_reserve<T>(&self, mut step: impl FnMut() -> Result<T>) -> Result<T> {
        let _using = self.is_tight().then(|| ReserveUse::begin(self, &lock(&self.reserve.file)));
        match step() {
            Err(error) if error.is_want_of_space() => {
                let _using = self.give_up_reserve(&error);
                match step() {
                    // The step cannot be run again.
                    Err(Error::ReadOnly { .. }) => Err(error),
                    done => done,
                }
            }
            done => done,
        }
    }

    #[cold]
    fn give_up_reserve(&self, cause: &Error) -> ReserveUse<'_> {
        let file = lock(&self.reserve.file);
        let using = ReserveUse::begin(self, &file);
        let mut state = self.lock();
        let is_there = state.cover.bytes > 0;
        self.note_reserve(&mut state, 0, true);
        drop(state);
        if is_there {
            tracing::warn!(%cause, "gives up the reserve: only removals are accepted until there is space");
            unlink(&*self.store.fs, &self.reserve_path());
        }
        drop(file);
        drop_spare(self);
        // In a tight database more compactions are due, and level 0 may have more tables.
        self.work.notify_all();
        self.room.notify_all();
        using
    }

    /// Whether a step uses the space of the reserve, which is then not taken back. Such a step is short: it writes a memtable or a small piece.
    pub(crate) fn is_reserve_in_use(&self) -> bool {
        self.reserve.users.load(Ordering::Relaxed) > 0
    }

    /// Tries to give the reserve its required size (R5). Runs on the thread of the logs.
    pub(crate) fn take_reserve(&self) {
        let options = &self.store.options;
        let (needed, most) = {
            let mut state = self.lock();
            let wanted = std::mem::take(&mut state.cover.wanted);
            let needed = self.needed(&state, wanted);
            (needed, preferred_len(options, needed, state.cover.besides))
        };
        let (path, file) = (self.reserve_path(), lock(&self.reserve.file));
        if self.is_reserve_in_use() {
            // A step has begun to use the space. The request for the reserve stays open.
            return;
        }
        let taken = resize(&*self.store.fs, &path, needed, most).map_err(|error| {
            let what = format!("{error}; until there is space, only removals are accepted");
            Error::io("allocate", &path)(io::Error::new(error.kind(), what))
        });
        let mut state = self.lock();
        let bytes = *taken.as_ref().unwrap_or(&state.cover.bytes);
        self.note_reserve(&mut state, bytes, taken.is_err());
        state.cover.attempts.end(taken.err());
        drop(state);
        drop(file);
        self.room.notify_all();
        self.work.notify_all();
    }

    /// Truncates the reserve to the size that the next open needs. The threads have ended before.
    pub(crate) fn cut_reserve(&self) {
        let mut state = self.lock();
        let (bytes, needed) = (state.cover.bytes, self.needed(&state, 0));
        // Once: the last handle may be dropped long after the close, when the directory is being removed.
        state.cover.bytes = bytes.min(needed);
        drop(state);
        if bytes > needed && !self.store.options.read_only {
            // Never makes the file.
            let cut = self.store.fs.open_write(&self.reserve_path()).and_then(|file| file.truncate(needed));
            drop(cut.inspect_err(|error| tracing::warn!(%error, "could not cut the reserve")));
        }
    }

    fn reserve_path(&self) -> PathBuf {
        self.dir().join(RESERVE)
    }

    fn note_reserve(&self, state: &mut State, bytes: u64, is_tight: bool) {
        state.cover.bytes = bytes;
        self.reserve.is_tight.store(is_tight, Ordering::Relaxed);
        self.note_cover(state);
    }

    /// Records how an edit has changed the required size of the reserve.
    pub(crate) fn note_edit(&self, state: &mut State, version: &Version, manifest: u64) {
        state.cover.besides = needed_besides_memtables(&self.store.options, version, manifest);
        self.note_cover(state);
        if self.is_tight() {
            state.cover.want(0);
        }
    }

    /// Records the size up to which the active memtable accepts writes without further checks.
    pub(crate) fn note_cover(&self, state: &mut State) {
        let covered = state.cover.bytes.saturating_sub(state.cover.besides + self.frozen_memory());
        let covered = usize::try_from(covered).unwrap_or(usize::MAX).min(self.store.options.memtable_bytes);
        state.active.ready_upto = if self.is_tight() { 0 } else { covered };
    }

    /// Whether the reserve is large enough for a write of `memory` bytes (R2).
    pub(crate) fn is_covered(&self, state: &State, memory: usize) -> bool {
        self.needed(state, memory) <= state.cover.bytes
    }

    fn needed(&self, state: &State, memory: usize) -> u64 {
        let active = self.view.get().active.memory_usage().saturating_add(memory) as u64;
        active.saturating_add(state.cover.besides).saturating_add(self.frozen_memory())
    }

    fn frozen_memory(&self) -> u64 {
        self.view.get().frozen.iter().map(|frozen| frozen.memtable.memory_usage() as u64).sum()
    }
}
