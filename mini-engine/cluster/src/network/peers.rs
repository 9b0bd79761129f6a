//! [`Peers`]: openraft's network, built on links. For each other node, a group has one link for log entries, one for heartbeats, and connections for
//! snapshots, so that none of these waits for another.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use openraft::errors::{NetworkError, RPCError, ReplicationClosed, StreamingError, Unreachable};
use openraft::network::RPCOption;
use openraft::type_config::alias::SnapshotOf;
use openraft::{LogIdOptionExt, OptionalSend, RaftNetworkFactory, RaftNetworkV2};
use openraft_mini_engine::Checkpoint;

use super::dialer::Dialer;
use super::link::Link;
use super::snapshot;
use crate::retention::Retention;
use crate::types::{
    AppendEntriesRequest, AppendEntriesResponse, Member, SnapshotResponse, TransferRequest, TransferResponse,
    TypeConfig, Vote, VoteRequest, VoteResponse,
};
use crate::wire::message::{Call, CallReply, only};

/// Longer than a follower needs to store entries, even on a slow disk. Heartbeats and votes have the deadlines of openraft.
const APPEND_DEADLINE: Duration = Duration::from_secs(5);

type Reply<T> = Result<T, RPCError<TypeConfig>>;

/// The other nodes of a group.
#[derive(Clone)]
pub(crate) struct Peers {
    pub(crate) dialer: Arc<Dialer>,
    pub(crate) cluster: u64,
    pub(crate) group: u32,
    pub(crate) retention: Arc<Retention>,
}

/// One other node of a group.
pub(crate) struct Peer {
    group: u32,
    node: u64,
    retention: Arc<Retention>,
    link: Link,
}

impl RaftNetworkFactory<TypeConfig> for Peers {
    type Network = Peer;

    async fn new_client(&mut self, target: u64, node: &Member) -> Peer {
        let link = Link::new(Arc::clone(&self.dialer), node.cluster.clone(), Some((self.cluster, target)));
        Peer { group: self.group, node: target, retention: Arc::clone(&self.retention), link }
    }
}

impl Peer {
    async fn call<T>(
        &mut self,
        call: Call,
        deadline: Duration,
        expected: impl FnOnce(CallReply) -> Option<T>,
    ) -> Reply<T> {
        self.link.call(call, deadline, expected).await.map_err(|error| match error.kind() {
            // openraft may repeat such a call at once.
            io::ErrorKind::TimedOut => RPCError::Network(NetworkError::new(&error)),
            _ => RPCError::Unreachable(Unreachable::new(&error)),
        })
    }

    /// The entry up to which a read must see the log, if this node is the leader.
    pub(crate) async fn read_index(&mut self, deadline: Duration) -> Reply<u64> {
        self.call(Call::ReadIndex(self.group), deadline, only!(CallReply::ReadIndex)).await
    }
}

impl RaftNetworkV2<TypeConfig> for Peer {
    type SnapshotData = Checkpoint;

    async fn append_entries(&mut self, request: AppendEntriesRequest, _: RPCOption) -> Reply<AppendEntriesResponse> {
        let first = self.retention.first();
        // Not a heartbeat: the member still counts for the majority.
        if !request.entries.is_empty() && request.prev_log_id.next_index() < first {
            let what = "it lacks entries that are being purged, and gets a snapshot";
            return Err(RPCError::Unreachable(Unreachable::from_string(what)));
        }
        self.call(Call::Append(self.group, request, first), APPEND_DEADLINE, only!(CallReply::Append)).await
    }

    async fn vote(&mut self, request: VoteRequest, option: RPCOption) -> Reply<VoteResponse> {
        self.call(Call::Vote(self.group, request), option.hard_ttl(), only!(CallReply::Vote)).await
    }

    async fn pre_vote(&mut self, request: VoteRequest, option: RPCOption) -> Reply<VoteResponse> {
        self.call(Call::PreVote(self.group, request), option.hard_ttl(), only!(CallReply::Vote)).await
    }

    async fn transfer_leader(&mut self, request: TransferRequest, option: RPCOption) -> Reply<TransferResponse> {
        self.call(Call::Transfer(self.group, request), option.hard_ttl(), only!(CallReply::Transfer)).await
    }

    async fn full_snapshot(
        &mut self,
        vote: Vote,
        snapshot: SnapshotOf<TypeConfig, Checkpoint>,
        cancel: impl Future<Output = ReplicationClosed> + OptionalSend + 'static,
        _: RPCOption,
    ) -> Result<SnapshotResponse, StreamingError<TypeConfig>> {
        self.retention.begin_snapshot(self.node, snapshot.meta.last_log_id.next_index());
        let sent = tokio::select! {
            sent = snapshot::send(&self.link, self.group, vote, snapshot.snapshot) => {
                sent.map_err(|error| StreamingError::Unreachable(Unreachable::new(&error)))
            }
            error = self.link.dialer.starts.until_outdated() => Err(StreamingError::Unreachable(Unreachable::new(&error))),
            closed = cancel => Err(StreamingError::Closed(closed)),
        };
        sent.inspect_err(|_| self.retention.fail_snapshot(self.node))
    }
}
