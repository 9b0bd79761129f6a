//! Replays the logs that are not in tables yet into new tables, or into memtables if the open must not write.
//!
//! The logs from the manifest's log number on are one history: frames follow each other with contiguous sequence numbers, across logs too (rule 11).
//! Replay reads frames up to the first place where the history stops, and then determines the cause of the stop (rule 2):
//! * A later frame, in this log or a later one, records a sync that covers bytes beyond the stop. Then durable bytes are missing: this is corruption.
//! * No later frame records such a sync. Then the rest is a tail that was never synced. The tail is copied to another file and cut off, the cut is
//!   synced (rule 3), and later logs are set aside. Nothing is deleted: frames after the stop may be whole, but no longer belong to the history.
//!
//! The note of a close (`manifest/close_note.rs`) is a record of a sync too.
//!
//! A read-only open reads the same frames and decides in the same way, but leaves the tail and all logs unchanged. The replayed writes then stay in
//! memtables.
//!
//! Replayed writes are sorted once and written to tables. If there are many, a separate thread writes one half of a memtable while the next half is
//! read. Only whole frames that continue the history are passed to that thread, in order. So when replay stops, exactly the frames before the stop
//! were passed on, as with a single thread. A failed write makes the open fail, which removes all tables written so far, by either thread.
//!
//! A log that ends cleanly may have lost whole frames too. Then the first frame of the next log does not follow, and the history stops at the end of
//! the log with the clean end.

use std::ops::Range;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, Scope, ScopedJoinHandle};

use super::aside::set_aside;
use super::report::{RecoveryReport, TornTail};
use crate::compaction::{Inputs, OutputSpec, Retention, TableStore, Written};
use crate::db::background::spawn_scoped;
use crate::db::core::FlushableMemtable;
use crate::error::{Error, Result};
use crate::fs::link_or_copy;
use crate::manifest::{ASIDE, CompactionStats, ManifestState, RunId, TAIL_ASIDE, Version};
use crate::memtables::{MemtableBuilder, memory_for};
use crate::options::{Options, RecoveryMode};
use crate::table::Table;
use crate::types::{BatchOp, BatchOps, MAX_BATCH_RANGES, MAX_SEQNO, SeqNo, Slice};
use crate::wal::{self, Frame, Position, Tail};

/// The minimum size of memtables that are kept instead of flushed, whatever the options are: each read searches all of them.
const KEPT_MEMTABLE_BYTES: usize = 64 << 20;

/// A thread writes half a memtable while the next half is read, unless the half is smaller than this and a thread is not worthwhile.
const BACKGROUND_BYTES: usize = 8 << 20;

/// The state of a replay.
struct Replay<'a, 'scope, 'env> {
    store: &'env TableStore,
    /// The tables that already exist.
    version: &'a Version,
    report: &'a mut RecoveryReport,
    /// The scope of the thread that writes a table while later frames are read.
    scope: &'scope Scope<'scope, 'env>,
    writing: Option<ScopedJoinHandle<'scope, Result<Written>>>,
    /// The log that is being read.
    log: PathBuf,
    number: u64,
    done: Replayed,
    /// The replayed writes that are not in tables yet.
    unflushed: MemtableBuilder,
    /// Bytes of memory that the memtables take.
    kept_bytes: usize,
    /// The first frame of a log if its sequence number does not follow: the history stopped before this log.
    gap: Option<(u64, SeqNo)>,
    frames_in_log: u64,
    /// The log that the manifest refers to: its header was durable before that (rule 4).
    oldest: u64,
    /// The position up to which the last close has synced the logs.
    closed: Option<Position>,
}

