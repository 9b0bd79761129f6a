//! [`Cluster`]: the cluster, as the event loop uses it. The loop passes requests, serves other clients meanwhile, and is woken by the [`ReplySender`].

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};

use mini_engine::Db;
use mio::Waker;

use super::proposal::Write;
use super::request::Request;
use crate::protocol::cursors::ScanCursors;
use crate::protocol::reply::Reply;

/// The number of a client's connection, which is never used again.
pub(crate) type Client = usize;

/// The access to keys that a request needs from the node that carries it out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// A write.
    Write,
    /// A read at the leader, which sees everything that was acknowledged before.
    #[default]
    Read,
    /// Such a read at any node with the keys: the client has sent READONLY LINEARIZABLE.
    FollowerRead,
    /// A read at any node with the keys that may return outdated values: the client has sent READONLY.
    StaleRead,
}

/// Requests of one client for the groups of a cluster, in order. Each has the slot of its keys, or 0 if it has no keys.
#[derive(Debug)]
pub enum GroupRequests {
    /// Writes and transactions, for [`Proposal`](super::Proposal)s.
    Writes(Vec<(u16, Write)>),
    /// Reads, for [`Executor::read`](crate::replicated::Executor::read).
    Reads {
        /// The requests.
        requests: Vec<(u16, Request)>,
        /// Which kind of read all of them are.
        access: Access,
        /// The node's cursors of SCAN.
        cursors: ScanCursors,
    },
}

/// The place of a node among the others, for INFO and the metrics.
#[derive(Clone, Debug, Default)]
pub struct Standing {
    /// The number of nodes that follow this node, if it leads a group.
    pub followers: Option<usize>,
    /// Host and port, for clients, of the leader that this node follows otherwise, if it is known.
    pub leader: Option<(String, u16)>,
    /// Whether that leader was heard lately.
    pub is_leader_heard: bool,
    /// The milliseconds by which the node's clock is ahead of most nodes' clocks.
    pub clock_ahead: i64,
    /// Whether the node's disk is almost full, or a group refuses writes that add data because those of other nodes are.
    pub lacks_room: bool,
}

/// A figure of the cluster for Prometheus: the name, without the prefix that all metrics have, the description, and a number for each set of labels,
/// such as `{group="0"}`.
pub type Gauge = (&'static str, &'static str, Vec<(String, u64)>);

/// The groups of a cluster. The event loop calls these functions, so none of them may block.
pub trait Cluster: Send {
    /// Whether the cluster has only one group, so that the keys of all slots are together.
    fn is_one_group(&self) -> bool;

    /// The error for a request that this node does not carry out, such as `MOVED 7 127.0.0.1:7001`; `None` if this node carries it out.
    fn redirect(&self, slot: u16, access: Access) -> Option<String>;

    /// Starts the requests, and returns at once. For reads, only the first replies may be sent: the server then passes the remaining requests again.
    fn begin(&self, requests: GroupRequests, answer: ReplySender);

    /// The reply to CLUSTER with these arguments.
    fn cluster(&self, request: &Request) -> Reply;

    /// The place of this node among the others.
    fn standing(&self) -> Standing;

    /// The figures of the cluster for the metrics.
    fn gauges(&self) -> Vec<Gauge>;

    /// The database that INFO describes.
    fn db(&self) -> Db;
}

/// The bytes of the replies to the first of the requests that a client has passed.
pub(crate) type GroupReplies = Vec<Vec<u8>>;

/// Something that is dropped once the event loop has taken the replies, such as a permit for their memory.
type Kept = Option<Box<dyn Send>>;

/// Sends the replies to an [`GroupRequests`] back to the event loop, for the client. If it is dropped, the client receives an error for each request.
pub struct ReplySender {
    client: Client,
    replies: GroupReplies,
    kept: Kept,
    to: Sender<(Client, GroupReplies, Kept)>,
    waker: Arc<Waker>,
}

impl ReplySender {
    /// Sends the replies; each is given as its bytes. `kept` is dropped once the event loop has taken the replies.
    pub fn send(mut self, replies: Vec<Vec<u8>>, kept: Option<Box<dyn Send>>) {
        (self.replies, self.kept) = (replies, kept);
    }
}

impl Drop for ReplySender {
    fn drop(&mut self) {
        // When the server has ended, nobody receives the replies.
        if self.to.send((self.client, std::mem::take(&mut self.replies), self.kept.take())).is_ok() {
            self.waker.wake().ok();
        }
    }
}

/// The event loop's receiver of the replies.
pub(crate) struct ReplyReceiver {
    sender: Sender<(Client, GroupReplies, Kept)>,
    receiver: Receiver<(Client, GroupReplies, Kept)>,
    waker: Arc<Waker>,
}

impl ReplyReceiver {
    pub(crate) fn new(waker: Arc<Waker>) -> Self {
        let (sender, receiver) = mpsc::channel();
        Self { sender, receiver, waker }
    }

    /// The sender of replies to a client.
    pub(crate) fn to(&self, client: Client) -> ReplySender {
        ReplySender { client, replies: Vec::new(), kept: None, to: self.sender.clone(), waker: Arc::clone(&self.waker) }
    }

    /// The next replies that have arrived, and their client.
    pub(crate) fn next(&self) -> Option<(Client, GroupReplies)> {
        self.receiver.try_recv().ok().map(|(client, replies, _)| (client, replies))
    }
}
