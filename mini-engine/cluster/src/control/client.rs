//! [`ControlClient`]: sends control requests to nodes, and to the leaders of groups.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::sleep;

use crate::clock::system_clock;
use crate::error::{Error, Result, io};
use crate::identity::Identity;
use crate::network::{Described, Dialer, Link};
use crate::places::Membership;
use crate::settings::Security;
use crate::types::Position;
use crate::wire::control::{ControlReply, ControlRequest, Description, GroupDescription, GroupRequest};
use crate::wire::handshake::Audience;
use crate::wire::message::{Call, CallReply, only};

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

    /// Sends a request to the node at `address`, which must carry it out.
    pub(super) async fn tell(&self, address: &str, audience: Audience, request: ControlRequest) -> Result<()> {
        match ask(&mut self.link(address, audience), request).await? {
            ControlReply::Done(_) => Ok(()),
            _ => Err(refused(address, "it does not lead the group")),
        }
    }

    pub(super) async fn describe(&self, address: &str) -> Result<Description> {
        described(&mut self.link(address, None)).await.map(|(description, _)| description)
    }

    /// The description of the node at `address`, which must be the one of `audience`, and the offset of its clock.
    pub(super) async fn describe_as(&self, address: &str, audience: Audience) -> Result<Described> {
        let mut link = self.link(address, audience);
        // The first reply contains the time of the connection and the handshake.
        described(&mut link).await?;
        described(&mut link).await
    }

    /// The description of the node at `address`, which must be in a cluster.
    pub(super) async fn cluster(&self, address: &str) -> Result<(Identity, Description)> {
        let described = self.describe(address).await?;
        let none = || refused(address, "it is in no cluster; `cluster init` makes one");
        Ok((described.identity.ok_or_else(none)?, described))
    }

    /// The leader of a group, as the node at `address` reports it; waits until there is one.
    pub(super) async fn leader(&self, address: &str, group: u32) -> Result<Leader> {
        let leader = retry_until(LEADER_DEADLINE, async || {
            let (identity, described) = self.cluster(address).await?;
            let place = described.places.get(group);
            let leader = place.leader().map(|(node, member)| (Some((identity.cluster, node)), member.cluster.clone()));
            let leader = leader.zip(place.membership);
            Ok(leader.map(|((audience, address), membership)| Leader { audience, address, membership }))
        });
        let none = || refused(address, format!("group {group} has had no leader for {LEADER_DEADLINE:?}"));
        leader.await?.ok_or_else(none)
    }

    /// The description of a group by its leader.
    pub(super) async fn describe_by_leader(&self, address: &str, group: u32) -> Result<Option<GroupDescription>> {
        let leader = self.leader(address, group).await?;
        Ok(self.describe(&leader.address).await?.groups.remove(&group))
    }

    /// Sends a request to the leader of a group, whichever node that is at the time. Returns the position of the entry that the leader has added.
    pub(super) async fn tell_leader(&self, address: &str, group: u32, ask: GroupRequest) -> Result<Option<Position>> {
        self.with_leader(address, group, async |leader: &Leader| {
            let request = ControlRequest::Group(group, ask.clone());
            match self::ask(&mut self.link(&leader.address, leader.audience), request).await? {
                ControlReply::Done(position) => Ok(Some(position)),
                _ => Ok(None),
            }
        })
        .await
    }

    /// Like [`tell_leader`](Self::tell_leader), for a request to which the leader adds an entry in any case.
    pub(super) async fn change(&self, address: &str, group: u32, ask: GroupRequest) -> Result<Position> {
        let position = self.tell_leader(address, group, ask).await?;
        position.ok_or_else(|| refused(address, "the answer is not one to this question"))
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
            let why = match run(&self.leader(address, group).await?).await {
                Ok(Some(done)) => return Ok(done),
                Ok(None) => {
                    format!("no node has led group {group} for {LEADER_DEADLINE:?}: do most of its voters run?")
                }
                Err(error @ Error::Io { .. }) => {
                    format!("the last known leader of group {group} does not answer: {error}")
                }
                Err(error) => return Err(error),
            };
            if failing.get_or_insert_with(Instant::now).elapsed() > LEADER_DEADLINE {
                return Err(refused(address, why));
            }
            sleep(PAUSE).await;
        }
    }
}

/// Calls `look` again and again, until it returns a value or `deadline` is over.
pub(super) async fn retry_until<T>(
    deadline: Duration,
    mut look: impl AsyncFnMut() -> Result<Option<T>>,
) -> Result<Option<T>> {
    let begun = Instant::now();
    loop {
        match look().await? {
            None if begun.elapsed() <= deadline => sleep(PAUSE).await,
            found => return Ok(found),
        }
    }
}

async fn described(link: &mut Link) -> Result<Described> {
    link.describe(None, &system_clock()).await.map_err(|error| failed(link.address(), error))
}

pub(super) async fn ask(link: &mut Link, request: ControlRequest) -> Result<ControlReply> {
    let told = link.call(Call::Control(request), CALL_DEADLINE, only!(CallReply::Control)).await;
    told.map_err(|error| failed(link.address(), error))
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
