//! A server of a [`mini_engine`] database, which clients of the Redis protocol drive.
//!
//! One thread carries out what clients ask for: an event loop (`net/event_loop.rs`) reads what has arrived from all of them, carries
//! it out, has all writes of that turn synced at once, and only then sends the replies. That is how Redis works, and it fits here:
//! * The sync is what a durable write costs, and one sync serves all clients of a turn. The longer it takes, the more requests
//!   wait for the next turn, and the more share its sync.
//! * Commands that read, decide and write (INCR, SET NX, transactions) are atomic without a lock, since none comes in between.
//! * With few cores a thread for each client would spend more on waking threads than on the commands, and so would an
//!   asynchronous runtime; neither makes a sync shorter.
//!
//! The loop never makes a call that *blocks*: that waits for another thread, for as long as that takes. Such calls are the wait of a write
//! for a flush, a compaction or the next log, the sync, and whole jobs: counting, checkpoints, loading. Threads have them
//! (`net/worker.rs`). What is left on the loop is work of its own, which has an end: a large range, or a value that is read from a slow
//! disk, holds up other clients for as long as it takes, as in Redis.
//!
//! A crash at any moment: what was written is in the log, in order; with [`ServerDurability::Synced`] no reply was sent for what is not
//! durable. So no acknowledged write is lost. Unacknowledged ones may be there, as after any crash.
//!
//! Rooms, each of which uses those before it: `protocol` (bytes of requests and replies), `state` (what is kept between requests),
//! `commands`, `session` (one client's requests, without sockets), `net`.
#![forbid(unsafe_code)]

mod commands;
mod error;
mod net;
mod protocol;
mod session;
mod settings;
mod state;

pub use error::{Error, Result};
pub use net::{Server, Stopper};
pub use settings::{Limits, Protocol, ServerDurability, Settings};
