//! Distinguishes a directory that has lost its `CURRENT` from one whose database was never completed.

use std::path::Path;

use crate::error::{Error, Result};
use crate::fs::FileSystem;
use crate::manifest::{CLOSED, CURRENT, FileKind};
use crate::wal;

/// Fails if an interrupted checkpoint or salvage left the directory, so that it never was a database.
pub(crate) fn check_is_no_leftover(dir: &Path, names: &[FileKind]) -> Result<()> {
    if names.contains(&FileKind::Current) || !names.contains(&FileKind::Incomplete) {
        return Ok(());
    }
    let what = "an interrupted checkpoint or repair has left it; remove it, or repeat the command, which removes it";
    Err(Error::not_a_database(dir, what))
}

/// Without `CURRENT` there is no database yet, unless the directory has files that only a database can have: an interrupted creation leaves only a
/// manifest and a log without frames.
pub(crate) fn check_nothing_is_lost(fs: &dyn FileSystem, dir: &Path, names: &[FileKind]) -> Result<()> {
    let lost = |what: String| {
        Err(Error::corruption(
            &dir.join(CURRENT),
            0,
            format!("expected a pointer to a manifest, since {what}; found no such file"),
        ))
    };
    for kind in names {
        match *kind {
            FileKind::Table(number) => return lost(format!("table {number} exists")),
            FileKind::Aside(number) => return lost(format!("file {number} was set aside")),
            FileKind::Log(number) => {
                let mut frames = 0u64;
                let count = |_: wal::Frame<'_>| {
                    frames += 1;
                    Ok(())
                };
                wal::replay(fs, &dir.join(wal::file_name(number)), number, count)?;
                if frames > 0 {
                    return lost(format!("log {number} holds writes"));
                }
            }
            // A spare file is kept for the first time long after `CURRENT` became durable.
            FileKind::Spare => return lost(format!("file {} exists", wal::SPARE)),
            // It is written when `CURRENT` is durable.
            FileKind::Closed => return lost(format!("file {CLOSED} exists")),
            FileKind::Lock | FileKind::Current | FileKind::CurrentTmp | FileKind::Manifest(_) => {}
            FileKind::Reserve | FileKind::Incomplete | FileKind::Repaired | FileKind::Foreign => {}
        }
    }
    Ok(())
}
