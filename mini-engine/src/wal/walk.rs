//! Walks through a log: the only reader of its frames, for an open, a salvage and a dump.
//!
//! B1 frames are returned in order from the start, whole and unaltered.
//! B2 after bytes that are not a frame, further frames are searched for at every possible offset. If one of these records that the logs were synced
//!    beyond the first such bytes, then synced bytes are damaged ([`Walked::contradiction`]). Otherwise nothing proves that the rest was ever
//!    durable, and it is a torn tail. Later logs can give the same proof: [`Tail::contradicted_by`].
//! B3 if the rest consists of zeros, it is not torn but unused space. In a file that was used by another log before (see [`super::recycle`]), zeros
//! up to a valid frame of that log are unused space too: a writer leaves only zeros between the end of its own frames and such a frame. Bytes after
//! that frame are ignored, except for frames of this log (B2).
//! B4 a torn tail ends at the first valid frame of the previous log after all frames of this log: the rest was not written by this log, or contains
//! no frame of it. Pages of zeros at the end of the tail are unused space and not part of it either.
//!
//! Checksums are seeded with the log's number and its salt, so no frame can be recognised without the salt in the header. The header's checksum can
//! correct one damaged byte: there is exactly one change of one byte after which it matches.

use std::borrow::Cow;
use std::ops::{ControlFlow, Range};
use std::path::Path;
use std::sync::Arc;

use super::format::{ALIGN, FIRST_FRAME, FRAME_HEADER_LEN, FrameHeader, HEADER_LEN, Identity, Position, SegmentHeader};
use super::window::Window;
use crate::codec;
use crate::error::{Error, Result};
use crate::fs::{File, FileSystem, ZEROS};
use crate::types::{BatchOp, BatchOps, SeqNo};

const PAGE: u64 = 4096;

/// How a log is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// A damaged header and unreadable bytes are errors.
    Strict,
    /// Reads everything that can be read: a damaged byte of the header is corrected, and unreadable bytes count as the end.
    AroundDamage,
    /// Like `AroundDamage`, for a torn tail that was kept ([`super::keep_torn`]): it begins at the first byte after the header that is not zero.
    Tail,
}

/// A part of a log.
#[derive(Debug)]
pub(crate) enum Part<'a> {
    /// A whole frame.
    Frame(Frame<'a>),
    /// Bytes before a whole frame that are not a frame.
    Gap(Range<u64>),
    /// A frame that is unchanged since it was written, but whose batch does not decompress. Its bytes count as bytes that are not a frame.
    Undecodable(Range<u64>, Error),
}

/// One appended batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame<'a> {
    /// The offset of the frame in the log, in bytes.
    pub(crate) offset: u64,
    /// The length of the frame in bytes.
    pub(crate) len: u64,
    /// The sequence number of the first operation; the others follow without gaps.
    pub(crate) first_seqno: SeqNo,
    pub(crate) count: u32,
    /// The encoded operations, for [`crate::types::BatchOps`].
    pub(crate) payload: &'a [u8],
    /// Whether they are compressed in the file.
    pub(crate) is_compressed: bool,
    /// The position before which all logs were synced when the frame was written.
    pub(crate) synced: Position,
}

impl<'a> Frame<'a> {
    /// The frame at `offset` with this header and the batch `payload`.
    pub(super) fn new(offset: u64, header: &FrameHeader, payload: &'a [u8]) -> Self {
        let FrameHeader { first_seqno, count, is_compressed, synced, .. } = *header;
        Frame { offset, len: header.frame_len(), first_seqno, count, payload, is_compressed, synced }
    }

