//! The calls from one node to another, and the replies.

use std::io::{Error, Result};

use openraft_mini_engine::Chunk;
use serde::{Deserialize, Serialize};

use super::control::{ControlReply, ControlRequest};
use crate::starts::Introduction;
use crate::types::{
    AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, TransferRequest, TransferResponse, Vote,
    VoteRequest, VoteResponse,
};

/// A call. All calls but `Control` begin with the number of the group.
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub(crate) enum Call {
    /// With the index of the first entry that the leader keeps.
    Append(u32, AppendEntriesRequest, u64),
    Vote(u32, VoteRequest),
    PreVote(u32, VoteRequest),
    /// The leader retires, and the called node is to become the next leader.
    Transfer(u32, TransferRequest),
    /// The parts of a snapshot follow.
    Snapshot(u32, Vote),
    Control(ControlRequest),
    /// Asks the leader for a snapshot of the group. After the reply `Working` its parts follow, and then the final reply.
    Backup(u32),
    /// Comes first on each connection of a node.
    Introduce(Introduction),
    /// Asks the leader for the entry that a node must have applied to show everything that was acknowledged before.
    ReadIndex(u32),
}

/// The reply to a call.
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub(crate) enum CallReply {
    Append(AppendEntriesResponse),
    Vote(VoteResponse),
    Transfer(TransferResponse),
    Snapshot(SnapshotResponse),
    Control(ControlReply),
    /// Not the final reply: a snapshot is still being checked, or its parts follow.
    Working,
    Failed(String),
    Introduced(Introduction),
    ReadIndex(u64),
}

impl CallReply {
    /// What `expected` finds in the reply. Fails if the call has failed, or this is not a reply to it.
    pub(crate) fn find<T>(self, expected: impl FnOnce(Self) -> Option<T>) -> Result<T> {
        match self {
            Self::Failed(reason) => Err(Error::other(reason)),
            reply => expected(reply).ok_or_else(|| Error::other("the answer is not one to this question")),
        }
    }
}

/// A function that takes the contents out of a reply, if it is this one.
macro_rules! only {
    ($reply:path) => {
        |reply| if let $reply(contents) = reply { Some(contents) } else { None }
    };
}
pub(crate) use only;

/// A part of a snapshot.
#[derive(Serialize, Deserialize)]
pub(crate) enum Part {
    Chunk(Chunk),
    End,
    /// The sender cannot read the snapshot any further.
    Failed(String),
}

/// A call or a reply, with the number of the call: so a late reply is not taken for the reply to the next call.
#[derive(Serialize, Deserialize)]
pub(crate) struct Numbered<T> {
    pub(crate) number: u64,
    pub(crate) body: T,
}