/// The result of a replay: durable tables that no manifest refers to yet, or memtables.
#[derive(Default)]
pub(super) struct Replayed {
    pub(crate) tables: Vec<Arc<Table>>,
    /// With a read-only open, the frozen memtables, oldest first, which replace the tables.
    pub(crate) memtables: Vec<FlushableMemtable>,
    /// The bytes written to the tables.
    pub(crate) stats: CompactionStats,
    pub(crate) last_seqno: SeqNo,
    /// Whether some of the writes expire.
    pub(crate) has_expiring: bool,
}

impl Replayed {
    /// Removes the tables, as long as no manifest can refer to them.
    pub(crate) fn remove_tables(&self, store: &TableStore) {
        for table in &self.tables {
            store.remove(table.number());
        }
    }
}

/// Replays the logs with the numbers `logs` (ascending, none obsolete), which continue `state`. The last close has synced them up to `closed`.
pub(super) fn replay(
    store: &TableStore,
    state: &ManifestState,
    logs: &[u64],
    closed: Option<Position>,
    report: &mut RecoveryReport,
) -> Result<Replayed> {
    let replayed = thread::scope(|scope| {
        let mut replay = Replay {
            store,
            version: &state.version,
            report,
            scope,
            writing: None,
            log: PathBuf::new(),
            number: 0,
            done: Replayed { last_seqno: state.last_seqno, ..Replayed::default() },
            unflushed: MemtableBuilder::default(),
            kept_bytes: 0,
            gap: None,
            frames_in_log: 0,
            oldest: state.log_number,
            closed,
        };
        let read = match replay.read_all(logs) {
            Err(error @ Error::Corruption { .. }) if store.options.recovery_mode == RecoveryMode::Quarantine => {
                replay.give_up(logs, &error)
            }
            read => read,
        };
        let result = read.and_then(|()| replay.finish());
        // After an error the other thread may still be writing.
        let result = result.and(replay.end_writing());
        (replay.done, result)
    });
    let (replayed, result) = replayed;
    if let Err(error) = result {
        // No manifest refers to these tables. If they stayed, each attempt to open a database on a full disk would take more space.
        replayed.remove_tables(store);
        return Err(error);
    }
    Ok(replayed)
}

impl<'env> Replay<'_, '_, 'env> {
    fn read_all(&mut self, logs: &[u64]) -> Result<()> {
        let mut clean: Vec<(u64, u64)> = Vec::new();
        for (at, &number) in logs.iter().enumerate() {
            let rest = logs.get(at..).unwrap_or_default();
            let later = logs.get(at + 1..).unwrap_or_default();
            let tail = self.read(number)?;
            if let Some(lost) = self.closed.and_then(|synced| tail.contradicted_by(&self.log, number, synced)) {
                return Err(lost);
            }
            match (self.gap, tail) {
                (None, Tail::Clean { end }) => clean.push((number, end)),
                (None, Tail::Torn { offset, dropped_bytes }) => {
                    return self.stop(&clean, (number, offset, dropped_bytes), later);
                }
                (Some((offset, found)), _) => {
                    let Some((stopped, end)) = clean.pop() else {
                        // According to the manifest, this log begins with the next number, so its beginning is lost.
                        let expected = self.done.last_seqno + 1;
                        let what = format!(
                            "first frame of the oldest log: expected sequence number {expected}, found {found}"
                        );
                        return Err(Error::corruption(&self.log, offset, what));
                    };
                    return self.stop(&clean, (stopped, end, 0), rest);
                }
            }
        }
        Ok(())
    }

    fn read(&mut self, number: u64) -> Result<Tail> {
        let path = self.path(number);
        (self.log, self.number, self.frames_in_log) = (path.clone(), number, 0);
        let fs = self.store.fs.clone();
        let tail = wal::replay(&*fs, &path, number, |frame| self.take(frame))?;
        if self.gap.is_none() && self.frames_in_log > 0 {
            self.report.logs_replayed += 1;
        }
        if number == self.oldest && matches!(tail, Tail::Torn { offset: 0, .. }) {
            let what = "log header: expected one, since the manifest names this log; found none";
            return Err(Error::corruption(&path, 0, what));
        }
        Ok(match tail {
            // A header is synced before the first frame follows it. A log without a header was still being created, so nothing is lost; if frames
            // were lost after all, the first frame of the next log does not follow.
            Tail::Torn { offset: 0, .. } => Tail::Clean { end: 0 },
            tail => tail,
        })
    }

