//! [`Groups`]: what the event loop's thread sees of a cluster. It asks, goes on with other clients, and is woken by the [`Answer`].

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};

use mini_engine::Db;
use mio::Waker;

use super::proposal::Write;
use super::request::Request;
use crate::protocol::cursors::ScanCursors;
use crate::protocol::reply::Reply;

/// A client: the place of its connection, and its number.
pub(crate) type Client = (usize, u64);

/// The access to keys that a request needs from the node that carries it out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// To write.
    Write,
    /// To read what was acknowledged last.
    Read,
    /// To read what may be outdated.
    StaleRead,
}

/// Requests of one client for the groups of a cluster, in order, each with the slot of its keys; 0 if it has none.
#[derive(Debug)]
pub enum Ask {
    /// Writes and transactions, for [`Proposal`](super::Proposal)s.
    Writes(Vec<(u16, Write)>),
    /// Reads, for [`Executor::read`](crate::replicated::Executor::read).
    Reads {
        /// The requests.
        requests: Vec<(u16, Request)>,
        /// Whether the client has sent READONLY, so that any node may answer, with values that may be outdated.
        may_be_stale: bool,
        /// The cursors of SCAN, which are those of the node.
        cursors: ScanCursors,
    },
}

/// The groups of a cluster. The event loop calls these functions, so none may block.
pub trait Groups: Send {
    /// Whether the cluster has one group only, so that keys of all slots are together.
    fn is_one_group(&self) -> bool;

    /// The error for a request that this node does not carry out, such as `MOVED 7 127.0.0.1:7001`; `None` if it does.
    fn redirect(&self, slot: u16, access: Access) -> Option<String>;

    /// Begins what is asked for, and returns at once. Of reads, the first ones may be answered alone: the others are asked for again.
    fn begin(&self, ask: Ask, answer: Answer);

    /// The reply to CLUSTER with its arguments.
    fn cluster(&self, request: &Request) -> Reply;

    /// The database that INFO describes.
    fn db(&self) -> Db;
}

/// The bytes of the replies to the first requests that a client has asked for.
pub(crate) type Answered = Vec<Vec<u8>>;

/// Something that is dropped once the event loop has taken the replies, such as a permit for their memory.
type Kept = Option<Box<dyn Send>>;

/// Takes the replies to an [`Ask`] back to its client. If it is dropped, the client receives an error for each request.
pub struct Answer {
    client: Client,
    replies: Answered,
    kept: Kept,
    to: Sender<(Client, Answered, Kept)>,
    waker: Arc<Waker>,
}

impl Answer {
    /// Sends the replies, each as its bytes. `kept` is dropped once they are taken.
    pub fn send(mut self, replies: Vec<Vec<u8>>, kept: Option<Box<dyn Send>>) {
        (self.replies, self.kept) = (replies, kept);
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        // At the end of the server nobody receives it.
        if self.to.send((self.client, std::mem::take(&mut self.replies), self.kept.take())).is_ok() {
            self.waker.wake().ok();
        }
    }
}

/// The event loop's side of the answers.
pub(crate) struct Answers {
    sender: Sender<(Client, Answered, Kept)>,
    receiver: Receiver<(Client, Answered, Kept)>,
    waker: Arc<Waker>,
}

impl Answers {
    pub(crate) fn new(waker: Arc<Waker>) -> Self {
        let (sender, receiver) = mpsc::channel();
        Self { sender, receiver, waker }
    }

    /// The way back to a client.
    pub(crate) fn to(&self, client: Client) -> Answer {
        Answer { client, replies: Vec::new(), kept: None, to: self.sender.clone(), waker: Arc::clone(&self.waker) }
    }

    /// The next answer that has come.
    pub(crate) fn next(&self) -> Option<(Client, Answered)> {
        self.receiver.try_recv().ok().map(|(client, replies, _)| (client, replies))
    }
}
