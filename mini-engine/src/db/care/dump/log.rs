//! Shows a log: every readable frame with its operations.

use std::ops::{ControlFlow, Range};
use std::path::Path;
use std::sync::Arc;

use super::{Entries, Entry, PartKind, Parts, Show, kind, wrong_name};
use crate::error::{Error, Result};
use crate::fs::FileSystem;
use crate::manifest::{FileKind, TAIL_ASIDE};
use crate::types::{BatchOp, BatchOps, Kind};
use crate::wal::{self, Frame, Reading};

/// Shows the contents of the log at `path` in `fs`: each frame with its sequence numbers and operations, and the end of the log. A torn end is
/// reported, with the whole frames after it; it is no error, since a crash can leave one. A header with one damaged byte is corrected.
///
/// # Errors
/// [`Error::InvalidArgument`] if the name is not a log's; [`Error::Corruption`] with the offset of the first damage, after all readable parts were
/// shown; [`Error::UnsupportedVersion`]; [`Error::Io`].
pub fn log(fs: &Arc<dyn FileSystem>, path: impl AsRef<Path>, parts: &mut Parts<'_>) -> Result<()> {
    show(fs, path.as_ref(), parts).map(drop)
}

/// Passes all readable operations of the log at `path` in `fs` to `entries`, in order and without truncation: also those after damage and after a
/// torn end. A header with one damaged byte is corrected.
///
/// # Errors
/// The same as for [`log`]; bytes that are not a frame are an error if a frame follows them.
pub fn log_entries(fs: &Arc<dyn FileSystem>, path: impl AsRef<Path>, entries: &mut Entries<'_>) -> Result<()> {
    let path = path.as_ref();
    match show(fs, path, &mut |part| part.entry.map_or(ControlFlow::Continue(()), &mut *entries))? {
        None => Ok(()),
        Some(Range { start, end }) => {
            Err(Error::corruption(path, start, format!("no whole batch in bytes {start} to {end}")))
        }
    }
}

/// Shows a log, and returns the first bytes before a frame that are not a frame. Damage is an error if `parts` has not returned `Break`.
fn show(fs: &Arc<dyn FileSystem>, path: &Path, parts: &mut Parts<'_>) -> Result<Option<Range<u64>>> {
    let Some(FileKind::Log(number)) = kind(path) else { return Err(wrong_name(path, "000012.log")) };
    let is_tail = path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(TAIL_ASIDE));
    let reading = if is_tail { Reading::Tail } else { Reading::AroundDamage };
    let (mut gap, mut going, mut shown) = (None, ControlFlow::Continue(()), Show::new(parts));
    let walked = wal::walk(&**fs, path, number, reading, |part| {
        going = match part {
            wal::Part::Frame(frame) => show_frame(path, frame, gap.is_some(), &mut shown),
            wal::Part::Gap(bytes) => {
                gap.get_or_insert(bytes.clone());
                show_torn(bytes, &mut shown)
            }
            wal::Part::Undecodable(bytes, error) => shown.damage(bytes, format_args!("frame"), error),
        };
        Ok(going)
    })?;
    let end = walked.end;
    if going.is_continue() {
        going = match walked.tail_end {
            tail if tail > end => show_torn(end..tail, &mut shown),
            _ => shown.part(PartKind::End, end..end, format_args!("end at {end}: clean")),
        };
    }
    if going.is_break() {
        return Ok(None);
    }
    let contradiction = walked.contradiction(path, number);
    walked.unreadable.or(walked.header).or(shown.damage).or(contradiction).map_or(Ok(gap), Err)
}

fn show_torn(bytes: Range<u64>, shown: &mut Show<'_>) -> ControlFlow<()> {
    let (at, len) = (bytes.start, bytes.end - bytes.start);
    let what = "bytes that are no frame: a crash left them, unless a later log says otherwise";
    shown.part(PartKind::Torn, bytes, format_args!("torn at {at}: {len} {what}"))
}

fn show_frame(path: &Path, frame: Frame<'_>, is_behind_damage: bool, shown: &mut Show<'_>) -> ControlFlow<()> {
    let Frame { offset, len, first_seqno, count, payload, synced, .. } = frame;
    let (bytes, batch) = (offset..offset + len, payload.len());
    let compressed = if frame.is_compressed { ", compressed" } else { "" };
    let what = if is_behind_damage { "whole frame behind the tear" } else { "frame" };
    let synced = format_args!("logs synced up to {} of log {}", synced.offset, synced.log);
    shown.part(
        PartKind::Frame,
        bytes.clone(),
        format_args!(
            "{what} at {offset}: {count} operations from seqno {first_seqno}, {batch} bytes{compressed}, {synced}"
        ),
    )?;
    for (op, seqno) in BatchOps::new(payload).zip(first_seqno..) {
        let (key, end, kind, stored): (_, _, _, &[u8]) = match op {
            Ok(BatchOp::Insert { key, value }) => (key, None, Kind::Value, value),
            Ok(BatchOp::InsertExpiring { key, stored }) => (key, None, Kind::Expiring, stored),
            Ok(BatchOp::Remove { key }) => (key, None, Kind::Tombstone, &[]),
            Ok(BatchOp::RemoveRange { start, end }) => (start, Some(end), Kind::Tombstone, &[]),
            Err(malformed) => return shown.damage(bytes, format_args!("batch"), malformed.in_file(path, offset)),
        };
        shown.entry(offset, Entry { is_behind_damage, ..Entry::new(seqno, key, end, (kind, stored)) })?;
    }
    ControlFlow::Continue(())
}