    /// Handles the place where the history stops. `stop` is its log, its offset, and the number of bytes after it; `clean` are the earlier logs with
    /// their ends; `later` are the logs after it.
    fn stop(&mut self, clean: &[(u64, u64)], stop: (u64, u64, u64), later: &[u64]) -> Result<()> {
        let (number, offset, dropped_bytes) = stop;
        let path = self.path(number);
        for &log in later {
            if let Some(synced) = wal::newest_sync_record(&*self.store.fs, &self.path(log), log)? {
                self.check_record(clean, (number, Tail::Torn { offset, dropped_bytes }), synced)?;
            }
        }
        self.report.torn = Some(TornTail { log: path.clone(), offset, dropped_bytes, kept: None });
        if self.store.options.read_only {
            return Ok(());
        }
        if dropped_bytes > 0 {
            self.keep_tail(number, offset..offset + dropped_bytes)?;
        }
        // The tail is cut off before another log is created (rule 3). Otherwise a crash could leave the torn tail before a newer log, whose synced
        // writes would then make the tail look like corruption, or be set aside together with it.
        wal::truncate_torn(&*self.store.fs, &path, offset)?;
        self.set_aside(later)
    }

    /// Quarantine mode: continues without the later logs, and without the current log from its damage on. The writes before the damage have been
    /// replayed. The logs keep their names until a manifest has made them obsolete, because after an earlier crash the same writes must be replayed
    /// again. So each log gets a second name, under which it is kept.
    fn give_up(&mut self, logs: &[u64], error: &Error) -> Result<()> {
        self.report.damage.push(error.to_string());
        self.report.logs_end_at = Some(self.done.last_seqno);
        if self.store.options.read_only {
            return Ok(());
        }
        let fs = self.store.fs.clone();
        for &log in logs.iter().filter(|&&log| log >= self.number) {
            let (from, to) = (self.path(log), self.store.dir.join(wal::file_name(log) + ASIDE));
            if fs.exists(&to).map_err(Error::io("look for", &to))? {
                // An interrupted open has left this: a link to the same file, or a partial copy.
                fs.remove(&to).map_err(Error::io("remove", &to))?;
            }
            link_or_copy(&*fs, || fs.open(&from).map_err(Error::io("open", &from)), &from, &to)?;
            self.report.set_aside.push(to);
        }
        fs.sync_dir(&self.store.dir).map_err(Error::io("sync", &self.store.dir))
    }

    /// Fails if a later frame records a sync that covered the missing frames. If the log before a gap is empty, it is not certain which log lost the
    /// frames; so each clean end must pass this check, not only the stop.
    fn check_record(&self, clean: &[(u64, u64)], stop: (u64, Tail), synced: Position) -> Result<()> {
        let ends = clean.iter().map(|&(number, end)| (number, Tail::Clean { end }));
        let mut contradictions =
            ends.chain([stop]).filter_map(|(number, tail)| tail.contradicted_by(&self.path(number), number, synced));
        contradictions.next().map_or(Ok(()), Err)
    }

    /// Copies the tail of log `number`, which is about to be cut off. The copy is durable before the cut.
    fn keep_tail(&mut self, number: u64, tail: Range<u64>) -> Result<()> {
        let Replay { store, report, .. } = self;
        let aside = store.dir.join(wal::file_name(number) + TAIL_ASIDE);
        wal::keep_torn(&*store.fs, &store.dir.join(wal::file_name(number)), number, tail, &aside)?;
        report.set_aside.push(aside.clone());
        if let Some(torn) = &mut report.torn {
            torn.kept = Some(aside);
        }
        store.fs.sync_dir(&store.dir).map_err(Error::io("sync", &store.dir))
    }

