//! The state of a group, as this node describes it, and how much of the log is purged.

use std::sync::atomic::Ordering;

use openraft::async_runtime::WatchReceiver;
use openraft::type_config::alias::StoredMembershipOf;
use openraft::{Instant as _, LogIdOptionExt, RaftMetrics, ServerState};

use super::handle::Group;
use crate::checks::Checked;
use crate::places::{Membership, Place};
use crate::types::{Position, TypeConfig};
use crate::wire::control::GroupDescription;

/// A snapshot is made, and the log purged, after a quarter of the bytes that are kept for members, however few the entries are; within these limits.
const BYTES_BETWEEN_SNAPSHOTS: [u64; 2] = [64 << 20, 256 << 20];

impl Group {
    /// Makes a snapshot if it is time, and purges the entries before the last one, except up to `max_bytes` that members lack. Called about each second.
    pub(crate) async fn purge(&self, max_bytes: u64) {
        let [least, most] = BYTES_BETWEEN_SNAPSHOTS;
        // ORDERING: Relaxed; only the sum matters, and it publishes nothing.
        if self.applied_bytes.load(Ordering::Relaxed) >= (max_bytes / 4).clamp(least, most) {
            self.applied_bytes.store(0, Ordering::Relaxed);
            // It fails if the group has ended; so does the purge.
            self.raft.trigger().snapshot().await.ok();
        }
        let (purged, first) = {
            let metrics = self.metrics.borrow_watched();
            let (purged, after_snapshot) = (metrics.purged.next_index(), metrics.snapshot.next_index());
            self.retention.note_purged(purged);
            self.retention.note_term(metrics.current_term);
            let others = metrics.replication.iter().flatten().filter(|(node, _)| **node != metrics.id);
            let matched = others.map(|(node, last)| (*node, last.map(|last| last.index + 1)));
            let needs = match metrics.replication {
                Some(_) => self.retention.needs_of_members(matched),
                None => vec![(self.retention.need_of_leader(), metrics.id)],
            };
            let bytes_from = |index| self.log.bytes_from(index);
            if let Some(node) = self.retention.advance(needs, after_snapshot, bytes_from, max_bytes)
                && node != metrics.id
            {
                let why = "the log is too long to be kept for a node that lacks entries: the node will get a snapshot";
                tracing::warn!(group = self.number, node, "{why}");
            }
            (purged, self.retention.first())
        };
        if first > purged {
            self.raft.trigger().purge_log(first - 1).await.ok();
        }
    }

    pub(crate) fn describe(&self) -> GroupDescription {
        let metrics = self.metrics.borrow_watched();
        let matched = metrics.replication.iter().flatten();
        GroupDescription {
            leader: leader(&metrics),
            term: metrics.current_term,
            last: metrics.last_log_index.unwrap_or(0),
            applied: metrics.last_applied.index().unwrap_or(0),
            instant: self.instant.millis(),
            refuses_growth: self.refuses_growth(),
            membership: membership(&metrics.membership_config),
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
        let committed = &metrics.committed_membership_config;
        let membership = committed.log_id().is_some().then(|| membership(committed));
        Place { membership, leader: leader(&metrics).map(|leader| (metrics.current_term, leader)) }
    }
}

fn membership(stored: &StoredMembershipOf<TypeConfig>) -> Membership {
    Membership {
        since: stored.log_id().as_ref().map(Position::of).unwrap_or_default(),
        members: stored.nodes().map(|(node, member)| (*node, member.clone())).collect(),
        voters: stored.voter_ids().collect(),
    }
}

/// A node that reports itself as the leader must actually lead.
fn leader(metrics: &RaftMetrics<TypeConfig>) -> Option<u64> {
    metrics.current_leader.filter(|leader| *leader != metrics.id || metrics.state == ServerState::Leader)
}
