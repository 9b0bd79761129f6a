//! What openraft is told about this application, and the names that it gives to its parts.

use mini_engine_server::replicated::{Proposal, Replies};
use openraft_rt_tokio::TokioRuntime;
use serde::{Deserialize, Serialize};

openraft::declare_raft_types!(
    /// Proposals of writes, whose response is the bytes of the replies.
    pub(crate) TypeConfig: D = Proposal, R = Replies, Node = Member, AsyncRuntime = TokioRuntime
);

pub(crate) type AppendEntriesRequest = openraft::raft::AppendEntriesRequest<TypeConfig>;
pub(crate) type AppendEntriesResponse = openraft::raft::AppendEntriesResponse<TypeConfig>;
pub(crate) type VoteRequest = openraft::raft::VoteRequest<TypeConfig>;
pub(crate) type VoteResponse = openraft::raft::VoteResponse<TypeConfig>;
pub(crate) type SnapshotResponse = openraft::raft::SnapshotResponse<TypeConfig>;
pub(crate) type TransferRequest = openraft::raft::TransferLeaderRequest<TypeConfig>;
pub(crate) type TransferResponse = openraft::raft::TransferLeaderResponse<TypeConfig>;
pub(crate) type Vote = openraft::type_config::alias::VoteOf<TypeConfig>;

/// A node's addresses, as the membership of each group has them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Where the other nodes reach it.
    pub cluster: String,
    /// Where clients reach it.
    pub clients: String,
}
