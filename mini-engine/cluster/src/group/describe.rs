//! The state of a group, as this node describes it.

use openraft::async_runtime::WatchReceiver;
use openraft::{Instant as _, LogIdOptionExt, RaftMetrics, ServerState};

use super::handle::Group;
use crate::checks::Checked;
use crate::places::{Membership, Place};
use crate::types::{Position, TypeConfig};
use crate::wire::control::GroupDescription;

impl Group {
    pub(crate) fn describe(&self) -> GroupDescription {
        let metrics = self.metrics.borrow_watched();
        let membership = metrics.membership_config.membership();
        let matched = metrics.replication.iter().flatten();
        GroupDescription {
            leader: leader(&metrics),
            term: metrics.current_term,
            last: metrics.last_log_index.unwrap_or(0),
            applied: metrics.last_applied.index().unwrap_or(0),
            instant: self.instant.millis(),
            members: membership.nodes().map(|(node, member)| (*node, member.clone())).collect(),
            voters: membership.voter_ids().collect(),
            matched: matched.map(|(node, last)| (*node, last.index().unwrap_or(0))).collect(),
        }
    }

    /// For a leader: the other members that it has heard within the time in which another leader would be elected.
    pub(crate) fn followers(&self) -> Vec<u64> {
        let metrics = self.metrics.borrow_watched();
        let others = metrics.heartbeat.iter().flatten().filter(|(node, _)| **node != metrics.id);
        others
            .filter(|(_, at)| at.is_some_and(|at| at.elapsed() < self.election_timeout))
            .map(|(node, _)| *node)
            .collect()
    }

    /// The index of the last applied entry; 0 if there is none.
    pub(crate) fn applied(&self) -> u64 {
        self.metrics.borrow_watched().last_applied.index().unwrap_or(0)
    }

    /// What this node has of the check at this index.
    pub(crate) fn checked(&self, index: u64) -> Checked {
        // A check is begun before its entry counts as applied.
        let is_applied = self.applied() >= index;
        self.checks.get(index, is_applied)
    }

    /// The place of the group, as far as this node is certain of it.
    pub(crate) fn place(&self) -> Place {
        let metrics = self.metrics.borrow_watched();
        let stored = &metrics.committed_membership_config;
        let membership = stored.log_id().as_ref().map(|log_id| Membership {
            since: Position::of(log_id),
            members: stored.nodes().map(|(node, member)| (*node, member.clone())).collect(),
            voters: stored.voter_ids().collect(),
        });
        Place { membership, leader: leader(&metrics).map(|leader| (metrics.current_term, leader)) }
    }
}

/// A node that reports itself as the leader must actually lead.
fn leader(metrics: &RaftMetrics<TypeConfig>) -> Option<u64> {
    metrics.current_leader.filter(|leader| *leader != metrics.id || metrics.state == ServerState::Leader)
}
