//! What a replicated front end needs: the commands of this server, carried out on the databases of a cluster's groups. Without sockets, threads and
//! consensus; `mini-engine-cluster` has those.
//!
//! * A [`Conversation`] turns the bytes of a client into the [next thing to do](Next): it answers what concerns the connection, and finds the slot of
//!   everything else.
//! * A [`Proposal`] holds writes of any clients, for the log of a group. Every node [applies](Executor::apply) it, and comes to the same contents and
//!   replies whatever its clock and its settings are.
//! * An [`Executor`] also reads.
//! * An [`AppliedInstant`] is the clock of a group's database.
//!
//! ```
//! use mini_engine::{Db, Durability, WriteBatch};
//! use mini_engine_server::Settings;
//! use mini_engine_server::replicated::{AppliedInstant, Conversation, Executor, Front, Next, Proposal};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! let db = Db::open(dir.path())?;
//! let instant = AppliedInstant::default();
//! let front = Front::new(Settings::default(), 1, ("127.0.0.1".to_owned(), 6379), db.clone());
//! let mut conversation = Conversation::new(&front, ["127.0.0.1:50000".to_owned(), "127.0.0.1:6379".to_owned()]);
//! let mut out = Vec::new();
//! let (len, next) = conversation.next(&front, b"SET greeting hello\r\n", &|_slot, _access| None, &mut out);
//! assert_eq!(len, 20);
//! let Next::Write { write, slot: _ } = next else { unreachable!("SET writes") };
//!
//! // The log of the group would be here. Then each node does this.
//! let proposal = Proposal { at: 1_700_000_000_000, writes: vec![write] };
//! let mut batch = WriteBatch::new();
//! let replies = Executor::new(instant.clone()).apply(&db, &proposal, &mut batch)?;
//! db.write(batch, Durability::Buffered)?;
//! assert_eq!(replies.0, [b"+OK\r\n"]);
//! # Ok(())
//! # }
//! ```

mod conversation;
mod executor;
mod front;
mod instant;
mod next;
mod proposal;
mod request;
mod slots;

pub use self::conversation::Conversation;
pub use self::executor::{Executor, KEYSPACE};
pub use self::front::Front;
pub use self::instant::AppliedInstant;
pub use self::next::{Access, Next, Redirect};
pub use self::proposal::{Proposal, Replies, Watched, Write};
pub use self::request::{MAX_REQUEST_BYTES, Request};
pub use self::slots::{SLOTS, slot_of};
pub use crate::protocol::reply::Reply;
pub use crate::state::refused::Cause;
#[cfg(feature = "tls")]
pub use crate::tls::{certificates, for_clients, private_key, unusable};
pub use crate::transport::keep_alive;

#[cfg(test)]
mod tests;
