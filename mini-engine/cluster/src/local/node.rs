//! [`Local`]: this node, from its start on; and the groups on it, once it belongs to a cluster.
//!
//! A group is added when a command requests it, and removed when the node learns that it is no longer a member. In both cases `node.json` is written
//! first; it lists the groups on this node. Files of other groups in the directory are removed then, or at the next start. A removed group is never
//! added again: with an empty log the node would vote a second time, and lack entries that it has acknowledged.

use std::collections::BTreeSet;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, watch};
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::groups::Groups;
use crate::error::{Error, Result, io};
use crate::group::{Group, Parts};
use crate::identity::{Identity, Joined, Record};
use crate::wire::control::Description;
use crate::wire::handshake::Audience;
use crate::wire::version;

/// A stopped group may hold its log open for a moment: opening is tried this many times.
const TRIES: usize = 100;
const PAUSE: Duration = Duration::from_millis(50);
/// The time in which a node that starts may find out that it is an older copy, before it opens its groups. Longer than connecting to a node takes.
const ADMISSION: Duration = Duration::from_secs(if cfg!(test) { 30 } else { 5 });

/// This node.
pub(crate) struct Local {
    pub(crate) parts: Parts,
    /// Changes only once, when the node joins a cluster.
    groups: watch::Sender<Option<Arc<Groups>>>,
    /// The contents of `node.json`. Locked while groups are added and removed.
    record: Mutex<Option<Record>>,
}

impl Local {
    pub(crate) fn new(parts: Parts, record: Option<Record>) -> Self {
        // The node has its identity, and no groups yet, while it starts.
        let groups = record.as_ref().map(|record| Arc::new(Groups::new(record.identity)));
        Self { parts, groups: watch::Sender::new(groups), record: Mutex::new(record) }
    }

    /// The groups, if the node belongs to a cluster.
    pub(crate) fn groups(&self) -> Option<Arc<Groups>> {
        self.groups.borrow().clone()
    }

    /// Notifies the caller when the node joins a cluster.
    pub(crate) fn watch(&self) -> watch::Receiver<Option<Arc<Groups>>> {
        self.groups.subscribe()
    }

    /// The identity by which other nodes address this node.
    pub(crate) fn audience(&self) -> Audience {
        self.groups().map(|groups| (groups.identity.cluster, groups.identity.node))
    }

    /// Stores this identity for the node, and adds these groups to its groups.
    pub(crate) async fn become_node(&self, identity: Identity, joined: Joined, others: BTreeSet<String>) -> Result<()> {
        let mut record = self.record.lock().await;
        self.parts.dialer.starts.check().map_err(io("add groups to", "this node"))?;
        let refuse = |reason| Err(Error::Refused { address: self.parts.member.cluster.clone(), reason });
        if let Some(Record { identity: found, .. }) = &*record
            && *found != identity
        {
            return refuse(format!("this is node {} of cluster {:016x} already", found.node, found.cluster));
        }
        let mut new = record.clone().unwrap_or_else(|| Record::new(identity));
        new.join(joined);
        new.others.extend(others);
        new.others.remove(&self.parts.member.cluster);
        if let Err(reason) = new.check() {
            return refuse(reason);
        }
        new.write(&*self.parts.files, &self.parts.dir)?;
        self.open(record.insert(new)).await
    }

    /// If the directory belongs to a cluster, opens the groups that it has, unless it is an older copy.
    pub(crate) async fn go_on(&self) -> Result<()> {
        let record = self.record.lock().await;
        let Some(found) = &*record else { return Ok(()) };
        // A node that does not answer may introduce itself later.
        self.parts.dialer.introduce(found.others.iter(), ADMISSION).await;
        self.parts.dialer.starts.check().map_err(|reason| Error::Outdated(reason.to_string()))?;
        for number in (0..found.identity.groups).filter(|number| !found.joined.contains_key(number)) {
            self.remove(number).await?;
        }
        self.open(found).await
    }

    /// Opens the groups of the record that are not open yet.
    async fn open(&self, record: &Record) -> Result<()> {
        self.parts.dialer.starts.advance(record.identity).await.map_err(io("record", "a start of this node"))?;
        let groups = self.groups().unwrap_or_else(|| Arc::new(Groups::new(record.identity)));
        // Done before the groups are opened: if one cannot be opened, the node continues with the others.
        self.groups.send_if_modified(|present| present.replace(Arc::clone(&groups)).is_none());
        for number in record.joined.keys().copied() {
            if groups.get(number).is_none() {
                groups.insert(Group::open(&self.parts, record.identity, number).await?);
            }
        }
        Ok(())
    }

