//! The state machine: a database that the application's entries change, and its snapshots.
//!
//! A directory holds them:
//!
//! | name | contents |
//! |---|---|
//! | `state-000007` | the database; only the one with the greatest number is used |
//! | `snapshot-000001` | a checkpoint that is being sent, made by this process |
//! | `incoming-000002` | a snapshot that is being received, or is complete and not installed |
//!
//! A snapshot is installed by one rename, from `incoming-000002` to `state-000008`, after all its bytes and names were synced. So a crash at any step
//! leaves the old database or the new one. An open uses the database with the greatest number, and removes everything else.
//!
//! A snapshot is made when openraft requests one, and is removed after it was sent. No snapshot is kept, because it would keep tables that
//! compactions have replaced since, up to the size of the database. The database itself is on disk, so it can be restored without a snapshot.

mod apply;
mod checkpoint;
mod chunk;
mod handle;
mod machine;
mod names;
mod receiver;
mod record;
mod stored;

pub use self::apply::Apply;
pub use self::checkpoint::Checkpoint;
pub use self::chunk::{Chunk, Chunks};
pub use self::handle::State;
pub use self::machine::{SnapshotBuilder, StateMachine};
pub use self::receiver::Receiver;
pub use self::record::RESERVED;
pub use self::stored::StoredState;
