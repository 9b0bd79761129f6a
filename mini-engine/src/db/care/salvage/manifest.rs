//! Collects what manifests still contain, for a database whose `CURRENT` or manifest is damaged or missing.
//!
//! Without `CURRENT` the newest manifest is used, if it can be read to its end: a manifest is complete before `CURRENT` refers to it, and as long as
//! the previous one exists, both describe the same data. The whole edits of a damaged or torn manifest still show which tables were compacted, the
//! lower bounds of narrowed tables, and which logs are obsolete. For a table's number is used again only by the edit that removes the table, and its
//! bound only rises.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::salvaged_keyspaces::SalvagedKeyspaces;
use crate::error::{Error, Result};
use crate::fs::FileSystem;
use crate::manifest::{
    CURRENT, EditAt, Edits, FileKind, Loaded, ManifestState, VersionEdit, load_current, load_number, manifest_name,
};
use crate::table::TableMeta;
use crate::types::{Millis, SeqNo};

/// The known facts about the tables and logs of a database.
#[derive(Debug, Default)]
pub(crate) struct SalvagedManifest {
    /// The complete manifest; `None` if there is none.
    pub(crate) whole: Option<PathBuf>,
    /// The damage to `CURRENT` and to manifests.
    pub(crate) damage: Vec<Error>,
    /// The tables of the database, as far as they are known, including those that were set aside.
    pub(crate) tables: BTreeMap<u64, TableMeta>,
    /// The tables that were quarantined.
    pub(crate) quarantined: BTreeSet<u64>,
    /// The quarantined tables that were dropped since.
    pub(crate) dropped: BTreeSet<u64>,
    /// Tables that were compacted into others.
    pub(crate) obsolete: BTreeSet<u64>,
    /// Logs with a smaller number than this are obsolete.
    pub(crate) log_number: u64,
    /// The log with that number begins after this sequence number.
    pub(crate) last_seqno: SeqNo,
    pub(crate) keyspaces: SalvagedKeyspaces,
    /// The latest instant that the database's clock has shown.
    pub(crate) clock: Millis,
}

/// Reads the manifests of `dir`; `names` are all files of the directory.
///
/// # Errors
/// [`Error::UnsupportedVersion`] and [`Error::Unsupported`]; [`Error::Io`] for lack of file handles.
pub(super) fn read_manifests(fs: &dyn FileSystem, dir: &Path, names: &[FileKind]) -> Result<SalvagedManifest> {
    let mut found = SalvagedManifest::default();
    let number = |kind: &FileKind| if let FileKind::Manifest(number) = *kind { Some(number) } else { None };
    let mut numbers: Vec<u64> = names.iter().filter_map(number).collect();
    numbers.sort_unstable();
    let current = match load_current(fs, dir) {
        Ok(Some(current)) => Some(current),
        Ok(None) => {
            let what = "expected a pointer to a manifest, found no such file";
            found.damage.push(Error::corruption(&dir.join(CURRENT), 0, what));
            None
        }
        Err(error) => {
            found.damage.push(unless_fatal(error)?);
            None
        }
    };
    if let Some(number) = current.or(numbers.last().copied()) {
        match load_number(fs, dir, number) {
            Ok(loaded) => return found.of(fs, dir, names, loaded),
            Err(error) => found.damage.push(unless_fatal(error)?),
        }
    }
    for number in numbers {
        found.take_whole_edits(fs, &dir.join(manifest_name(number)), number)?;
    }
    Ok(found)
}

/// Returns the error if the other files can be read nevertheless.
fn unless_fatal(error: Error) -> Result<Error> {
    if error.is_damage() { Ok(error) } else { Err(error) }
}

/// Whether manifest `number` may have been cut exactly between two edits, which its frames cannot show: a lost edit of a flush or a compaction
/// removed files to which `state` still refers, and added tables that are not in `state`. Tables that were obsolete when the manifest began have
/// smaller numbers than the manifest. A lost edit that only added tables, for example that of an ingest, leaves no such trace.
fn lacks_edits(number: u64, state: &ManifestState, names: &[FileKind]) -> bool {
    let there: BTreeSet<u64> = names.iter().filter_map(FileKind::table).collect();
    let lacks_a_table = state.version.tables().any(|meta| !there.contains(&meta.number));
    let named = state.version.named_numbers();
    let is_newer_and_unnamed = |table: &u64| *table > number && !named.contains(table);
    (lacks_a_table || !names.contains(&FileKind::Log(state.log_number))) && there.iter().any(is_newer_and_unnamed)
}

impl SalvagedManifest {
    fn of(mut self, fs: &dyn FileSystem, dir: &Path, names: &[FileKind], loaded: Loaded) -> Result<Self> {
        let Loaded { number, state, tail_bytes, .. } = loaded;
        let path = dir.join(manifest_name(number));
        let damage = match tail_bytes {
            1.. => Some("the last edit is not complete: a crash left it so, or it is damaged"),
            0 if lacks_edits(number, &state, names) => Some(
                "it names files that are not there, and newer tables are not named: its last edits may have been cut off",
            ),
            0 => None,
        };
        match damage {
            None => self.whole = Some(path),
            Some(what) => {
                self.damage.push(Error::corruption(&path, 0, what));
                // The files of obsolete tables may still exist, and hold removed keys.
                self.take_whole_edits(fs, &path, number)?;
            }
        }
        let version = &state.version;
        self.tables = version.named_tables().map(|meta| (meta.number, meta.clone())).collect();
        self.quarantined = version.set_aside().map(|meta| meta.number).collect();
        self.dropped = version.dropped().collect();
        (self.log_number, self.last_seqno, self.clock) = (state.log_number, state.last_seqno, state.clock);
        if self.whole.is_some() {
            self.keyspaces.take(state.keyspaces.as_edit());
            self.keyspaces.are_complete = true;
        }
        Ok(self)
    }

    /// Adds the information in the whole edits of a damaged manifest.
    fn take_whole_edits(&mut self, fs: &dyn FileSystem, path: &Path, number: u64) -> Result<()> {
        match Edits::open(fs, path, number) {
            Ok(edits) => edits.flatten().for_each(|EditAt { edit, .. }| self.take(edit)),
            Err(error) => self.damage.push(unless_fatal(error)?),
        }
        Ok(())
    }

    fn take(&mut self, edit: VersionEdit) {
        for (_, number) in edit.removed {
            self.tables.remove(&number);
            self.obsolete.insert(number);
        }
        self.dropped.extend(edit.dropped);
        self.quarantined.extend(edit.quarantined.iter().map(|meta| meta.number));
        for meta in edit.added.into_iter().map(|(_, meta)| meta).chain(edit.quarantined) {
            self.obsolete.remove(&meta.number);
            self.tables.insert(meta.number, meta);
        }
        self.keyspaces.take(edit.keyspaces);
        self.log_number = self.log_number.max(edit.log_number.unwrap_or(0));
        self.last_seqno = self.last_seqno.max(edit.last_seqno.unwrap_or(0));
        self.clock = self.clock.max(edit.clock);
    }
}
