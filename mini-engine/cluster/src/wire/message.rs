//! What a node asks of another one, and the answers.

use openraft_mini_engine::Chunk;
use serde::{Deserialize, Serialize};

use super::control::{Ask, Told};
use crate::types::{
    AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, TransferRequest, TransferResponse, Vote,
    VoteRequest, VoteResponse,
};

/// A question. All but `Control` begin with the number of the group.
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub(crate) enum Call {
    Append(u32, AppendEntriesRequest),
    Vote(u32, VoteRequest),
    PreVote(u32, VoteRequest),
    /// The leader retires, and this node is to be the next.
    Transfer(u32, TransferRequest),
    /// Parts of a snapshot follow.
    Snapshot(u32, Vote),
    Control(Ask),
}

/// The answer to a call.
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub(crate) enum Answer {
    Append(AppendEntriesResponse),
    Vote(VoteResponse),
    Transfer(TransferResponse),
    Snapshot(SnapshotResponse),
    Control(Told),
    /// Nothing yet: a snapshot is being checked.
    Working,
    Failed(String),
}

impl Answer {
    pub(crate) fn into_append(self) -> Option<AppendEntriesResponse> {
        if let Self::Append(response) = self { Some(response) } else { None }
    }

    pub(crate) fn into_vote(self) -> Option<VoteResponse> {
        if let Self::Vote(response) = self { Some(response) } else { None }
    }

    pub(crate) fn into_transfer(self) -> Option<TransferResponse> {
        if let Self::Transfer(response) = self { Some(response) } else { None }
    }
}

/// A part of a snapshot.
#[derive(Serialize, Deserialize)]
pub(crate) enum Part {
    Chunk(Chunk),
    End,
}

/// A call or an answer with the number of the call: an answer that comes too late is not taken for that of the next call.
#[derive(Serialize, Deserialize)]
pub(crate) struct Numbered<T> {
    pub(crate) number: u64,
    pub(crate) body: T,
}
