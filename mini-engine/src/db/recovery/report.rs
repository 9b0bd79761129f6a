//! The report of an open: its findings and actions, as text.

use std::fmt;
use std::path::PathBuf;

use crate::db::read::QuarantinedTable;
use crate::types::{SeqNo, counted};

/// The writes and files that recovery replayed, dropped and set aside.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecoveryReport {
    /// The database's directory.
    pub directory: PathBuf,
    /// Whether the database was created by this open.
    pub created: bool,
    /// Whether the database was opened read-only; then all files are unchanged.
    pub read_only: bool,
    /// The number of logs with writes that were not in tables yet.
    pub logs_replayed: usize,
    /// The number of batches in these logs.
    pub batches_replayed: u64,
    /// Inserts and removes in those batches.
    pub operations_replayed: u64,
    /// The sequence number of the last write that was recovered.
    pub last_seqno: SeqNo,
    /// The end of the replayed history, if it was torn: the writes after it were not synced when the system stopped. Damage to the last writes, or a
    /// truncated log, cannot be distinguished from a torn end.
    pub torn: Option<TornTail>,
    /// Whether the last record of the manifest was torn and dropped; it belonged to an incomplete flush or compaction.
    pub manifest_tail_dropped: bool,
    /// The length of that record in bytes.
    pub manifest_tail_bytes: u64,
    /// Files that no longer belong to the history, under their present names: logs after a torn tail, the tail itself, and, if the manifest was torn,
    /// tables that hold more than was recovered or cannot be read. Opens never read them again, and never delete them unless nothing in them can be
    /// read.
    pub set_aside: Vec<PathBuf>,
    /// In quarantine mode: the damage that this open found, each with its file and offset.
    pub damage: Vec<String>,
    /// Tables that are quarantined, by this open or an earlier one: reads of their keys fail.
    pub quarantined: Vec<QuarantinedTable>,
    /// The last sequence number before writes that were lost in a damaged log, if any were lost.
    pub logs_end_at: Option<SeqNo>,
    /// The number of files of interrupted flushes and compactions, and obsolete logs, that were removed.
    pub orphans_removed: usize,
}

/// The place where the history of writes ended before the end of its log.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TornTail {
    /// The log's file.
    pub log: PathBuf,
    /// The end of the log's last whole frame, in bytes.
    pub offset: u64,
    /// The number of bytes after that offset, which were set aside and cut off; they may include remains of an older log in a recycled file. 0 if
    /// whole frames are missing, which the next log has shown.
    pub dropped_bytes: u64,
    /// The file in which these bytes are kept, if they were cut off.
    pub kept: Option<PathBuf>,
}

impl RecoveryReport {
    /// The dropped writes and the files set aside, one sentence each, with the file and advice. Empty if nothing was dropped or set aside; a replay
    /// without losses is not a finding.
    ///
    /// ```
    /// # fn main() -> mini_engine::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// let db = mini_engine::Db::open(dir.path())?;
    /// for finding in db.recovery().findings() {
    ///     eprintln!("{finding}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn findings(&self) -> Vec<String> {
        let torn = self.torn.iter().map(ToString::to_string);
        let manifest = self.manifest_tail_dropped.then(|| {
            format!(
                "{}: dropped an incomplete record of {} at the end of the manifest: of a flush or compaction that a crash cut short, \
                 whose writes are still in the logs and tables before it, or a damaged one; check with the command verify",
                self.directory.display(),
                counted(self.manifest_tail_bytes, "byte", "bytes")
            )
        });
        let kept = self.torn.as_ref().and_then(|torn| torn.kept.as_ref());
        // Quarantined tables have findings of their own.
        let is_quarantined = |path: &PathBuf| self.quarantined.iter().any(|table| table.file == *path);
        let others = self.set_aside.iter().filter(|path| Some(*path) != kept && !is_quarantined(path));
        let aside = others.map(|path| {
            format!(
                "{}: set aside, since its place in the history was lost; it is not read any more, keep it until you know \
                 that nothing is missing, then remove it",
                path.display()
            )
        });
        let lost = self.logs_end_at.map(|seqno| {
            let what = match self.read_only {
                true => "the command repair makes a new database with those of them that can be read; after the next open for writing, \
                         in the same mode, all of them are lost",
                false => "they are lost, acknowledged ones too: repeat them; the command dump shows those that can be read",
            };
            let directory = self.directory.display();
            format!("{directory}: writes after sequence number {seqno} were in logs that are damaged or missing; {what}")
        });
        let quarantined = self.quarantined.iter().map(ToString::to_string);
        let damage = self.damage.iter().cloned();
        let repairable = self.torn.is_some() || self.manifest_tail_dropped || !self.damage.is_empty();
        let unchanged = (self.read_only && repairable).then(|| {
            format!(
                "{}: opened read-only, so no file was cut, renamed or removed for that; the next open for writing, in the \
                 same mode, will do it",
                self.directory.display()
            )
        });
        torn.chain(manifest).chain(damage).chain(lost).chain(quarantined).chain(aside).chain(unchanged).collect()
    }
}

