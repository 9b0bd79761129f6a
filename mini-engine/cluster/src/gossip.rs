//! Queries other nodes for the places of groups, purges the logs of groups, and leaves the groups from which this node was removed.
//!
//! A node queries all nodes that it has on record as members of any group; at first those that were given to it or stored by it. Each of them replies
//! with all places that it has. So news of a group spreads from its members to all nodes, and a node that appears in a reply is queried too.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::clock::{ClockOffset, WallClock, ahead_of_most};
use crate::local::{Groups, Local};
use crate::network::Link;
use crate::places::{Place, Places};
use crate::seldom::Seldom;
use crate::wire::control::{ControlReply, ControlRequest, Description};
use crate::wire::message::{Call, CallReply};

/// The pause between two rounds.
const PAUSE: Duration = Duration::from_secs(1);
/// The pause while the place or the leader of a group is unknown.
const SHORT_PAUSE: Duration = Duration::from_millis(200);
/// The maximum time that a round waits for replies. A slower node is queried again in the next round, on the same connection.
const ROUND: Duration = Duration::from_secs(1);
/// The fewest bytes of log that a group keeps for members: a member that is a moment behind needs no snapshot.
const LEAST_KEPT_LOG: u64 = 32 << 20;
/// The time after which a connection without a reply is given up.
const DEADLINE: Duration = Duration::from_secs(10);
/// The interval at which all nodes store that this one runs.
const TICK: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 10 });
/// The number of nodes that are queried in one round. If there are more nodes, they take turns.
const ASKED_TOGETHER: usize = 16;

/// Runs rounds until `stop` is set.
pub(crate) async fn run(local: Arc<Local>, mut stop: watch::Receiver<bool>) {
    let mut becomes = local.watch();
    let ends = async { drop(stop.wait_for(|stop| *stop).await) };
    tokio::pin!(ends);
    let groups = tokio::select! {
        () = &mut ends => return,
        groups = becomes.wait_for(Option::is_some) => groups.ok().and_then(|groups| groups.clone()),
    };
    let Some(groups) = groups else { return };
    let (links, refusals, ticked) = (BTreeMap::new(), Seldom::default(), Instant::now());
    let reports = BTreeMap::new();
    let mut gossip = Gossip { local, groups, links, turn: 0, refusals, ticked, reports, has_warned: false };
    loop {
        // The task ends only between two rounds, so a group is always left completely.
        let pause = gossip.round().await;
        tokio::select! {
            () = &mut ends => return,
            () = sleep(pause) => {}
        }
    }
}

struct Gossip {
    local: Arc<Local>,
    groups: Arc<Groups>,
    links: BTreeMap<String, Link>,
    /// The position in the list of nodes at which the next round begins.
    turn: usize,
    refusals: Seldom,
    /// The time of the last tick of this node's start.
    ticked: Instant,
    /// Whether a node lacked room for more data when it was heard last.
    reports: BTreeMap<u64, bool>,
    /// Whether the log says that the clock is off.
    has_warned: bool,
}

impl Gossip {
    /// Queries some nodes, and acts on their replies. Returns the time until the next round.
    async fn round(&mut self) -> Duration {
        if self.ticked.elapsed() >= TICK {
            let advanced = self.local.parts.dialer.starts.advance(self.groups.identity).await;
            advanced.unwrap_or_else(|error| tracing::warn!(%error, "could not store that this node runs"));
            self.local.parts.dialer.introduce(self.links.keys(), ROUND).await;
            self.ticked = Instant::now();
        }
        self.choose().await;
        let mut links: Vec<&mut Link> = self.links.values_mut().collect();
        let first = self.turn % links.len().max(1);
        links.rotate_left(first);
        links.truncate(ASKED_TOGETHER);
        self.turn = first + links.len();
        let own = (self.groups.identity.cluster, self.groups.places());
        let clock = &self.local.parts.clock;
        let told = join_all(links.into_iter().map(|link| describe(link, own.clone(), (clock, &self.refusals)))).await;
        let is_one_of_us =
            |told: &Description| told.identity.is_some_and(|identity| identity.cluster == self.groups.identity.cluster);
        let told: Vec<_> = told.into_iter().flatten().filter(|(told, _)| is_one_of_us(told)).collect();
        told.iter().for_each(|(told, _)| self.groups.hear(&told.places));
        self.reports.extend(told.iter().filter_map(|(told, _)| Some((told.identity?.node, told.lacks_room))));
        self.check_clock(&told.into_iter().map(|(_, offset)| offset).collect::<Vec<_>>());
        self.take_care().await;
        if let Err(error) = self.local.leave().await {
            tracing::warn!(%error, "could not leave a group");
        }
        let places = self.groups.places();
        let is_known = |group: u32| places.0.get(&group).is_some_and(|place: &Place| place.leader().is_some());
        if (0..self.groups.identity.groups).all(is_known) { PAUSE } else { SHORT_PAUSE }
    }

    /// Purges the logs of the groups, and decides whether they accept more data.
    async fn take_care(&self) {
        let (here, parts) = (self.groups.here(), &self.local.parts);
        let space = self.local.measure(&self.groups);
        let lacks_room = self.groups.lacks_room();
        let keep_log = parts.keep_log.min(space.map_or(u64::MAX, |space| space.free / 2));
        let keep_log = (keep_log / here.len().max(1) as u64).max(LEAST_KEPT_LOG);
        let care = here.values().map(async |group| {
            group.compact(lacks_room, &parts.compaction);
            group.purge(keep_log).await;
            group.decide_growth(lacks_room, &self.reports).await;
        });
        // Not longer: a group that waits for its disk must not delay the next round.
        timeout(ROUND, join_all(care)).await.ok();
    }

    /// Compares this node's clock with those of the others, and lets the groups' clocks see the applied instants.
    fn check_clock(&mut self, others: &[ClockOffset]) {
        self.groups.here().values().for_each(|group| _ = group.clock().millis());
        let ahead = ahead_of_most(others.iter().copied());
        self.groups.set_clock_ahead(ahead);
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
        let places = self.groups.places();
        let members = places.members().into_iter().filter(|(node, _)| *node != self.groups.identity.node);
        let mut addresses: BTreeSet<String> = members.map(|(_, member)| member.cluster).collect();
        if !places.is_complete(self.groups.identity.groups) {
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
async fn describe(
    link: &mut Link,
    own: (u64, Places),
    (clock, refusals): (&WallClock, &Seldom),
) -> Option<(Description, ClockOffset)> {
    let (sent, begun) = (clock(), Instant::now());
    let answered =
        timeout(ROUND, link.call(Call::Control(ControlRequest::Describe(Some(own))), DEADLINE)).await.ok()?;
    match answered {
        Ok(CallReply::Control(ControlReply::Description(description))) => {
            let offset = ClockOffset::new(description.clock, sent, begun.elapsed());
            Some((*description, offset))
        }
        Ok(_) => None,
        Err(error) if refusals.is_due(&error) => {
            tracing::warn!(address = link.address(), %error, "another node refuses this one, or this one refuses it");
            None
        }
        Err(error) => {
            tracing::debug!(address = link.address(), %error, "a node was asked for the places of groups and does not answer");
            None
        }
    }
}
