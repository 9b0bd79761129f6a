//! The boundary between the event loop and the groups of a cluster: requests and their replies.

mod cluster;
mod proposal;
mod request;

pub use cluster::{Access, Cluster, Gauge, GroupRequests, ReplySender, Standing};
pub(crate) use cluster::{Client, GroupReplies, ReplyReceiver};
pub(crate) use proposal::{Changed, Kind, Transaction, Watched, decode_watched, encode_watched};
pub use proposal::{Proposal, Replies, Write};
pub(crate) use request::encode;
pub use request::{Request, encode_error};
