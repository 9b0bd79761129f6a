//! Reads a log back, and distinguishes a torn tail from corruption (durability rules 1 to 3); copies and cuts off torn tails.

use std::ops::{ControlFlow, Range};
use std::path::Path;

use super::format::{FIRST_FRAME, Position};
use super::walk::{Frame, LogReader, Part, Reading, Tail, walk};
use crate::error::{Error, Result};
use crate::fs::{File, FileSystem, unlink};

/// The number of bytes of a torn tail that are copied in one step.
const COPIED_AT_ONCE: usize = 1 << 20;

/// Calls `visit` for each frame of log `number` in order, up to the first place without one, and returns the kind of end. Costs are as for [`walk`].
///
/// # Errors
/// [`Error::Corruption`] if the header is damaged or later frames prove that the missing part was once synced; [`Error::UnsupportedVersion`];
/// [`Error::Io`]; the errors of `visit`. Frames before an error have been visited.
pub(crate) fn replay(
    fs: &dyn FileSystem,
    path: &Path,
    number: u64,
    mut visit: impl FnMut(Frame<'_>) -> Result<()>,
) -> Result<Tail> {
    let (mut has_gap, mut end) = (false, FIRST_FRAME);
    let walked = walk(fs, path, number, Reading::Strict, |part| {
        match part {
            Part::Frame(frame) if !has_gap => {
                end = frame.offset + frame.len;
                visit(frame)?;
            }
            Part::Undecodable(bytes, error) if !has_gap && bytes.start == end => return Err(error),
            Part::Undecodable(..) | Part::Gap(_) => has_gap = true,
            _ => {}
        }
        Ok(ControlFlow::Continue(()))
    })?;
    walked.contradiction(path, number).map_or(Ok(walked.tail()), Err)
}

/// The newest position that any valid frame of log `number` records as synced; `None` if the log has no valid frame.
///
/// This is used for the logs after one that did not end cleanly: their frames are searched for at every possible place, past any damage.
///
/// # Errors
/// The same as for [`replay`], but damaged frames are skipped.
pub(crate) fn newest_sync_record(fs: &dyn FileSystem, path: &Path, number: u64) -> Result<Option<Position>> {
    Ok(walk(fs, path, number, Reading::Strict, |_| Ok(ControlFlow::Continue(())))?.synced)
}

/// Whether log `number` is empty: it has no frame, and no bytes that could be damaged frames. A log that was created in advance is empty.
///
/// # Errors
/// The same as for [`replay`].
pub(crate) fn is_unused(fs: &dyn FileSystem, path: &Path, number: u64) -> Result<bool> {
    let mut is_empty = true;
    let walked = walk(fs, path, number, Reading::Strict, |_| {
        is_empty = false;
        Ok(ControlFlow::Break(()))
    })?;
    Ok(is_empty && (!walked.has_header || walked.tail_end == walked.end))
}

/// Whether log `number` may contain a whole batch: it has one, or the device cannot read it to its end.
pub(crate) fn may_hold_batches(fs: &dyn FileSystem, path: &Path, number: u64) -> bool {
    let mut has_frame = false;
    let walked = walk(fs, path, number, Reading::AroundDamage, |part| {
        has_frame = matches!(part, Part::Frame(_));
        Ok(if has_frame { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    });
    has_frame || !walked.is_ok_and(|walked| walked.unreadable.is_none())
}

/// Copies `tail` of log `number`, which [`truncate_torn`] is about to cut off with everything after it, to the file `to`: the copy has the log's
/// header, and each byte of the tail at its old offset. So frames in the copy, such as whole ones after a hole, still pass their checks. The file is
/// synced, but its name is not. The remains of an interrupted attempt in `to` are overwritten.
///
/// Takes constant memory. Takes time in proportion to the tail.
///
/// # Errors
/// [`Error::Io`]; then `to` is removed, if possible.
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
    let mut log = LogReader::open(fs, path)?;
    let header = log.read_header(number)?.map_or(0, |_| FIRST_FRAME);
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
    // The file may still contain more bytes, from an interrupted attempt with a longer tail.
    kept.truncate(at).map_err(Error::io("truncate", to))?;
    kept.sync().map_err(Error::io("sync", to))
}

/// Removes an accepted torn tail: truncates the log to `offset` bytes and syncs it (durability rule 3).
///
/// # Errors
/// [`Error::Io`]; then the tail may still exist.
pub(crate) fn truncate_torn(fs: &dyn FileSystem, path: &Path, offset: u64) -> Result<()> {
    let file = fs.open_write(path).map_err(Error::io("open", path))?;
    file.truncate(offset).map_err(Error::io("truncate", path))?;
    file.sync().map_err(Error::io("sync", path))
}
