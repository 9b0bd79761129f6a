//! [`Parts`]: what a node has before it belongs to a cluster. Its groups share it.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use openraft_mini_engine::Logs;

use crate::clock::WallClock;
use crate::identity::state_of;
use crate::network::Dialer;
use crate::types::Member;

/// What a node has before it belongs to a cluster.
#[derive(Clone)]
pub(crate) struct Parts {
    pub(crate) dir: PathBuf,
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
        state_of(&self.dir, number).exists()
    }

    /// Removes what a group has on disk, which must not be open. Waits for the disk.
    pub(crate) fn remove_group(&self, number: u32) -> io::Result<()> {
        self.logs.remove_group(number)?;
        match fs::remove_dir_all(state_of(&self.dir, number)) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}
