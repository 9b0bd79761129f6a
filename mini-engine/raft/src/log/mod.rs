//! The logs of Raft groups, in one database.
//!
//! Each entry is a pair of its index and its encoding. An append writes its entries to the log of the database, without a sync; then they can be
//! read, and survive the process. A thread syncs for all appends and votes that have come meanwhile ([`logs`]). The database keeps its writes in
//! order, across crashes too, so the log of a group never has a hole: what is lost by a power cut is a suffix of all writes.
//!
//! A purge writes one record: entries up to there do not count any more. They are removed later, many at once (`logs.rs`).

mod keys;
mod logs;
mod reader;
mod sizes;
mod store;

pub use self::logs::Logs;
pub use self::reader::LogReader;
pub use self::store::LogStore;
