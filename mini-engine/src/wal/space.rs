//! The space of a log: zeros that are written in advance, and mapped pages that are populated (W5 and W6 of the [writer](super::writer)).

use std::io;

use super::segment::Segment;
use crate::fs::zeros_at;

/// The length of a log's mapping; it takes addresses, not memory. Bytes beyond it are written by system calls.
pub(super) const MAPPED_LEN: u64 = 1 << 30;

/// Writes a part of a frame with a system call. The caller counts the frame's bytes.
pub(super) fn write(segment: &Segment, bytes: &[u8], at: u64) -> io::Result<()> {
    segment.file.write_all_at(bytes, at)?;
    segment.counters.wal_writes.add(1);
    Ok(())
}

pub(super) fn write_zeros(segment: &Segment, at: u64, len: u64) -> io::Result<()> {
    zeros_at(at, len).try_for_each(|(at, zeros)| {
        write(segment, zeros, at)?;
        segment.counters.wal_zero_bytes.add(zeros.len() as u64);
        Ok(())
    })
}

/// Prepares the mapped space from `from` to `to` for writing.
pub(super) fn populate(segment: &Segment, from: u64, to: u64) {
    if let Some(mapping) = segment.mapping.get() {
        mapping.populate(from, to.min(MAPPED_LEN).saturating_sub(from));
    }
}
