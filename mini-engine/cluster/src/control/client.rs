//! [`ControlClient`]: the commands' side.
//!
//! Every step may be repeated: a command that was interrupted goes on where it was when it is given again.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio::time::sleep;

use super::status::{NodeStatus, Status};
use crate::clock::system_clock;
use crate::error::{Error, Result, io};
use crate::identity::Identity;
use crate::network::{Dialer, Link};
use crate::settings::{MAX_GROUPS, Security};
use crate::types::Member;
use crate::wire::control::{Ask, Description, Told};
use crate::wire::handshake::Audience;
use crate::wire::message::{Answer, Call};

/// A node answers within this time, also one that waits for a majority.
const CALL_DEADLINE: Duration = Duration::from_secs(15);
/// A group has a leader, and a change is done, within this time.
const LEADER_DEADLINE: Duration = Duration::from_secs(30);
/// A new node is level within this time; it may have to get a large snapshot first.
const LEVEL_DEADLINE: Duration = Duration::from_secs(24 * 3600);
const PAUSE: Duration = Duration::from_millis(100);
/// A node that is so many entries behind gets a vote: it makes up for them while others are written.
const LEVEL: u64 = 1000;

/// The leader of a group, and the group's members.
struct Leader {
    audience: Audience,
    address: String,
    members: BTreeMap<u64, Member>,
}

/// Makes, changes and shows clusters.
pub struct ControlClient {
    dialer: Arc<Dialer>,
}

impl ControlClient {
    /// A client that is known to nodes in this way.
    ///
    /// # Errors
    /// If a file for TLS cannot be used.
    pub fn new(security: &Security) -> Result<Self> {
        Ok(Self { dialer: Arc::new(Dialer::new(security)?) })
    }

    /// Makes a cluster of the nodes at these addresses, with so many groups. Returns the nodes' numbers.
    ///
    /// # Errors
    /// If a node cannot be reached, or belongs to another cluster.
    pub async fn init(&self, addresses: &[String], groups: u32) -> Result<BTreeMap<u64, Member>> {
        if !(1..=MAX_GROUPS).contains(&groups) {
            let expected = format!("1 to {MAX_GROUPS}");
            return Err(Error::InvalidSettings { name: "groups", expected, found: groups.to_string() });
        }
        let mut found = Vec::new();
        for address in addresses {
            found.push(self.describe(address).await?);
        }
        let members: BTreeMap<u64, Member> = (1..).zip(found.iter().map(|node| node.member.clone())).collect();
        let begun = check_new(addresses, &found, &members, groups)?;
        let cluster = begun.map_or_else(draw, Ok)?;
        for (node, address) in (1..).zip(addresses) {
            self.tell(address, None, Ask::Become(Identity::new(cluster, node, groups))).await?;
        }
        for group in 0..groups {
            // The node that is asked wants to be the leader: so each leads some of the groups.
            let at = group as usize % addresses.len();
            let description = self.describe(&addresses[at]).await?;
            if description.groups.get(group as usize).is_some_and(|group| group.members.is_empty()) {
                let audience = Some((cluster, at as u64 + 1));
                self.tell(&addresses[at], audience, Ask::Initialize { group, members: members.clone() }).await?;
            }
        }
        // All nodes hear the leaders, so the addresses are right.
        for (address, group) in addresses.iter().flat_map(|address| (0..groups).map(move |group| (address, group))) {
            let leader = self.leader(address, group).await?;
            if leader.members != members {
                let found = leader.members.len();
                let reason = format!("expected {} members of group {group}, found {found}, or others", members.len());
                return Err(refused(address, reason));
            }
        }
        Ok(members)
    }

    /// Makes the node at `address` a member of the cluster of the node at `to`. Calls `progress` with the number of entries that it is behind in a
    /// group. Returns its number.
    ///
    /// # Errors
    /// If a node cannot be reached, or the new one belongs to another cluster.
    pub async fn add(&self, address: &str, to: &str, mut progress: impl FnMut(u32, u64)) -> Result<u64> {
        let new = self.describe(address).await?;
        let cluster = self.cluster(to).await?;
        let node = match new.identity {
            Some(identity) if identity.cluster != cluster.cluster => {
                let reason = format!("it is a node of cluster {:016x} already", identity.cluster);
                return Err(refused(address, reason));
            }
            // An earlier command has begun.
            Some(identity) if self.is_begun(&new, identity, to).await? => identity.node,
            Some(identity) => {
                let reason = format!("it was node {} and was removed; start it with an empty directory", identity.node);
                return Err(refused(address, reason));
            }
            None => self.unused_number(to, &cluster).await?,
        };
        self.tell(address, None, Ask::Become(Identity::new(cluster.cluster, node, cluster.groups))).await?;
        for group in 0..cluster.groups {
            self.tell_leader(to, group, Ask::AddLearner { group, node, member: new.member.clone() }).await?;
        }
        for group in 0..cluster.groups {
            self.wait_until_level(to, group, node, &mut progress).await?;
            self.tell_leader(to, group, Ask::Promote { group, node }).await?;
        }
        Ok(node)
    }