    /// The operations with their sequence numbers, up to the first one that does not decode.
    pub(crate) fn readable_ops(&self) -> impl Iterator<Item = (BatchOp<'a>, SeqNo)> + use<'a> {
        let seqnos = (self.first_seqno..).take(self.count as usize);
        BatchOps::new(self.payload).map_while(|op| op.ok()).zip(seqnos)
    }
}

/// The result of walking through a log.
#[derive(Clone, Debug, Default)]
pub(crate) struct Walked {
    /// Whether there is a header, or one that could be corrected. A log whose header was never completed has no frame.
    pub(crate) has_header: bool,
    /// The damage to the header, if there is any.
    pub(crate) header: Option<Error>,
    /// The start of the first bytes that are not a frame, if whole frames follow them.
    pub(crate) gap: Option<u64>,
    /// The end of the last whole frame.
    pub(crate) end: u64,
    /// The end of the bytes after `end` that are neither a frame nor unused space; equal to `end` if there are none.
    pub(crate) tail_end: u64,
    /// The newest sync position that a frame records.
    pub(crate) synced: Option<Position>,
    /// The read error after the last whole frame, if the device cannot read there.
    pub(crate) unreadable: Option<Error>,
}

impl Walked {
    /// The end of the history in this log.
    pub(crate) fn tail(&self) -> Tail {
        let offset = self.gap.unwrap_or(self.end);
        match self.tail_end - offset {
            0 if self.has_header => Tail::Clean { end: offset },
            dropped_bytes => Tail::Torn { offset, dropped_bytes },
        }
    }

    /// The error, if a frame of this log (`log` at `path`) proves that missing bytes were once synced.
    pub(crate) fn contradiction(&self, path: &Path, log: u64) -> Option<Error> {
        self.synced.and_then(|synced| self.tail().contradicted_by(path, log, synced))
    }
}

/// How a log ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tail {
    /// The last frame is followed by nothing, by zeros, or by frames of the log that used the file before.
    Clean {
        /// The end of the last frame, in bytes.
        end: u64,
    },
    /// The log stops at bytes that are not a frame and, as far as this log shows, were never synced.
    Torn {
        /// The end of the last valid frame; 0 if the header is missing too.
        offset: u64,
        /// Bytes from `offset` to the end of the last page that is not zeros, or to the remains of the log that used the file before.
        dropped_bytes: u64,
    },
}

impl Tail {
    /// The corruption error if log `log` (at `path`) stops here although everything before `synced` was once synced; `None` if the stop can be a
    /// regular end.
    pub(crate) fn contradicted_by(&self, path: &Path, log: u64, synced: Position) -> Option<Error> {
        let (stop, whole) = match *self {
            Self::Clean { end } => (end, true),
            Self::Torn { offset, .. } => (offset, false),
        };
        // A record that this log was synced as a whole does not contradict a clean end.
        let damaged = if synced.log == log { synced.offset > stop } else { synced.log > log && !whole };
        damaged.then(|| {
            let Position { log, offset } = synced;
            let what =
                format!("no valid frame: expected one, since a sync up to offset {offset} of log {log} is recorded");
            Error::corruption(path, stop, what)
        })
    }
}

/// Calls `visit` with each part of log `number`, in the order of their offsets, until it returns `Break`.
///
/// Takes memory for one frame, for its batch if that is compressed, and a constant amount. Takes time in proportion to the file's length.
///
/// # Errors
/// [`Error::UnsupportedVersion`]; [`Error::Io`] if the file or its header cannot be read; with `Strict` also [`Error::Corruption`] of the header and
/// any [`Error::Io`]; the errors of `visit`, which must not be damage unless `reading` is `Strict`.
pub(crate) fn walk(
    fs: &dyn FileSystem,
    path: &Path,
    number: u64,
    reading: Reading,
    visit: impl FnMut(Part<'_>) -> Result<ControlFlow<()>>,
) -> Result<Walked> {
    let (mut log, is_strict) = (LogReader::open(fs, path)?, reading == Reading::Strict);
    log.window.spares_ahead = !is_strict;
    let (segment, header) = match log.read_header(number) {
        Err(error @ Error::Corruption { .. }) if !is_strict => (log.correct_header(number)?, Some(error)),
        segment => (segment?, None),
    };
    let mut walked = Walked { has_header: segment.is_some(), header, ..Walked::default() };
    let Some(segment) = segment else {
        walked.tail_end = log.window.len;
        return Ok(walked);
    };
    walked.end = if reading == Reading::Tail { log.begin_of_tail()? } else { FIRST_FRAME };
    match log.walk_frames(&segment, &mut walked, visit) {
        Err(error) if !is_strict && error.is_damage() => {
            walked.tail_end = log.window.len;
            walked.unreadable = Some(error);
        }
        read => read?,
    }
    Ok(walked)
}

pub(super) struct LogReader<'a> {
    pub(super) window: Window<'a>,
    path: &'a Path,
    /// The offset from which on all bytes are zeros.
    zeros_from: u64,
}

