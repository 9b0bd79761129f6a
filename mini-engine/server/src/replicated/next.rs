//! What a conversation asks of its caller.

use super::proposal::Write;
use super::request::Request;

/// The next thing to be done for a client.
#[derive(Debug)]
pub enum Next {
    /// The request at the beginning of the input is not complete.
    Incomplete,
    /// The reply was appended to the output; an empty request has none.
    Answered,
    /// A request that reads keys of a slot.
    Read {
        /// For [`Executor::read`](super::Executor::read).
        request: Request,
        /// The slot of its keys; 0 if it has none.
        slot: u16,
        /// Whether the client has sent READONLY, so that any node may answer, with a value that may be outdated.
        may_be_stale: bool,
    },
    /// A request or a transaction that writes keys of a slot.
    Write {
        /// For a [`Proposal`](super::Proposal).
        write: Write,
        /// The slot of its keys; 0 if it has none.
        slot: u16,
    },
    /// WATCH: the keys are to be read by [`Executor::watch`](super::Executor::watch), and handed to [`Conversation::watch`](super::Conversation::watch).
    Watch {
        /// The keys.
        keys: Vec<Vec<u8>>,
        /// Their slot.
        slot: u16,
    },
    /// CLUSTER with its subcommand, which the caller answers.
    Cluster(Request),
    /// The connection ends when the output is sent.
    Close,
}

/// What a request needs of the node that carries it out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// To write.
    Write,
    /// To read what was acknowledged last.
    Read,
    /// To read what may be outdated.
    StaleRead,
}

/// Says for a slot and an access why this node does not carry a request out, as the reply will: `MOVED 7 127.0.0.1:7001`; `None` if it does.
pub type Redirect<'a> = &'a dyn Fn(u16, Access) -> Option<String>;