    /// Takes a node, which is named by its number or its address, out of the cluster of the node at `from`. Returns its number.
    ///
    /// # Errors
    /// If it is not a member, or the last one.
    pub async fn remove(&self, node: &str, from: &str) -> Result<u64> {
        let cluster = self.cluster(from).await?;
        let description = self.describe(from).await?;
        let members = description.groups.into_iter().flat_map(|group| group.members);
        let mut members: BTreeMap<u64, Member> = members.collect();
        let is_named = |number: &u64, member: &Member| {
            number.to_string() == node || member.cluster == node || member.clients == node
        };
        members.retain(|number, member| is_named(number, member));
        let Some(number) = members.keys().next().copied() else {
            return Err(refused(from, format!("expected the number or an address of a member, found {node}")));
        };
        for group in 0..cluster.groups {
            self.tell_leader(from, group, Ask::Remove { group, node: number }).await?;
        }
        Ok(number)
    }

    /// The cluster of the node at `address`. Every node is asked.
    ///
    /// # Errors
    /// If that node cannot be reached, or belongs to no cluster.
    pub async fn status(&self, address: &str) -> Result<Status> {
        let cluster = self.cluster(address).await?;
        let description = self.describe(address).await?;
        let members = description.groups.into_iter().flat_map(|group| group.members);
        let mut members: BTreeMap<u64, Member> = members.collect();
        members.entry(cluster.node).or_insert(description.member);
        let asked = members.into_iter().map(async |(node, member)| {
            let description = self.describe(&member.cluster).await.map_err(|error| error.to_string());
            NodeStatus { node, member, description }
        });
        let nodes = join_all(asked).await;
        Ok(Status { cluster: cluster.cluster, groups: cluster.groups, nodes, clock: system_clock()() })
    }

    /// Whether a node that has a number is a member, or was made one and has not heard of the others yet.
    async fn is_begun(&self, node: &Description, identity: Identity, to: &str) -> Result<bool> {
        let is_new = node.groups.iter().all(|group| group.members.is_empty() && group.last == 0 && group.term == 0);
        let known = self.describe(to).await?.groups;
        Ok(is_new || known.iter().any(|group| group.members.get(&identity.node) == Some(&node.member)))
    }

    async fn ask(&self, address: &str, audience: Audience, ask: Ask) -> Result<Told> {
        let mut link = Link::new(Arc::clone(&self.dialer), address.to_owned(), audience);
        let answered = link.call(Call::Control(ask), CALL_DEADLINE).await;
        match answered {
            Ok(Answer::Control(told)) => Ok(told),
            Ok(_) => Err(refused(address, "the answer is not one to this question")),
            // What a node has said.
            Err(error) if matches!(error.kind(), ErrorKind::Other | ErrorKind::PermissionDenied) => {
                Err(refused(address, error.to_string()))
            }
            Err(error) => Err(io("reach the node at", address)(error)),
        }
    }

    async fn tell(&self, address: &str, audience: Audience, ask: Ask) -> Result<()> {
        match self.ask(address, audience, ask).await? {
            Told::Done => Ok(()),
            Told::NotLeader(_) | Told::Description(_) => Err(refused(address, "it does not lead the group")),
        }
    }

    async fn describe(&self, address: &str) -> Result<Description> {
        match self.ask(address, None, Ask::Describe).await? {
            Told::Description(description) => Ok(*description),
            Told::Done | Told::NotLeader(_) => Err(refused(address, "it does not describe itself")),
        }
    }

    async fn cluster(&self, address: &str) -> Result<Identity> {
        let description = self.describe(address).await?;
        description.identity.ok_or_else(|| refused(address, "it is in no cluster; `cluster init` makes one"))
    }

    /// The leader of a group, once there is one, as the node at `address` knows it.
    async fn leader(&self, address: &str, group: u32) -> Result<Leader> {
        let begun = Instant::now();
        loop {
            let description = self.describe(address).await?;
            let identity = description.identity.ok_or_else(|| refused(address, "it is in no cluster"))?;
            let found = description.groups.into_iter().nth(group as usize).and_then(|group| {
                let node = group.leader?;
                let address = group.members.get(&node)?.cluster.clone();
                Some(Leader { audience: Some((identity.cluster, node)), address, members: group.members })
            });
            match found {
                Some(leader) => return Ok(leader),
                None if begun.elapsed() > LEADER_DEADLINE => {
                    return Err(refused(address, format!("group {group} has had no leader for {LEADER_DEADLINE:?}")));
                }
                None => sleep(PAUSE).await,
            }
        }
    }

