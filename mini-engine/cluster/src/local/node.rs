//! [`Local`]: this node, from its start on; and the groups on it, once it belongs to a cluster.
//!
//! A group is added when a command requests it, and removed when the node learns that it is no longer a member. `node.json`, which lists the groups
//! on this node, is written before a group is opened, and before the files of a stopped group are removed; those that are left are removed at the
//! next start.
//!
//! **A node that comes back to a group** has an empty log, but it has voted and acknowledged entries before. Raft needs two things of it: (1) it
//! takes part in no term before that of its vote, and votes once in a term; (2) when it votes, the candidate has every committed entry that it has
//! acknowledged. For (1), its vote is kept when the log is removed. For (2), `node.json` keeps the position L: the last entry of the log, read after
//! the group was stopped, or the removal of the node if that is later. An acknowledged entry that is not in this log was replaced by a later leader,
//! so it was not committed; the others are at or before L. The node votes for nobody, not even for itself or if the leader asks it to, until it has
//! applied an entry at or after L, or has one in its log when it starts. That entry may be truncated later, but its leader had every committed entry
//! up to L, and truncation never reaches a committed entry. Then the log of a candidate that it votes for ends at or after L: in the term of a
//! committed entry e before L it has e because logs agree within a term; in a later term because that term's leader had e, by induction.
//!
//! For example, of five nodes two come back empty, and a third one has missed their removal: their votes elect it only if it has all that they had.
//! Nor can they elect each other by old members in the part of the log that they have received.
//!
//! Acknowledgements need no rule: the node has what it acknowledges from now on. But openraft does not expect a log that shrinks while a leader
//! counts its entries. So the kept vote is at least one for the leader that removed the node: earlier leaders are refused, and this one and later
//! ones have forgotten what the node had. The groups in `left` of `node.json` do not come back: an older version removed their votes.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, SetOnce};
use tokio::task::spawn_blocking;

use super::groups::Groups;
use crate::error::{Error, Result, io};
use crate::group::{Group, Parts};
use crate::identity::{Identity, Joined, Record};
use crate::places::Membership;
use crate::space::Space;
use crate::types::Position;
use crate::wire::control::Description;
use crate::wire::handshake::Audience;
use crate::wire::version;

/// The time in which a node that starts may find out that it is an older copy, before it opens its groups. Longer than connecting to a node takes.
const ADMISSION: Duration = Duration::from_secs(if cfg!(test) { 30 } else { 5 });

/// This node.
pub(crate) struct Local {
    pub(crate) parts: Parts,
    /// There once the node belongs to a cluster.
    groups: SetOnce<Arc<Groups>>,
    /// The contents of `node.json`. Locked while groups are added and removed.
    record: Mutex<Option<Record>>,
}

impl Local {
    pub(crate) fn new(parts: Parts, record: Option<Record>) -> Self {
        // The node has its identity, and no groups yet, while it starts.
        let groups = record.as_ref().map(|record| Arc::new(Groups::new(record.identity())));
        Self { parts, groups: SetOnce::new_with(groups), record: Mutex::new(record) }
    }

    /// The groups, if the node belongs to a cluster.
    pub(crate) fn groups(&self) -> Option<Arc<Groups>> {
        self.groups.get().cloned()
    }

    /// Waits until the node belongs to a cluster, and returns its groups.
    pub(crate) async fn joined(&self) -> Arc<Groups> {
        Arc::clone(self.groups.wait().await)
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
        if let Some(found) = record.as_ref().map(Record::identity)
            && found != identity
        {
            return refuse(format!("this is node {} of cluster {:016x} already", found.node, found.cluster));
        }
        let mut new = record.clone().unwrap_or_else(|| Record::new(identity));
        for group in joined.keys().filter(|group| new.last.contains_key(group) && !new.joined.contains_key(group)) {
            // Files that could not be removed when the node left.
            self.remove(*group).await?;
        }
        new.join(joined);
        new.others.extend(others);
        new.others.remove(&self.parts.member.cluster);
        if let Err(reason) = new.check() {
            return refuse(reason);
        }
        self.store(&mut record, &new)?;
        self.open(&new).await
    }

    fn store(&self, record: &mut Option<Record>, new: &Record) -> Result<()> {
        if record.as_ref() != Some(new) {
            new.write(&*self.parts.files, &self.parts.dir)?;
            *record = Some(new.clone());
        }
        Ok(())
    }

    /// If the directory belongs to a cluster, opens the groups that it has, unless it is an older copy.
    pub(crate) async fn go_on(&self) -> Result<()> {
        let record = self.record.lock().await;
        let Some(found) = &*record else { return Ok(()) };
        // A node that does not answer may introduce itself later.
        self.parts.dialer.introduce(found.others.iter(), ADMISSION).await;
        self.parts.dialer.starts.check().map_err(|reason| Error::Outdated(reason.to_string()))?;
        for number in (0..found.identity().groups).filter(|number| !found.joined.contains_key(number)) {
            self.remove(number).await?;
        }
        self.open(found).await
    }

