//! What a node of a cluster does all the time, besides serving requests: it queries other nodes for the places of groups, leaves the groups from which
//! it was removed, and takes care of the logs and the space of the groups that it holds.
//!
//! A node queries all nodes that it has on record as members of any group; at first those that were given to it or stored by it. Each of them replies
//! with all places that it has. So news of a group spreads from its members to all nodes, and a node that appears in a reply is queried too.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio::sync::{Mutex, watch};
use tokio::time::{sleep, timeout};

use crate::clock::{ClockOffset, WallClock, ahead_of_most};
use crate::local::{Groups, Local};
use crate::network::{Described, Link};
use crate::places::Places;
use crate::seldom::Seldom;

/// The pause between two rounds.
const PAUSE: Duration = Duration::from_secs(1);
/// The pause while the place or the leader of a group is unknown.
const SHORT_PAUSE: Duration = Duration::from_millis(200);
/// The maximum time that a round waits for replies. A slower node is queried again in the next round, on the same connection.
const ROUND: Duration = Duration::from_secs(1);
/// The fewest bytes of log that a group keeps for members: a member that is a moment behind needs no snapshot.
const LEAST_KEPT_LOG: u64 = 32 << 20;
/// The interval at which all nodes store that this one runs.
const TICK: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 10 });
/// The number of nodes that are queried in one round. If there are more nodes, they take turns.
const ASKED_TOGETHER: usize = 16;

/// Runs until `stop` is set.
pub(crate) async fn run(local: Arc<Local>, mut stop: watch::Receiver<bool>) {
    let ends = async { drop(stop.wait_for(|stop| *stop).await) };
    tokio::pin!(ends);
    let groups = tokio::select! {
        () = &mut ends => return,
        groups = local.joined() => groups,
    };
    let (links, refusals) = (BTreeMap::new(), Seldom::default());
    let mut gossip = Gossip { local: &local, groups: &groups, links, turn: 0, refusals, has_warned: false };
    let rounds = async {
        // They end only between two rounds, so a group is always left completely.
        while timeout(gossip.round().await, &mut ends).await.is_err() {}
    };
    // No other node delays the care for the groups.
    tokio::select! {
        () = rounds => {}
        () = tick(&local, &groups) => {}
        () = take_care(&local, &groups) => {}
    }
}

/// Stores that this node runs, here and on the other nodes, again and again.
async fn tick(local: &Local, groups: &Groups) {
    let starts = &local.parts.dialer.starts;
    loop {
        sleep(TICK).await;
        let advanced = starts.advance(groups.identity).await;
        advanced.unwrap_or_else(|error| tracing::warn!(%error, "could not store that this node runs"));
        local.parts.dialer.introduce(others(groups).iter(), ROUND).await;
    }
}

/// Lets the groups' clocks see the applied instants, purges the logs, and decides whether the groups accept more data, again and again.
async fn take_care(local: &Local, groups: &Groups) {
    let parts = &local.parts;
    // The time of the next compaction of a group without room, of which there is one at a time; and the group that was the last one.
    let (next, mut last) = (Arc::new(Mutex::new(None)), 0);
    loop {
        let (here, space) = (groups.here(), local.measure(groups));
        let keep_log = parts.keep_log.min(space.map_or(u64::MAX, |space| space.free / 2));
        let keep_log = (keep_log / here.len().max(1) as u64).max(LEAST_KEPT_LOG);
        let (lacking, lacks_room) = (groups.lacking(), groups.lacks_room());
        here.values().for_each(|group| group.measure(parts.max_group));
        let due: Vec<_> = here.values().filter(|group| group.is_due(lacks_room)).collect();
        if let Some(group) = due.iter().find(|group| group.number > last).or(due.first())
            && let Ok(next) = Arc::clone(&next).try_lock_owned()
            && next.is_none_or(|next| next <= Instant::now())
        {
            last = group.number;
            group.compact(next);
        }
        let care = here.values().map(async |group| {
            _ = group.clock.millis();
            group.purge(keep_log).await;
            group.decide_growth(&lacking).await;
        });
        // Not longer: a group that waits for its disk must not delay the others.
        timeout(ROUND, join_all(care)).await.ok();
        // So that a group that is left meanwhile frees its space.
        drop(here);
        sleep(PAUSE).await;
    }
}

