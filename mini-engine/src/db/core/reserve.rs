//! The reserve: space that the database keeps for the way back from a full disk, in the file [`RESERVE`].
//!
//! R1 *Size.* It has the memory of all memtables, since that is about what a flush, or an open after a crash, writes of their logs; what a compaction
//!    needs besides its inputs ([`needed_besides_memtables`]); [`BASE`] for the manifest and a log; and the removals of each memtable. So it grows
//!    with the data, up to a few tables and memtables. It is never read. Whatever it has beyond that at the end of a database is cut off.
//! R2 *Who may add.* A write is logged only while the reserve has the size of R1, that write included. So everything that is in a log can become
//!    tables, whatever else fills the disk. Where the reserve cannot grow, the write is refused, and nothing else changes.
//! R3 *Who may use it.* A step of the engine that finds no space (a new log, a flush, a compaction, an edit, an open) gives up the whole reserve and
//!    is done once more ([`Core::with_reserve`]). No step adds anything to the database: adds have passed R2. It may take a moment to free what it
//!    takes, so the reserve is not taken back before it ends.
//! R4 *Tight* is the database until the reserve is whole again. Adds are refused. Removals of at most [`MAX_REMOVAL`] bytes go on, and are flushed
//!    at every [`REMOVALS`] bytes, also over a full level 0, and after a second at the latest. Logs get no space in advance and no file is kept for
//!    them. One compaction runs at a time, in pieces of one table; all that removals can free is due, and level 0 goes down from its oldest table.
//!    So a series of removals without end turns into compactions that take no more space than R1 counts and leave less than they found.
//! R5 *The way back.* The thread of the logs tries to take the reserve: when a write needs it, after each edit, and at least every second, so that it
//!    also sees space that others free. If there is too little, it takes none of it.
//! R6 *Crashes.* Nothing depends on the file, so it is not synced: what a power cut takes from it is free space. An open takes what is missing, or
//!    gives it up and begins anew if it needs it; in that case, orphans that a crash left while the database was tight go first (`recovery/open.rs`).
//!
//! The promise of the reserve ends where other programs take the space that was given up: then removals are refused too, until there is space.
//! Space is really reserved where files are written in place (ext4, XFS, tmpfs: `fallocate`). Elsewhere zeros are written: a file system that
//! compresses them has reserved nothing, and one that copies on write may need space for the removal itself, which it keeps aside on its own.

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

/// The part of the reserve, in bytes, for a log and the pointer to a manifest.
const BASE: u64 = 64 << 10;
/// The memory of removals, in bytes, after which they are flushed in a tight database.
pub(crate) const REMOVALS: usize = 32 << 10;
/// The maximum memory of a batch of removals, in bytes, that a tight database accepts. One key has up to 64 KiB.
pub(crate) const MAX_REMOVAL: usize = 80 << 10;

/// The bytes of the reserve that are not for memtables. A piece of a compaction writes one table before it frees anything, and frees all but one
/// table of each run that it has read; and no compaction writes more than there is. O(runs).
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

/// The size that the reserve gets where it must have `needed` bytes: more, so that it rarely has to grow, but no more than full memtables need.
fn preferred_len(options: &Options, needed: u64, besides: u64) -> u64 {
    let memtable = (options.memtable_bytes as u64).saturating_mul(3) / 2;
    let full = memtable.saturating_mul(options.immutable_memtables as u64 + 1).saturating_add(besides);
    needed.saturating_mul(2).min(full).max(needed)
}

/// Gives the reserve in `dir` at least `needed` bytes, and `most` if there is space; cuts a longer one. Returns its length. After an error it is as
/// before.
fn resize(fs: &dyn FileSystem, path: &Path, needed: u64, most: u64) -> io::Result<u64> {
    let file = match fs.open_write(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => fs.create_new(path)?,
        file => file?,
    };
    let before = file.len()?;
    if before > most {
        return file.truncate(most).map(|()| most);
    }
    // The copy of a database may have holes instead of space.
    let sizes = if before < needed { [most, needed] } else { [before, before] };
    let allocate = |bytes| file.allocate(bytes).map(|()| bytes).inspect_err(|_| drop(file.truncate(before)));
    let allocated = allocate(sizes[0]).or_else(|_| allocate(sizes[1]));
    allocated.inspect_err(|_| {
        if before == 0 {
            unlink(fs, path)
        }
    })
}