impl<'a> LogReader<'a> {
    pub(super) fn open(fs: &dyn FileSystem, path: &'a Path) -> Result<Self> {
        let file = fs.open(path).map_err(Error::io("open", path))?;
        let window = Window::new(file, path)?;
        Ok(Self { path, zeros_from: window.len, window })
    }

    /// Reads `file`, of which only a short part may be needed.
    pub(super) fn of_part(file: Arc<dyn File>, path: &'a Path) -> Result<Self> {
        let window = Window::growing(file, path)?;
        Ok(Self { path, zeros_from: window.len, window })
    }

    /// Reads the log's header; `None` if it was never completed, which is possible only if there is no frame.
    pub(super) fn read_header(&mut self, number: u64) -> Result<Option<SegmentHeader>> {
        let len = self.window.len;
        // The header usually suffices, and the bytes after it may be unreadable.
        if len < FIRST_FRAME || self.is_zero(0..FIRST_FRAME)? && self.is_zero(0..len)? {
            return Ok(None);
        }
        let bytes = self.window.get(0, HEADER_LEN)?;
        SegmentHeader::decode(bytes, self.path, number).map(Some)
    }

    /// Corrects a damaged header, if the change of one byte makes it valid.
    fn correct_header(&mut self, number: u64) -> Result<Option<SegmentHeader>> {
        let path = self.path;
        let Some(damaged) = self.window.get(0, HEADER_LEN)?.first_chunk::<HEADER_LEN>().copied() else {
            return Ok(None);
        };
        let mut changes = (0..HEADER_LEN).flat_map(|at| (0..=u8::MAX).map(move |byte| (at, byte)));
        Ok(changes.find_map(|(at, byte)| {
            let mut bytes = damaged;
            bytes[at] = byte;
            SegmentHeader::decode(&bytes, path, number).ok()
        }))
    }

    /// The first offset at which a frame is possible after the header and the zeros that precede a kept tail.
    fn begin_of_tail(&mut self) -> Result<u64> {
        let len = self.window.len;
        Ok(self.first_byte(FIRST_FRAME..len)?.map_or(len, |byte| byte - byte % ALIGN))
    }

    /// Walks from `walked.end` to the end of the log.
    fn walk_frames(
        &mut self,
        segment: &SegmentHeader,
        walked: &mut Walked,
        mut visit: impl FnMut(Part<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        (walked.tail_end, self.zeros_from) = (walked.end, self.window.len);
        let mut next = walked.end;
        while let Some((offset, header)) = self.next_frame(segment.log, next)? {
            next = offset + header.frame_len();
            walked.synced = walked.synced.max(Some(header.synced));
            let batch = match self.batch(offset, &header)? {
                Ok(batch) => batch,
                Err(error) => {
                    if visit(Part::Undecodable(offset..next, error))?.is_break() {
                        return Ok(());
                    }
                    continue;
                }
            };
            let gap = walked.end..offset;
            if !gap.is_empty() {
                walked.gap.get_or_insert(gap.start);
                if visit(Part::Gap(gap))?.is_break() {
                    return Ok(());
                }
            }
            (walked.end, walked.tail_end) = (next, next);
            if visit(Part::Frame(Frame::new(offset, &header, &batch)))?.is_break() {
                return Ok(());
            }
        }
        walked.tail_end = self.end_of_tail(segment, walked.end)?;
        Ok(())
    }

    /// The end of a torn tail that starts at `start` and is followed by no frame of this log; `start` if there is none.
    fn end_of_tail(&mut self, segment: &SegmentHeader, start: u64) -> Result<u64> {
        let mut rest = self.window.len;
        if let Some(previous) = segment.previous_generation.filter(|_| start < self.zeros_from)
            && let Some((offset, _)) = self.next_frame(previous, start)?
        {
            rest = offset;
        }
        let end = self.end_of_bytes(start..rest)?;
        // The tail extends to the end of its page, since a torn frame may end in zeros.
        Ok(if end == start { start } else { end.next_multiple_of(PAGE).min(rest) })
    }

    /// The end of the last byte in `range` that is not zero; the start of `range` if all are.
    fn end_of_bytes(&mut self, range: Range<u64>) -> Result<u64> {
        let mut end = range.start;
        self.visit_bytes(range, |at, bytes| {
            end = at + bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last as u64 + 1);
            ControlFlow::Continue(())
        })?;
        Ok(end)
    }

