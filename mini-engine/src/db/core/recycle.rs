//! Keeps the file of an obsolete log for the next log, or removes it.
//!
//! One file is kept, under a name that recovery does not treat as that of a log. The edit that made the log obsolete is already durable (rule 6), so
//! the rename needs no sync: whichever name a crash leaves, the next open removes the file. An open starts without a spare file, and keeps only logs
//! that it created itself: older ones may have second names (`RecoveryMode::Quarantine`) and are removed.
//!
//! The spare's lock is not held during file system calls. Only the flushing thread renames a file to the spare's name, and only if there is no spare
//! file and the thread of the logs holds none that it has yet to rename. So one thread at a time uses the name. A tight database (`reserve.rs`) keeps
//! no spare file.

use super::next_log::SpareFile;
use super::state::Core;
use crate::error::Result;
use crate::lock::lock;
use crate::wal;

/// A spare file longer than this many memtables, because of a large batch, is truncated.
const MAX_MEMTABLES: u64 = 2;

/// Creates log `number`, in the spare file if there is one, whose space is already allocated.
pub(crate) fn create_log(core: &Core, number: u64) -> Result<wal::Writer> {
    let (fs, dir, counters) = (&*core.store.fs, &core.store.dir, core.store.counters.clone());
    let kept = {
        let mut spare = lock(&core.spare);
        match std::mem::take(&mut *spare) {
            SpareFile::Kept(kept) => {
                *spare = SpareFile::Taken;
                Some(kept)
            }
            SpareFile::None | SpareFile::Taken => None,
        }
    };
    let Some(kept) = kept else { return wal::Writer::create(fs, dir, number, counters) };
    let created = wal::Writer::create_on(kept, fs, dir, number, counters);
    *lock(&core.spare) = SpareFile::None;
    created
}

/// Keeps the file of the obsolete log `number`, or removes it. `log` is the segment of the log's writer.
pub(crate) fn retire_log(core: &Core, number: u64, log: Option<&wal::Segment>) {
    let path = core.dir().join(wal::file_name(number));
    // The lock is not held during file system calls: they may drop the last handle, which locks the spare file too.
    let is_free = matches!(*lock(&core.spare), SpareFile::None);
    let max_len = MAX_MEMTABLES * core.store.options.memtable_bytes as u64;
    // Only the flushing thread puts a file there.
    let kept = if is_free && !core.is_tight() { log.and_then(|log| log.retire(max_len)) } else { None };
    if let Some(kept) = kept {
        match core.store.fs.rename(&path, &core.dir().join(wal::SPARE)) {
            Ok(()) => {
                *lock(&core.spare) = SpareFile::Kept(kept);
                return;
            }
            Err(error) => {
                tracing::warn!(file = %path.display(), %error, "could not keep a log's file for the next log")
            }
        }
    }
    core.store.unlink(&path);
}

/// Removes the log that was created in advance and not used, and the spare file; the next open does not use them. The threads have ended before.
pub(crate) fn remove_spare(core: &Core) {
    let unused = core.lock().logs.next.take();
    if let Some(log) = unused {
        core.store.unlink(&core.dir().join(wal::file_name(log.segment().number())));
    }
    drop_spare(core);
}

/// Removes the spare file, if there is one.
pub(super) fn drop_spare(core: &Core) {
    let mut spare = lock(&core.spare);
    if matches!(*spare, SpareFile::Kept(_)) {
        *spare = SpareFile::Taken;
        drop(spare);
        core.store.unlink(&core.dir().join(wal::SPARE));
        *lock(&core.spare) = SpareFile::None;
    }
}
