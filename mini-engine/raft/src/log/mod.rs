//! The logs of Raft groups, in one database.
//!
//! Each entry is a pair of its index and its encoding. An append writes its entries to the log of the database, without a sync; then the entries
//! can be read, and survive the process. A thread makes one sync for all waiting appends and votes ([`logs`]). The database keeps its writes in
//! order, across crashes too, so the log of a group never has a hole: a power cut loses only a suffix of all writes.
//!
//! A purge writes one record, and reads then ignore entries up to the index in it. These entries are removed later, many at once (`logs.rs`).

mod keys;
mod logs;
mod reader;
mod sizes;
mod store;

pub use self::logs::Logs;
pub use self::reader::LogReader;
pub use self::store::LogStore;
