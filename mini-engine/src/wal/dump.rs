//! Dumps the contents of a log, frame by frame, including whole frames after a tear.

use std::ops::ControlFlow;
use std::path::Path;

use super::replay::{self, Frame, Tail};
use crate::error::{Error, Result};
use crate::fs::FileSystem;
use crate::types::{BatchOp, BatchOps, Lines, Shown, ShownKey, split_expiry, split_range};

/// Writes a line for each frame and each operation of log `number`, and for its end. Before `begin` there is only a hole.
///
/// # Errors
/// The same as for [`super::replay`]: damage comes after the lines of the frames before it.
pub(crate) fn dump(fs: &dyn FileSystem, path: &Path, number: u64, begin: u64, lines: &mut Lines<'_>) -> Result<()> {
    let mut broke_off = false;
    let visited = replay::replay(fs, path, number, |frame| {
        broke_off = dump_frame(path, frame, lines)?.is_break();
        // Any error ends the replay; this one is not reported.
        if broke_off { Err(Error::Closed) } else { Ok(()) }
    });
    if broke_off {
        return Ok(());
    }
    let stop = match visited? {
        Tail::Clean { end } => {
            // The last line: it does not matter whether the caller wants more.
            let _ = lines(format_args!("end at {end}: clean"));
            return Ok(());
        }
        Tail::Torn { offset, dropped_bytes } => {
            let stop = offset.max(begin);
            let mut framed = 0;
            replay::frames_behind(fs, path, number, stop, |_, header| {
                framed += header.frame_len();
                ControlFlow::Continue(())
            })?;
            let torn = (offset + dropped_bytes).saturating_sub(stop).saturating_sub(framed);
            let what = "bytes that are no frame: a crash left them, unless a later log says otherwise";
            if lines(format_args!("torn at {stop}: {torn} {what}")).is_break() {
                return Ok(());
            }
            stop
        }
    };
    replay::frames_behind(fs, path, number, stop, |offset, header| {
        let (first, count) = (header.first_seqno, header.count);
        lines(format_args!("whole frame behind the tear at {offset}: {count} operations from seqno {first}"))
    })
}

fn dump_frame(path: &Path, frame: Frame<'_>, lines: &mut Lines<'_>) -> Result<ControlFlow<()>> {
    let Frame { offset, first_seqno, count, payload, synced, .. } = frame;
    let compressed = if frame.is_compressed { ", compressed" } else { "" };
    let head = lines(format_args!(
        "frame at {offset}: {count} operations from seqno {first_seqno}, {} bytes{compressed}, logs synced up to {} of log {}",
        payload.len(),
        synced.offset,
        synced.log
    ));
    if head.is_break() {
        return Ok(head);
    }
    for (op, seqno) in BatchOps::new(payload).zip(first_seqno..) {
        let told = match op.map_err(|malformed| malformed.in_file(path, offset))? {
            BatchOp::Insert { key, value } => lines(format_args!("  {seqno} {} = {}", ShownKey(key), Shown(value))),
            BatchOp::InsertExpiring { key, stored } => {
                let (at, value) = split_expiry(stored);
                lines(format_args!("  {seqno} {} = {}, expires at {at}", ShownKey(key), Shown(value)))
            }
            BatchOp::Remove { key } => lines(format_args!("  {seqno} {} removed", ShownKey(key))),
            BatchOp::RemoveRange { start, end } => match split_range(start, end) {
                Some((_, _, [])) => lines(format_args!("  {seqno} {} and above removed", ShownKey(start))),
                _ => lines(format_args!("  {seqno} {} to before {} removed", ShownKey(start), ShownKey(end))),
            },
        };
        if told.is_break() {
            return Ok(told);
        }
    }
    Ok(ControlFlow::Continue(()))
}
