//! The way to the other nodes, as openraft uses it.

mod dialer;
mod link;
mod peers;
mod snapshot;

pub(crate) use dialer::Dialer;
pub(crate) use link::Link;
pub(crate) use peers::Peers;
pub(crate) use snapshot::receive;
