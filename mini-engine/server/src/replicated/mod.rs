//! Servers that are nodes of a cluster: the boundary to the groups, and the commands that are carried out on their databases. This module has no
//! consensus; `mini-engine-cluster` adds it.
//!
//! * [`Server::run_in_cluster`](crate::Server::run_in_cluster) passes requests for keys to [`Cluster`], and handles all other requests itself.
//! * A [`Proposal`] holds writes of any number of clients, for the log of a group. Every node [applies](Executor::apply) it, with the same contents
//!   and replies as a result, whatever the node's clock and settings are.
//! * An [`Executor`] also carries out reads.
//! * [`Watches`] records which watched keys are written, for transactions.
//! * An [`AppliedInstant`] is the clock of a group's database.
//!
//! ```
//! use mini_engine::{Db, Durability, WriteBatch};
//! use mini_engine_server::replicated::{AppliedInstant, Executor, Proposal, Request};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! let db = Db::open(dir.path())?;
//! let instant = AppliedInstant::default();
//! let write = Request::new(["SET", "greeting", "hello"]).into();
//!
//! // The log of the group would be here. Then each node does this.
//! let proposal = Proposal { at: 1_700_000_000_000, writes: vec![write] };
//! let mut batch = WriteBatch::new();
//! let replies = Executor::new(instant.clone()).apply(&db, 1, &proposal, &mut batch)?;
//! db.write(batch, Durability::Buffered)?;
//! assert_eq!(replies.0, [b"+OK\r\n"]);
//! # Ok(())
//! # }
//! ```

mod executor;
mod instant;
mod watches;

pub use self::executor::{Executor, KEYSPACE};
pub use self::instant::AppliedInstant;
pub use self::watches::Watches;
pub use crate::commands::slots::{SLOTS, slot_of};
pub use crate::groups::{
    Access, Cluster, Gauge, GroupRequests, Proposal, Replies, ReplySender, Request, Standing, Write, encode_error,
};
pub use crate::protocol::cursors::ScanCursors;
pub use crate::protocol::reply::Reply;
pub use crate::settings::MAX_REQUEST_BYTES;
#[cfg(feature = "tls")]
pub use crate::tls::{certificates, private_key, unusable};

#[cfg(test)]
mod tests;