    /// Opens the groups of the record that are not open yet.
    async fn open(&self, record: &Record) -> Result<()> {
        self.parts.dialer.starts.advance(record.identity()).await.map_err(io("record", "a start of this node"))?;
        let groups = self.groups().unwrap_or_else(|| Arc::new(Groups::new(record.identity())));
        // The others must not count on room that is not there.
        self.measure(&groups);
        // Done before the groups are opened: if one cannot be opened, the node continues with the others.
        self.groups.set(Arc::clone(&groups)).ok();
        for number in record.joined.keys().copied() {
            if groups.get(number).is_none() {
                let before = record.last.get(&number).copied();
                groups.insert(Group::open(&self.parts, groups.identity, number, before).await?);
            }
        }
        Ok(())
    }

    /// Measures the disk, and notes whether it is almost full.
    pub(crate) fn measure(&self, groups: &Groups) -> Option<Space> {
        let space = (self.parts.space)();
        let lacks_room = space.is_some_and(|space| space.is_almost_full(self.parts.min_free, groups.lacks_room()));
        if groups.note_room(groups.identity.node, lacks_room) {
            let what = if lacks_room { "is almost full" } else { "has room for more data again" };
            tracing::warn!(?space, "the disk of this node {what}");
        }
        space
    }

    /// Stops the groups of which this node was a member and no longer is, and frees their space.
    pub(crate) async fn leave(&self) -> Result<()> {
        let mut record = self.record.lock().await;
        let (Some(groups), Some(mut present)) = (self.groups(), record.clone()) else { return Ok(()) };
        note_joined(&groups, &mut present);
        self.store(&mut record, &present)?;
        let (places, node) = (groups.places(), groups.identity.node);
        let left = |(number, joined): (&u32, &Option<_>)| {
            let (membership, joined) = (places.get(*number).membership?, (*joined)?);
            (membership.since > joined && !membership.members.contains_key(&node))
                .then_some((*number, membership.since))
        };
        let left: Vec<(u32, Position)> = present.joined.iter().filter_map(left).collect();
        for (number, since) in left {
            groups.hear(&places);
            if let Some(group) = groups.get(number) {
                group.hand_over(&groups.lacking()).await;
            }
            if let Some(group) = groups.remove(number) {
                group.stop().await;
            }
            let last = self.parts.last_of(number, since).await;
            let last = last.map_err(io("read", format!("the log of group {number}")))?;
            present.joined.remove(&number);
            let known = present.last.entry(number).or_default();
            *known = last.max(*known);
            self.store(&mut record, &present)?;
            tracing::info!(group = number, "this node is no member any more: the group is removed");
        }
        // Includes groups whose files could not be removed before.
        let gone = |number: &u32| !present.joined.contains_key(number) && self.parts.has_state(*number);
        for number in (0..groups.identity.groups).filter(gone) {
            self.remove(number).await?;
        }
        Ok(())
    }

    /// Stores the addresses of other nodes, if they have changed.
    pub(crate) async fn remember(&self, others: BTreeSet<String>) -> Result<()> {
        let mut record = self.record.lock().await;
        let Some(mut new) = record.clone() else { return Ok(()) };
        new.others = others;
        self.store(&mut record, &new)
    }

    /// The stored addresses of other nodes.
    pub(crate) async fn remembered(&self) -> BTreeSet<String> {
        self.record.lock().await.as_ref().map(|record| record.others.clone()).unwrap_or_default()
    }

    /// Removes the files of a group.
    async fn remove(&self, number: u32) -> Result<()> {
        let parts = self.parts.clone();
        let removed = spawn_blocking(move || parts.remove_group(number)).await;
        removed.unwrap_or_else(|panic| Err(io::Error::other(panic))).map_err(io("remove", format!("group {number}")))
    }

    pub(crate) fn describe(&self) -> Description {
        let groups = self.groups();
        let here = groups.as_ref().map(|groups| groups.here());
        let described = here.iter().flat_map(|here| here.values()).map(|group| (group.number, group.describe()));
        Description {
            identity: groups.as_ref().map(|groups| groups.identity),
            member: self.parts.member.clone(),
            clock: (self.parts.clock)(),
            disk_free: (self.parts.space)().map(|space| space.free),
            lacks_room: groups.as_ref().is_some_and(|groups| groups.lacks_room()),
            groups: described.collect(),
            places: groups.map(|groups| groups.places()).unwrap_or_default(),
            release: env!("CARGO_PKG_VERSION").into(),
            protocol: version::OWN,
        }
    }
}

/// Records the position from which on the node is a member, if the command that added it was interrupted before it sent the position. Only the group's
/// own log has this position. Memberships from before the node left, if it is back, do not count.
fn note_joined(groups: &Groups, Record { joined, last, .. }: &mut Record) {
    for (number, joined) in joined.iter_mut().filter(|(_, joined)| joined.is_none()) {
        let membership = groups.get(*number).and_then(|group| group.place().membership);
        let is_new = |found: &Membership| {
            found.members.contains_key(&groups.identity.node) && Some(&found.since) > last.get(number)
        };
        *joined = membership.filter(is_new).map(|found| found.since);
    }
}
