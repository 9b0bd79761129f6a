//! [`ManifestState`]: the state that results from all edits of a manifest.

use std::sync::Arc;

use crate::manifest::compaction_stats::CompactionStats;
use crate::manifest::keyspaces::KeyspaceSet;
use crate::manifest::version::{Version, VersionEdit};
use crate::types::{Millis, SeqNo};

/// The state that results from all edits so far.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ManifestState {
    pub(crate) version: Arc<Version>,
    /// The oldest log that replay needs.
    pub(crate) log_number: u64,
    /// A number above all file numbers that were assigned when the last edit was written.
    pub(crate) next_file_number: u64,
    /// The highest sequence number in tables: the log `log_number` starts directly after it.
    pub(crate) last_seqno: SeqNo,
    /// The number of the policy with which the database was last opened.
    pub(crate) policy: Option<u64>,
    pub(crate) stats: CompactionStats,
    pub(crate) keyspaces: Arc<KeyspaceSet>,
    /// The latest instant that the database's clock has shown. As long as it is 0, no entry of a table expires.
    pub(crate) clock: Millis,
}

impl ManifestState {
    pub(super) fn apply(&self, edit: &VersionEdit) -> Result<ManifestState, String> {
        Ok(ManifestState { version: Arc::new(self.version.apply(edit)?), ..self.clone().after(edit)? })
    }

    /// The state that results from `edit`, except its version.
    pub(super) fn after(self, edit: &VersionEdit) -> Result<ManifestState, String> {
        let last_seqno = edit.last_seqno.unwrap_or(self.last_seqno);
        let log_number = edit.log_number.unwrap_or(self.log_number);
        if last_seqno < self.last_seqno || log_number < self.log_number {
            return Err(format!(
                "edit goes back in time: expected at least log {} and seqno {}, found {log_number} and {last_seqno}",
                self.log_number, self.last_seqno
            ));
        }
        Ok(ManifestState {
            version: self.version,
            log_number,
            next_file_number: edit.next_file_number.unwrap_or(0).max(self.next_file_number),
            last_seqno,
            policy: edit.policy.or(self.policy),
            stats: self.stats.plus(&edit.stats),
            keyspaces: self.keyspaces.apply(&edit.keyspaces)?,
            clock: edit.clock.max(self.clock),
        })
    }

    pub(super) fn as_edit(&self) -> VersionEdit {
        VersionEdit {
            log_number: Some(self.log_number),
            next_file_number: Some(self.next_file_number),
            last_seqno: Some(self.last_seqno),
            policy: self.policy,
            stats: self.stats,
            keyspaces: self.keyspaces.as_edit(),
            clock: self.clock,
            ..self.version.as_edit()
        }
    }
}
