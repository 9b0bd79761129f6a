//! The configuration of openraft.

use std::sync::Arc;
use std::time::Duration;

use openraft::{Config, SnapshotPolicy};

use crate::error::{Error, Result};

/// The number of entries after which a snapshot is made, and the log is purged. A snapshot copies no data, but each one flushes a memtable.
const ENTRIES_BETWEEN_SNAPSHOTS: u64 = 100_000;

/// The configuration of a group.
///
/// openraft's maximum election timeout is also the lease of a leader. For this time after the leader's last message no node votes for another
/// candidate; only then does a node's own timeout begin. The sum of both is the time that a user sets: from `election_timeout` to a third more.
pub(super) fn of(election_timeout: Duration, may_elect: bool) -> Result<Arc<Config>> {
    let timeout = election_timeout.as_millis() as u64;
    let config = Config {
        cluster_name: "mini-engine".into(),
        heartbeat_interval: timeout / 6,
        election_timeout_min: timeout / 3,
        election_timeout_max: timeout * 2 / 3,
        snapshot_policy: SnapshotPolicy::LogsSinceLast(ENTRIES_BETWEEN_SNAPSHOTS),
        replication_lag_threshold: 2 * ENTRIES_BETWEEN_SNAPSHOTS,
        // `Group::purge` purges instead.
        max_in_snapshot_log_to_keep: u64::MAX,
        enable_elect: may_elect,
        // A node that returns does not depose a leader whose messages the other nodes receive.
        enable_pre_vote: Some(true),
        // A leader that was killed and restarted becomes a candidate again: the others may have elected another leader.
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

/// The maximum time without a leader before a node becomes a candidate.
pub(super) fn longest_timeout(election_timeout: Duration) -> Duration {
    election_timeout * 4 / 3
}
