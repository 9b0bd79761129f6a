//! [`ControlClient`]: sends control requests to nodes, and to the leaders of groups.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::sleep;

use crate::clock::{ClockOffset, system_clock};
use crate::error::{Error, Result, io};
use crate::identity::Identity;
use crate::network::{Dialer, Link};
use crate::places::{Membership, Places};
use crate::settings::Security;
use crate::types::Position;
use crate::wire::control::{ControlReply, ControlRequest, Description, GroupDescription};
use crate::wire::handshake::Audience;
use crate::wire::message::{Call, CallReply};

/// The maximum time until a node replies, even if it waits for a majority.
const CALL_DEADLINE: Duration = Duration::from_secs(15);
/// The maximum time until a group has a leader, and until a change is done.
pub(super) const LEADER_DEADLINE: Duration = Duration::from_secs(30);
pub(super) const PAUSE: Duration = Duration::from_millis(100);

/// The leader of a group, and the group's members.
pub(super) struct Leader {
    pub(super) audience: Audience,
    pub(super) address: String,
    pub(super) membership: Membership,
}

/// Creates, changes and describes clusters.
///
/// Every step may be repeated: a command that was interrupted continues where it stopped when it is run again, except
/// [`rebalance`](Self::rebalance).
pub struct ControlClient {
    dialer: Arc<Dialer>,
}

impl ControlClient {
    /// A client that proves itself to nodes by these credentials.
    ///
    /// # Errors
    /// Returns an error if a file for TLS cannot be used.
    pub fn new(security: &Security) -> Result<Self> {
        Ok(Self { dialer: Arc::new(Dialer::new(security)?) })
    }

    pub(super) fn link(&self, address: &str, audience: Audience) -> Link {
        Link::new(Arc::clone(&self.dialer), address.to_owned(), audience)
    }

    async fn ask(&self, address: &str, audience: Audience, request: ControlRequest) -> Result<ControlReply> {
        ask(&mut self.link(address, audience), request).await
    }

    pub(super) async fn tell(&self, address: &str, audience: Audience, ask: ControlRequest) -> Result<()> {
        match self.ask(address, audience, ask).await? {
            ControlReply::Done | ControlReply::Changed(_) => Ok(()),
            ControlReply::NotLeader(_) | ControlReply::Description(_) | ControlReply::Checked(_) => {
                Err(refused(address, "it does not lead the group"))
            }
        }
    }

    pub(super) async fn describe(&self, address: &str) -> Result<Description> {
        described(address, self.ask(address, None, ControlRequest::Describe(None)).await?)
    }

    /// The description of the node at `address`, which must be the one of `audience`, and the offset of its clock.
    pub(super) async fn describe_as(&self, address: &str, audience: Audience) -> Result<(Description, ClockOffset)> {
        let mut link = self.link(address, audience);
        // The first reply contains the time of the connection and the handshake.
        ask(&mut link, ControlRequest::Describe(None)).await?;
        let (sent, begun) = (system_clock()(), Instant::now());
        let description = described(address, ask(&mut link, ControlRequest::Describe(None)).await?)?;
        let offset = ClockOffset::new(description.clock, sent, begun.elapsed());
        Ok((description, offset))
    }

    /// The cluster of the node at `address`, and the places of the cluster's groups.
    pub(super) async fn cluster(&self, address: &str) -> Result<(Identity, Places)> {
        let description = self.describe(address).await?;
        let identity = description.identity;
        let identity = identity.ok_or_else(|| refused(address, "it is in no cluster; `cluster init` makes one"))?;
        Ok((identity, description.places))
    }

    /// The leader of a group, as the node at `address` reports it; waits until there is one.
    pub(super) async fn leader(&self, address: &str, group: u32) -> Result<Leader> {
        let begun = Instant::now();
        loop {
            let (identity, places) = self.cluster(address).await?;
            let place = places.get(group);
            let leader = place.leader().map(|(node, member)| (Some((identity.cluster, node)), member.cluster.clone()));
            match (leader, place.membership) {
                (Some((audience, address)), Some(membership)) => return Ok(Leader { audience, address, membership }),
                _ if begun.elapsed() > LEADER_DEADLINE => {
                    return Err(refused(address, format!("group {group} has had no leader for {LEADER_DEADLINE:?}")));
                }
                _ => sleep(PAUSE).await,
            }
        }
    }

