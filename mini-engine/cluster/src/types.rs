//! The types of this application for openraft, and the names of openraft's types with these parameters.

use mini_engine_server::replicated::{Proposal, Replies};
use openraft::type_config::alias::LogIdOf;
use openraft_rt_tokio::TokioRuntime;
use serde::{Deserialize, Serialize};

openraft::declare_raft_types!(
    /// Proposals of writes; the response to a proposal consists of the bytes of the replies.
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

/// A position in the log of a group. A later entry has a greater position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Position {
    /// The term in which the entry was written.
    pub term: u64,
    /// The leader of that term.
    pub leader: u64,
    /// The index of the entry.
    pub index: u64,
}

impl Position {
    pub(crate) fn of(log_id: &LogIdOf<TypeConfig>) -> Self {
        Self { term: log_id.leader_id.term, leader: log_id.leader_id.node_id, index: log_id.index }
    }

    pub(crate) fn log_id(self) -> LogIdOf<TypeConfig> {
        LogIdOf::<TypeConfig>::new(Vote::new(self.term, self.leader).leader_id, self.index)
    }
}

/// A node's addresses, as they are stored in the membership of each group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// The address for other nodes.
    pub cluster: String,
    /// The address for clients.
    pub clients: String,
}
