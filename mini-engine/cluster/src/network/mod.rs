//! The network to the other nodes, in the form that openraft uses.

mod dialer;
mod link;
mod peers;
mod snapshot;

pub(crate) use dialer::{Credentials, Dialer};
pub(crate) use link::{Described, Link};
pub(crate) use peers::{Peer, Peers};
pub(crate) use snapshot::{Snapshot, fetch, receive, send_parts};
