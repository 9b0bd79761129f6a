//! [`Refused`]: the reasons why a group refuses a client's request, and the error reply for each.
//!
//! Clients decide by the first word of an error. MOVED and CLUSTERDOWN mean that nothing was proposed: clients try again, at another node or later.
//! UNCERTAIN means that the write may have taken place or may still do so; no node can decide this now. No client library repeats
//! such a write by itself.

use openraft::errors::{ClientWriteError, Fatal, ForwardReason, ForwardToLeader, LinearizableReadError, RaftError};

use crate::types::{Member, TypeConfig};

/// The reason for a refusal; one reason may apply to many requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// This node is not the leader. Contains the leader, if it is known. Nothing was proposed.
    NotLeader(Option<Member>),
    /// The leader cannot reach a majority. Nothing was proposed.
    NoMajority(String),
    /// The write was proposed, but its outcome is unknown.
    Uncertain(String),
}

impl Refused {
    /// The refusal of a group that was stopped before the request.
    pub(super) fn ended() -> Self {
        Self::NoMajority("this node is stopping".into())
    }

    pub(super) fn timed_out(seconds: u64) -> Self {
        Self::Uncertain(format!("no majority has confirmed the write within {seconds} s"))
    }

    pub(super) fn by_fatal(fatal: &Fatal<TypeConfig>) -> Self {
        Self::NoMajority(format!("this node has stopped taking part: {fatal}"))
    }

    fn forwarded(forward: ForwardToLeader<TypeConfig>) -> Self {
        match forward.reason {
            ForwardReason::LeaseExpired => Self::NoMajority("the leader does not hear a majority of the nodes".into()),
            ForwardReason::NotLeader => Self::NotLeader(forward.leader_node),
            // The next leader has not learnt yet that it leads, and would send clients back; so clients wait instead.
            ForwardReason::LeadershipTransfer => Self::NotLeader(None),
        }
    }

    pub(super) fn of_write(error: ClientWriteError<TypeConfig>) -> Self {
        match error {
            // openraft rejected the write before its entry was appended.
            ClientWriteError::ForwardToLeader(forward) => Self::forwarded(forward),
            other => Self::Uncertain(other.to_string()),
        }
    }

    pub(super) fn of_read(error: RaftError<TypeConfig, LinearizableReadError<TypeConfig>>) -> Self {
        match error {
            RaftError::APIError(LinearizableReadError::ForwardToLeader(forward)) => Self::forwarded(forward),
            RaftError::APIError(LinearizableReadError::QuorumNotEnough(_)) => {
                Self::NoMajority("the leader does not hear a majority of the nodes".into())
            }
            RaftError::Fatal(fatal) => Self::by_fatal(&fatal),
        }
    }

    /// The text of the error reply for a request in this slot.
    pub(crate) fn text(&self, slot: u16) -> String {
        match self {
            Self::NotLeader(Some(member)) => format!("MOVED {slot} {}", member.clients),
            Self::NotLeader(None) => "CLUSTERDOWN The cluster is down: no leader is known".into(),
            Self::NoMajority(why) => format!("CLUSTERDOWN The cluster is down: {why}"),
            Self::Uncertain(why) => format!("UNCERTAIN The write may take place or not: {why}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_not_proposed_is_said_to_be_worth_another_try() {
        // Catches a refusal that makes a client repeat a write by itself although the first one may take place: an INCR would count twice.
        let member = Member { cluster: "h:1".into(), clients: "h:2".into() };
        let forward = |reason, leader_node| ForwardToLeader { leader_id: None, leader_node, reason };
        let of_write = |error| Refused::of_write(error).text(7);
        let moved = forward(ForwardReason::NotLeader, Some(member.clone()));
        assert_eq!(of_write(ClientWriteError::ForwardToLeader(moved.clone())), "MOVED 7 h:2");
        for reason in [ForwardReason::NotLeader, ForwardReason::LeaseExpired] {
            let text = of_write(ClientWriteError::ForwardToLeader(forward(reason, None)));
            assert!(text.starts_with("CLUSTERDOWN The cluster is down: "), "{text}");
        }
        for text in [of_write(ClientWriteError::LogEntryDiscarded(moved)), Refused::timed_out(4).text(7)] {
            assert!(text.starts_with("UNCERTAIN "), "{text}");
        }
    }
}
