//! Compares the replicas of a group, by hashes of their contents at one entry of the log.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use mini_engine_server::replicated::SLOTS;
use tokio::time::sleep;

use super::client::{ControlClient, LEADER_DEADLINE, Leader, PAUSE, ask};
use crate::checks::{Checked, SLOTS_TOGETHER};
use crate::error::Result;
use crate::network::Link;
use crate::types::Position;
use crate::wire::control::{ControlReply, ControlRequest, GroupRequest};

/// Longer than a node takes to read a group.
const HASH_DEADLINE: Duration = Duration::from_secs(24 * 3600);

/// The result of comparing the replicas of a group.
#[derive(Clone, Debug)]
pub struct Check {
    /// The number of the group.
    pub group: u32,
    /// The entry of the log at which the replicas were compared.
    pub position: Position,
    /// The nodes that were compared.
    pub nodes: Vec<u64>,
    /// The first and the last slot of each range that differs, and the nodes that differ there from most of the others; all nodes if none are most.
    pub differences: Vec<((u16, u16), Vec<u64>)>,
    /// The nodes that were not compared, and the reasons.
    pub unchecked: Vec<(u64, String)>,
}

impl ControlClient {
    /// Compares the replicas of each group that has several members, in the cluster of the node at `address`, and calls `progress` with each result.
    /// Every node reads all that it holds once.
    ///
    /// # Errors
    /// Returns an error if a group has no leader. A node that cannot be compared is part of the result.
    pub async fn check(&self, address: &str, mut progress: impl FnMut(Check)) -> Result<()> {
        for group in 0..self.cluster(address).await?.0.groups {
            let Leader { audience, membership, .. } = self.leader(address, group).await?;
            if membership.members.len() < 2 {
                continue;
            }
            let position = self.change(address, group, GroupRequest::Check).await?;
            let hashes = membership.members.iter().map(async |(node, member)| {
                let link = self.link(&member.cluster, audience.map(|(cluster, _)| (cluster, *node)));
                (*node, hashes(link, group, position.index).await)
            });
            progress(compared(group, position, join_all(hashes).await));
        }
        Ok(())
    }
}

/// The hashes of a node, once it has them, or why it has none.
async fn hashes(mut link: Link, group: u32, index: u64) -> std::result::Result<Vec<u64>, String> {
    let begun = Instant::now();
    loop {
        let reply = ask(&mut link, ControlRequest::Group(group, GroupRequest::Checked(index))).await;
        let deadline = match reply.map_err(|error| error.to_string())? {
            ControlReply::Checked(Checked::Done(hashes)) => return hashes,
            ControlReply::Checked(Checked::UnderWay) => HASH_DEADLINE,
            ControlReply::NotLeader => return Err(format!("group {group} is not on this node")),
            _ => LEADER_DEADLINE,
        };
        if begun.elapsed() > deadline {
            return Err(format!("it is not at log entry {index} after {deadline:?}"));
        }
        sleep(PAUSE).await;
    }
}

fn compared(group: u32, position: Position, hashes: Vec<(u64, std::result::Result<Vec<u64>, String>)>) -> Check {
    let (mut found, mut unchecked) = (Vec::new(), Vec::new());
    for (node, hashes) in hashes {
        match hashes {
            Ok(hashes) => found.push((node, hashes)),
            Err(reason) => unchecked.push((node, reason)),
        }
    }
    let differing = |first: u16| {
        let of = |(_, hashes): &(u64, Vec<u64>)| hashes.get(usize::from(first / SLOTS_TOGETHER)).copied();
        let is_usual = |hash| 2 * found.iter().filter(|node| of(node) == hash).count() > found.len();
        let others: Vec<u64> = found.iter().filter(|node| !is_usual(of(node))).map(|(node, _)| *node).collect();
        (!others.is_empty()).then_some(((first, first + SLOTS_TOGETHER - 1), others))
    };
    let differences = (0..SLOTS).step_by(SLOTS_TOGETHER.into()).filter_map(differing).collect();
    Check { group, position, nodes: found.iter().map(|(node, _)| *node).collect(), differences, unchecked }
}
