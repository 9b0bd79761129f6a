//! [`Groups`]: the groups on this node, and the places of the other groups.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::select_all;
use tokio::sync::watch;

use crate::error::Error;
use crate::group::{Group, Refused};
use crate::identity::Identity;
use crate::places::{Place, Places};
use crate::slots::group_of;

/// The groups that are on this node, by their numbers.
pub(crate) type Here = Arc<BTreeMap<u32, Arc<Group>>>;

/// The groups of the cluster to which this node belongs.
pub(crate) struct Groups {
    pub(crate) identity: Identity,
    here: watch::Sender<Here>,
    /// The latest reports on the places of all groups, including those on this node.
    heard: Mutex<Places>,
    /// The milliseconds by which this node's clock is ahead of most nodes' clocks.
    clock_ahead: AtomicI64,
    lacks_room: AtomicBool,
}

impl Groups {
    pub(super) fn new(identity: Identity) -> Self {
        let (here, heard) = (watch::Sender::default(), Mutex::default());
        Self { identity, here, heard, clock_ahead: AtomicI64::default(), lacks_room: AtomicBool::default() }
    }

    /// The number of the group to which a slot belongs.
    pub(crate) fn of_slot(&self, slot: u16) -> u32 {
        group_of(slot, self.identity.groups)
    }

    /// A group on this node.
    pub(crate) fn get(&self, number: u32) -> Option<Arc<Group>> {
        self.here.borrow().get(&number).cloned()
    }

    /// All groups on this node.
    pub(crate) fn here(&self) -> Here {
        Arc::clone(&self.here.borrow())
    }

    /// Notifies the caller when a group is added or removed.
    pub(crate) fn watch(&self) -> watch::Receiver<Here> {
        self.here.subscribe()
    }

    pub(super) fn insert(&self, group: Group) {
        self.here.send_modify(|here| drop(Arc::make_mut(here).insert(group.number(), Arc::new(group))));
    }

    pub(super) fn remove(&self, number: u32) -> Option<Arc<Group>> {
        let mut removed = None;
        self.here.send_modify(|here| removed = Arc::make_mut(here).remove(&number));
        removed
    }

    /// Whether this node leads a group, like [`Group::leads`], on whichever nodes the group is. While a group is being added here, reports of other
    /// nodes are more complete.
    pub(crate) fn leads(&self, number: u32) -> Result<(), Refused> {
        if let Some(group) = self.get(number).filter(|group| group.votes()) {
            return group.leads();
        }
        let heard = self.heard();
        // A report that names this node is outdated.
        let leader = heard.0.get(&number).and_then(Place::leader).filter(|(leader, _)| *leader != self.identity.node);
        Err(Refused::NotLeader(leader.map(|(_, member)| member.clone())))
    }

    /// The milliseconds by which this node's clock is ahead of most nodes' clocks; 0 if it is off by less than a second.
    pub(crate) fn clock_ahead(&self) -> i64 {
        // ORDERING: Relaxed; a number that is shown.
        self.clock_ahead.load(Ordering::Relaxed)
    }

    pub(crate) fn set_clock_ahead(&self, millis: i64) {
        // ORDERING: Relaxed, as in `clock_ahead`.
        self.clock_ahead.store(millis, Ordering::Relaxed);
    }

    /// Whether the disk of this node is almost full.
    pub(crate) fn lacks_room(&self) -> bool {
        // ORDERING: Relaxed, here and below; the value publishes nothing.
        self.lacks_room.load(Ordering::Relaxed)
    }

    /// Returns what was set before.
    pub(crate) fn set_lacks_room(&self, lacks_room: bool) -> bool {
        self.lacks_room.swap(lacks_room, Ordering::Relaxed)
    }

    /// The groups that this node leads.
    pub(crate) fn led(&self) -> Vec<Arc<Group>> {
        self.here().values().filter(|group| group.leads().is_ok()).cloned().collect()
    }

    /// The places of all groups.
    pub(crate) fn places(&self) -> Places {
        let mut places = self.heard().clone();
        self.here().values().for_each(|group| places.learn(group.number(), &group.place()));
        places
    }

    /// Merges a report of another node, and the knowledge of the groups on this node, which is kept after these groups are removed.
    pub(crate) fn hear(&self, told: &Places) {
        let own = self.places();
        let mut heard = self.heard();
        let all = told.0.iter().chain(&own.0).filter(|(number, _)| **number < self.identity.groups);
        all.for_each(|(number, place)| heard.learn(*number, place));
    }

    fn heard(&self) -> MutexGuard<'_, Places> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a group on this node can no longer store or apply entries. Returns the reason.
    pub(crate) async fn failed(&self) -> Error {
        let mut changes = self.watch();
        loop {
            let here = Arc::clone(&changes.borrow_and_update());
            let ended = async {
                match here.is_empty() {
                    true => std::future::pending().await,
                    false => select_all(here.values().map(|group| Box::pin(group.ended()))).await.0,
                }
            };
            tokio::select! {
                biased;
                // A group that was removed has been stopped.
                _ = changes.changed() => {}
                error = ended => return error,
            }
        }
    }
}
