//! Asks other nodes where the groups are, and leaves the groups that this node was removed from.
//!
//! A node asks those that are members of any group as far as it knows; at first those that it was told, or that it kept. Each answers with all that it
//! knows itself. So news of a group spreads from its members to all nodes, and a node of which one has heard is asked, too.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::local::{Groups, Local};
use crate::network::Link;
use crate::places::{Place, Places};
use crate::wire::control::{Ask, Description, Told};
use crate::wire::message::{Answer, Call};

/// Between two rounds.
const PAUSE: Duration = Duration::from_secs(1);
/// The same as long as the place or the leader of a group is not known.
const SHORT_PAUSE: Duration = Duration::from_millis(200);
/// A round waits no longer for answers. A node that is slower is asked again in the next round, on the same connection.
const ROUND: Duration = Duration::from_secs(1);
/// A connection is given up after that.
const DEADLINE: Duration = Duration::from_secs(10);
/// Nodes that are asked in a round. If there are more, they are asked in turn.
const ASKED_TOGETHER: usize = 16;

/// Asks until `stop` says so.
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
        // It ends between two rounds: a group is left as a whole.
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
    /// Where the next round begins.
    turn: usize,
}

impl Gossip {
    /// Asks some nodes, and does what follows from their answers. Returns the time until the next round.
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

    /// Keeps links to the nodes that are to be asked.
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
    let answered = timeout(ROUND, link.call(Call::Control(Ask::Describe(Some(own))), DEADLINE)).await.ok()?;
    match answered {
        Ok(Answer::Control(Told::Description(description))) => Some(*description),
        Ok(_) => None,
        Err(error) => {
            tracing::debug!(address = link.address(), %error, "a node was asked for the places of groups and does not answer");
            None
        }
    }
}
