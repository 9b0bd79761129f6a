//! [`Parts`]: the parts of a node that exist before it belongs to a cluster. The node's groups share them.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mini_engine::fs::{FileSystem, remove_dir_all};
use openraft::RaftLogReader;
use openraft::storage::RaftLogStorage;
use openraft_mini_engine::Logs;

use crate::clock::WallClock;
use crate::identity::state_of;
use crate::network::Dialer;
use crate::space::SpaceSource;
use crate::types::{Member, Position, TypeConfig, Vote};

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
    /// The most bytes of log that all groups on the node keep for members that lack them.
    pub(crate) keep_log: u64,
    pub(crate) space: SpaceSource,
    /// The bytes of the disk that must be free for more data.
    pub(crate) min_free: u64,
    /// Locked while a group is compacted because the disk is almost full.
    pub(crate) compaction: Arc<Mutex<()>>,
}

impl Parts {
    /// Whether the state of a group is on disk.
    pub(crate) fn has_state(&self, number: u32) -> bool {
        self.files.exists(&state_of(&self.dir, number)).unwrap_or(false)
    }

    /// The later one of `removed` and the last log entry of a group, which must not be open. The group's vote becomes one for the leader of
    /// `removed`, unless it is a later one.
    pub(crate) async fn last_of(&self, number: u32, removed: Position) -> io::Result<Position> {
        let mut log = self.logs.group::<TypeConfig>(number)?;
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
