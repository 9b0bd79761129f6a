//! Keeps the file of an obsolete log for the next log, or removes it.
//!
//! One file is kept, under a name that recovery does not take for a log's. The edit that made the log obsolete is already durable
//! (rule 6), so the rename needs no sync: whichever name a crash leaves, the next open removes the file. An open starts without a
//! spare file, and only logs that it created itself are kept: older ones may have second names (`RecoveryMode::Quarantine`) and are
//! removed.
//!
//! The spare's lock is held while the file is taken, but not while one is renamed. Only the thread that flushes puts a file there,
//! and only when there is none, so nothing else uses the name then.

use std::sync::{Arc, MutexGuard, PoisonError};

use super::state::Core;
use crate::error::Result;
use crate::wal;

/// A file that has grown past this many memtables by a large batch is cut.
const MAX_MEMTABLES: u64 = 2;

/// Creates log `number`, which follows `previous`, on the spare file if there is one: its space is allocated then.
pub(crate) fn create_log(core: &Core, number: u64, previous: Arc<wal::Segment>) -> Result<wal::Writer> {
    let (fs, dir, counters) = (&*core.store.fs, &core.store.dir, core.store.counters.clone());
    let mut spare = lock(core);
    match spare.take() {
        Some(spare) => wal::Writer::create_on(spare, fs, dir, number, Some(previous), counters),
        None => wal::Writer::create(fs, dir, number, Some(previous), counters),
    }
}

/// Keeps the file of log `number`, or removes it. The log is obsolete for good. `log` is what wrote it.
pub(crate) fn retire_log(core: &Core, number: u64, log: Option<&wal::Segment>) {
    let path = core.dir().join(wal::file_name(number));
    // Not held over what the file system does: it may drop the last handle, which asks for the spare file too.
    let is_free = lock(core).is_none();
    let max_len = MAX_MEMTABLES * core.store.options.memtable_bytes as u64;
    // Only the one thread that flushes puts a file there.
    let kept = if is_free { log.and_then(|log| log.retire(max_len)) } else { None };
    if let Some(kept) = kept {
        match core.store.fs.rename(&path, &core.dir().join(wal::SPARE)) {
            Ok(()) => {
                *lock(core) = Some(kept);
                return;
            }
            Err(error) => {
                tracing::warn!(file = %path.display(), %error, "could not keep a log's file for the next log")
            }
        }
    }
    core.store.unlink(&path);
}

/// Removes the spare file, of which the next open would not know anything.
pub(crate) fn remove_spare(core: &Core) {
    if lock(core).take().is_some() {
        core.store.unlink(&core.dir().join(wal::SPARE));
    }
}

fn lock(core: &Core) -> MutexGuard<'_, Option<wal::Spare>> {
    // Whole at every moment, so a panic of another holder does no harm.
    core.spare.lock().unwrap_or_else(PoisonError::into_inner)
}
