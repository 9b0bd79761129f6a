//! Reads a log around damage: every batch whose frame is whole, wherever it is.
//!
//! Frames are searched at every possible place, as for a torn tail; their checksums are seeded with the log's number and its salt. So no frame can
//! be read without the salt in the header. The header's checksum can correct one damaged byte in it: exactly one byte has to be changed for it to
//! match.

use std::ops::{ControlFlow, Range};
use std::path::Path;

use super::format::{FIRST_FRAME, FrameHeader, HEADER_LEN, Position, SegmentHeader};
use super::replay::{Frame, LogReader, Tail};
use crate::error::{Error, Result};
use crate::fs::FileSystem;
use crate::types::{BatchOp, BatchOps, SeqNo};

/// Batches that are missing before a whole frame.
#[derive(Clone, Debug)]
pub(crate) struct Missing {
    /// The bytes that are no frame; none if whole frames are missing.
    pub(crate) bytes: Range<u64>,
    /// The sequence numbers between the frames on both sides.
    pub(crate) seqnos: Range<SeqNo>,
}

/// The findings in a log.
#[derive(Clone, Debug, Default)]
pub(crate) struct SalvagedLog {
    pub(crate) frames: u64,
    /// The number of frames that come after bytes that are no frame.
    pub(crate) frames_behind: u64,
    /// The missing batches before whole frames.
    pub(crate) missing: Vec<Missing>,
    /// Whether there is a header, or one that could be corrected. Without it no frame can be recognised.
    pub(crate) has_header: bool,
    /// The end of the last whole frame.
    pub(crate) end: u64,
    /// The number of bytes after it that are neither a frame nor unused space.
    pub(crate) tail_bytes: u64,
    /// The sequence number after the last one.
    pub(crate) next_seqno: Option<SeqNo>,
    /// The newest sync that a frame records.
    pub(crate) synced: Option<Position>,
    /// The damage to the header, if any.
    pub(crate) header: Option<Error>,
    /// The error of reading after the last whole frame, if the device cannot read there.
    pub(crate) unreadable: Option<Error>,
}

/// Calls `visit` for each whole frame of log `number`, and tells it whether the frame comes after damage. The first frame should begin with
/// `expected`, if that is known.
///
/// # Errors
/// [`Error::UnsupportedVersion`]; [`Error::Io`] if the file or its header cannot be read; whatever `visit` returns, which is no damage.
pub(crate) fn salvage(
    fs: &dyn FileSystem,
    path: &Path,
    number: u64,
    expected: Option<SeqNo>,
    visit: impl FnMut(Frame<'_>, bool) -> Result<()>,
) -> Result<SalvagedLog> {
    let mut log = LogReader::open_damaged(fs, path)?;
    let mut found = SalvagedLog { next_seqno: expected, ..SalvagedLog::default() };
    let Some(segment) = read_header(&mut log, path, number, &mut found)? else {
        found.tail_bytes = log.len();
        return Ok(found);
    };
    (found.has_header, found.end) = (true, FIRST_FRAME);
    match read_frames(&mut log, &segment, &mut found, visit) {
        Err(error) if error.is_damage() => {
            found.unreadable = Some(error);
            found.tail_bytes = log.len() - found.end;
        }
        read => read?,
    }
    Ok(found)
}

/// Goes to the end of the log, or to the first place that cannot be read.
fn read_frames(
    log: &mut LogReader<'_>,
    segment: &SegmentHeader,
    found: &mut SalvagedLog,
    mut visit: impl FnMut(Frame<'_>, bool) -> Result<()>,
) -> Result<()> {
    log.scan(segment.log, FIRST_FRAME, |offset, header, payload| {
        found.synced = found.synced.max(Some(header.synced));
        // If the checksum is right and the batch still cannot be read, it was written in that way.
        if let Ok(batch) = header.batch(payload) {
            found.go_on_at(offset, header);
            let is_behind = !found.missing.is_empty();
            (found.frames, found.frames_behind) = (found.frames + 1, found.frames_behind + u64::from(is_behind));
            visit(Frame::of(header, offset, &batch), is_behind)?;
        }
        Ok(ControlFlow::Continue(()))
    })?;
    if let (Tail::Torn { dropped_bytes, .. }, _) = log.tail(segment, found.end)? {
        found.tail_bytes = dropped_bytes;
    }
    Ok(())
}

impl<'a> Frame<'a> {
    /// The operations with their sequence numbers, up to the first that cannot be read.
    pub(crate) fn readable_ops(&self) -> impl Iterator<Item = (BatchOp<'a>, SeqNo)> + use<'a> {
        let seqnos = (self.first_seqno..).take(self.count as usize);
        BatchOps::new(self.payload).map_while(|op| op.ok()).zip(seqnos)
    }
}

impl SalvagedLog {
    /// Whether there is no batch in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.frames == 0 && self.unreadable.is_none()
    }

    /// Records the batches that are missing before the frame at `offset`.
    fn go_on_at(&mut self, offset: u64, header: &FrameHeader) {
        let first_seqno = header.first_seqno;
        let expected = self.next_seqno.unwrap_or(first_seqno);
        if offset > self.end || first_seqno > expected {
            self.missing.push(Missing { bytes: self.end..offset, seqnos: expected..first_seqno });
        }
        self.next_seqno = Some(first_seqno + u64::from(header.count));
        self.end = offset + header.frame_len();
    }
}

/// The header, corrected if one byte of it is damaged; `None` if there is none or it cannot be corrected.
fn read_header(
    log: &mut LogReader<'_>,
    path: &Path,
    number: u64,
    found: &mut SalvagedLog,
) -> Result<Option<SegmentHeader>> {
    let error = match log.read_header(number) {
        Err(error @ Error::Corruption { .. }) => error,
        header => return header,
    };
    found.header = Some(error);
    let Some(damaged) = log.start(HEADER_LEN)?.first_chunk::<HEADER_LEN>().copied() else { return Ok(None) };
    let mut changes = (0..HEADER_LEN).flat_map(|at| (0..=u8::MAX).map(move |byte| (at, byte)));
    Ok(changes.find_map(|(at, byte)| {
        let mut bytes = damaged;
        bytes[at] = byte;
        SegmentHeader::decode(&bytes, path, number).ok()
    }))
}
