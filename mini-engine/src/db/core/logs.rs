//! [`Logs`]: the logs whose writes are not in tables yet, and the next log.

use std::collections::VecDeque;
use std::sync::Arc;

use super::next_log::NextLog;
use crate::wal;

/// Guarded by the write lock.
pub(crate) struct Logs {
    /// The log of the active memtable.
    pub(crate) active: wal::Writer,
    /// The number and length of logs that an earlier process has left, oldest first: the oldest memtable has their writes.
    pub(crate) earlier: Vec<(u64, u64)>,
    /// The logs of the frozen memtables, oldest first.
    frozen: VecDeque<Arc<wal::Segment>>,
    pub(crate) next: NextLog,
}

impl Logs {
    pub(super) fn new(active: wal::Writer, earlier: Vec<(u64, u64)>) -> Logs {
        Logs { active, earlier, frozen: VecDeque::new(), next: NextLog::default() }
    }

    /// Makes the next log the active one, if it exists, and returns its segment. No thread may still write to the log that was active before.
    pub(crate) fn rotate(&mut self) -> Option<Arc<wal::Segment>> {
        let log = self.next.take()?;
        let segment = log.segment().clone();
        segment.set_previous(self.active.segment().clone());
        let previous = std::mem::replace(&mut self.active, log).finish();
        self.frozen.push_back(previous);
        Some(segment)
    }

    /// The log `number` of a frozen memtable.
    pub(crate) fn frozen(&self, number: u64) -> Option<Arc<wal::Segment>> {
        self.frozen.iter().find(|log| log.number() == number).cloned()
    }

    /// Releases the logs before `number`: their data is in tables now, so syncs of later logs need not include them. Returns the segments, which the
    /// caller must drop without the lock.
    pub(super) fn release_before(&mut self, number: u64) -> Vec<Arc<wal::Segment>> {
        let mut flushed = Vec::new();
        self.earlier.clear();
        let released = self.frozen.iter().take_while(|segment| segment.number() < number).count();
        for segment in self.frozen.drain(..released) {
            flushed.extend(segment.release());
            flushed.push(segment);
        }
        let next = self.frozen.front().unwrap_or(self.active.segment());
        flushed.extend(next.take_settled());
        flushed
    }
}
