//! The writes in the logs of a damaged database, sorted in a memtable.

use std::path::{Path, PathBuf};

use super::report::{LostWrites, SalvageReport};
use crate::error::{Error, Result};
use crate::fs::FileSystem;
use crate::memtables::{LoggedMemtable, MemtableBuilder};
use crate::types::SeqNo;
use crate::wal::{self, SalvagedLog};

struct Read {
    number: u64,
    path: PathBuf,
    log: SalvagedLog,
}

/// Reads the logs of these numbers, ascending. `oldest` is the number of the first log and the sequence number after which it begins, if a manifest
/// says so.
///
/// # Errors
/// [`Error::Full`] if their entries take more than `memory` bytes; [`Error::UnsupportedVersion`]; [`Error::Io`] for lack of file
/// handles.
pub(super) fn read_logs(
    fs: &dyn FileSystem,
    dir: &Path,
    logs: &[u64],
    oldest: Option<(u64, SeqNo)>,
    memory: u64,
    report: &mut SalvageReport,
) -> Result<LoggedMemtable> {
    let mut entries = MemtableBuilder::default();
    let mut read: Vec<Read> = Vec::new();
    let mut expected = oldest.map(|(_, last)| last + 1);
    for &number in logs {
        let path = dir.join(wal::file_name(number));
        let log = wal::salvage(fs, &path, number, expected, |frame, _| add(&mut entries, frame, memory));
        match log {
            Ok(log) => {
                expected = expected.and(log.next_seqno).filter(|_| log.unreadable.is_none());
                read.push(Read { number, path, log });
            }
            // The device cannot read even the header.
            Err(cause) if cause.is_damage() => {
                expected = None;
                report.damage.push(cause);
                report.lost_writes.push(LostWrites { log: path, bytes: 0..0, seqnos: None, may_be_torn: false });
            }
            Err(error) => return Err(error),
        }
    }
    report_logs(&read, oldest.map(|(number, _)| number), report);
    Ok(entries.finish(0))
}

fn add(entries: &mut MemtableBuilder, frame: wal::Frame<'_>, memory: u64) -> Result<()> {
    // The checksum is right, so a batch with undecodable bytes at its end was written in that way; its other operations are sound.
    for (op, seqno) in frame.readable_ops() {
        entries.push(op, seqno);
        if entries.memory_usage() as u64 > memory {
            let what = format!("the logs need more than {memory} bytes of memory: raise replay_memory_bytes");
            return Err(Error::Full(what));
        }
    }
    Ok(())
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
        // A header is durable before a manifest names the log. A later frame, of this log or of a later one, also shows how far this log was
        // synced, because a log is synced whole before a later one is.
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
