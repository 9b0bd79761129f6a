//! Creating, changing and describing a cluster: the part of the nodes, and the part of the commands.

pub(crate) mod answer;
mod client;
mod init;
mod members;
mod status;

pub use client::ControlClient;
pub use members::Removed;
pub use status::{NodeStatus, Status};
