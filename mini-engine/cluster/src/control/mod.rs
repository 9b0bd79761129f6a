//! Creating, changing and describing a cluster: the part of the commands. That of the nodes is in `inbound` and `group`.

mod backup;
mod check;
mod client;
mod init;
mod members;
mod new_directory;
mod rebalance;
mod recover;
mod status;

pub use check::Check;
pub use client::ControlClient;
pub use members::Removed;
pub use recover::recover;
pub use status::{NodeStatus, Status};
