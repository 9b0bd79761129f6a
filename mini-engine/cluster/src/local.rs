//! [`Local`]: this node, from its start on; and its groups, once it belongs to a cluster.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use openraft_mini_engine::Logs;
use tokio::sync::{Mutex, watch};

use crate::clock::WallClock;
use crate::error::{Error, Result};
use crate::group::{Group, Place};
use crate::identity::Identity;
use crate::network::Dialer;
use crate::slots::group_of;
use crate::types::Member;
use crate::wire::control::Description;
use crate::wire::handshake::Audience;

/// This node.
pub(crate) struct Local {
    pub(crate) dir: PathBuf,
    /// The addresses that others are told.
    pub(crate) member: Member,
    pub(crate) dialer: Arc<Dialer>,
    pub(crate) logs: Logs,
    pub(crate) clock: WallClock,
    pub(crate) election_timeout: Duration,
    /// Changes once.
    groups: watch::Sender<Option<Arc<Groups>>>,
    /// Held while that changes.
    becoming: Mutex<()>,
}

/// The groups of a node that belongs to a cluster.
pub(crate) struct Groups {
    pub(crate) identity: Identity,
    pub(crate) all: Vec<Group>,
}

impl Groups {
    /// The group that has a slot.
    pub(crate) fn of_slot(&self, slot: u16) -> &Group {
        &self.all[group_of(slot, self.identity.groups) as usize]
    }

    pub(crate) fn get(&self, number: u32) -> Option<&Group> {
        self.all.get(number as usize)
    }
}

/// What a node is made of before it belongs to a cluster.
pub(crate) struct Parts {
    pub(crate) dir: PathBuf,
    pub(crate) member: Member,
    pub(crate) dialer: Arc<Dialer>,
    pub(crate) logs: Logs,
    pub(crate) clock: WallClock,
    pub(crate) election_timeout: Duration,
}

impl Local {
    pub(crate) fn new(parts: Parts) -> Self {
        let Parts { dir, member, dialer, logs, clock, election_timeout } = parts;
        let (groups, becoming) = (watch::Sender::new(None), Mutex::default());
        Self { dir, member, dialer, logs, clock, election_timeout, groups, becoming }
    }

    /// The groups, if the node belongs to a cluster.
    pub(crate) fn groups(&self) -> Option<Arc<Groups>> {
        self.groups.borrow().clone()
    }

    /// Tells when the node belongs to a cluster.
    pub(crate) fn watch(&self) -> watch::Receiver<Option<Arc<Groups>>> {
        self.groups.subscribe()
    }

    /// The node as the others know it.
    pub(crate) fn audience(&self) -> Audience {
        self.groups().map(|groups| (groups.identity.cluster, groups.identity.node))
    }

    /// Makes this the node's identity, and takes part in its groups. Nothing changes if it is that already.
    pub(crate) async fn become_node(&self, identity: Identity) -> Result<()> {
        let _one_at_a_time = self.becoming.lock().await;
        let refuse = |reason| Err(Error::Refused { address: self.member.cluster.clone(), reason });
        if let Some(groups) = self.groups() {
            return match groups.identity == identity {
                true => Ok(()),
                false => refuse(format!(
                    "this is node {} of cluster {:016x} already",
                    groups.identity.node, groups.identity.cluster
                )),
            };
        }
        if let Err(reason) = identity.check() {
            return refuse(reason);
        }
        identity.write(&self.dir)?;
        self.open_groups(identity).await
    }

    /// Takes part in the groups of the cluster that the directory belongs to, if it does.
    pub(crate) async fn go_on(&self) -> Result<()> {
        let _one_at_a_time = self.becoming.lock().await;
        match Identity::read(&self.dir)? {
            Some(identity) => self.open_groups(identity).await,
            None => Ok(()),
        }
    }

    async fn open_groups(&self, identity: Identity) -> Result<()> {
        let place = Place {
            dir: &self.dir,
            logs: &self.logs,
            dialer: &self.dialer,
            identity,
            clock: Arc::clone(&self.clock),
            election_timeout: self.election_timeout,
        };
        let mut all = Vec::new();
        for number in 0..identity.groups {
            all.push(Group::open(&place, number).await?);
        }
        self.groups.send_replace(Some(Arc::new(Groups { identity, all })));
        Ok(())
    }

    pub(crate) fn describe(&self) -> Description {
        let groups = self.groups();
        let space = rustix::fs::statvfs(&self.dir).ok();
        Description {
            identity: groups.as_ref().map(|groups| groups.identity),
            member: self.member.clone(),
            clock: (self.clock)(),
            disk_free: space.map(|space| space.f_bavail.saturating_mul(space.f_frsize)),
            groups: groups.iter().flat_map(|groups| &groups.all).map(Group::describe).collect(),
        }
    }
}