/// The reserve of a database that is being opened, for the bytes that it needs besides memtables: its length. Where there is no space, it is as the
/// last process left it, too small or not there.
pub(crate) fn open(fs: &dyn FileSystem, dir: &Path, options: &Options, besides: u64) -> u64 {
    let path = dir.join(RESERVE);
    resize(fs, &path, besides, preferred_len(options, besides, besides)).unwrap_or_else(|error| {
        tracing::warn!(file = %path.display(), %error, "no space for the reserve: only removals are accepted until there is");
        // A reserve that is there is given up by the first step that needs it.
        fs.open(&path).and_then(|file| file.len()).unwrap_or(0)
    })
}

/// Gives up the reserve of a database that is being opened. Returns whether there was one.
pub(crate) fn give_up(fs: &dyn FileSystem, dir: &Path) -> bool {
    fs.remove(&dir.join(RESERVE)).is_ok()
}

/// A step that may use the space of the reserve, until this is dropped.
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
        // With the lock taken once, the thread of the logs has seen that, or waits and is woken.
        drop(self.0.lock());
        self.0.work.notify_all();
    }
}

impl Core {
    /// R4.
    #[inline]
    pub(crate) fn is_tight(&self) -> bool {
        self.reserve.is_tight.load(Ordering::Relaxed)
    }

    /// Does `step`, and if it finds no space, gives up the reserve and does it again (R3). Not with the write lock.
    pub(crate) fn with_reserve<T>(&self, mut step: impl FnMut() -> Result<T>) -> Result<T> {
        let _using = self.is_tight().then(|| ReserveUse::begin(self, &lock(&self.reserve.file)));
        match step() {
            Err(error) if error.is_want_of_space() => {
                let _using = self.give_up_reserve(&error);
                match step() {
                    // It cannot be done again.
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
        // More compactions are due, and level 0 may get more tables.
        self.work.notify_all();
        self.room.notify_all();
        using
    }

    /// Whether a step uses the space of the reserve: it is not taken back before it ends. Such a step is short: it writes a memtable or a small piece.
    pub(crate) fn is_reserve_in_use(&self) -> bool {
        self.reserve.users.load(Ordering::Relaxed) > 0
    }

    /// Tries to make the reserve as large as it must be (R5). On the thread of the logs.
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
            // A step has just begun. The attempt is still wanted.
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

    /// Cuts off what the next open does not need. The threads have ended.
    pub(crate) fn cut_reserve(&self) {
        let state = self.lock();
        let (bytes, needed) = (state.cover.bytes, self.needed(&state, 0));
        drop(state);
        if bytes > needed && !self.store.options.read_only {
            let cut = resize(&*self.store.fs, &self.reserve_path(), needed, needed);
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

    /// Notes what an edit has changed of the size that the reserve must have.
    pub(crate) fn note_edit(&self, state: &mut State, version: &Version, manifest: u64) {
        state.cover.besides = needed_besides_memtables(&self.store.options, version, manifest);
        self.note_cover(state);
        if self.is_tight() {
            state.cover.want(0);
        }
    }

    /// Notes up to which size the active memtable takes writes without further checks.
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
        let active = self.view.load().active.memory_usage().saturating_add(memory) as u64;
        active.saturating_add(state.cover.besides).saturating_add(self.frozen_memory())
    }

    fn frozen_memory(&self) -> u64 {
        self.view.load().frozen.iter().map(|frozen| frozen.memtable.memory_usage() as u64).sum()
    }
}
