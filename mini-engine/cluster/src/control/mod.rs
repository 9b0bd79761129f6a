//! Making, changing and showing a cluster: a node's side, and that of the commands.

pub(crate) mod answer;
mod client;
mod init;
mod members;
mod status;

pub use client::ControlClient;
pub use members::Removed;
pub use status::{NodeStatus, Status};
