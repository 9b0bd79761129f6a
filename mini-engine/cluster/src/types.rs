//! What openraft is told about this application, and the names that it gives to its parts.

use mini_engine_server::replicated::{Proposal, Replies};
use openraft::type_config::alias::LogIdOf;
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

/// A place in the log of a group. A later entry has a greater one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Position {
    /// The term in which the entry was written.
    pub term: u64,
    /// The node that led then.
    pub leader: u64,
    /// The index of the entry.
    pub index: u64,
}

impl Position {
    pub(crate) fn of(log_id: &LogIdOf<TypeConfig>) -> Self {
        Self { term: log_id.leader_id.term, leader: log_id.leader_id.node_id, index: log_id.index }
    }
}

/// A node's addresses, as the membership of each group has them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Where the other nodes reach it.
    pub cluster: String,
    /// Where clients reach it.
    pub clients: String,
}
