//! The log after the active one. A separate thread creates it in advance, so that a rotation only swaps logs in memory, and no write waits for the
//! device.
//!
//! N1 At most one such log exists. It is requested when the active memtable is half full, or when a rotation finds none. Only this thread creates it,
//!    without the write lock.
//! N2 Its header and its name are durable before a rotation uses it (rule 4), and it has no frame. After a crash it is a log without frames that has
//! the greatest number of all logs: replay reads nothing from it, whatever the earlier logs contain, and the next open removes it. If a log cannot be
//! completed, it is removed; if it cannot be removed, it remains as a log without frames between others.
//! N3 It gets space for the expected size of the active log when its memtable is full (rule 8), or for its present size, if memtables are flushed
//! before they are half full. So a full disk is noticed before any write needs the space. If the active log has been synced, the space is made
//! durable, so that no sync has to allocate anything. The first log of an open gets no space in advance: its size is not known yet, and a database is
//! often opened for one write. A log that outgrows its space is closed if the disk is full (`wal/writer.rs`, W4).
//! N4 If there is no space, the log is created with the space of the reserve, and gets none in advance (`reserve.rs`). If space is lacking even so,
//! or file handles are, nothing changes: the old log and memtable stay, threads that wait for the new log get the error, and the next write tries
//! again. Any other failure, in particular of a sync, ends writing (rule 7).

use super::attempts::Attempts;
use crate::error::Result;
use crate::wal;

/// The log after the active one, or the state of its creation. Guarded by the write lock.
#[derive(Debug, Default)]
pub(crate) struct NextLog {
    ready: Option<wal::Writer>,
    pub(crate) attempts: Attempts,
    /// Whether the log was requested in advance, for the rotation of the active memtable.
    was_wanted_ahead: bool,
}

impl NextLog {
    /// Requests the next log. Returns whether the thread of the logs must be woken.
    pub(crate) fn want(&mut self) -> bool {
        !self.is_ready() && self.attempts.want()
    }

    /// Whether the log for the next rotation was not yet requested in advance.
    pub(crate) fn may_be_wanted_ahead(&self) -> bool {
        !self.was_wanted_ahead
    }

    /// Like [`want`](Self::want), but at most once for each rotation.
    pub(crate) fn want_ahead(&mut self) -> bool {
        !std::mem::replace(&mut self.was_wanted_ahead, true) && self.want()
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.ready.is_some()
    }

    pub(crate) fn number(&self) -> Option<u64> {
        self.ready.as_ref().map(|log| log.segment().number())
    }

    pub(crate) fn end(&mut self, made: Result<wal::Writer>) {
        match made {
            Ok(log) => {
                self.ready = Some(log);
                self.attempts.end(None);
            }
            Err(error) => self.attempts.end(Some(error)),
        }
    }

    /// Passes the log to the rotation.
    pub(crate) fn take(&mut self) -> Option<wal::Writer> {
        self.was_wanted_ahead = false;
        self.ready.take()
    }
}

/// The file that the next log will reuse: see `recycle.rs`.
#[derive(Debug, Default)]
pub(crate) enum SpareFile {
    #[default]
    None,
    Kept(wal::Spare),
    /// The file is being turned into a log.
    Taken,
}
