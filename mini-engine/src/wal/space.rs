//! The space of a log: zeros that are written in advance, and pages that are populated (W5 and W6 of the
//! [writer](super::writer)).

use std::io;
use std::sync::Arc;

use super::segment::Segment;
use crate::error::{Error, Result};
use crate::fs::zeros_at;

/// The length of a log's mapping: addresses, not memory. Bytes behind it are written by system calls.
pub(super) const MAPPED_LEN: u64 = 1 << 30;

/// Space for a log, to be written by another thread.
#[derive(Debug)]
pub(crate) struct Extension {
    pub(super) segment: Arc<Segment>,
    pub(super) from: u64,
    pub(super) to: u64,
}

impl Extension {
    /// Writes it. If that fails, the file is cut to its old length: a part of the space is useless, and the disk may be full. Nothing else is
    /// written behind `from` until the log knows the result of this (W6). Frames come before it, so nothing is lost whatever the cut leaves, now or
    /// after a crash: replay treats zeros and missing bytes as space (W5).
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn write(&self) -> Result<()> {
        let Self { segment, from, to } = self;
        write_zeros(segment, *from, to - from).map_err(|error| {
            if let Err(error) = segment.file.truncate(*from) {
                tracing::warn!(file = %segment.path.display(), %error, "could not cut off space that a log did not get");
            }
            Error::io("write", &segment.path)(error)
        })?;
        populate(segment, *from, *to);
        Ok(())
    }
}

/// Writes a part of a frame by a system call. The caller counts the frame's bytes.
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

/// Makes the mapped space from `from` to `to` ready for writing.
pub(super) fn populate(segment: &Segment, from: u64, to: u64) {
    if let Some(mapping) = segment.mapping.get() {
        mapping.populate(from, to.min(MAPPED_LEN).saturating_sub(from));
    }
}
