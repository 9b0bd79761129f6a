//! Control requests, which commands and nodes that search for a group send to a node, and the replies.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::checks::Checked;
use crate::identity::{Identity, Joined};
use crate::places::{Membership, Places};
use crate::types::{Member, Position};
use crate::wire::version::Versions;

/// A control request.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum ControlRequest {
    /// The sender adds its cluster's number and the known places of groups. So a moved node is found even if nobody queries the nodes that know its
    /// place.
    Describe(Option<(u64, Places)>),
    /// The node gets this identity, if it has none yet, and these groups in addition to those that it has. The groups have no members yet, or the
    /// node learns the members from a leader. The node queries the others, which are given by their addresses, for the places of groups.
    Become { identity: Identity, joined: Joined, others: BTreeSet<String> },
    /// For a member of the group with this number.
    Group(u32, GroupRequest),
}

/// A request about a group: for the leader, except the first and the last one.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum GroupRequest {
    /// Sets the first members. Sent to one node only, once.
    Initialize(BTreeMap<u64, Member>),
    /// A node receives the group's log, but has no vote.
    AddLearner(u64, Member),
    /// A learner (a member without a vote) gets a vote.
    Promote(u64),
    /// A node is removed; with a position, only if the entry there has set the newest members.
    Remove(u64, Option<Position>),
    /// The leader hands over to this node, which votes.
    HandOver(u64),
    /// An entry is added to the log at which all replicas hash their contents.
    Check,
    /// For any member: the hashes at the entry with this index.
    Checked(u64),
}

/// The reply to a control request.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum ControlReply {
    Description(Box<Description>),
    /// It is done. The entry at this position, which is committed, changed the members, or is a check.
    Done(Option<Position>),
    /// The node does not lead the group, or does not have it.
    NotLeader,
    Checked(Checked),
}

/// A node's description of itself and its groups.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Description {
    /// The node's place in a cluster, if it has one.
    pub identity: Option<Identity>,
    /// The addresses that the node tells to others.
    pub member: Member,
    /// Milliseconds since 1970, by the node's own clock.
    pub clock: u64,
    /// The number of free bytes on the node's disk, if known.
    pub disk_free: Option<u64>,
    /// Whether the disk is almost full.
    pub lacks_room: bool,
    /// The groups on the node, by their numbers.
    pub groups: BTreeMap<u32, GroupDescription>,
    /// The places of all groups, including those on this node.
    pub places: Places,
    /// The version of the software.
    pub release: String,
    /// The versions of the protocol that the node speaks with others.
    pub protocol: Versions,
}

/// A node's description of one of its groups.
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
    /// The instant of the last applied proposal, in milliseconds since 1970.
    pub instant: u64,
    /// On the leader: whether it refuses writes that add data, because it or too many voters lack room.
    pub refuses_growth: bool,
    /// The members; they may not be committed yet.
    pub membership: Membership,
    /// On the leader: the last index that each member is known to have stored.
    pub matched: BTreeMap<u64, u64>,
}
