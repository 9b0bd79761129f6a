//! How openraft is set up.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use openraft::async_runtime::WatchReceiver;
use openraft::{Config, SnapshotPolicy};

use super::raft::Raft;
use crate::error::{Error, Result};

/// Entries after which the log is purged. A snapshot is no copy, but each one flushes a memtable.
const ENTRIES_BETWEEN_SNAPSHOTS: u64 = 100_000;
/// Bytes of proposals after which the log is purged, however few entries they are.
const BYTES_BETWEEN_SNAPSHOTS: u64 = 256 << 20;
/// Entries that are kept behind a snapshot: a node that was away for a moment gets them instead of a snapshot. Few, since one may have megabytes.
const KEPT_ENTRIES: u64 = 500;
/// How often the bytes are looked at.
const LOOK: Duration = Duration::from_secs(1);

/// The configuration of a group.
///
/// What openraft calls the greatest election timeout is also the lease of a leader: so long after its last message no vote is given to another node,
/// and a node waits for that before its own timeout begins. Both together are what a user means: from `election_timeout` to a third more.
pub(super) fn of(election_timeout: Duration) -> Result<Arc<Config>> {
    let timeout = election_timeout.as_millis() as u64;
    let config = Config {
        cluster_name: "mini-engine".into(),
        heartbeat_interval: timeout / 6,
        election_timeout_min: timeout / 3,
        election_timeout_max: timeout * 2 / 3,
        snapshot_policy: SnapshotPolicy::LogsSinceLast(ENTRIES_BETWEEN_SNAPSHOTS),
        replication_lag_threshold: 2 * ENTRIES_BETWEEN_SNAPSHOTS,
        max_in_snapshot_log_to_keep: KEPT_ENTRIES,
        purge_batch_size: KEPT_ENTRIES / 10,
        // A node that returns does not depose a leader that the others hear.
        enable_pre_vote: Some(true),
        // A leader that was killed asks for votes again: the others may have gone on.
        enable_leader_restore: Some(false),
        backoff: "50ms 100ms 200ms ...500ms".into(),
        ..Config::default()
    };
    let config = config.validate().map_err(|error| Error::InvalidSettings {
        name: "election timeout",
        expected: "one that openraft accepts".into(),
        found: error.to_string(),
    })?;
    Ok(Arc::new(config))
}

/// Asks for a snapshot, behind which the log is purged, when proposals of so many bytes were applied. Ends with the group.
pub(super) async fn purge_by_bytes(raft: Raft, applied: Arc<AtomicU64>) {
    loop {
        tokio::time::sleep(LOOK).await;
        // ORDERING: Relaxed; only the size counts, not what was applied.
        if applied.load(Ordering::Relaxed) >= BYTES_BETWEEN_SNAPSHOTS {
            applied.store(0, Ordering::Relaxed);
            if raft.trigger().snapshot().await.is_err() {
                return;
            }
        }
        if raft.metrics().borrow_watched().running_state.is_err() {
            return;
        }
    }
}
