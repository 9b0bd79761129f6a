//! Dumps the contents of a manifest, edit by edit.

use std::fmt;
use std::ops::ControlFlow;
use std::path::Path;

use super::keyspaces::KeyspaceMeta;
use super::load::{Edits, read_manifest};
use super::version::{CompactPointer, VersionEdit};
use crate::error::Result;
use crate::fs::FileSystem;
use crate::table::TableMeta;
use crate::types::{Lines, Shown, ShownKey};

/// Writes a line for each edit of manifest `number` and each of its fields, and for the end of the file.
///
/// # Errors
/// A corruption where an edit is damaged, after the lines of those before it; an unsupported version; the errors of reading.
pub(crate) fn dump(fs: &dyn FileSystem, path: &Path, number: u64, lines: &mut Lines<'_>) -> Result<()> {
    let bytes = read_manifest(fs, path, u64::MAX)?;
    let mut edits = Edits::of(path, &bytes, number)?;
    while let Some((at, edit)) = edits.next()? {
        if dump_edit(at, &edit, lines).is_break() {
            return Ok(());
        }
    }
    let at = edits.at;
    let _ = match edits.torn_bytes() {
        0 => lines(format_args!("end at {at}: clean")),
        torn => lines(format_args!("torn at {at}: {torn} bytes that are no edit")),
    };
    Ok(())
}

fn dump_edit(at: u64, edit: &VersionEdit, lines: &mut Lines<'_>) -> ControlFlow<()> {
    let VersionEdit { added, removed, quarantined, dropped, log_number, next_file_number, last_seqno, policy, .. } =
        edit;
    let VersionEdit { pointers, pointers_done, keyspaces, clock, .. } = edit;
    let shown = |name: &str, number: &Option<u64>| number.map_or(String::new(), |number| format!(", {name} {number}"));
    lines(format_args!(
        "edit at {at}: {} tables added, {} removed{}{}{}{}{}",
        added.len(),
        removed.len(),
        shown("replay from log", log_number),
        shown("next file number", next_file_number),
        shown("last seqno in tables", last_seqno),
        shown("policy", policy),
        shown("clock", &Some(*clock).filter(|&instant| instant > 0))
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
    for KeyspaceMeta { id, name, options } in &keyspaces.set {
        let own = options.compression.map_or(String::new(), |own| format!(", compression {own:?}"));
        let lifetime = options.expire_after.map_or(String::new(), |after| format!(", entries expire after {after} ms"));
        lines(format_args!("  keyspace {id}: {}{own}{lifetime}", Shown(name.as_bytes())))?;
    }
    for id in &keyspaces.dropped {
        lines(format_args!("  keyspace {id} is dropped"))?;
    }
    if let Some(last) = keyspaces.last {
        lines(format_args!("  keyspaces have numbers up to {last}"))?;
    }
    for id in pointers_done {
        lines(format_args!("  compaction {id} went on or ended"))?;
    }
    for CompactPointer { id, top, output, from, upto, bytes } in pointers {
        lines(format_args!(
            "  compaction {id} of {bytes} bytes, levels {} to {}, goes on with keys {} to {}, run {}",
            top.level,
            output.level,
            ShownKey(from),
            ShownKey(upto),
            output.run
        ))?;
    }
    ControlFlow::Continue(())
}

/// The description of a table in an edit.
struct Described<'a>(&'a TableMeta);

impl fmt::Display for Described<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(table) = self;
        write!(
            f,
            "table {}, {} bytes, {} entries, {} of them tombstones, {}{}seqnos {} to {}, {}keys {} to {}",
            table.number,
            table.size,
            table.entries,
            table.tombstones,
            table.expiring.in_words(),
            table.ranges_in_words(),
            table.min_seqno,
            table.max_seqno,
            if table.narrowed { "narrowed to " } else { "" },
            ShownKey(&table.smallest),
            ShownKey(&table.largest)
        )
    }
}
