//! Queries other nodes for the places of groups, and leaves the groups from which this node was removed.
//!
//! A node queries all nodes that it has on record as members of any group; at first those that were given to it or stored by it. Each of them replies
//! with all places that it has. So news of a group spreads from its members to all nodes, and a node that appears in a reply is queried too.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::local::{Groups, Local};
use crate::network::Link;
use crate::places::{Place, Places};
use crate::wire::control::{ControlReply, ControlRequest, Description};
use crate::wire::message::{Call, CallReply};

/// The pause between two rounds.
const PAUSE: Duration = Duration::from_secs(1);
/// The pause while the place or the leader of a group is unknown.
const SHORT_PAUSE: Duration = Duration::from_millis(200);
/// The maximum time that a round waits for replies. A slower node is queried again in the next round, on the same connection.
const ROUND: Duration = Duration::from_secs(1);
/// The time after which a connection without a reply is given up.
const DEADLINE: Duration = Duration::from_secs(10);
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
    let mut gossip = Gossip { local, groups, links: BTreeMap::new(), turn: 0 };
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
}

impl Gossip {
    /// Queries some nodes, and acts on their replies. Returns the time until the next round.
    async fn round(&mut self) -> Duration {
        self.choose().await;
        let mut links: Vec<&mut Link> = self.links.values_mut().collect();
        let first = self.turn % links.len().max(1);
        links.rotate_left(first);
        links.truncate(ASKED_TOGETHER);
        self.turn = first + links.len();
        let own = (self.groups.identity.cluster, self.groups.places());
        let told = join_all(links.into_iter().map(|link| describe(link, own.clone()))).await;
        let is_one_of_us =
            |told: &Description| told.identity.is_some_and(|identity| identity.cluster == self.groups.identity.cluster);
        told.iter().flatten().filter(|told| is_one_of_us(told)).for_each(|told| self.groups.hear(&told.places));
        if let Err(error) = self.local.leave().await {
            tracing::warn!(%error, "could not leave a group");
        }
        let places = self.groups.places();
        let is_known = |group: u32| places.0.get(&group).is_some_and(|place: &Place| place.leader().is_some());
        if (0..self.groups.identity.groups).all(is_known) { PAUSE } else { SHORT_PAUSE }
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

async fn describe(link: &mut Link, own: (u64, Places)) -> Option<Description> {
    let answered =
        timeout(ROUND, link.call(Call::Control(ControlRequest::Describe(Some(own))), DEADLINE)).await.ok()?;
    match answered {
        Ok(CallReply::Control(ControlReply::Description(description))) => Some(*description),
        Ok(_) => None,
        Err(error) => {
            tracing::debug!(address = link.address(), %error, "a node was asked for the places of groups and does not answer");
            None
        }
    }
}
