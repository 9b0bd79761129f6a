//! What commands, and nodes that seek a group, ask of a node, and what they are told.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::identity::{Identity, Joined};
use crate::places::Places;
use crate::types::{Member, Position};

/// A question.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Ask {
    /// A node adds its cluster and where it knows groups to be. So one that has moved is found although nobody who knows of it is asked any more.
    Describe(Option<(u64, Places)>),
    /// The node becomes this one, if it is none yet, and has these groups beside those that it has. They have no members yet, or learn of them from a
    /// leader. The node asks the others, which are given by their addresses, for the places of groups.
    Become { identity: Identity, joined: Joined, others: BTreeSet<String> },
    /// The group's first members. Only one node is asked, once.
    Initialize { group: u32, members: BTreeMap<u64, Member> },
    /// A node gets the group's log, but has no vote. For the leader, as all that follow.
    AddLearner { group: u32, node: u64, member: Member },
    /// A learner gets a vote.
    Promote { group: u32, node: u64 },
    /// A node is no member any more.
    Remove { group: u32, node: u64 },
}

/// An answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Told {
    Description(Box<Description>),
    Done,
    /// The members are changed by the entry at this position, which is committed.
    Changed(Position),
    /// The leader is another node, if one is known.
    NotLeader(Option<Member>),
}

/// A node, as it sees itself and its groups.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Description {
    /// Its place in a cluster, if it is in one.
    pub identity: Option<Identity>,
    /// The addresses that it tells others.
    pub member: Member,
    /// Milliseconds since 1970, by its own clock.
    pub clock: u64,
    /// Bytes that its disk has left, if that is known.
    pub disk_free: Option<u64>,
    /// The groups that are on it, by their numbers.
    pub groups: BTreeMap<u32, GroupDescription>,
    /// Where the groups are, these and others.
    pub places: Places,
}

/// A group, as one of its nodes sees it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GroupDescription {
    /// The number of the leader, if one is known.
    pub leader: Option<u64>,
    /// The term.
    pub term: u64,
    /// The index of the last entry in the log; 0 if there is none.
    pub last: u64,
    /// The index of the last applied entry; 0 if there is none.
    pub applied: u64,
    /// The instant that was applied, in milliseconds since 1970.
    pub instant: u64,
    /// The members, by their numbers.
    pub members: BTreeMap<u64, Member>,
    /// Those of the members that vote.
    pub voters: Vec<u64>,
    /// Of the leader: the last index that each member is known to have.
    pub matched: BTreeMap<u64, u64>,
}
