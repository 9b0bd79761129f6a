//! Creating, changing and describing a cluster: the part of the nodes, and the part of the commands.

pub(crate) mod answer;
mod backup;
mod check;
mod client;
mod init;
mod leader;
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
