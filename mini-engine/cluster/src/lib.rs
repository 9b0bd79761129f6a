//! A replicated server: several nodes, each a process with a directory, that serve cluster clients of the Redis protocol.
//!
//! A client's write is proposed to a Raft group ([openraft]), and acknowledged when a majority of the nodes has stored it on disk and the leader has
//! applied it. openraft does the consensus, `openraft-mini-engine` the storage, and `mini-engine-server` carries out requests on a database, in its
//! module [`replicated`](mini_engine_server::replicated). This crate connects the three.
//!
//! ```no_run
//! use mini_engine_cluster::{ControlClient, Node, Security, Settings};
//!
//! # async fn example() -> mini_engine_cluster::Result<()> {
//! let settings = Settings {
//!     dir: "node-1".into(),
//!     listen: "127.0.0.1:7001".into(),
//!     advertise: None,
//!     cluster_listen: "127.0.0.1:17001".into(),
//!     cluster_advertise: None,
//!     security: Security::default(),
//!     clients: mini_engine_server::Settings::default(),
//!     election_timeout: Settings::ELECTION_TIMEOUT,
//!     keep_log: None,
//!     min_free_bytes: None,
//!     max_bytes: None,
//! };
//! let node = Node::start(settings).await?;
//! // Once, when all nodes run.
//! ControlClient::new(&Security::default())?.init(&["127.0.0.1:17001".into()], 1, 1).await?;
//! # node.stop().await
//! # }
//! ```
//!
//! # Layers
//!
//! Each file uses only files above it.
//!
//! | | |
//! |---|---|
//! | `error`, `lock`, `seldom`, `settings` | |
//! | `slots`, `clock`, `types` | which group has a slot; the time of a group, and wrong clocks; what openraft is told |
//! | `checks` | hashes of a group's contents |
//! | `retention`, `space` | which entries of a log are kept for nodes that lack them; the space on the disk |
//! | `identity`, `places` | which node this is, with which groups; where all groups are |
//! | `starts` | whether a node's directory is an older copy |
//! | `wire` | what nodes say to each other: frames, the proof of the secret, TLS, messages |
//! | `network` | openraft's network; snapshots on their way |
//! | `application` | what a log entry does to the database |
//! | `group` | a Raft group on this node: proposals, barriers before reads, members |
//! | `local` | this node, and the groups that are on it |
//! | `control` | making, changing and showing a cluster: the side of the commands |
//! | `cluster_command`, `gauges` | the reply to CLUSTER; the metrics |
//! | `unproven` | connections before the proof of the secret |
//! | `inbound`, `gossip`, `bridge` | the requests of other nodes and of commands; what a node does by itself; clients' requests and the replies |
//! | `node` | starts and stops all of it |
//!
//! # What waits for what
//!
//! A write waits in the queue of its group while a few proposals are under way, and then for its own proposal: at most 5 seconds in total. A read
//! waits for a barrier, which it shares with reads that arrive in the meantime: at most 5 seconds. No request waits for reports about other groups:
//! the reply uses the present ones. Every call to another node has a deadline, and so has every client that does not take its replies.
#![forbid(unsafe_code)]

mod application;
mod bridge;
mod checks;
mod clock;
mod cluster_command;
mod control;
mod error;
mod gauges;
mod gossip;
mod group;
mod identity;
mod inbound;
mod local;
mod lock;
mod network;
mod node;
mod places;
mod retention;
mod seldom;
mod settings;
mod slots;
mod space;
mod starts;
mod types;
mod unproven;
mod wire;

pub use clock::ClockOffset;
pub use control::{Check, ControlClient, NodeStatus, Removed, Status, recover};
pub use error::{Error, Result};
pub use identity::Identity;
pub use node::Node;
pub use places::{Membership, Place, Places};
pub use settings::{MAX_GROUPS, NodeTls, Security, Settings};
pub use types::{Member, Position};
pub use wire::control::{Description, GroupDescription};
pub use wire::version::Versions;

#[cfg(test)]
mod tests;
