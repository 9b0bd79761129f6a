//! A Raft group on this node: its log, its database, and the operations that clients' requests need.
//!
//! [`Group::write`] queues writes, which a task then proposes together (`proposals.rs`). [`Group::settle`] waits until a read of the database shows
//! everything that was acknowledged before, by any leader (`barrier.rs`).

mod barrier;
mod changes;
mod describe;
mod handle;
mod open;
mod parts;
mod proposals;
mod refused;
mod room;

pub(crate) use self::changes::LEVEL;
pub(crate) use self::handle::Group;
pub(crate) use self::parts::Parts;
pub(crate) use self::refused::Refused;