    /// Sets logs aside, except those without frames. This is durable before the edit that makes all present logs obsolete. Otherwise they would be
    /// deleted after that edit, like an empty log that was created in advance.
    fn set_aside(&mut self, logs: &[u64]) -> Result<()> {
        let mut names = Vec::new();
        for &log in logs {
            if !wal::is_unused(&*self.store.fs, &self.path(log), log)? {
                names.push(wal::file_name(log));
            }
        }
        set_aside(self.store, names, self.report)
    }

    fn take(&mut self, frame: Frame<'_>) -> Result<()> {
        if self.gap.is_some() {
            return Ok(());
        }
        let expected = self.done.last_seqno + 1;
        if frame.first_seqno > expected && self.frames_in_log == 0 {
            self.gap = Some((frame.offset, frame.first_seqno));
            return Ok(());
        }
        if frame.first_seqno != expected {
            let what = format!("frame: expected sequence number {expected}, found {}", frame.first_seqno);
            return Err(Error::corruption(&self.log, frame.offset, what));
        }
        let ranges = check_batch(&self.log, &frame)?;
        self.make_room(memory_for(frame.count as usize, ranges, frame.payload.len()))?;
        for (op, seqno) in BatchOps::new(frame.payload).flatten().zip(expected..) {
            self.unflushed.push(op, seqno);
        }
        self.done.has_expiring |= self.unflushed.has_expiring();
        self.done.last_seqno += u64::from(frame.count);
        self.frames_in_log += 1;
        self.report.batches_replayed += 1;
        self.report.operations_replayed += u64::from(frame.count);
        Ok(())
    }

    /// Makes room for `memory` more bytes: if the replayed writes take enough memory, they are written to a table.
    fn make_room(&mut self, memory: usize) -> Result<()> {
        let Options { read_only, memtable_bytes, .. } = self.store.options;
        // Memtables that are read and never flushed should be few.
        let bytes = match memtable_bytes / 2 {
            _ if read_only => memtable_bytes.max(KEPT_MEMTABLE_BYTES),
            half if half >= BACKGROUND_BYTES => half,
            _ => memtable_bytes,
        };
        self.check_memory(memory)?;
        let used = self.unflushed.memory_usage();
        if used > 0 && (memory > memtable_bytes / 2 || used >= bytes) { self.spill() } else { Ok(()) }
    }

    /// Fails if the kept memtables would exceed their limit with `memory` more bytes.
    fn check_memory(&self, memory: usize) -> Result<()> {
        if !self.store.options.read_only {
            return Ok(());
        }
        let held = self.kept_bytes + self.unflushed.memory_usage();
        let limit = self.store.options.replay_memory_bytes;
        if held.saturating_add(memory) as u64 <= limit {
            return Ok(());
        }
        Err(Error::Full(format!(
            "replaying the logs of {} takes more than {limit} bytes of memory: open the database for writing once, which writes \
             them to tables, or raise replay_memory_bytes",
            self.store.dir.display()
        )))
    }

    /// Writes the replayed writes to a table, or keeps them if the open must not write.
    fn spill(&mut self) -> Result<()> {
        if self.store.options.read_only {
            self.keep();
            return Ok(());
        }
        let (store, part) = (self.store, self.take_part()?);
        if part.entries.memory_usage() < BACKGROUND_BYTES {
            return self.note(write_table(store, part));
        }
        // Tables are written one after the other, so that at most one memtable is in memory.
        self.end_writing()?;
        let writing = spawn_scoped(self.scope, "mini-engine-replay", move || write_table(store, part));
        self.writing = Some(writing.map_err(Error::io("start a thread for", &store.dir))?);
        Ok(())
    }