    /// Asks the leader of a group, whoever that is at the time.
    async fn tell_leader(&self, address: &str, group: u32, ask: Ask) -> Result<()> {
        let begun = Instant::now();
        loop {
            let leader = self.leader(address, group).await?;
            let told = self.ask(&leader.address, leader.audience, ask.clone()).await;
            let is_late = begun.elapsed() > LEADER_DEADLINE;
            match told {
                Ok(Told::Done) => return Ok(()),
                Err(error) if is_late || matches!(error, Error::Refused { .. }) => return Err(error),
                Ok(Told::NotLeader(_) | Told::Description(_)) if is_late => {
                    return Err(refused(address, format!("group {group} changes its leader all the time")));
                }
                _ => sleep(PAUSE).await,
            }
        }
    }

    /// A number that no node has or had: greater than all others, and than the number of log entries, of which each change of the members is one.
    async fn unused_number(&self, address: &str, cluster: &Identity) -> Result<u64> {
        let mut greatest = cluster.node;
        for group in 0..cluster.groups {
            let leader = self.leader(address, group).await?;
            let description = self.describe(&leader.address).await?;
            let Some(group) = description.groups.into_iter().nth(group as usize) else { continue };
            greatest = greatest.max(group.last).max(group.members.into_keys().max().unwrap_or(0));
        }
        Ok(greatest + 1)
    }

    async fn wait_until_level(
        &self,
        address: &str,
        group: u32,
        node: u64,
        progress: &mut impl FnMut(u32, u64),
    ) -> Result<()> {
        let begun = Instant::now();
        while begun.elapsed() < LEVEL_DEADLINE {
            let leader = self.leader(address, group).await?;
            let description = self.describe(&leader.address).await?;
            let found = description.groups.get(group as usize);
            // Only the leader knows. It knows nothing before the node's first answer.
            if let Some((found, matched)) = found.and_then(|group| Some((group, *group.matched.get(&node)?))) {
                let behind = found.last.saturating_sub(matched);
                progress(group, behind);
                if matched > 0 && behind <= LEVEL {
                    return Ok(());
                }
            }
            sleep(PAUSE).await;
        }
        Err(refused(address, format!("node {node} is not level in {LEVEL_DEADLINE:?}")))
    }
}

fn refused(address: &str, reason: impl Into<String>) -> Error {
    Error::Refused { address: address.to_owned(), reason: reason.into() }
}

/// The number of a new cluster.
fn draw() -> Result<u64> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|error| io("draw", "the number of a cluster")(error.into()))?;
    Ok(u64::from_le_bytes(bytes))
}

/// The cluster that an earlier, interrupted command has begun to make of these nodes, if there is one. Fails if a node was named twice, or belongs to
/// another cluster, or if this one is made already.
fn check_new(
    addresses: &[String],
    found: &[Description],
    members: &BTreeMap<u64, Member>,
    groups: u32,
) -> Result<Option<u64>> {
    let begun = found.iter().find_map(|node| node.identity).map(|identity| identity.cluster);
    let has_members = |group: u32| {
        let mut described = found.iter().filter_map(|node| node.groups.get(group as usize));
        described.any(|group| !group.members.is_empty())
    };
    let (is_begun, is_made) = ((0..groups).any(has_members), (0..groups).all(has_members));
    for (at, (address, node)) in addresses.iter().zip(found).enumerate() {
        if found[..at].iter().any(|other| other.member == node.member) {
            return Err(refused(address, "this node was named twice"));
        }
        let Some(identity) = node.identity else {
            if !is_begun {
                continue;
            }
            // Groups get their members when all nodes have their numbers: this one had one and has forgotten its votes.
            let reason = "the others are in a cluster already; if it was one of them, remove it there and add it";
            return Err(refused(address, reason));
        };
        let is_of_this_command = (Some(identity.cluster), identity.node, identity.groups)
            == (begun, at as u64 + 1, groups)
            && node.groups.iter().all(|group| group.members.is_empty() || group.members == *members);
        if is_made || !is_of_this_command {
            let reason = format!("it is node {} of cluster {:016x} already", identity.node, identity.cluster);
            return Err(refused(address, reason));
        }
    }
    Ok(begun)
}
