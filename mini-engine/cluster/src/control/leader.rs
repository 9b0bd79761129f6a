//! Makes a node the leader of groups.

use std::time::Instant;

use tokio::time::sleep;

use super::client::{ControlClient, LEADER_DEADLINE, PAUSE, refused};
use super::members::{check_groups, named};
use crate::error::Result;
use crate::wire::control::ControlRequest;

impl ControlClient {
    /// Makes a node, given by its number or address, the leader of `groups`, in the cluster of the node at `address`; `None` stands for all groups in
    /// which the node votes. Returns the node's number and its groups when it leads them.
    ///
    /// # Errors
    /// Returns an error if the node is not a voter, does not answer, or is far behind the leader; then nothing has changed in this group. Also if another
    /// node is elected.
    pub async fn move_leader(&self, node: &str, address: &str, groups: Option<&[u32]>) -> Result<(u64, Vec<u32>)> {
        let status = self.status(address).await?;
        let found = named(address, &status, node)?;
        let node = found.node;
        let groups: Vec<u32> = match groups {
            Some(groups) => check_groups(address, &status, groups)?.into_iter().collect(),
            None => (0..status.groups).filter(|group| status.places.get(*group).votes(node)).collect(),
        };
        if let Err(reason) = &found.description {
            // A leader that hands over to a missing node leaves the group without a leader for a moment.
            return Err(refused(address, format!("node {node} does not answer: {reason}")));
        }
        for group in groups.iter().copied() {
            self.move_leader_of(address, group, node).await?;
        }
        Ok((node, groups))
    }

    async fn move_leader_of(&self, address: &str, group: u32, node: u64) -> Result<()> {
        // Only once: the group accepts no writes until the next election is over.
        self.tell_leader(address, group, ControlRequest::HandOver { group, node }).await?;
        let begun = Instant::now();
        loop {
            let leader = self.describe_by_leader(address, group).await?.and_then(|found| found.leader);
            if leader == Some(node) {
                return Ok(());
            }
            if begun.elapsed() > LEADER_DEADLINE {
                let leader = leader.map_or_else(|| "no node".into(), |leader| format!("node {leader}"));
                let reason =
                    format!("node {node} was not elected in {LEADER_DEADLINE:?}: {leader} leads group {group}");
                return Err(refused(address, reason));
            }
            sleep(PAUSE).await;
        }
    }
}
