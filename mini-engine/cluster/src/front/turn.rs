//! [`Turn`]: the requests of a client that are carried out together, taken from its input.

use bytes::{Buf, BytesMut};
use mini_engine_server::replicated::{Access, Conversation, Front, Next, Request, Write};

use crate::group::{Leader, Refused};
use crate::local::Groups;

/// Bounds of a turn: one more request may go beyond them.
const MOST_REQUESTS: usize = 1000;
const MOST_BYTES: usize = 1 << 20;

/// What is to be done next.
pub(super) enum Turn {
    /// More input is needed.
    Input,
    /// There are enough replies, and perhaps more requests in the input.
    Enough,
    /// Writes, each with its slot.
    Writes(Vec<(u16, Write)>),
    /// Reads.
    Reads(Vec<Read>),
    Watch {
        keys: Vec<Vec<u8>>,
        slot: u16,
    },
    Cluster(Request),
    Close,
}

pub(super) struct Read {
    pub(super) request: Request,
    pub(super) slot: u16,
    pub(super) may_be_stale: bool,
}

/// What a request that ended a turn wants: it begins the next one.
#[derive(Default)]
pub(super) struct Held(Option<(Next, Vec<u8>)>);

/// Where requests come from.
pub(super) struct Source<'a> {
    pub(super) groups: &'a Groups,
    pub(super) front: &'a Front,
    pub(super) conversation: &'a mut Conversation,
    pub(super) input: &'a mut BytesMut,
    pub(super) held: &'a mut Held,
}

impl Source<'_> {
    /// The next turn. Replies that are before it are appended to `out`.
    pub(super) fn turn(&mut self, out: &mut Vec<u8>) -> Turn {
        let mut turn = Turn::Input;
        let mut bytes = 0;
        loop {
            let (next, replied) = self.next();
            if !turn.takes(&next) {
                self.held.0 = Some((next, replied));
                return turn;
            }
            out.extend_from_slice(&replied);
            match next {
                Next::Incomplete => return turn,
                Next::Answered => {}
                Next::Watch { keys, slot } => return Turn::Watch { keys, slot },
                Next::Cluster(request) => return Turn::Cluster(request),
                Next::Close => return Turn::Close,
                Next::Write { write, slot } => {
                    bytes += write.size();
                    turn.add_write(slot, write);
                }
                Next::Read { request, slot, may_be_stale } => {
                    bytes += request.size();
                    turn.add_read(Read { request, slot, may_be_stale });
                }
            }
            if turn.len() >= MOST_REQUESTS || bytes >= MOST_BYTES || out.len() >= MOST_BYTES {
                return if let Turn::Input = turn { Turn::Enough } else { turn };
            }
        }
    }

    /// The next request, and the reply if it has one already.
    fn next(&mut self) -> (Next, Vec<u8>) {
        if let Some(held) = self.held.0.take() {
            return held;
        }
        let mut replied = Vec::new();
        let redirect = |slot, access| redirection(self.groups, slot, access);
        let (taken, next) = self.conversation.next(self.front, self.input, &redirect, &mut replied);
        self.input.advance(taken);
        (next, replied)
    }
}

impl Turn {
    /// Whether a request may join the turn.
    fn takes(&self, next: &Next) -> bool {
        match self {
            Self::Input => true,
            Self::Writes(_) => matches!(next, Next::Write { .. } | Next::Incomplete),
            Self::Reads(_) => matches!(next, Next::Read { .. } | Next::Incomplete),
            Self::Enough | Self::Watch { .. } | Self::Cluster(_) | Self::Close => false,
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Writes(writes) => writes.len(),
            Self::Reads(reads) => reads.len(),
            _ => 0,
        }
    }

    fn add_write(&mut self, slot: u16, write: Write) {
        match self {
            Self::Writes(writes) => writes.push((slot, write)),
            _ => *self = Self::Writes(vec![(slot, write)]),
        }
    }

    fn add_read(&mut self, read: Read) {
        match self {
            Self::Reads(reads) => reads.push(read),
            _ => *self = Self::Reads(vec![read]),
        }
    }
}

/// Why this node does not carry out a request for a slot; `None` if it does.
fn redirection(groups: &Groups, slot: u16, access: Access) -> Option<String> {
    let number = groups.of_slot(slot);
    if access == Access::StaleRead && groups.get(number).is_some_and(|group| group.votes()) {
        return None;
    }
    match groups.leader(number) {
        Leader::Here => None,
        Leader::There(member) => Some(Refused::NotLeader(Some(member)).text(slot)),
        Leader::Unknown => Some(Refused::NotLeader(None).text(slot)),
    }
}
