//! The report of a salvage: the parts of a damaged database that could be read, and those that could not.

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;

use super::keyspaces::FoundKeyspaces;
use super::lost::LostKeys;
use crate::error::Error;
use crate::types::{SeqNo, counted};

/// The parts of a damaged database that were read, those that were not, and the facts that remain unknown.
#[derive(Clone, Debug, Default)]
#[must_use]
#[non_exhaustive]
pub struct SalvageReport {
    /// The database's directory.
    pub directory: PathBuf,
    /// The manifest that was used. `None` if no manifest can be read to its end; then all existing tables and logs were read.
    pub manifest: Option<PathBuf>,
    /// Tables that could be read at least in part.
    pub tables: usize,
    /// Logs that could be read at least in part.
    pub logs: usize,
    /// Batches that were read from the logs.
    pub batches: u64,
    /// Batches that follow damage in their log: writes before them are missing.
    pub batches_behind_damage: u64,
    /// Keys that have a value.
    pub keys: u64,
    /// Keys whose newest version may be lost, because lost bytes of a table may have contained it. The remaining version of such a key is an older
    /// one. These keys are also counted in `keys`, unless they were left out.
    pub older_keys: u64,
    /// Whether such keys were left out.
    pub older_keys_left_out: bool,
    /// Damage to whole files, to manifests and to the headers of logs.
    pub damage: Vec<Error>,
    /// Key ranges of tables that could not be read.
    pub lost_keys: Vec<LostKeys>,
    /// Batches of logs that could not be read.
    pub lost_writes: Vec<LostWrites>,
    /// Files that were not read.
    pub left_out: Vec<LeftOut>,
    /// The new names of keyspaces whose own names are lost.
    pub renamed_keyspaces: Vec<String>,
}

/// Writes that are missing in a log. Their keys are unknown: in the new database they have older values, or none.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LostWrites {
    /// The log's file.
    pub log: PathBuf,
    /// The bytes that are not a whole batch; an empty range if the file ends before them, or if it is missing or cannot be opened. If the device
    /// cannot read the file to its end, these are all bytes after the last batch that was read.
    pub bytes: Range<u64>,
    /// The sequence numbers of the writes, if those before and after them are known.
    pub seqnos: Option<Range<SeqNo>>,
    /// Whether a crash may have left these bytes; then the writes were never complete.
    pub may_be_torn: bool,
}

/// A file that was not read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeftOut {
    /// The file.
    pub file: PathBuf,
    /// The reason for leaving the file out.
    pub why: &'static str,
    /// Whether the file contains whole batches that may exist nowhere else.
    pub holds_batches: bool,
}

impl SalvageReport {
    pub(super) fn leave_out(&mut self, file: PathBuf, why: &'static str, holds_batches: bool) {
        self.left_out.push(LeftOut { file, why, holds_batches });
    }

    /// Adds the results about keyspaces after all keys were read.
    pub(super) fn add_keyspaces(&mut self, keyspaces: &FoundKeyspaces<'_>) {
        self.renamed_keyspaces = keyspaces.made_names();
        let FoundKeyspaces { dropped, strays, .. } = *keyspaces;
        self.keys -= dropped + strays;
        if strays > 0 {
            let what = format!("{}: expected a keyspace, found none", counted(strays, "key", "keys"));
            self.damage.push(Error::corruption(&self.directory, 0, what));
        }
    }

    /// Whether the whole contents of the database were read, as far as its files can show.
    pub fn is_complete(&self) -> bool {
        let is_left_out = self.left_out.iter().any(|left| left.holds_batches);
        self.manifest.is_some() && self.lost_keys.is_empty() && self.lost_writes.is_empty() && !is_left_out
    }

    /// The facts that remain unknown after this damage, one sentence each.
    pub fn unknown(&self) -> Vec<String> {
        let mut unknown = Vec::new();
        if self.manifest.is_none() {
            unknown.push(
                "without a manifest nothing tells which tables and logs are missing, and a table that was already compacted into \
                 others may have brought back keys that were removed since"
                    .to_owned(),
            );
        }
        if self.older_keys > 0 && !self.older_keys_left_out {
            unknown.push(format!(
                "{} in the lost ranges: an older value, or one of a key that was removed, where the newest version is lost",
                counted(self.older_keys, "key", "keys")
            ));
        }
        if self.lost_writes.iter().any(|lost| !lost.may_be_torn) {
            unknown.push("which keys the lost batches wrote: these have older values or none".to_owned());
        }
        if self.lost_writes.iter().any(|lost| lost.may_be_torn) {
            unknown.push(
                "whether the last batches of a log are damaged, or were never complete before a crash".to_owned(),
            );
        }
        if !self.renamed_keyspaces.is_empty() {
            let names = self.renamed_keyspaces.join(", ");
            unknown.push(format!("the names of keyspaces, which are now {names}, and whether they were dropped"));
        }
        if self.batches_behind_damage > 0 {
            unknown.push(format!(
                "{} behind damage in a log: kept without those before them",
                counted(self.batches_behind_damage, "batch", "batches")
            ));
        }
        unknown
    }
}

/// Displays one line for each finding.
impl fmt::Display for SalvageReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "kept {} of {}, and {} of {}",
            counted(self.keys, "key", "keys"),
            counted(self.tables as u64, "table", "tables"),
            counted(self.batches, "batch", "batches"),
            counted(self.logs as u64, "log", "logs")
        )?;
        self.damage.iter().try_for_each(|damage| write!(f, "\ndamaged: {damage}"))?;
        self.lost_keys.iter().try_for_each(|lost| write!(f, "\nlost: {lost}"))?;
        self.lost_writes.iter().try_for_each(|lost| write!(f, "\nlost: {lost}"))?;
        if self.older_keys_left_out && self.older_keys > 0 {
            let keys = counted(self.older_keys, "key", "keys");
            write!(f, "\nleft out: {keys} of the lost ranges, of which only an older version is left")?;
        }
        for LeftOut { file, why, .. } in &self.left_out {
            write!(f, "\nleft out: {}: {why}", file.display())?;
        }
        self.unknown().iter().try_for_each(|unknown| write!(f, "\nunknown: {unknown}"))
    }
}

impl fmt::Display for LostWrites {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { log, bytes, seqnos, may_be_torn } = self;
        write!(f, "{}: ", log.display())?;
        match bytes.is_empty() {
            true if bytes.end == 0 => write!(f, "no batch can be read")?,
            true => write!(f, "batches are missing at offset {}", bytes.start)?,
            false => write!(f, "no whole batch in bytes {} to {}", bytes.start, bytes.end)?,
        }
        if let Some(seqnos) = seqnos.as_ref().filter(|seqnos| !seqnos.is_empty()) {
            write!(f, ", sequence numbers {} to {}", seqnos.start, seqnos.end - 1)?;
        }
        if *may_be_torn { write!(f, "; a crash may have left them so") } else { Ok(()) }
    }
}