    /// Calls `visit` with the parts of `range` that are not all zeros, and their offsets, until it returns `Break`.
    fn visit_bytes(&mut self, range: Range<u64>, mut visit: impl FnMut(u64, &[u8]) -> ControlFlow<()>) -> Result<()> {
        let (mut at, end) = (range.start, range.end.min(self.zeros_from));
        while at < end {
            let want = usize::try_from(end - at).unwrap_or(ZEROS.len()).min(ZEROS.len());
            let bytes = self.window.get(at, want)?;
            // Most of these bytes are zeros, and comparing all of them at once takes a tenth of the time.
            if *bytes != ZEROS[..bytes.len()] && visit(at, bytes).is_break() {
                break;
            }
            at += bytes.len() as u64;
        }
        Ok(())
    }

    fn is_zero(&mut self, range: Range<u64>) -> Result<bool> {
        Ok(self.first_byte(range)?.is_none())
    }

    /// The offset of the first byte in `range` that is not zero.
    fn first_byte(&mut self, range: Range<u64>) -> Result<Option<u64>> {
        let mut first = None;
        self.visit_bytes(range, |at, bytes| {
            first = bytes.iter().position(|&byte| byte != 0).map(|first| at + first as u64);
            ControlFlow::Break(())
        })?;
        Ok(first)
    }

    /// The batch of the frame at `offset`, which is whole: so the window contains it. The inner error is that of a batch that does not decompress.
    pub(super) fn batch(&mut self, offset: u64, header: &FrameHeader) -> Result<Result<Cow<'_, [u8]>>> {
        if header.is_compressed && !codec::HAS_ZSTD {
            let file = self.path.to_owned();
            return Err(Error::Unsupported { file, what: codec::ZSTD, found: 1, supported: 0 });
        }
        let frame = self.window.get(offset, header.frame_len() as usize)?;
        let payload = frame.get(FRAME_HEADER_LEN..).and_then(|rest| rest.get(..header.payload_len as usize));
        Ok(header.batch(payload.unwrap_or_default()).map_err(|what| Error::corruption(self.path, offset, what)))
    }

    /// The header of the valid frame at `offset`, if there is one.
    pub(super) fn frame_at(&mut self, log: Identity, offset: u64) -> Result<Option<FrameHeader>> {
        let room = self.window.len.saturating_sub(offset).saturating_sub(FRAME_HEADER_LEN as u64);
        let bytes = self.window.get(offset, FRAME_HEADER_LEN)?;
        let Some(header) = FrameHeader::decode(bytes, log, offset, room) else { return Ok(None) };
        let len = header.frame_len();
        let frame = self.window.get(offset, len as usize)?;
        let rest = frame.split_at(FRAME_HEADER_LEN.min(frame.len())).1;
        let is_valid = frame.len() as u64 == len && header.accepts(rest, log, offset);
        Ok(is_valid.then_some(header))
    }

    /// The first valid frame of `log` from `offset` on, searched for at every possible offset: returns its offset and its header.
    fn next_frame(&mut self, log: Identity, mut offset: u64) -> Result<Option<(u64, FrameHeader)>> {
        let len = self.window.len;
        // No frame starts with a header of zeros, and a log may have much space filled with zeros.
        let earliest = |byte: u64| (byte + 1).saturating_sub(FRAME_HEADER_LEN as u64).next_multiple_of(ALIGN);
        while offset + (FRAME_HEADER_LEN as u64) <= len {
            if let Some(header) = self.frame_at(log, offset)? {
                return Ok(Some((offset, header)));
            }
            let Some(byte) = self.first_byte(offset..len)? else {
                self.zeros_from = self.zeros_from.min(offset);
                break;
            };
            // The first offset at which a header could contain that byte.
            offset = earliest(byte).max(offset + ALIGN);
        }
        Ok(None)
    }
}
