//! The space of a log: zeros that are written ahead of frames, and pages that are made ready (W5 and W6 of the
//! [writer](super::writer)).

use std::io;
use std::sync::Arc;

use super::segment::Segment;
use crate::error::{Error, Result};

/// Zeros are written so many bytes at a time.
pub(super) static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
/// How much of a log is mapped: addresses, not memory. What is behind it is written by calls.
pub(super) const MAPPED_LEN: u64 = 1 << 30;

/// Space for a log, to be written by another thread.
#[derive(Debug)]
pub(crate) struct Extension {
    pub(super) segment: Arc<Segment>,
    pub(super) from: u64,
    pub(super) to: u64,
}

impl Extension {
    /// Writes it.
    ///
    /// # Errors
    /// [`Error::Io`]: an unknown part of it is written.
    pub(crate) fn write(&self) -> Result<()> {
        let written = write_zeros(&self.segment, self.from, self.to - self.from);
        written.map_err(Error::io("write", &self.segment.path))?;
        populate(&self.segment, self.from, self.to);
        Ok(())
    }
}

/// Writes `bytes` by a call, and counts them.
pub(super) fn write(segment: &Segment, bytes: &[u8], at: u64) -> io::Result<()> {
    segment.file.write_all_at(bytes, at)?;
    segment.counters.wal_bytes.add(bytes.len() as u64);
    segment.counters.wal_writes.add(1);
    Ok(())
}

pub(super) fn write_zeros(segment: &Segment, at: u64, len: u64) -> io::Result<()> {
    zeros_at(at, len).try_for_each(|(at, zeros)| write(segment, zeros, at))
}

/// `len` zeros from `at` on, in parts, each with its place.
pub(super) fn zeros_at(at: u64, len: u64) -> impl Iterator<Item = (u64, &'static [u8])> {
    let part = move |done| &ZEROS[..ZEROS.len().min((len - done) as usize)];
    (0..len).step_by(ZEROS.len()).map(move |done| (at + done, part(done)))
}

/// Makes the mapped space from `from` to `to` ready to be written.
pub(super) fn populate(segment: &Segment, from: u64, to: u64) {
    if let Some(mapping) = segment.mapping.get() {
        mapping.populate(from, to.min(MAPPED_LEN).saturating_sub(from));
    }
}
