//! [`RecentWrites`]: the keys and ranges of the newest writes, for the commits of transactions.
//!
//! A commit checks whether any key that it has read was written since. This record makes the check cost one step for each newer write; without it,
//! the check walks in the view over everything that was read (`read/newer.rs`).
//!
//! T1 Every operation with a sequence number above `from`, up to the last number that was assigned, is in the record. A write adds its operations
//! with the write lock held, in the step that assigns their numbers; nothing can fail after that. An ingest, whose keys are not listed, restarts the
//! record after its number.
//! T2 The sequence numbers of the operations ascend.
//! T3 T1 alone makes a check correct: for a number below `from` there is no record, and the caller searches the view. So the start of the record, and
//! everything that is dropped from it, only affect the cost of a check.
//!
//! The first transaction of a database begins the record: until then, a write pays for one branch. Operations are dropped if no transaction is open
//! (those that the writer has seen to be visible); chunk by chunk, if they are older than the oldest snapshot; and oldest first, at a memory limit.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use crate::types::{BatchOp, SeqNo, Slice, WriteBatch};

/// The number of operations in a chunk; chunks are dropped, and shared with checks, as a whole.
const CHUNK: usize = 1024;
/// A chunk with long keys is complete when it reaches this fraction of the memory limit.
const CHUNKS: usize = 16;

/// An operation on a key, or on the keys from `key` up to `end`, exclusive; an empty `end` means no end.
#[derive(Clone, Debug)]
pub(crate) struct RecentWrite {
    pub(crate) seqno: SeqNo,
    pub(crate) key: Slice,
    pub(crate) end: Option<Slice>,
}

impl RecentWrite {
    fn new(seqno: SeqNo, op: BatchOp<'_>) -> RecentWrite {
        match op {
            BatchOp::Insert { key, .. } | BatchOp::InsertExpiring { key, .. } | BatchOp::Remove { key } => {
                RecentWrite { seqno, key: Slice::from(key), end: None }
            }
            BatchOp::RemoveRange { start, end } => {
                RecentWrite { seqno, key: Slice::from(start), end: Some(Slice::from(end)) }
            }
        }
    }

    /// The memory of the operation, in bytes.
    fn memory(&self) -> usize {
        let outside = |bytes: &Slice| if Slice::is_inline(bytes.len()) { 0 } else { bytes.len() };
        size_of::<RecentWrite>() + outside(&self.key) + self.end.as_ref().map_or(0, outside)
    }
}

/// The record: part of the state that the write lock guards.
#[derive(Debug)]
pub(crate) struct RecentWrites {
    /// See T1.
    from: SeqNo,
    /// Chunks, oldest first; none is empty.
    chunks: VecDeque<Arc<Vec<RecentWrite>>>,
    /// The newest operations.
    last: Vec<RecentWrite>,
    /// The memory of all operations, and of those in `last`, in bytes.
    bytes: usize,
    last_bytes: usize,
    max_bytes: usize,
}

impl RecentWrites {
    /// An empty record that starts after the last sequence number that was assigned.
    pub(crate) fn new(last_seqno: SeqNo, max_bytes: usize) -> RecentWrites {
        let (chunks, last) = (VecDeque::new(), Vec::new());
        RecentWrites { from: last_seqno, chunks, last, bytes: 0, last_bytes: 0, max_bytes }
    }

    /// Restarts the record after `seqno`.
    pub(crate) fn restart(&mut self, seqno: SeqNo) {
        *self = RecentWrites::new(seqno, self.max_bytes);
    }

    /// Adds the operations of `batch`, numbered from `first_seqno`. O(operations).
    pub(crate) fn add(&mut self, batch: &WriteBatch, first_seqno: SeqNo) {
        for (op, seqno) in batch.iter().zip(first_seqno..) {
            let write = RecentWrite::new(seqno, op);
            let memory = write.memory();
            self.bytes += memory;
            self.last_bytes += memory;
            self.last.push(write);
            if self.last.len() == CHUNK || self.last_bytes > self.max_bytes / CHUNKS {
                self.chunks.push_back(Arc::new(std::mem::take(&mut self.last)));
                self.last_bytes = 0;
            }
            while self.bytes > self.max_bytes && self.drop_oldest() {}
        }
    }

    /// Drops operations up to `seqno`, chunk by chunk.
    pub(crate) fn drop_upto(&mut self, seqno: SeqNo) {
        let is_old = |chunk: &Vec<RecentWrite>| chunk.last().is_some_and(|last| last.seqno <= seqno);
        while self.chunks.front().is_some_and(|chunk| is_old(chunk)) {
            self.drop_oldest();
        }
        if self.chunks.is_empty() && is_old(&self.last) {
            self.from = self.last.last().map_or(self.from, |last| last.seqno);
            self.last.clear();
            (self.bytes, self.last_bytes) = (0, 0);
        }
    }

