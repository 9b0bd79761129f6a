//! Reads a log back, and tells a torn tail from corruption (durability rules 1 to 3).
//!
//! B1 frames are visited in order from the start, whole and unaltered, up to the first that is not valid.
//! B2 the rest is scanned, at every place a frame could start, for valid frames: if one records that the logs were
//!    synced beyond the stop, then synced bytes are damaged: [`Error::Corruption`]. Otherwise nothing proves that the
//!    rest was ever durable, and it is a torn tail. The same proof from later logs: [`newest_sync_record`],
//!    [`Tail::contradicted_by`].
//! B3 a rest of zeros is not a tear but unused space. In a file that was used by another log before (see [`super::recycle`]), so is a rest of zeros
//! up to a valid frame of that log: a writer leaves no other bytes between the end of its own frames and one of those. Bytes after that frame are
//! ignored, except for own frames (B2).
//! B4 the copy of a torn tail ends at the first valid frame of the previous log after all own frames: the rest was not written by this log, or
//! contains no frame of it. Pages of zeros at its end, which are unused space, are not copied either.

use std::ops::{ControlFlow, Range};
use std::path::Path;

use super::format::{ALIGN, FIRST_FRAME, FRAME_HEADER_LEN, FrameHeader, HEADER_LEN, Identity, Position, SegmentHeader};
use super::window::Window;
use crate::error::{Error, Result};
use crate::fs::{File, FileSystem, ZEROS, unlink};
use crate::types::SeqNo;

/// Bytes of a torn tail that are copied in one step.
const COPIED_AT_ONCE: usize = 1 << 20;
const PAGE: u64 = 4096;

/// One appended batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame<'a> {
    /// The offset of the frame in the log, in bytes.
    pub(crate) offset: u64,
    /// The sequence number of the first operation; the others follow without gaps.
    pub(crate) first_seqno: SeqNo,
    pub(crate) count: u32,
    /// The operations, as [`crate::types::BatchOps`] decodes them.
    pub(crate) payload: &'a [u8],
    /// Whether they are compressed in the file.
    pub(crate) is_compressed: bool,
    /// Everything before this was synced when the frame was written.
    pub(crate) synced: Position,
}

impl<'a> Frame<'a> {
    /// The frame of `payload` with this header, which starts at `offset`.
    pub(super) fn of(header: &FrameHeader, offset: u64, payload: &'a [u8]) -> Self {
        let &FrameHeader { first_seqno, count, is_compressed, synced, .. } = header;
        Self { offset, first_seqno, count, payload, is_compressed, synced }
    }
}

/// The kind of end of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tail {
    /// After the last frame there is nothing, or older contents: zeros, or frames of the log that used the file before.
    Clean {
        /// The end of the last frame, in bytes.
        end: u64,
    },
    /// The log stops at bytes that are no frame and, as far as this log shows, were never synced.
    Torn {
        /// The end of the last valid frame; 0 if not even the header is there.
        offset: u64,
        /// Bytes from there to the end of the last page that is not zeros, or to the remains of the log that used the file before.
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
            let what = format!(
                "no valid frame: expected one, since a later frame records a sync up to offset {offset} of log {log}"
            );
            Error::corruption(path, stop, what)
        })
    }
}