    /// Like [`spill`](Self::spill), for all remaining writes.
    fn finish(&mut self) -> Result<()> {
        if self.store.options.read_only {
            self.keep();
            return Ok(());
        }
        let last = self.take_part().and_then(|part| write_table(self.store, part));
        // The older table comes first.
        let older = self.end_writing();
        self.note(last).and(older)
    }

    /// Takes the replayed writes so far, to be written to a table.
    fn take_part(&mut self) -> Result<Unwritten> {
        let mut older_last = Slice::default();
        if self.unflushed.has_ranges() {
            // All older tables must be known, including the one that is being written.
            self.end_writing()?;
            let written = self.done.tables.iter().map(|table| table.meta().largest.clone());
            older_last = written.chain([self.version.last_key()]).max().unwrap_or_default();
        }
        Ok(Unwritten { number: self.number, entries: std::mem::take(&mut self.unflushed), older_last })
    }

    /// Keeps the replayed writes so far in a memtable.
    fn keep(&mut self) {
        if self.unflushed.memory_usage() > 0 {
            let memtable = std::mem::take(&mut self.unflushed).finish(self.number);
            self.kept_bytes += memtable.memory_usage();
            self.done.memtables.push(FlushableMemtable { memtable, last_seqno: self.done.last_seqno });
        }
    }

    /// Waits until the other thread has written its table.
    fn end_writing(&mut self) -> Result<()> {
        let Some(writing) = self.writing.take() else { return Ok(()) };
        let written = writing.join().unwrap_or_else(|cause| resume_unwind(cause));
        self.note(written)
    }

    fn note(&mut self, written: Result<Written>) -> Result<()> {
        let written = written?;
        self.done.stats = self.done.stats.plus(&written.as_edit(RunId::LEVEL_0).stats);
        self.done.tables.extend(written.tables);
        Ok(())
    }

    fn path(&self, log: u64) -> PathBuf {
        self.store.dir.join(wal::file_name(log))
    }
}

/// Fails unless the batch of `frame`, in the file `log`, agrees with its header; otherwise no part of it may be used. Returns the number of its range
/// removals.
pub(super) fn check_batch(log: &Path, frame: &Frame<'_>) -> Result<u32> {
    let (mut found, mut ranges) = (0u64, 0);
    for decoded in BatchOps::new(frame.payload) {
        let op = decoded.map_err(|bad| bad.in_file(log, frame.offset))?;
        found += 1;
        ranges += u32::from(matches!(op, BatchOp::RemoveRange { .. }));
    }
    if ranges > MAX_BATCH_RANGES {
        let what = format!("frame: expected at most {MAX_BATCH_RANGES} ranges to remove, found {ranges}");
        return Err(Error::corruption(log, frame.offset, what));
    }
    if found == u64::from(frame.count) {
        return Ok(ranges);
    }
    let what = format!("frame: expected {} operations, found {found}", frame.count);
    Err(Error::corruption(log, frame.offset, what))
}

/// The writes for one table.
struct Unwritten {
    /// The number of the log.
    number: u64,
    entries: MemtableBuilder,
    /// The last key of all older entries, if there are range tombstones.
    older_last: Slice,
}

/// Sorts the writes and writes them to a table, unless there are none. The writes are always written again and synced, whatever the log's state: if a
/// sync had failed, the log could be right in the page cache and wrong on the device (rule 7).
fn write_table(store: &TableStore, part: Unwritten) -> Result<Written> {
    let Unwritten { number, entries, older_last } = part;
    if entries.memory_usage() == 0 {
        return Ok(Written::default());
    }
    let memtable = entries.finish(number);
    let inputs = Inputs::of_memtable(&memtable, MAX_SEQNO, Retention::NEWEST, &older_last)?;
    // The filter gets the mean number of bits over all levels: the table is as small as one or two flushes, and soon compacted.
    let spec = OutputSpec::flush(f64::from(store.options.filter_bits_per_key));
    store.write_all(inputs, spec)
}
