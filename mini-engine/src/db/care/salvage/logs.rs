//! The writes in the logs of a damaged database, sorted in a memtable.

use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};

use super::report::{LostWrites, SalvageReport};
use crate::error::{Error, Result};
use crate::fs::FileSystem;
use crate::manifest::CloseNote;
use crate::memtables::{LoggedMemtable, MemtableBuilder};
use crate::types::SeqNo;
use crate::wal::{self, Frame, Position, Reading, Walked};

/// The contents of one log.
struct ReadLog {
    number: u64,
    path: PathBuf,
    walked: Walked,
    frames: u64,
    /// The number of whole frames that come after damage.
    frames_behind: u64,
    /// The batches that are missing before whole frames.
    missing: Vec<LostWrites>,
    /// The sequence number after that of the last operation.
    next_seqno: Option<SeqNo>,
}

/// Reads the logs `numbers`, which ascend. `oldest` is the number of the first log and the sequence number after which it begins, if a manifest
/// records them.
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
    let mut read: Vec<ReadLog> = Vec::new();
    let mut expected = oldest.map(|(_, last)| last + 1);
    for &number in logs {
        let path = dir.join(wal::file_name(number));
        match read_log(fs, (number, &path), expected, |frame| add(&mut entries, frame, memory)) {
            Ok(log) => {
                expected = expected.and(log.next_seqno).filter(|_| log.walked.unreadable.is_none());
                read.push(log);
            }
            // Not even the header can be read from the device.
            Err(cause) if cause.is_damage() => {
                expected = None;
                report.damage.push(cause);
                report.lost_writes.push(LostWrites { log: path, bytes: 0..0, seqnos: None, may_be_torn: false });
            }
            Err(error) => return Err(error),
        }
    }
    let closed = CloseNote::load(fs, dir).map(|note| note.synced());
    report_logs(&read, oldest.map(|(number, _)| number), closed, report);
    Ok(entries.finish(0))
}

/// Reads log `number` and calls `add` for each whole batch. The first batch should begin with `expected`, if that is known.
fn read_log(
    fs: &dyn FileSystem,
    (number, path): (u64, &Path),
    expected: Option<SeqNo>,
    mut add: impl FnMut(&Frame<'_>) -> Result<()>,
) -> Result<ReadLog> {
    let (mut frames, mut frames_behind, mut missing) = (0, 0, Vec::new());
    let (mut next_seqno, mut gap) = (expected, None);
    let walked = wal::walk(fs, path, number, Reading::AroundDamage, |part| {
        match part {
            wal::Part::Gap(bytes) => gap = Some(bytes),
            wal::Part::Undecodable(..) => {}
            wal::Part::Frame(frame) => {
                let seqnos = next_seqno.unwrap_or(frame.first_seqno)..frame.first_seqno;
                if gap.is_some() || !seqnos.is_empty() {
                    // The range of bytes is empty if whole frames are missing.
                    let (bytes, seqnos) = (gap.take().unwrap_or(frame.offset..frame.offset), Some(seqnos));
                    missing.push(LostWrites { log: path.to_path_buf(), bytes, seqnos, may_be_torn: false });
                }
                next_seqno = Some(frame.first_seqno + u64::from(frame.count));
                (frames, frames_behind) = (frames + 1, frames_behind + u64::from(!missing.is_empty()));
                add(&frame)?;
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(ReadLog { number, path: path.to_path_buf(), walked, frames, frames_behind, missing, next_seqno })
}

fn add(entries: &mut MemtableBuilder, frame: &Frame<'_>, memory: u64) -> Result<()> {
    // The checksum is right, so a batch with undecodable bytes at its end was written that way; its other operations are sound.
    for (op, seqno) in frame.readable_ops() {
        entries.push(op, seqno);
        if entries.memory_usage() as u64 > memory {
            let what = format!("the logs need more than {memory} bytes of memory: raise replay_memory_bytes");
            return Err(Error::Full(what));
        }
    }
    Ok(())
}

fn report_logs(read: &[ReadLog], oldest: Option<u64>, closed: Option<Position>, report: &mut SalvageReport) {
    let synced = read.iter().filter_map(|log| log.walked.synced).chain(closed).max();
    for log in read {
        let (walked, Range { start, end }) = (&log.walked, log.walked.end..log.walked.tail_end);
        report.logs += usize::from(log.frames > 0);
        report.batches += log.frames;
        report.batches_behind_damage += log.frames_behind;
        report.damage.extend(walked.header.iter().chain(&walked.unreadable).cloned());
        report.lost_writes.extend(log.missing.iter().cloned());
        // A header is durable before a manifest refers to the log. A later frame, in this log or a later one, or the note of a close, also proves how
        // far this log was synced, because a log is synced whole before any later log.
        let lost_header = !walked.has_header && (walked.header.is_some() || oldest == Some(log.number));
        let was_synced = synced.is_some_and(|synced| match synced.log == log.number {
            true => synced.offset > start,
            false => synced.log > log.number && start < end,
        });
        if start < end || lost_header || was_synced {
            let may_be_torn = !lost_header && !was_synced && walked.unreadable.is_none();
            report.lost_writes.push(LostWrites { log: log.path.clone(), bytes: start..end, seqnos: None, may_be_torn });
        }
    }
}
