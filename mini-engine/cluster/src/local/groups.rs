//! [`Groups`]: the groups on this node, and the places of the other groups.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicI64;
use std::sync::{Arc, Mutex};

use crate::group::{Group, Refused};
use crate::identity::Identity;
use crate::lock::lock;
use crate::places::{Place, Places};
use crate::slots::group_of;

/// The groups that are on this node, by their numbers.
pub(crate) type Here = Arc<BTreeMap<u32, Arc<Group>>>;

/// The groups of the cluster to which this node belongs.
pub(crate) struct Groups {
    pub(crate) identity: Identity,
    here: Mutex<Here>,
    /// The latest reports on the places of all groups, including those on this node.
    heard: Mutex<Places>,
    /// The milliseconds by which this node's clock is ahead of most nodes' clocks; 0 if it is off by less than a second.
    pub(crate) clock_ahead: AtomicI64,
    /// The nodes whose disks were almost full when they were measured, or heard, last.
    lacking: Mutex<BTreeSet<u64>>,
}

impl Groups {
    pub(super) fn new(identity: Identity) -> Self {
        let (here, heard, clock_ahead, lacking) = Default::default();
        Self { identity, here, heard, clock_ahead, lacking }
    }

    /// The number of the group to which a slot belongs.
    pub(crate) fn of_slot(&self, slot: u16) -> u32 {
        group_of(slot, self.identity.groups)
    }

    /// A group on this node.
    pub(crate) fn get(&self, number: u32) -> Option<Arc<Group>> {
        lock(&self.here).get(&number).cloned()
    }

    /// All groups on this node.
    pub(crate) fn here(&self) -> Here {
        Arc::clone(&lock(&self.here))
    }

    pub(super) fn insert(&self, group: Arc<Group>) {
        Arc::make_mut(&mut lock(&self.here)).insert(group.number, group);
    }

    pub(super) fn remove(&self, number: u32) -> Option<Arc<Group>> {
        Arc::make_mut(&mut lock(&self.here)).remove(&number)
    }

    /// Whether this node leads a group, like [`Group::leads`], on whichever nodes the group is. While a group is being added here, reports of other
    /// nodes are more complete.
    pub(crate) fn leads(&self, number: u32) -> Result<(), Refused> {
        if let Some(group) = self.get(number) {
            let leads = group.leads();
            // Every leader votes.
            if leads.is_ok() || group.votes() {
                return leads;
            }
        }
        let heard = lock(&self.heard);
        // A report that names this node is outdated.
        let leader = heard.0.get(&number).and_then(Place::leader).filter(|(leader, _)| *leader != self.identity.node);
        Err(Refused::NotLeader(leader.map(|(_, member)| member.clone())))
    }

    /// The nodes whose disks are almost full, as far as this node has learnt.
    pub(crate) fn lacking(&self) -> BTreeSet<u64> {
        lock(&self.lacking).clone()
    }

    /// Whether the disk of this node is almost full.
    pub(crate) fn lacks_room(&self) -> bool {
        lock(&self.lacking).contains(&self.identity.node)
    }

    /// Notes whether the disk of a node is almost full. Returns whether that has changed.
    pub(crate) fn note_room(&self, node: u64, lacks_room: bool) -> bool {
        let mut lacking = lock(&self.lacking);
        if lacks_room { lacking.insert(node) } else { lacking.remove(&node) }
    }

    /// The groups that this node leads.
    pub(crate) fn led(&self) -> Vec<Arc<Group>> {
        self.here().values().filter(|group| group.leads().is_ok()).cloned().collect()
    }

    /// The places of all groups.
    pub(crate) fn places(&self) -> Places {
        let mut places = lock(&self.heard).clone();
        self.here().values().for_each(|group| places.learn(group.number, &group.place()));
        places
    }

    /// Merges a report of another node, and the knowledge of the groups on this node, which is kept after these groups are removed.
    pub(crate) fn hear(&self, told: &Places) {
        let own = self.places();
        let mut heard = lock(&self.heard);
        let all = told.0.iter().chain(&own.0).filter(|(number, _)| **number < self.identity.groups);
        all.for_each(|(number, place)| heard.learn(*number, place));
    }
}
