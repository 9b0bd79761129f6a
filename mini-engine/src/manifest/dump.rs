//! Says what a manifest holds, edit by edit.

use std::fmt;
use std::ops::ControlFlow;
use std::path::Path;

use super::load::read_manifest;
use super::version::{CompactPointer, VersionEdit};
use super::{edit, frame};
use crate::error::{Error, Result};
use crate::fs::FileSystem;
use crate::table::TableMeta;
use crate::types::{Lines, Shown};

/// Writes a line for each edit of manifest `number` and each of its fields, and how the file ends.
///
/// # Errors
/// [`Error::Corruption`] where an edit is damaged, after the lines of those before it; [`Error::UnsupportedVersion`];
/// [`Error::Io`].
pub(crate) fn dump(fs: &dyn FileSystem, path: &Path, number: u64, lines: &mut Lines<'_>) -> Result<()> {
    let bytes = read_manifest(fs, path, u64::MAX)?;
    frame::check_header(path, &bytes, number)?;
    let mut at = frame::HEADER_LEN;
    loop {
        let told = match frame::read(number, &bytes, at) {
            frame::Found::End => {
                let _ = lines(format_args!("end at {at}: clean"));
                return Ok(());
            }
            frame::Found::Torn => {
                let _ = lines(format_args!("torn at {at}: {} bytes that are no edit", bytes.len() - at));
                return Ok(());
            }
            frame::Found::Damaged { later } => {
                let what =
                    format!("edit: expected a valid frame, since a later one at offset {later} is valid; found none");
                return Err(Error::corruption(path, at as u64, what));
            }
            frame::Found::Edit { payload, next } => {
                let edit = edit::decode(payload).map_err(|malformed| malformed.in_file(path, at as u64))?;
                let told = dump_edit(at, &edit, lines);
                at = next;
                told
            }
        };
        if told.is_break() {
            return Ok(());
        }
    }
}

fn dump_edit(at: usize, edit: &VersionEdit, lines: &mut Lines<'_>) -> ControlFlow<()> {
    let VersionEdit { added, removed, quarantined, dropped, log_number, next_file_number, last_seqno, policy, .. } =
        edit;
    let VersionEdit { pointers, pointers_done, .. } = edit;
    let shown = |name: &str, number: &Option<u64>| number.map_or(String::new(), |number| format!(", {name} {number}"));
    lines(format_args!(
        "edit at {at}: {} tables added, {} removed{}{}{}{}",
        added.len(),
        removed.len(),
        shown("replay from log", log_number),
        shown("next file number", next_file_number),
        shown("last seqno in tables", last_seqno),
        shown("policy", policy)
    ))?;
    for (level, number) in removed {
        lines(format_args!("  removed from level {level}: table {number}"))?;
    }
    for (run_id, table) in added {
        let run = if run_id.run == 0 { String::new() } else { format!(", run {}", run_id.run) };
        lines(format_args!("  added to level {}{run}: {}", run_id.level, Described(table)))?;
    }
    for table in quarantined {
        lines(format_args!("  quarantined: {}", Described(table)))?;
    }
    for number in dropped {
        lines(format_args!("  given up: table {number}"))?;
    }
    for id in pointers_done {
        lines(format_args!("  compaction {id} went on or ended"))?;
    }
    for CompactPointer { id, top, output, from, upto, bytes } in pointers {
        lines(format_args!(
            "  compaction {id} of {bytes} bytes, levels {} to {}, goes on with keys {} to {}, run {}",
            top.level,
            output.level,
            Shown(from),
            Shown(upto),
            output.run
        ))?;
    }
    ControlFlow::Continue(())
}

/// What an edit says of a table.
struct Described<'a>(&'a TableMeta);

impl fmt::Display for Described<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(table) = self;
        write!(
            f,
            "table {}, {} bytes, {} entries, {} of them tombstones, {}seqnos {} to {}, {}keys {} to {}",
            table.number,
            table.size,
            table.entries,
            table.tombstones,
            table.ranges_in_words(),
            table.min_seqno,
            table.max_seqno,
            if table.narrowed { "narrowed to " } else { "" },
            Shown(&table.smallest),
            Shown(&table.largest)
        )
    }
}
