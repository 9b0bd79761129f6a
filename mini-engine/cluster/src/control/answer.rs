//! A node's answers to commands.

use std::io::{Error, Result};

use crate::group::Group;
use crate::local::{Groups, Local};
use crate::wire::control::{Ask, Told};

/// Does what was asked for.
pub(crate) async fn answer(local: &Local, ask: Ask) -> Result<Told> {
    match ask {
        Ask::Describe => Ok(Told::Description(Box::new(local.describe()))),
        Ask::Become(identity) => local.become_node(identity).await.map(|()| Told::Done).map_err(Error::other),
        Ask::Initialize { group, members } => of(local, group, async |group| group.initialize(members).await).await,
        Ask::AddLearner { group, node, member } => {
            of(local, group, async |group| group.add_learner(node, member).await).await
        }
        Ask::Promote { group, node } => of(local, group, async |group| group.promote(node).await).await,
        Ask::Remove { group, node } => of(local, group, async |group| group.remove(node).await).await,
    }
}

/// Does something with a group of this node.
async fn of(local: &Local, group: u32, run: impl AsyncFnOnce(&Group) -> Result<Told>) -> Result<Told> {
    let groups = local.groups().ok_or_else(|| Error::other("this node is in no cluster"))?;
    run(find(&groups, group)?).await
}

/// The group of this number.
pub(crate) fn find(groups: &Groups, number: u32) -> Result<&Group> {
    let count = groups.all.len();
    groups.get(number).ok_or_else(|| Error::other(format!("expected a group below {count}, found {number}")))
}