    /// The description of a group by its leader.
    pub(super) async fn describe_by_leader(&self, address: &str, group: u32) -> Result<Option<GroupDescription>> {
        let leader = self.leader(address, group).await?;
        Ok(self.describe(&leader.address).await?.groups.remove(&group))
    }

    /// Sends a request to the leader of a group, whichever node that is at the time. Returns the leader's reply.
    pub(super) async fn tell_leader(&self, address: &str, group: u32, ask: ControlRequest) -> Result<ControlReply> {
        self.with_leader(address, group, async |leader: &Leader| {
            Ok(match self.ask(&leader.address, leader.audience, ask.clone()).await? {
                done @ (ControlReply::Done | ControlReply::Changed(_)) => Some(done),
                ControlReply::NotLeader(_) | ControlReply::Description(_) | ControlReply::Checked(_) => None,
            })
        })
        .await
    }

    /// Like [`tell_leader`](Self::tell_leader), for a request to which the leader adds an entry. Returns the position of the entry.
    pub(super) async fn change(&self, address: &str, group: u32, ask: ControlRequest) -> Result<Position> {
        match self.tell_leader(address, group, ask).await? {
            ControlReply::Changed(position) => Ok(position),
            _ => Err(refused(address, "the answer is not one to this question")),
        }
    }

    /// Calls `run` with the leader of a group, whichever node that is at the time, until the result is not `None`, which stands for a node that does
    /// not lead.
    pub(super) async fn with_leader<T>(
        &self,
        address: &str,
        group: u32,
        run: impl AsyncFn(&Leader) -> Result<Option<T>>,
    ) -> Result<T> {
        // From the first failure on: a transfer that succeeds may take longer.
        let mut failing = None;
        loop {
            let leader = self.leader(address, group).await?;
            let done = run(&leader).await;
            let is_late = failing.get_or_insert_with(Instant::now).elapsed() > LEADER_DEADLINE;
            match done {
                Ok(Some(done)) => return Ok(done),
                Err(error) if !matches!(error, Error::Io { .. }) => return Err(error),
                Err(error) if is_late => {
                    return Err(refused(
                        address,
                        format!("the last known leader of group {group} does not answer: {error}"),
                    ));
                }
                Ok(None) if is_late => {
                    return Err(refused(
                        address,
                        format!("no node has led group {group} for {LEADER_DEADLINE:?}: do most of its voters run?"),
                    ));
                }
                _ => sleep(PAUSE).await,
            }
        }
    }
}

pub(super) async fn ask(link: &mut Link, request: ControlRequest) -> Result<ControlReply> {
    let answered = link.call(Call::Control(request), CALL_DEADLINE).await;
    let address = link.address();
    match answered {
        Ok(CallReply::Control(told)) => Ok(told),
        Ok(_) => Err(refused(address, "the answer is not one to this question")),
        Err(error) => Err(failed(address, error)),
    }
}

fn described(address: &str, reply: ControlReply) -> Result<Description> {
    match reply {
        ControlReply::Description(description) => Ok(*description),
        _ => Err(refused(address, "it does not describe itself")),
    }
}

/// The error of a call to a node.
pub(super) fn failed(address: &str, error: std::io::Error) -> Error {
    // With one of these the node itself has replied, unless it comes from the system, such as that of a firewall.
    let is_reply = matches!(error.kind(), ErrorKind::Other | ErrorKind::PermissionDenied);
    match is_reply && error.raw_os_error().is_none() {
        true => refused(address, error.to_string()),
        false => io("reach the node at", address)(error),
    }
}

pub(super) fn refused(address: &str, reason: impl Into<String>) -> Error {
    Error::Refused { address: address.to_owned(), reason: reason.into() }
}
