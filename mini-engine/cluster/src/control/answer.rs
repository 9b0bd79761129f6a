//! A node's replies to control requests of commands, and of other nodes that search for a group.

use std::io::{Error, Result};
use std::sync::Arc;

use crate::group::Group;
use crate::local::{Groups, Local};
use crate::wire::control::{Ask, Told};

/// Carries out a control request.
pub(crate) async fn answer(local: &Local, ask: Ask) -> Result<Told> {
    match ask {
        Ask::Describe(told) => {
            if let (Some((cluster, places)), Some(groups)) = (told, local.groups())
                && cluster == groups.identity.cluster
            {
                groups.hear(&places);
            }
            Ok(Told::Description(Box::new(local.describe())))
        }
        Ask::Become { identity, joined, others } => {
            local.become_node(identity, joined, others).await.map(|()| Told::Done).map_err(Error::other)
        }
        Ask::Initialize { group, members } => of(local, group, async |group| group.initialize(members).await).await,
        Ask::AddLearner { group, node, member } => {
            of(local, group, async |group| group.add_learner(node, member).await).await
        }
        Ask::Promote { group, node } => of(local, group, async |group| group.promote(node).await).await,
        Ask::Remove { group, node } => of(local, group, async |group| group.remove(node).await).await,
    }
}

/// Calls `run` with a group, if the group is on this node.
async fn of(local: &Local, group: u32, run: impl AsyncFnOnce(&Group) -> Result<Told>) -> Result<Told> {
    match groups(local)?.get(group) {
        Some(group) => run(&group).await,
        None => Ok(Told::NotLeader(None)),
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
