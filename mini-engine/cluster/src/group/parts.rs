//! [`Parts`]: what a node has before it belongs to a cluster. Its groups share it.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use mini_engine::fs::{FileSystem, remove_dir_all};
use openraft_mini_engine::Logs;

use crate::clock::WallClock;
use crate::identity::state_of;
use crate::network::Dialer;
use crate::types::Member;

/// What a node has before it belongs to a cluster.
#[derive(Clone)]
pub(crate) struct Parts {
    pub(crate) dir: PathBuf,
    /// In which `dir` is open: what the node has is in that directory, wherever it is moved.
    pub(crate) files: Arc<dyn FileSystem>,
    /// The addresses that others are told.
    pub(crate) member: Member,
    pub(crate) dialer: Arc<Dialer>,
    pub(crate) logs: Logs,
    pub(crate) clock: WallClock,
    pub(crate) election_timeout: Duration,
}

impl Parts {
    /// Whether there is a state of a group on disk.
    pub(crate) fn has_state(&self, number: u32) -> bool {
        self.files.exists(&state_of(&self.dir, number)).unwrap_or(false)
    }

    /// Removes what a group has on disk, which must not be open. Waits for the disk.
    pub(crate) fn remove_group(&self, number: u32) -> io::Result<()> {
        self.logs.remove_group(number)?;
        remove_dir_all(&*self.files, &state_of(&self.dir, number))
    }
}
