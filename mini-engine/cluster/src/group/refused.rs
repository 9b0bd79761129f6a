//! [`Refused`]: why a group did not do what a client asked for, and what the client is told.
//!
//! Clients act by the first word. MOVED and CLUSTERDOWN say that nothing was proposed: clients try again, elsewhere or later. UNCERTAIN says that the
//! write may take place, or may have taken place, although nobody can say so now. No client repeats that by itself.

use openraft::errors::{ClientWriteError, Fatal, ForwardReason, ForwardToLeader, LinearizableReadError, RaftError};

use crate::types::{Member, TypeConfig};

/// The reason, which may concern many requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// This node does not lead. The leader, if one is known. Nothing was proposed.
    NotLeader(Option<Member>),
    /// The leader has no majority. Nothing was proposed.
    NoMajority(String),
    /// It was proposed, and what became of it is not known.
    Uncertain(String),
}

impl Refused {
    /// The group was stopped before.
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
            // The next leader does not know yet that it is one, and would send clients back: they wait instead.
            ForwardReason::LeadershipTransfer => Self::NotLeader(None),
        }
    }

    pub(super) fn of_write(error: ClientWriteError<TypeConfig>) -> Self {
        match error {
            // openraft: rejected before its entry was appended.
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
        // Catches a write that a client repeats by itself although the first one may take place: an INCR that counts twice.
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
