//! A group as this node sees it.

use openraft::async_runtime::WatchReceiver;
use openraft::{LogIdOptionExt, ServerState};

use super::handle::Group;
use crate::wire::control::GroupDescription;

impl Group {
    pub(crate) fn describe(&self) -> GroupDescription {
        let metrics = self.metrics.borrow_watched();
        let membership = metrics.membership_config.membership();
        let matched = metrics.replication.iter().flatten();
        GroupDescription {
            // A node that says of itself that it leads must do so.
            leader: metrics
                .current_leader
                .filter(|leader| *leader != metrics.id || metrics.state == ServerState::Leader),
            term: metrics.current_term,
            last: metrics.last_log_index.unwrap_or(0),
            applied: metrics.last_applied.index().unwrap_or(0),
            instant: self.instant.millis(),
            members: membership.nodes().map(|(node, member)| (*node, member.clone())).collect(),
            voters: membership.voter_ids().collect(),
            matched: matched.map(|(node, last)| (*node, last.index().unwrap_or(0))).collect(),
        }
    }
}