    /// Whether the last chunk is complete; then other chunks can be dropped.
    pub(crate) fn begins_chunk(&self) -> bool {
        self.last.is_empty() && !self.chunks.is_empty()
    }

    fn drop_oldest(&mut self) -> bool {
        let Some(chunk) = self.chunks.pop_front() else { return false };
        self.bytes -= chunk.iter().map(RecentWrite::memory).sum::<usize>();
        self.from = chunk.last().map_or(self.from, |last| last.seqno);
        true
    }

    /// The operations with numbers above `since`, if the record goes back that far. O(chunks, and the operations in the newest).
    pub(crate) fn newer_than(&self, since: SeqNo) -> Option<NewerWrites> {
        if since < self.from {
            return None;
        }
        let upto = |writes: &Vec<RecentWrite>| writes.partition_point(|write| write.seqno <= since);
        let first = self.chunks.partition_point(|chunk| upto(chunk) == chunk.len());
        let mut chunks: Vec<_> = self.chunks.range(first..).cloned().collect();
        let skipped = chunks.first().map_or(0, |chunk| upto(chunk));
        chunks.push(Arc::new(self.last[upto(&self.last)..].to_vec()));
        Some(NewerWrites { chunks, skipped })
    }
}

/// Whether open transactions need the record.
#[derive(Debug, Default)]
pub(crate) struct Recording {
    /// The number of open transactions. Relaxed: see T3.
    open: AtomicUsize,
    /// Set when the first transaction creates the record.
    begun: OnceLock<()>,
}

impl Recording {
    /// Counts another transaction; the first one calls `begin` to create the record.
    pub(crate) fn add(&self, begin: impl FnOnce()) {
        self.open.fetch_add(1, Ordering::Relaxed);
        self.begun.get_or_init(begin);
    }

    pub(crate) fn remove(&self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether a transaction is open.
    pub(crate) fn is_needed(&self) -> bool {
        self.open.load(Ordering::Relaxed) > 0
    }
}

/// The operations above a number, to be read without the lock.
#[derive(Debug)]
pub(crate) struct NewerWrites {
    chunks: Vec<Arc<Vec<RecentWrite>>>,
    /// The number of leading operations that are skipped.
    skipped: usize,
}

impl NewerWrites {
    pub(crate) fn len(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.len()).sum::<usize>() - self.skipped
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &RecentWrite> {
        self.chunks.iter().flat_map(|chunk| chunk.iter()).skip(self.skipped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proof::Random;

    /// The number, the key, and the end of a range.
    type Op = (u64, Vec<u8>, Option<Vec<u8>>);

    #[test]
    fn the_record_has_all_newer_operations_or_says_that_it_does_not_reach_back() {
        // Catches an operation that is lost where a chunk ends or begins, or is dropped while the record still claims to go back that far.
        for max_bytes in [2_000, 300_000, 3_000_000] {
            let mut random = Random(max_bytes as u64);
            let (mut record, mut all, mut dropped) = (RecentWrites::new(7, max_bytes), Vec::<Op>::new(), 7);
            let mut answers = 0;
            for _ in 0..3000 {
                let first = all.last().map_or(8, |(seqno, ..)| seqno + 1);
                let mut batch = WriteBatch::new();
                for n in 0..=random.below(9) {
                    let (key, end) = (random.below(1000).to_be_bytes(), 1000u64.to_be_bytes());
                    match random.below(4) {
                        0 => batch.remove_between(&key, &end).unwrap(),
                        1 => batch.remove(key).unwrap(),
                        _ => batch.insert(key, "").unwrap(),
                    }
                    let is_range = matches!(batch.iter().last(), Some(BatchOp::RemoveRange { .. }));
                    all.push((first + n, key.to_vec(), is_range.then(|| end.to_vec())));
                }
                record.add(&batch, first);
                let last = all.last().map_or(0, |(seqno, ..)| *seqno);
                match random.below(500) {
                    0 => {
                        dropped = dropped.max(last - random.below(20).min(last - 7));
                        record.drop_upto(dropped);
                    }
                    1 => {
                        record.restart(last);
                        dropped = last;
                    }
                    _ => {}
                }
                assert!(record.bytes <= max_bytes.max(1000) + max_bytes / CHUNKS, "{} bytes", record.bytes);
                let since = last.saturating_sub(random.below(5000));
                let Some(newer) = record.newer_than(since) else {
                    assert!(since < dropped || max_bytes < 3_000_000, "{since} is in the record");
                    continue;
                };
                answers += 1;
                assert!(since >= 7, "{since} comes before the record");
                let from = all.partition_point(|(seqno, ..)| *seqno <= since);
                assert_eq!(newer.len(), all.len() - from);
                let same = |(write, (seqno, key, end)): (&RecentWrite, &Op)| {
                    write.seqno == *seqno && *write.key == **key && write.end.as_deref() == end.as_deref()
                };
                assert!(newer.iter().zip(&all[from..]).all(same));
            }
            assert!(answers > 10, "{answers} answers with {max_bytes} bytes");
        }
    }
}
