//! [`Parts`]: the parts of a node that exist before it belongs to a cluster. The node's groups share them.

use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mini_engine::fs::{FileSystem, remove_dir_all};
use openraft::storage::RaftLogStorage;
use openraft::{Config, RaftLogReader, SnapshotPolicy};
use openraft_mini_engine::Logs;
use tokio::sync::SetOnce;
use tokio::time::sleep;

use crate::clock::WallClock;
use crate::error::{Error, Result};
use crate::identity::state_of;
use crate::network::Dialer;
use crate::space::SpaceSource;
use crate::types::{Member, Position, TypeConfig, Vote};

/// The number of entries after which a snapshot is made, and the log is purged. A snapshot copies no data, but each one flushes a memtable.
const ENTRIES_BETWEEN_SNAPSHOTS: u64 = 100_000;
/// The maximum time until a stopped group has released its log.
const RELEASE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(50);

/// The parts of a node that exist before it belongs to a cluster.
#[derive(Clone)]
pub(crate) struct Parts {
    pub(crate) dir: PathBuf,
    /// A file system in which `dir` is open: so all files stay inside that directory, even if it is moved.
    pub(crate) files: Arc<dyn FileSystem>,
    /// The addresses that this node tells to others.
    pub(crate) member: Member,
    pub(crate) dialer: Arc<Dialer>,
    pub(crate) logs: Logs,
    pub(crate) clock: WallClock,
    pub(crate) election_timeout: Duration,
    /// Why the node must end: the number of a group, and the reason.
    pub(crate) ended: Arc<SetOnce<(u32, String)>>,
    /// The most bytes of log that all groups on the node keep for members that lack them.
    pub(crate) keep_log: u64,
    pub(crate) space: SpaceSource,
    /// The bytes of the disk that must be free for more data.
    pub(crate) min_free: u64,
    /// The most bytes of a group's tables with which it accepts more data.
    pub(crate) max_group: u64,
}

impl Parts {
    /// The configuration of openraft for a group.
    ///
    /// openraft's maximum election timeout is also the lease of a leader. For this time after the leader's last message no node votes for another
    /// candidate; only then does a node's own timeout begin. The sum of both is the time that a user sets: from `election_timeout` to a third more.
    pub(super) fn config(&self, may_elect: bool) -> Result<Arc<Config>> {
        let timeout = self.election_timeout.as_millis() as u64;
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
        let refused = |error| Error::setting("election timeout", "one that openraft accepts", error);
        config.validate().map(Arc::new).map_err(refused)
    }

    /// The maximum time without a leader before a node becomes a candidate.
    pub(super) fn longest_timeout(&self) -> Duration {
        self.election_timeout * 4 / 3
    }

    /// Whether the state of a group is on disk.
    pub(crate) fn has_state(&self, number: u32) -> bool {
        self.files.exists(&state_of(&self.dir, number)).unwrap_or(false)
    }

    /// The later one of `removed` and the last log entry of a group, which must not be open. The group's vote becomes one for the leader of
    /// `removed`, unless it is a later one.
    pub(crate) async fn last_of(&self, number: u32, removed: Position) -> io::Result<Position> {
        // Tasks of the stopped group hold its log for a moment.
        let begun = Instant::now();
        let mut log = loop {
            match self.logs.group::<TypeConfig>(number) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists && begun.elapsed() < RELEASE => {
                    sleep(PAUSE).await
                }
                opened => break opened?,
            }
        };
        let vote = Vote::new_committed(removed.term, removed.leader);
        if log.get_log_reader().await.read_vote().await?.is_none_or(|given| given < vote) {
            log.save_vote(&vote).await?;
        }
        Ok(log.get_log_state().await?.last_log_id.map_or(removed, |last| removed.max(Position::of(&last))))
    }

    /// Removes the files of a group, which must not be open, except its vote. Blocks on the disk.
    pub(crate) fn remove_group(&self, number: u32) -> io::Result<()> {
        self.logs.remove_group(number)?;
        remove_dir_all(&*self.files, &state_of(&self.dir, number))
    }
}