impl fmt::Display for TornTail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: the log ended early at offset {}, ", self.log.display(), self.offset)?;
        match self.dropped_bytes {
            0 => write!(f, "writes that followed are missing")?,
            n => write!(f, "dropped {} behind it", counted(n, "byte", "bytes"))?,
        }
        write!(
            f,
            ": a crash leaves such an end of writes that were not synced; damage to the last writes looks the same, so without a \
             crash synced ones may be among them: repeat the last writes"
        )?;
        match &self.kept {
            Some(kept) => write!(f, "; kept in {}", kept.display()),
            None => Ok(()),
        }
    }
}

/// Displays the replayed writes, the removed files, and the findings, one line each.
impl fmt::Display for RecoveryReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let directory = self.directory.display();
        match self.created {
            true => write!(f, "{directory}: created")?,
            false => write!(
                f,
                "{directory}: replayed {} with {} from {}, up to sequence number {}; removed {}",
                counted(self.batches_replayed, "batch", "batches"),
                counted(self.operations_replayed, "operation", "operations"),
                counted(self.logs_replayed as u64, "log", "logs"),
                self.last_seqno,
                counted(self.orphans_removed as u64, "leftover file", "leftover files")
            )?,
        }
        self.findings().iter().try_for_each(|finding| write!(f, "\n{finding}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_says_what_was_replayed_dropped_and_set_aside_and_what_to_do() {
        // Catches a loss that is counted but not reported, and a report without advice.
        let quiet = RecoveryReport { directory: PathBuf::from("db"), batches_replayed: 1, ..RecoveryReport::default() };
        assert!(quiet.findings().is_empty());
        let words =
            "db: replayed 1 batch with 0 operations from 0 logs, up to sequence number 0; removed 0 leftover files";
        assert_eq!(quiet.to_string(), words);
        let kept = PathBuf::from("db/000003.log.tail.aside");
        let torn =
            TornTail { log: PathBuf::from("db/000003.log"), offset: 96, dropped_bytes: 1, kept: Some(kept.clone()) };
        let aside = vec![kept, PathBuf::from("db/000004.log.aside")];
        let loud = RecoveryReport {
            torn: Some(torn),
            manifest_tail_dropped: true,
            manifest_tail_bytes: 7,
            set_aside: aside,
            ..quiet
        };
        let findings = loud.findings();
        assert_eq!(findings.len(), 3);
        for (finding, parts) in findings.iter().zip([
            [
                "offset 96, dropped 1 byte behind it",
                "damage to the last writes",
                "repeat",
                "; kept in db/000003.log.tail.aside",
            ],
            ["db: ", "manifest", "7 bytes", "check with"],
            ["db/000004.log.aside: ", "set aside", "not read", "keep it until"],
        ]) {
            assert!(parts.iter().all(|part| finding.contains(part)), "{finding}");
        }
        assert_eq!(loud.to_string().lines().count(), 4);
    }
}