/// The addresses of the other members of any group.
fn others(groups: &Groups) -> BTreeSet<String> {
    let members = groups.places().members().into_iter().filter(|(node, _)| *node != groups.identity.node);
    members.map(|(_, member)| member.cluster).collect()
}

struct Gossip<'a> {
    local: &'a Local,
    groups: &'a Groups,
    links: BTreeMap<String, Link>,
    /// The position in the list of nodes at which the next round begins.
    turn: usize,
    refusals: Seldom,
    /// Whether the log says that the clock is off.
    has_warned: bool,
}

impl Gossip<'_> {
    /// Queries some nodes, and acts on their replies. Returns the time until the next round.
    async fn round(&mut self) -> Duration {
        self.choose().await;
        let Self { local, groups, links, turn, refusals, .. } = self;
        let (identity, mut links) = (groups.identity, links.values_mut().collect::<Vec<_>>());
        let first = *turn % links.len().max(1);
        links.rotate_left(first);
        links.truncate(ASKED_TOGETHER);
        *turn = first + links.len();
        let own = (identity.cluster, groups.places());
        let asked = links.into_iter().map(|link| describe(link, own.clone(), &local.parts.clock, refusals));
        let mut offsets = Vec::new();
        for (told, offset) in join_all(asked).await.into_iter().flatten() {
            if let Some(found) = told.identity.filter(|found| found.cluster == identity.cluster) {
                groups.hear(&told.places);
                groups.note_room(found.node, told.lacks_room);
                offsets.push(offset);
            }
        }
        self.check_clock(&offsets);
        if let Err(error) = self.local.leave().await {
            tracing::warn!(%error, "could not leave a group");
        }
        let places = self.groups.places();
        let is_known = |group| places.get(group).leader().is_some();
        if (0..identity.groups).all(is_known) { PAUSE } else { SHORT_PAUSE }
    }

    /// Compares this node's clock with those of the others.
    fn check_clock(&mut self, others: &[ClockOffset]) {
        let ahead = ahead_of_most(others.iter().copied());
        // ORDERING: Relaxed; a number that is shown.
        self.groups.clock_ahead.store(ahead, Ordering::Relaxed);
        let is_harmful = ahead != 0 && !self.groups.led().is_empty();
        if is_harmful && !self.has_warned {
            let others = if others.len() == 1 { "the other node's, so one of the two is wrong" } else { "most others" };
            tracing::warn!(
                "the clock of this node, by which keys expire while it leads, differs by {ahead:+} ms from {others}: correct it, or let another node \
                 lead (`mini-engine cluster move-leader`)"
            );
        }
        self.has_warned = is_harmful;
    }

    /// Keeps links only to the nodes that are to be queried.
    async fn choose(&mut self) {
        let mut addresses = others(self.groups);
        if !self.groups.places().is_complete(self.groups.identity.groups) {
            addresses.extend(self.local.remembered().await);
        } else if let Err(error) = self.local.remember(addresses.clone()).await {
            tracing::warn!(%error, "could not keep the addresses of other nodes");
        }
        self.links.retain(|address, _| addresses.contains(address));
        for address in addresses {
            let new = || Link::new(Arc::clone(&self.local.parts.dialer), address.clone(), None);
            self.links.entry(address.clone()).or_insert_with(new);
        }
    }
}

/// A node's description, and the offset of the node's clock.
async fn describe(link: &mut Link, own: (u64, Places), clock: &WallClock, refusals: &Seldom) -> Option<Described> {
    match timeout(ROUND, link.describe(Some(own), clock)).await.ok()? {
        Ok(described) => return Some(described),
        Err(error) if refusals.is_due(&error) => {
            tracing::warn!(address = link.address(), %error, "another node refuses this one, or this one refuses it");
        }
        Err(error) => {
            tracing::debug!(address = link.address(), %error, "a node was asked for the places of groups and does not answer");
        }
    }
    None
}
