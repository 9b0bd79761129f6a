//! The connections of other nodes and of commands: their requests are passed to the groups, and the replies are sent back.

use std::io::{Error, Result};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::group::Group;
use crate::local::{Groups, Local};
use crate::network::{receive, send_parts};
use crate::seldom::Seldom;
use crate::types::Vote;
use crate::unproven::{MOST_UNPROVEN, Place, Unproven};
use crate::wire::control::{ControlReply, ControlRequest};
use crate::wire::frames::Frames;
use crate::wire::message::{Call, CallReply, Numbered};

/// The maximum number of connections at one time: several for each group of each node, and those before the proof of identity.
const MOST_CONNECTIONS: usize = 1024 + MOST_UNPROVEN;
/// A connection that is silent for this time is closed. The other side makes a new connection when it needs one.
const IDLE: Duration = Duration::from_secs(300);
/// Longer than sending a reply takes.
const SEND_DEADLINE: Duration = Duration::from_secs(30);
/// The pause after a failure to accept, which is mostly due to a lack of file handles.
const PAUSE: Duration = Duration::from_millis(100);

/// Serves connections until the task is aborted.
pub(crate) async fn run(local: Arc<Local>, listener: TcpListener) {
    let (mut connections, mut unproven, refusals) = (JoinSet::new(), Unproven::default(), Arc::new(Seldom::default()));
    loop {
        tokio::select! {
            Some(_) = connections.join_next() => {}
            accepted = listener.accept(), if connections.len() < MOST_CONNECTIONS => match accepted {
                Ok((stream, peer)) => {
                    let place = Place::default();
                    let weak = Arc::downgrade(&place);
                    let task = connections.spawn(serve(Arc::clone(&local), stream, place, Arc::clone(&refusals)));
                    unproven.add(peer.ip(), weak, task);
                }
                Err(error) => {
                    tracing::warn!(%error, "could not accept a connection of a node");
                    sleep(PAUSE).await;
                }
            },
        }
    }
}

async fn serve(local: Arc<Local>, stream: TcpStream, place: Place, refusals: Arc<Seldom>) {
    let peer = stream.peer_addr().map_or_else(|_| "a node".to_owned(), |peer| peer.to_string());
    let served = async {
        let mut frames = local.parts.dialer.accept(stream, local.audience()).await?;
        drop(place);
        let (mut introduced, starts) = (None, &local.parts.dialer.starts);
        loop {
            let call = timeout(IDLE, frames.receive::<Numbered<Call>>()).await??;
            let number = call.number;
            if let Call::Introduce(theirs) = &call.body {
                introduced = Some(starts.learn(theirs).await);
            }
            starts.check()?;
            let body = match carry_out(&local, &mut frames, call, introduced.is_some()).await {
                Ok(answer) => answer,
                Err(error) => CallReply::Failed(error.to_string()),
            };
            // A node that has learnt meanwhile that its directory is an older copy grants no vote.
            starts.check()?;
            timeout(SEND_DEADLINE, frames.send(&Numbered { number, body })).await??;
            introduced.take_if(|introduced: &mut Result<()>| introduced.is_err()).transpose()?;
        }
    };
    let ended: Result<()> = served.await;
    match ended {
        Err(error) if refusals.is_due(&error) => {
            tracing::warn!(peer, %error, "a connection of a node was refused");
        }
        Err(error) => tracing::debug!(peer, %error, "a connection of a node has ended"),
        Ok(()) => {}
    }
}

async fn carry_out(local: &Local, frames: &mut Frames, call: Numbered<Call>, is_node: bool) -> Result<CallReply> {
    match call.body {
        // Also if the connection is refused: the other node may find out that it is the older copy.
        Call::Introduce(_) => local.parts.dialer.starts.introduction().map(CallReply::Introduced),
        Call::Backup(group) => backup(&*find(local, group)?, frames, call.number).await,
        Call::Control(request) => control(local, request).await.map(CallReply::Control),
        _ if !is_node => Err(Error::other("expected an introduction first")),
        Call::Append(group, request, first) => find(local, group)?.append(request, first).await.map(CallReply::Append),
        Call::Vote(group, request) => {
            elector(local, group)?.raft().vote(request).await.map(CallReply::Vote).map_err(Error::other)
        }
        Call::PreVote(group, request) => {
            elector(local, group)?.raft().pre_vote(request).await.map(CallReply::Vote).map_err(Error::other)
        }
        Call::Transfer(group, request) => {
            let response = elector(local, group)?.raft().handle_transfer_leader(request).await;
            response.map(CallReply::Transfer).map_err(Error::other)
        }
        Call::Snapshot(group, vote) => snapshot(&*find(local, group)?, vote, frames, call.number).await,
        Call::ReadIndex(group) => find(local, group)?.read_index().await.map(CallReply::ReadIndex),
    }
}

/// Carries out a request of a command, or of another node that searches for a group.
async fn control(local: &Local, request: ControlRequest) -> Result<ControlReply> {
    match request {
        ControlRequest::Describe(told) => {
            if let (Some((cluster, places)), Some(groups)) = (told, local.groups())
                && cluster == groups.identity.cluster
            {
                groups.hear(&places);
            }
            Ok(ControlReply::Description(Box::new(local.describe())))
        }
        ControlRequest::Become { identity, joined, others } => {
            local.become_node(identity, joined, others).await.map(|()| ControlReply::Done(None)).map_err(Error::other)
        }
        ControlRequest::Group(number, request) => match groups(local)?.get(number) {
            Some(group) => group.answer(request).await,
            None => Ok(ControlReply::NotLeader),
        },
    }
}

fn groups(local: &Local) -> Result<Arc<Groups>> {
    local.groups().ok_or_else(|| Error::other("this node is in no cluster"))
}

/// The group with this number; an error if it is not on this node.
fn find(local: &Local, number: u32) -> Result<Arc<Group>> {
    let group = groups(local)?.get(number);
    group.ok_or_else(|| Error::other(format!("group {number} is not on this node")))
}

/// The group with this number, if this node may vote in it and be elected.
fn elector(local: &Local, number: u32) -> Result<Arc<Group>> {
    let group = find(local, number)?;
    let missing = || Error::other(format!("this node has not received again what it had of group {number}"));
    if group.may_elect() { Ok(group) } else { Err(missing()) }
}

async fn backup(group: &Group, frames: &mut Frames, number: u64) -> Result<CallReply> {
    let Some(snapshot) = group.snapshot().await? else { return Ok(CallReply::Control(ControlReply::NotLeader)) };
    timeout(SEND_DEADLINE, frames.send(&Numbered { number, body: CallReply::Working })).await??;
    send_parts(frames, snapshot.snapshot).await?;
    Ok(CallReply::Control(ControlReply::Done(None)))
}

async fn snapshot(group: &Group, vote: Vote, frames: &mut Frames, number: u64) -> Result<CallReply> {
    let received = receive(frames, number, group.state.clone()).await?;
    tracing::info!(group = group.number, snapshot = %received.meta, "a snapshot of the leader is complete");
    group.install(vote, received).await.map(CallReply::Snapshot)
}
