//! [`Apply`]: the application's handling of log entries.

use std::io::Result;

use mini_engine::{Db, WriteBatch};
use openraft::RaftTypeConfig;

/// The application's part of a [`StateMachine`](crate::StateMachine): turns a log entry into writes and a response.
///
/// Every node applies the same entries in the same order, and must come to the same contents and responses. So both may depend only on the entry
/// and on the contents of the database, and not on a clock, a random number or a setting of this node.
///
/// ```
/// use std::io::Result;
///
/// use mini_engine::{Db, WriteBatch};
/// use openraft::EntryPayload;
/// use openraft_mini_engine::Apply;
///
/// openraft::declare_raft_types!(TypeConfig: D = String, R = u64, AsyncRuntime = openraft_rt_tokio::TokioRuntime);
///
/// /// Counts how often each word was proposed.
/// struct Counter;
///
/// impl Apply<TypeConfig> for Counter {
///     fn apply(&mut self, entry: openraft::type_config::alias::EntryOf<TypeConfig>, db: &Db, batch: &mut WriteBatch) -> Result<u64> {
///         let EntryPayload::Normal(word) = entry.payload else { return Ok(0) };
///         let count = db.get(&word)?.and_then(|bytes| Some(u64::from_le_bytes((*bytes).try_into().ok()?)));
///         let count = count.unwrap_or(0) + 1;
///         batch.insert(word, count.to_le_bytes())?;
///         Ok(count)
///     }
/// }
/// ```
pub trait Apply<C: RaftTypeConfig>: Send + Sync + 'static {
    /// Adds the writes of `entry` to `batch`, and returns the response to it. `db` must only be read.
    ///
    /// Blank entries and changes of the membership come here too, because they have a response; the state machine stores the membership itself. A
    /// request that cannot be carried out is not an error: the response states it, on every node.
    ///
    /// The batch may contain writes of earlier entries. The state machine then writes it with the entry's log id, as a whole or not at all.
    ///
    /// Keys that begin with [`RESERVED`](crate::RESERVED) belong to the state machine.
    ///
    /// # Errors
    /// Any error ends the node; nothing of the entry is stored.
    fn apply(&mut self, entry: C::Entry, db: &Db, batch: &mut WriteBatch) -> Result<C::R>;

    /// Whether [`apply`](Apply::apply) reads the database for this entry. If so, the writes of all earlier entries are in the database before the
    /// call. Otherwise they may still be in the batch, and consecutive entries share one batch, which takes less time. By default every entry reads.
    fn reads(&self, _entry: &C::Entry) -> bool {
        true
    }
}