/// Calls `visit` for each frame of log `number` in order and returns the end of the log.
///
/// Memory: one frame, its batch if that is compressed, and a constant. Time: linear in the file's length.
///
/// # Errors
/// [`Error::Corruption`] if the header is damaged or later frames prove that the missing part was once synced;
/// [`Error::UnsupportedVersion`]; [`Error::Io`]; whatever `visit` returns. Frames before the place of an error have
/// been visited.
pub(crate) fn replay(
    fs: &dyn FileSystem,
    path: &Path,
    number: u64,
    mut visit: impl FnMut(Frame<'_>) -> Result<()>,
) -> Result<Tail> {
    let (mut log, segment) = open_log(fs, path, number)?;
    let Some(segment) = segment else {
        return Ok(Tail::Torn { offset: 0, dropped_bytes: log.window.len });
    };
    let mut offset = FIRST_FRAME;
    while let Some((header, payload)) = log.frame_at(segment.log, offset)? {
        let batch = header.batch(payload).map_err(|what| Error::corruption(path, offset, what))?;
        visit(Frame::of(&header, offset, &batch))?;
        offset += header.frame_len();
    }
    let (tail, record) = log.tail(&segment, offset)?;
    match record.and_then(|synced| tail.contradicted_by(path, number, synced)) {
        Some(corruption) => Err(corruption),
        None => Ok(tail),
    }
}

/// The newest position that any valid frame of log `number` records as synced; `None` if it has no valid frame.
///
/// Used for the logs after one that did not end cleanly: their frames are searched at every place, past any damage.
///
/// # Errors
/// Like [`replay`], except that damaged frames are passed over.
pub(crate) fn newest_sync_record(fs: &dyn FileSystem, path: &Path, number: u64) -> Result<Option<Position>> {
    let (mut log, segment) = open_log(fs, path, number)?;
    segment.map_or(Ok(None), |segment| Ok(log.frames_from(segment.log, FIRST_FRAME)?.0))
}

/// Whether log `number` is empty: it has no frame, and no bytes that could be damaged ones. A log that was made in advance is empty.
///
/// # Errors
/// Like [`replay`].
pub(crate) fn is_unused(fs: &dyn FileSystem, path: &Path, number: u64) -> Result<bool> {
    let (mut log, segment) = open_log(fs, path, number)?;
    let Some(segment) = segment else { return Ok(true) };
    let start = FIRST_FRAME;
    Ok(log.frame_at(segment.log, start)?.is_none() && matches!(log.tail(&segment, start)?.0, Tail::Clean { .. }))
}

/// The offset of the tail that [`keep_torn`] has kept: the first possible place of a frame after the header and the zeros that replace the part
/// from which it was cut off.
///
/// # Errors
/// The same as for [`replay`].
pub(crate) fn begin_of_tail(fs: &dyn FileSystem, path: &Path, number: u64) -> Result<u64> {
    let (mut log, segment) = open_log(fs, path, number)?;
    let start = segment.map_or(0, |_| FIRST_FRAME);
    let len = log.len();
    Ok(log.first_byte(start..len)?.map_or(len, |byte| byte - byte % ALIGN))
}

/// Calls `visit` with each valid frame of log `number` at or after `from`, past any damage, until `visit` returns `Break`.
///
/// # Errors
/// Like [`newest_sync_record`].
pub(super) fn frames_behind(
    fs: &dyn FileSystem,
    path: &Path,
    number: u64,
    from: u64,
    mut visit: impl FnMut(u64, &FrameHeader) -> ControlFlow<()>,
) -> Result<()> {
    let (mut log, segment) = open_log(fs, path, number)?;
    segment.map_or(Ok(()), |segment| log.scan(segment.log, from, |at, header, _| Ok(visit(at, header))))
}

/// Keeps `tail` of log `number`, which [`truncate_torn`] is about to cut off with everything after it, in the file `to`: the log's header, and each
/// byte of the tail at its old place. So frames in it, such as whole ones after a hole, still pass their checks. The file is synced; its name is
/// not. The remains of an interrupted try at `to` are overwritten.
///
/// Memory: a constant. Time: linear in the tail.
///
/// # Errors
/// [`Error::Io`]; `to` is removed then, if it can be.
pub(crate) fn keep_torn(fs: &dyn FileSystem, path: &Path, number: u64, tail: Range<u64>, to: &Path) -> Result<()> {
    let known = fs.exists(to).map_err(Error::io("look for", to))?;
    let kept = if known { fs.open_write(to) } else { fs.create_new(to) }.map_err(Error::io("create", to))?;
    copy_tail(fs, (path, number), tail, (&*kept, to)).inspect_err(|_| unlink(fs, to))
}

fn copy_tail(
    fs: &dyn FileSystem,
    (path, number): (&Path, u64),
    tail: Range<u64>,
    (kept, to): (&dyn File, &Path),
) -> Result<()> {
    let (mut log, segment) = open_log(fs, path, number)?;
    let header = segment.map_or(0, |_| FIRST_FRAME);
    let mut write = |from: u64, end: u64| {
        let want = usize::try_from(end.saturating_sub(from)).unwrap_or(COPIED_AT_ONCE).min(COPIED_AT_ONCE);
        let bytes = log.window.get(from, want)?;
        kept.write_all_at(bytes, from).map_err(Error::io("write", to))?;
        Ok(bytes.len() as u64)
    };
    write(0, header)?;
    let mut at = tail.start;
    loop {
        match write(at, tail.end)? {
            0 => break,
            copied => at += copied,
        }
    }
    // After that there may be remains of a longer tail from an interrupted try.
    kept.truncate(at).map_err(Error::io("truncate", to))?;
    kept.sync().map_err(Error::io("sync", to))
}

/// Makes an accepted torn tail disappear: cuts the log to `offset` bytes and syncs it (durability rule 3).
///
/// # Errors
/// [`Error::Io`]; the tail may then still be there.
pub(crate) fn truncate_torn(fs: &dyn FileSystem, path: &Path, offset: u64) -> Result<()> {
    let file = fs.open_write(path).map_err(Error::io("open", path))?;
    file.truncate(offset).map_err(Error::io("truncate", path))?;
    file.sync().map_err(Error::io("sync", path))
}

/// Log `number`, and its header if that was completed.
fn open_log<'a>(fs: &dyn FileSystem, path: &'a Path, number: u64) -> Result<(LogReader<'a>, Option<SegmentHeader>)> {
    let mut log = LogReader::open(fs, path)?;
    let segment = log.read_header(number)?;
    Ok((log, segment))
}

