//! A server that gives clients of the Redis protocol access to a [`mini_engine`] database.
//!
//! One thread carries out all requests: an event loop (`net/event_loop.rs`). In each turn it reads the input that has arrived from all clients,
//! carries out the requests, has all writes synced at once, and only then sends the replies. Redis does the same, and it fits here because:
//! * The sync is the main cost of a durable write, and one sync serves all clients of a turn. The longer a sync takes, the more requests wait for the
//!   next turn and share its sync.
//! * Commands that read, decide and write (INCR, SET NX, transactions) are atomic without a lock, since no other command is carried out in between.
//! * On a machine with few cores, a thread for each client would spend more time on waking threads than on the commands, and so would an asynchronous
//!   runtime; neither makes a sync shorter.
//!
//! The event loop never makes a call that *blocks*, which means: waits for another thread for an unknown time. Such calls are the wait of a write for
//! a flush, a compaction or the next log; the sync; and whole jobs: counting, checkpoints, loading. Other threads make these calls (`net/worker.rs`).
//! The loop's own work takes a bounded time: as in Redis, a large range, or a value that is read from a slow disk, delays other clients.
//!
//! After a crash at any moment, all writes are in the log, in order; with [`ServerDurability::Synced`] no reply was sent for a write that is not
//! durable. So no acknowledged write is lost. Unacknowledged writes may be there too, as after any crash.
//!
//! The program `examples/embedded_server.rs` uses its database and serves it at the same time.
//!
//! A node of a cluster serves its clients with the same event loop, which passes requests for keys to the groups ([`replicated::Cluster`]).
//!
//! The modules, each of which uses only earlier ones: `transport` and `tls` (sockets), `protocol` (bytes of requests and replies), `groups` (the
//! boundary to the groups of a cluster), `state` (kept between requests), `commands`, `session` (one client's requests, without sockets), `net`; in
//! addition `replicated`, which carries out the requests that a group has agreed on.
#![forbid(unsafe_code)]

mod commands;
mod error;
mod groups;
mod net;
mod protocol;
pub mod replicated;
mod session;
mod settings;
mod state;
#[cfg(feature = "tls")]
mod tls;
#[cfg(not(feature = "tls"))]
#[path = "without_tls.rs"]
mod tls;
mod transport;

pub use error::{Error, Result};
pub use net::{Address, Server, Stopper, TlsReloader};
pub use settings::{Limits, Protocol, ServerDurability, Settings, TlsFiles};

/// The README's example, run as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
