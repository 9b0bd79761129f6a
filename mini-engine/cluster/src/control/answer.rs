//! A node's replies to control requests of commands, and of other nodes that search for a group.

use std::io::{Error, Result};
use std::sync::Arc;

use crate::group::Group;
use crate::local::{Groups, Local};
use crate::wire::control::{ControlReply, ControlRequest};

/// Carries out a control request.
pub(crate) async fn answer(local: &Local, ask: ControlRequest) -> Result<ControlReply> {
    match ask {
        ControlRequest::Describe(told) => {
            if let (Some((cluster, places)), Some(groups)) = (told, local.groups())
                && cluster == groups.identity.cluster
            {
                groups.hear(&places);
            }
            Ok(ControlReply::Description(Box::new(local.describe())))
        }
        ControlRequest::Become { identity, joined, others } => {
            local.become_node(identity, joined, others).await.map(|()| ControlReply::Done).map_err(Error::other)
        }
        ControlRequest::Initialize { group, members } => {
            of(local, group, async |group| group.initialize(members).await).await
        }
        ControlRequest::AddLearner { group, node, member } => {
            of(local, group, async |group| group.add_learner(node, member).await).await
        }
        ControlRequest::Promote { group, node } => of(local, group, async |group| group.promote(node).await).await,
        ControlRequest::Remove { group, node, since } => {
            of(local, group, async |group| group.remove(node, since).await).await
        }
        ControlRequest::HandOver { group, node } => of(local, group, async |group| group.move_leader(node).await).await,
        ControlRequest::Check { group } => of(local, group, async |group| group.begin_check().await).await,
        ControlRequest::Checked { group, index } => Ok(ControlReply::Checked(find(local, group)?.checked(index))),
    }
}

/// Calls `run` with a group, if the group is on this node.
async fn of(local: &Local, group: u32, run: impl AsyncFnOnce(&Group) -> Result<ControlReply>) -> Result<ControlReply> {
    match groups(local)?.get(group) {
        Some(group) => run(&group).await,
        None => Ok(ControlReply::NotLeader(None)),
    }
}

/// The group with this number; an error if it is not on this node.
pub(crate) fn find(local: &Local, number: u32) -> Result<Arc<Group>> {
    let group = groups(local)?.get(number);
    group.ok_or_else(|| Error::other(format!("group {number} is not on this node")))
}

fn groups(local: &Local) -> Result<Arc<Groups>> {
    local.groups().ok_or_else(|| Error::other("this node is in no cluster"))
}