pub(super) struct LogReader<'a> {
    window: Window<'a>,
    path: &'a Path,
}

impl<'a> LogReader<'a> {
    pub(super) fn open(fs: &dyn FileSystem, path: &'a Path) -> Result<Self> {
        let file = fs.open(path).map_err(Error::io("open", path))?;
        Ok(Self { window: Window::new(file, path)?, path })
    }

    /// Like [`LogReader::open`], but reads everything before an unreadable place.
    pub(super) fn open_damaged(fs: &dyn FileSystem, path: &'a Path) -> Result<Self> {
        let mut log = Self::open(fs, path)?;
        log.window.spares_ahead = true;
        Ok(log)
    }

    pub(super) fn len(&self) -> u64 {
        self.window.len
    }

    /// The first `len` bytes, or all if there are fewer.
    pub(super) fn start(&mut self, len: usize) -> Result<&[u8]> {
        self.window.get(0, len)
    }

    /// The log's header; `None` if it was never completed, which can only be the case before the first frame.
    pub(super) fn read_header(&mut self, number: u64) -> Result<Option<SegmentHeader>> {
        let len = self.window.len;
        // The header is usually enough, and the bytes after it may be unreadable.
        if len < FIRST_FRAME || self.is_zero(0..FIRST_FRAME)? && self.is_zero(0..len)? {
            return Ok(None);
        }
        let bytes = self.window.get(0, HEADER_LEN)?;
        SegmentHeader::decode(bytes, self.path, number).map(Some)
    }

    /// The end of the log, where `stop` is the end of the last frame before the first place without a frame; and the newest sync that frames after
    /// that place
    /// record.
    pub(super) fn tail(&mut self, segment: &SegmentHeader, stop: u64) -> Result<(Tail, Option<Position>)> {
        let len = self.window.len;
        if self.is_zero(stop..len)? {
            return Ok((Tail::Clean { end: stop }, None));
        }
        let (record, own_end) = self.frames_from(segment.log, stop)?;
        let mut rest = len;
        if let Some(previous) = segment.previous_generation {
            self.scan(previous, own_end, |offset, _, _| {
                rest = offset;
                Ok(ControlFlow::Break(()))
            })?;
        }
        // Own frames are not zeros, so there are none after such an end.
        let end = self.end_of_bytes(stop..rest)?;
        if end == stop {
            return Ok((Tail::Clean { end: stop }, None));
        }
        // To the end of its page: a torn frame may end in zeros.
        let end = end.next_multiple_of(PAGE).max(own_end).min(rest);
        Ok((Tail::Torn { offset: stop, dropped_bytes: end - stop }, record))
    }

