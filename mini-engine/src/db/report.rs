//! What opening a database found and did.

use std::path::PathBuf;

use crate::types::SeqNo;

/// What recovery replayed, dropped and set aside.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecoveryReport {
    /// Whether there was no database before.
    pub created: bool,
    /// Logs that held writes which no table had yet.
    pub logs_replayed: usize,
    /// Batches in them.
    pub batches_replayed: u64,
    /// Inserts and removes in those batches.
    pub operations_replayed: u64,
    /// The sequence number of the last write that was recovered.
    pub last_seqno: SeqNo,
    /// The end of the replayed history, if it was torn: writes that were never synced when the system stopped.
    pub torn: Option<TornTail>,
    /// Whether the last record of the manifest was torn and dropped: a flush or merge that was not complete.
    pub manifest_tail_dropped: bool,
    /// Bytes of that record.
    pub manifest_tail_bytes: u64,
    /// Suspect files that were renamed, as they are called now. They are never read or deleted again.
    pub set_aside: Vec<PathBuf>,
    /// Files of interrupted flushes and merges, and obsolete logs, that were removed.
    pub orphans_removed: usize,
}

/// Where the history of writes ended before its log did.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TornTail {
    /// The log's file.
    pub log: PathBuf,
    /// The end of its last whole frame, in bytes.
    pub offset: u64,
    /// Bytes behind that, which were cut off. 0 if whole frames are missing and the next log showed it.
    pub dropped_bytes: u64,
}
