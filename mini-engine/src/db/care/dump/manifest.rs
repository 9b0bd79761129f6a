//! Shows a manifest, edit by edit.

use std::fmt;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use super::{PartKind, Parts, Show, kind, wrong_name};
use crate::error::{Error, Result};
use crate::fs::FileSystem;
use crate::manifest::{CompactPointer, EditAt, Edits, FileKind, KeyspaceMeta, RunId, VersionEdit};
use crate::table::TableMeta;
use crate::types::{Shown, ShownKey};

/// Shows the contents of the manifest at `path` in `fs`: each edit with its offset and its fields, and the end of the manifest.
///
/// # Errors
/// The same as for [`log`](super::log()).
pub fn manifest(fs: &Arc<dyn FileSystem>, path: impl AsRef<Path>, parts: &mut Parts<'_>) -> Result<()> {
    let path = path.as_ref();
    let Some(FileKind::Manifest(number)) = kind(path) else { return Err(wrong_name(path, "MANIFEST-000012")) };
    let (mut edits, mut shown) = (Edits::open(&**fs, path, number)?, Show::new(parts));
    for read in &mut edits {
        let going = match read {
            Ok(EditAt { offset, len, edit }) => {
                shown.part(PartKind::Edit, offset..offset + len, format_args!("edit at {offset}: {}", Words(&edit)))
            }
            Err(error) => {
                let at = if let Error::Corruption { offset, .. } = error { offset } else { 0 };
                shown.damage(at..at, format_args!("manifest"), error)
            }
        };
        if going.is_break() {
            return Ok(());
        }
    }
    let (at, torn) = (edits.end(), edits.torn_bytes());
    // A `Break` has no effect after the last part.
    let _: ControlFlow<()> = match torn {
        0 => shown.part(PartKind::End, at..at, format_args!("end at {at}: clean")),
        _ => shown.part(PartKind::Torn, at..at + torn, format_args!("torn at {at}: {torn} bytes that are no edit")),
    };
    shown.damage.map_or(Ok(()), Err)
}

/// Displays an edit: a line for the whole edit, and one for each table, keyspace and compaction in it.
struct Words<'a>(&'a VersionEdit);

impl fmt::Display for Words<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let VersionEdit { removed, quarantined, dropped, pointers, pointers_done, keyspaces, .. } = self.0;
        write!(f, "{} tables added, {} removed", self.0.added.len(), removed.len())?;
        for (name, number) in [
            ("replay from log", self.0.log_number),
            ("next file number", self.0.next_file_number),
            ("last seqno in tables", self.0.last_seqno),
            ("policy", self.0.policy),
            ("clock", Some(self.0.clock).filter(|&instant| instant > 0)),
        ] {
            number.map_or(Ok(()), |number| write!(f, ", {name} {number}"))?;
        }
        let run = |run: u64| if run == 0 { String::new() } else { format!(", run {run}") };
        let added = |(at, table): &(RunId, TableMeta)| format!("added to level {}{}: {table}", at.level, run(at.run));
        let lines = removed.iter().map(|(level, number)| format!("removed from level {level}: table {number}"));
        let lines = lines.chain(self.0.added.iter().map(added));
        let lines = lines.chain(quarantined.iter().map(|table| format!("quarantined: {table}")));
        let lines = lines.chain(dropped.iter().map(|number| format!("given up: table {number}")));
        let lines = lines.chain(keyspaces.set.iter().map(keyspace));
        let lines = lines.chain(keyspaces.dropped.iter().map(|id| format!("keyspace {id} is dropped")));
        let lines = lines.chain(keyspaces.last.iter().map(|last| format!("keyspaces have numbers up to {last}")));
        let lines = lines.chain(pointers_done.iter().map(|id| format!("compaction {id} went on or ended")));
        lines.chain(pointers.iter().map(pointer)).try_for_each(|line| write!(f, "\n  {line}"))
    }
}

fn keyspace(KeyspaceMeta { id, name, options }: &KeyspaceMeta) -> String {
    let own = options.compression.map_or(String::new(), |own| format!(", compression {own:?}"));
    let lifetime = options.expire_after.map_or(String::new(), |after| format!(", entries expire after {after} ms"));
    format!("keyspace {id}: {}{own}{lifetime}", Shown(name.as_bytes()))
}

fn pointer(CompactPointer { id, top, output, from, upto, bytes }: &CompactPointer) -> String {
    format!(
        "compaction {id} of {bytes} bytes, levels {} to {}, goes on with keys {} to {}, run {}",
        top.level,
        output.level,
        ShownKey(from),
        ShownKey(upto),
        output.run
    )
}
