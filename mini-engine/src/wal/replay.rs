//! Reads a log back, and distinguishes a torn tail from corruption (durability rules 1 to 3); keeps and cuts torn tails.

use std::ops::{ControlFlow, Range};
use std::path::Path;

use super::format::{FIRST_FRAME, Position};
use super::walk::{Frame, LogReader, Part, Reading, Tail, walk};
use crate::error::{Error, Result};
use crate::fs::{File, FileSystem, unlink};

/// Bytes of a torn tail that are copied in one step.
const COPIED_AT_ONCE: usize = 1 << 20;

/// Calls `visit` for each frame of log `number` in order, up to the first place without one, and returns the end of the log. Costs as [`walk`].
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

/// The newest position that any valid frame of log `number` records as synced; `None` if it has no valid frame.
///
/// Used for the logs after one that did not end cleanly: their frames are searched at every place, past any damage.
///
/// # Errors
/// Like [`replay`], except that damaged frames are passed over.
pub(crate) fn newest_sync_record(fs: &dyn FileSystem, path: &Path, number: u64) -> Result<Option<Position>> {
    Ok(walk(fs, path, number, Reading::Strict, |_| Ok(ControlFlow::Continue(())))?.synced)
}

/// Whether log `number` is empty: it has no frame, and no bytes that could be damaged ones. A log that was made in advance is empty.
///
/// # Errors
/// Like [`replay`].
pub(crate) fn is_unused(fs: &dyn FileSystem, path: &Path, number: u64) -> Result<bool> {
    let mut is_empty = true;
    let walked = walk(fs, path, number, Reading::Strict, |_| {
        is_empty = false;
        Ok(ControlFlow::Break(()))
    })?;
    Ok(is_empty && (!walked.has_header || walked.tail_end == walked.end))
}

/// Whether there may be a whole batch in log `number`: it has one, or the device cannot read it to its end.
pub(crate) fn may_hold_batches(fs: &dyn FileSystem, path: &Path, number: u64) -> bool {
    let mut has_frame = false;
    let walked = walk(fs, path, number, Reading::AroundDamage, |part| {
        has_frame = matches!(part, Part::Frame(_));
        Ok(if has_frame { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    });
    has_frame || !walked.is_ok_and(|walked| walked.unreadable.is_none())
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