    /// The end of the last byte in `range` that is not zero; its start if all are.
    fn end_of_bytes(&mut self, range: Range<u64>) -> Result<u64> {
        let mut end = range.start;
        self.visit_bytes(range, |at, bytes| {
            end = at + bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last as u64 + 1);
            ControlFlow::Continue(())
        })?;
        Ok(end)
    }

    /// Calls `visit` with the parts of `range` that are not all zeros, with their offsets, until it returns `Break`.
    fn visit_bytes(&mut self, range: Range<u64>, mut visit: impl FnMut(u64, &[u8]) -> ControlFlow<()>) -> Result<()> {
        let mut at = range.start;
        while at < range.end {
            let want = usize::try_from(range.end - at).unwrap_or(ZEROS.len()).min(ZEROS.len());
            let bytes = self.window.get(at, want)?;
            // Most of these bytes are zeros, and comparing them all at once takes a tenth of the time.
            if *bytes != ZEROS[..bytes.len()] && visit(at, bytes).is_break() {
                break;
            }
            at += bytes.len() as u64;
        }
        Ok(())
    }

    /// The valid frame at `offset`, if there is one.
    fn frame_at(&mut self, log: Identity, offset: u64) -> Result<Option<(FrameHeader, &[u8])>> {
        let room = self.window.len.saturating_sub(offset).saturating_sub(FRAME_HEADER_LEN as u64);
        let bytes = self.window.get(offset, FRAME_HEADER_LEN)?;
        let Some(header) = FrameHeader::decode(bytes, log, offset, room) else { return Ok(None) };
        let len = header.frame_len();
        let frame = self.window.get(offset, len as usize)?;
        let rest = frame.split_at(FRAME_HEADER_LEN.min(frame.len())).1;
        if frame.len() as u64 != len || !header.accepts(rest, log, offset) {
            return Ok(None);
        }
        Ok(Some((header, rest.split_at(header.payload_len as usize).0)))
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

    /// The newest sync that valid frames at or after `offset` record, wherever they are; and the end of the last of them, or
    /// `offset` if there is none.
    fn frames_from(&mut self, log: Identity, offset: u64) -> Result<(Option<Position>, u64)> {
        let (mut newest, mut end) = (None, offset);
        self.scan(log, offset, |at, header, _| {
            newest = newest.max(Some(header.synced));
            end = at + header.frame_len();
            Ok(ControlFlow::Continue(()))
        })?;
        Ok((newest, end))
    }

    /// Searches for valid frames at every possible place from `offset` on. Calls `visit` with the place, the header and the payload of each, until
    /// it returns `Break`.
    pub(super) fn scan(
        &mut self,
        log: Identity,
        mut offset: u64,
        mut visit: impl FnMut(u64, &FrameHeader, &[u8]) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        while offset + (FRAME_HEADER_LEN as u64) <= self.window.len {
            match self.frame_at(log, offset)? {
                Some((header, payload)) => {
                    if visit(offset, &header, payload)?.is_break() {
                        return Ok(());
                    }
                    offset += header.frame_len();
                }
                None => offset = self.next_candidate(offset + ALIGN)?,
            }
        }
        Ok(())
    }

    /// The first place from `offset` on where a frame could start. No frame starts with a header of zeros, and a log may have much space of zeros.
    fn next_candidate(&mut self, offset: u64) -> Result<u64> {
        let len = self.window.len;
        // The first place at which a header could contain the byte.
        let earliest = |byte: u64| (byte + 1).saturating_sub(FRAME_HEADER_LEN as u64).next_multiple_of(ALIGN);
        Ok(self.first_byte(offset..len)?.map_or(len, |byte| earliest(byte).max(offset)))
    }
}
