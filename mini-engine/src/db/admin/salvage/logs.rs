//! The writes in the logs of a damaged database, sorted as in a table.

use std::path::{Path, PathBuf};

use super::report::{LostWrites, SalvageReport};
use crate::error::{Error, Result};
use crate::fs::FileSystem;
use crate::iter::EntryIter;
use crate::types::{BatchOp, Kind, RangeTombstone, SeqNo, Slice, entry_order};
use crate::wal::{self, SalvagedLog};

/// Bytes of memory that an entry takes beside its key and value.
const ENTRY_BYTES: u64 = size_of::<Entry>() as u64;

struct Entry {
    key: Slice,
    seqno: SeqNo,
    kind: Kind,
    value: Slice,
}

/// Entries in order, read forward once.
#[derive(Default)]
pub(super) struct LogEntries {
    entries: Vec<Entry>,
    /// The range tombstones. The first key of each is removed by an entry too.
    pub(super) ranges: Vec<RangeTombstone>,
    bytes: u64,
    at: Option<usize>,
}

/// A log that was read.
struct Read {
    number: u64,
    path: PathBuf,
    log: SalvagedLog,
}

/// Reads the logs of these numbers, ascending. Where a manifest says so, `oldest` is the number of the first one, and the sequence
/// number after which it begins.
///
/// # Errors
/// [`Error::Full`] if their entries take more than `memory` bytes; [`Error::UnsupportedVersion`]; [`Error::Io`] for want of file
/// handles.
pub(super) fn read_logs(
    fs: &dyn FileSystem,
    dir: &Path,
    logs: &[u64],
    oldest: Option<(u64, SeqNo)>,
    memory: u64,
    report: &mut SalvageReport,
) -> Result<LogEntries> {
    let mut entries = LogEntries::default();
    let mut read: Vec<Read> = Vec::new();
    let mut expected = oldest.map(|(_, last)| last + 1);
    for &number in logs {
        let path = dir.join(wal::file_name(number));
        let log = wal::salvage(fs, &path, number, expected, |frame, _| entries.add(frame, memory));
        match log {
            Ok(log) => {
                expected = expected.and(log.next_seqno).filter(|_| log.unreadable.is_none());
                read.push(Read { number, path, log });
            }
            // The device does not read even its header.
            Err(cause) if cause.is_damage() => {
                expected = None;
                report.damage.push(cause);
                report.lost_writes.push(LostWrites { log: path, bytes: 0..0, seqnos: None, may_be_torn: false });
            }
            Err(error) => return Err(error),
        }
    }
    report_logs(&read, oldest.map(|(number, _)| number), report);
    entries.entries.sort_unstable_by(|a, b| entry_order((&a.key, a.seqno), (&b.key, b.seqno)));
    Ok(entries)
}

fn report_logs(read: &[Read], oldest: Option<u64>, report: &mut SalvageReport) {
    let synced = read.iter().filter_map(|read| read.log.synced).max();
    for Read { number, path, log } in read {
        report.logs += usize::from(log.frames > 0);
        report.batches += log.frames;
        report.batches_behind_damage += log.frames_behind;
        report.damage.extend(log.header.iter().chain(&log.unreadable).cloned());
        let lost = |bytes, seqnos, may_be_torn| LostWrites { log: path.clone(), bytes, seqnos, may_be_torn };
        report
            .lost_writes
            .extend(log.missing.iter().map(|missing| lost(missing.bytes.clone(), Some(missing.seqnos.clone()), false)));
        // A header is durable before a manifest names the log; and a later frame, of this log or of a later one, says how far it
        // was synced: a log is synced whole before a later one is.
        let lost_header = !log.has_header && (log.header.is_some() || oldest == Some(*number));
        let was_synced = synced.is_some_and(|synced| match synced.log == *number {
            true => synced.offset > log.end,
            false => synced.log > *number && log.tail_bytes > 0,
        });
        if log.tail_bytes > 0 || lost_header || was_synced {
            let bytes = log.end..log.end + log.tail_bytes;
            report.lost_writes.push(lost(bytes, None, !lost_header && !was_synced && log.unreadable.is_none()));
        }
    }
}

impl LogEntries {
    fn add(&mut self, frame: wal::Frame<'_>, memory: u64) -> Result<()> {
        // A batch that ends in bytes that are no operation was written so; its other operations are as good as any.
        for (op, seqno) in frame.readable_ops() {
            let (key, kind, value) = match op {
                BatchOp::Insert { key, value } => (key, Kind::Value, value),
                BatchOp::Remove { key } => (key, Kind::Tombstone, &[][..]),
                BatchOp::RemoveRange { start, end } => {
                    self.ranges.push(RangeTombstone { start: Slice::from(start), end: Slice::from(end), seqno });
                    self.bytes += (size_of::<RangeTombstone>() + start.len() + end.len()) as u64;
                    (start, Kind::Tombstone, &[][..])
                }
            };
            self.bytes += ENTRY_BYTES + key.len() as u64 + value.len() as u64;
            if self.bytes > memory {
                return Err(Error::Full(format!(
                    "the logs need more than {memory} bytes of memory: raise replay_memory_bytes"
                )));
            }
            self.entries.push(Entry { key: Slice::from(key), seqno, kind, value: Slice::from(value) });
        }
        Ok(())
    }

    fn entry(&self) -> Option<&Entry> {
        self.entries.get(self.at?)
    }
}

impl EntryIter for LogEntries {
    fn valid(&self) -> bool {
        self.entry().is_some()
    }

    fn key(&self) -> &[u8] {
        self.entry().map_or(&[], |entry| &entry.key)
    }

    fn seqno(&self) -> SeqNo {
        self.entry().map_or(0, |entry| entry.seqno)
    }

    fn kind(&self) -> Kind {
        self.entry().map_or(Kind::Tombstone, |entry| entry.kind)
    }

    fn value(&self) -> &[u8] {
        self.entry().map_or(&[], |entry| &entry.value)
    }

    fn repeats(&self) -> bool {
        let before = self.at.and_then(|at| self.entries.get(at.checked_sub(1)?));
        before.is_some_and(|before| *before.key == *self.key())
    }

    fn seek_to_first(&mut self) -> Result<()> {
        self.at = Some(0);
        Ok(())
    }

    fn seek_to_last(&mut self) -> Result<()> {
        self.at = self.entries.len().checked_sub(1);
        Ok(())
    }

    fn seek(&mut self, key: &[u8], seqno: SeqNo) -> Result<()> {
        let is_before = |entry: &Entry| entry_order((&entry.key, entry.seqno), (key, seqno)).is_lt();
        self.at = Some(self.entries.partition_point(is_before));
        Ok(())
    }

    fn seek_for_prev(&mut self, key: &[u8], seqno: SeqNo) -> Result<()> {
        let is_within = |entry: &Entry| entry_order((&entry.key, entry.seqno), (key, seqno)).is_le();
        self.at = self.entries.partition_point(is_within).checked_sub(1);
        Ok(())
    }

    fn next(&mut self) -> Result<()> {
        self.at = self.at.map(|at| at.saturating_add(1));
        Ok(())
    }

    fn prev(&mut self) -> Result<()> {
        self.at = self.at.and_then(|at| at.checked_sub(1));
        Ok(())
    }
}
