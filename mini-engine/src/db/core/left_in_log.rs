//! What a close leaves in the logs, instead of flushing it, and the note about it (`manifest/close_note.rs`).
//!
//! A table of a few entries takes five syncs more than the log, which is durable already. The next open reads these logs into its active memtable, and
//! their flush with that memtable makes them obsolete.

use super::state::{Core, State};
use crate::lock::lock;
use crate::manifest::CloseNote;
use crate::wal;

/// A close leaves the writes in the logs if all of these have no more bytes than this, so that the next open need not read much.
const BYTES_LEFT: u64 = 16 << 10;
/// And if they are no more than this.
const LOGS_LEFT: usize = 32;

impl Core {
    /// Whether a close need not flush. The clock of entries that expire must be recorded in the manifest at each open and close anyway; where space is
    /// short, a flush of removals makes room; and a recycled log cannot be noted.
    pub(crate) fn may_leave_writes_in_logs(&self) -> bool {
        let state = self.lock();
        let bytes = state.logs.active.end() + state.logs.earlier.iter().map(|&(_, end)| end).sum::<u64>();
        let is_little = bytes <= BYTES_LEFT && state.logs.earlier.len() < LOGS_LEFT;
        is_little && may_be_noted(&state) && self.clock.latest() == 0 && !self.is_tight()
    }

    /// Writes the note after a close without errors. The workers have ended.
    pub(crate) fn note_close(&self) {
        let manifest = lock(&self.manifest);
        let state = self.lock();
        let (log, end, mut logs) =
            (state.logs.active.segment().clone(), state.logs.active.end(), state.logs.earlier.clone());
        let may_be_noted = may_be_noted(&state);
        drop(state);
        if !may_be_noted || log.synced() < end || !manifest.is_usable() || self.check_usable().is_err() {
            return;
        }
        if log.has_frames_before(end) || logs.is_empty() {
            logs.push((log.number(), end));
        } else {
            // A log without frames need not be read. If its removal fails or is undone, there is a log that the note does not describe.
            self.store.unlink(&self.dir().join(wal::file_name(log.number())));
        }
        let noted = CloseNote::store(&*self.store.fs, self.dir(), (manifest.number(), manifest.bytes()), &logs);
        if let Err(error) = noted {
            tracing::warn!(%error, "could not write the note of the close: the next open takes longer");
        }
    }
}

/// Whether a note can describe the logs. The cut of a recycled log's end is not synced: undone, it could leave a part of an old frame before the next
/// session's log.
fn may_be_noted(state: &State) -> bool {
    state.view.frozen.is_empty() && !state.logs.active.is_recycled()
}
