//! Backups: a directory with the state of each group, and the file `backup.json`, which is written last.
//!
//! Each state is that of one moment, after everything that was acknowledged before the backup began; the moments of the groups differ. A state is laid
//! out as in a node's directory, but without `node.json` no node starts on it. `recover` makes a new cluster of it.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use mini_engine::fs::StdFs;
use openraft::storage::RaftStateMachine;
use serde::{Deserialize, Serialize};

use super::client::{ControlClient, Leader, failed};
use super::new_directory::{NewDirectory, unusable};
use crate::application::open_state;
use crate::clock::system_clock;
use crate::error::{Result, io};
use crate::identity::{Identity, state_of};
use crate::network::fetch;
use crate::slots::slots_of;
use crate::types::Position;

const FILE: &str = "backup.json";
const FORMAT: u32 = 1;

/// The contents of `backup.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Backup {
    format: u32,
    /// The number of the cluster.
    pub cluster: u64,
    /// The groups, by their numbers; none is missing.
    pub groups: BTreeMap<u32, GroupBackup>,
}

/// A group in a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupBackup {
    /// The first slot of the group.
    pub first_slot: u16,
    /// The last slot of the group.
    pub last_slot: u16,
    /// The last log entry whose effect is in the backup.
    pub last: Position,
    /// The time at which the group was requested, in milliseconds since 1970, by the clock of the machine that made the backup.
    pub time: u64,
}

impl ControlClient {
    /// Copies all groups of the cluster to which the node at `address` belongs to directory `dir`, which must not exist. Calls `progress` after each
    /// group. The backup is complete and durable on return; after an error, nothing of it remains.
    ///
    /// # Errors
    /// Returns an error if a group has no leader or cannot be read, or the directory cannot be written.
    pub async fn backup(
        &self,
        address: &str,
        dir: &Path,
        mut progress: impl FnMut(u32, &GroupBackup),
    ) -> Result<Backup> {
        let (Identity { cluster, groups: count, .. }, _) = self.cluster(address).await?;
        let new = NewDirectory::create(dir)?;
        let mut groups = BTreeMap::new();
        for group in 0..count {
            let (time, slots) = (system_clock()(), slots_of(group, count));
            let last = self.back_up_group(address, group, new.path()).await?;
            let backup = GroupBackup { first_slot: slots.start, last_slot: slots.end - 1, last, time };
            progress(group, &backup);
            groups.insert(group, backup);
        }
        let backup = Backup { format: FORMAT, cluster, groups };
        let bytes = serde_json::to_vec_pretty(&backup).map_err(|error| unusable(dir, error.to_string()))?;
        new.write(FILE, &bytes)?;
        new.complete().map(|()| backup)
    }

    async fn back_up_group(&self, address: &str, group: u32, dir: &Path) -> Result<Position> {
        let state = state_of(dir, group);
        let (mut machine, ..) = open_state(&state, Arc::new(StdFs))?;
        let snapshot = self.with_leader(address, group, async |leader: &Leader| {
            let link = self.link(&leader.address, leader.audience);
            fetch(&link, group, machine.state()).await.map_err(|error| failed(&leader.address, error))
        });
        let snapshot = snapshot.await?;
        let meta = snapshot.meta.clone();
        let last = meta.last_log_id.ok_or_else(|| unusable(&state, "expected log entries, found none"))?;
        machine.install_snapshot(&meta, snapshot.snapshot).await.map_err(io("write", state.display()))?;
        machine.state().db().close()?;
        Ok(Position::of(&last))
    }
}

impl Backup {
    /// The description of the backup in directory `dir`, if it is one.
    pub(super) fn read(dir: &Path) -> Result<Option<Self>> {
        let file = dir.join(FILE);
        let bytes = match std::fs::read(&file) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            read => read.map_err(io("read", file.display()))?,
        };
        let backup: Self = serde_json::from_slice(&bytes).map_err(|error| unusable(&file, error.to_string()))?;
        let is_whole = backup.groups.keys().copied().eq(0..backup.groups.len() as u32);
        match (backup.format, is_whole) {
            (FORMAT, true) => Ok(Some(backup)),
            (FORMAT, false) => Err(unusable(&file, "expected all groups from 0 on")),
            (found, _) => Err(unusable(&file, format!("expected format {FORMAT}, found {found}"))),
        }
    }
}