    /// Stops the groups of which this node was a member and no longer is, and frees their space.
    pub(crate) async fn leave(&self) -> Result<()> {
        let mut record = self.record.lock().await;
        let (Some(groups), Some(present)) = (self.groups(), &mut *record) else { return Ok(()) };
        self.note_joined(&groups, present)?;
        let (places, node) = (groups.places(), present.identity.node);
        let left = |(number, joined): (&u32, &Option<_>)| {
            let (membership, joined) = (places.get(*number).membership?, (*joined)?);
            (membership.since > joined && !membership.members.contains_key(&node)).then_some(*number)
        };
        let left: Vec<u32> = present.joined.iter().filter_map(left).collect();
        for number in left {
            groups.hear(&places);
            if let Some(group) = groups.get(number) {
                group.hand_over().await;
            }
            let mut rest = present.clone();
            rest.joined.remove(&number);
            rest.left.insert(number);
            rest.write(&*self.parts.files, &self.parts.dir)?;
            *present = rest;
            if let Some(group) = groups.remove(number) {
                group.stop().await;
            }
            tracing::info!(group = number, "this node is no member any more: the group is removed");
        }
        // Includes groups whose files could not be removed before.
        for number in present.left.iter().copied().filter(|number| self.parts.has_state(*number)) {
            self.remove(number).await?;
        }
        Ok(())
    }

    /// Records the position from which on the node is a member, if the command that added it was interrupted before it sent the position. Only the
    /// group's own log has this position. The log has no earlier membership of this node, since a group is never added again.
    fn note_joined(&self, groups: &Groups, present: &mut Record) -> Result<()> {
        let (mut noted, node) = (present.clone(), present.identity.node);
        for (number, joined) in noted.joined.iter_mut().filter(|(_, joined)| joined.is_none()) {
            let membership = groups.get(*number).and_then(|group| group.place().membership);
            *joined = membership.filter(|found| found.members.contains_key(&node)).map(|found| found.since);
        }
        if noted != *present {
            noted.write(&*self.parts.files, &self.parts.dir)?;
            *present = noted;
        }
        Ok(())
    }

    /// Stores the addresses of other nodes, if they have changed.
    pub(crate) async fn remember(&self, others: BTreeSet<String>) -> Result<()> {
        match &mut *self.record.lock().await {
            Some(record) if record.others != others => {
                let new = Record { others, ..record.clone() };
                new.write(&*self.parts.files, &self.parts.dir)?;
                *record = new;
            }
            _ => {}
        }
        Ok(())
    }

    /// The stored addresses of other nodes.
    pub(crate) async fn remembered(&self) -> BTreeSet<String> {
        self.record.lock().await.as_ref().map(|record| record.others.clone()).unwrap_or_default()
    }

    /// Removes the files of a group.
    async fn remove(&self, number: u32) -> Result<()> {
        let mut removed = Ok(());
        for _ in 0..TRIES {
            let parts = self.parts.clone();
            let done = spawn_blocking(move || parts.remove_group(number)).await;
            removed = done.unwrap_or_else(|panic| Err(io::Error::other(panic)));
            match &removed {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => sleep(PAUSE).await,
                _ => break,
            }
        }
        removed.map_err(io("remove", format!("group {number}")))
    }

    pub(crate) fn describe(&self) -> Description {
        let groups = self.groups();
        let space = rustix::fs::statvfs(&self.parts.dir).ok();
        let here = groups.as_ref().map(|groups| groups.here());
        let described = here.iter().flat_map(|here| here.values()).map(|group| (group.number(), group.describe()));
        Description {
            identity: groups.as_ref().map(|groups| groups.identity),
            member: self.parts.member.clone(),
            clock: (self.parts.clock)(),
            disk_free: space.map(|space| space.f_bavail.saturating_mul(space.f_frsize)),
            groups: described.collect(),
            places: groups.map(|groups| groups.places()).unwrap_or_default(),
            release: env!("CARGO_PKG_VERSION").into(),
            protocol: version::OWN,
        }
    }
}
