//! Backups: a directory with the state of each group, and the file `backup.json`, which is written last.
//!
//! Each state is that of one moment, after everything that was acknowledged before the backup began; the moments of the groups differ. A state is laid
//! out as in a node's directory, but without `node.json` no node starts on it. `recover` makes a new cluster of it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use mini_engine::fs::StdFs;
use openraft::storage::RaftStateMachine;
use serde::{Deserialize, Serialize};

use super::client::{ControlClient, Leader, failed};
use super::new_directory::make_directory;
use crate::application::open_state;
use crate::checks::Checks;
use crate::error::{Error, Result, io};
use crate::identity::{Identity, read_json, state_of, write_json};
use crate::network::fetch;
use crate::types::Position;

const FILE: &str = "backup.json";
const FORMAT: u32 = 1;

/// The contents of `backup.json`.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Backup {
    format: u32,
    /// The number of the cluster.
    pub(super) cluster: u64,
    /// The last log entry whose effect is in each group; no group is missing.
    pub(super) groups: BTreeMap<u32, Position>,
}

impl ControlClient {
    /// Copies all groups of the cluster to which the node at `address` belongs to directory `dir`, which must not exist. Calls `progress` after each
    /// group, with the last log entry whose effect is in the copy. The backup is complete and durable on return; after an error, nothing of it remains.
    /// Returns the number of the cluster.
    ///
    /// # Errors
    /// Returns an error if a group has no leader or cannot be read, or the directory cannot be written.
    pub async fn backup(&self, address: &str, dir: &Path, mut progress: impl FnMut(u32, Position)) -> Result<u64> {
        let (Identity { cluster, groups: count, .. }, _) = self.cluster(address).await?;
        make_directory(dir, async |dir: &Path| {
            let mut groups = BTreeMap::new();
            for group in 0..count {
                let last = self.back_up_group(address, group, dir).await?;
                groups.insert(group, last);
                progress(group, last);
            }
            write_json(&StdFs, dir, FILE, &Backup { format: FORMAT, cluster, groups })?;
            Ok(cluster)
        })
        .await
    }

    async fn back_up_group(&self, address: &str, group: u32, dir: &Path) -> Result<Position> {
        let state = state_of(dir, group);
        let (mut machine, ..) = open_state(&state, Arc::new(StdFs), Checks::default())?;
        let snapshot = self.with_leader(address, group, async |leader: &Leader| {
            let link = self.link(&leader.address, leader.audience);
            fetch(&link, group, machine.state()).await.map_err(|error| failed(&leader.address, error))
        });
        let snapshot = snapshot.await?.map_err(io("receive", state.display()))?;
        let meta = snapshot.meta.clone();
        let last = meta.last_log_id.ok_or_else(|| Error::unusable(&state, "expected log entries, found none"))?;
        machine.install_snapshot(&meta, snapshot.snapshot).await.map_err(io("write", state.display()))?;
        machine.state().db().close()?;
        Ok(Position::of(&last))
    }
}

impl Backup {
    /// The description of the backup in directory `dir`, if it is one.
    pub(super) fn read(dir: &Path) -> Result<Option<Self>> {
        let file = dir.join(FILE);
        let Some(backup) = read_json::<Self>(&StdFs, &file)? else { return Ok(None) };
        let is_whole = backup.groups.keys().copied().eq(0..backup.groups.len() as u32);
        match (backup.format, is_whole) {
            (FORMAT, true) => Ok(Some(backup)),
            (FORMAT, false) => Err(Error::unusable(&file, "expected all groups from 0 on")),
            (found, _) => Err(Error::unusable(&file, format!("expected format {FORMAT}, found {found}"))),
        }
    }
}
