//! The bodies of the fuzz targets. Each decodes any bytes: into operations that an ordinary map and a table (or the engine) both carry out, into
//! damage to a file of a database, or into data that clients send to the server. A body panics where the map and the table differ. It returns the
//! operations and their outcomes.
//!
//! They are plain functions, so a test replays every committed input on a stable compiler.

/// Whether all operations of a thread use one shard: `models` asks.
const THREADS_KEEP_SHARDS: bool = true;

mod damage;
mod engine;
/// The operations of both tables that fastskip's own tests draw.
#[path = "../../fastskip/tests/models/mod.rs"]
mod models;
mod seal;
mod server;

// The server's files without sockets and threads; the server's crate does not export these files. They import each other from the root of
// their crate, so they are at the root of this one.
#[allow(dead_code, unreachable_pub, unused_imports, reason = "sockets, threads and clusters use it")]
#[path = "../../mini-engine/server/src/commands/mod.rs"]
mod commands;
#[allow(dead_code, unreachable_pub, unused_imports, reason = "sockets and clusters use it")]
#[path = "../../mini-engine/server/src/groups/mod.rs"]
mod groups;
#[allow(dead_code, unreachable_pub, reason = "sockets and threads use it; the server's users see it")]
#[path = "../../mini-engine/server/src/protocol/mod.rs"]
mod protocol;
#[allow(dead_code, unused_imports, reason = "sockets, threads and clusters use it")]
#[path = "../../mini-engine/server/src/session/mod.rs"]
mod session;
#[allow(dead_code, unreachable_pub, reason = "sockets and threads use it; the server's users see it")]
#[path = "../../mini-engine/server/src/settings.rs"]
mod settings;
#[allow(dead_code, unreachable_pub, reason = "sockets and threads use it; clusters see it")]
#[path = "../../mini-engine/server/src/state/mod.rs"]
mod state;

pub use damage::{file_dump, log_replay, manifest, table_block, table_footer, table_partition, table_root};
pub use engine::engine_ops;
pub use models::list::{SkipListOp, skiplist_ops};
pub use models::memtable::{MemtableOp, memtable_ops};
pub use models::{Met, order_ops};
pub use server::{COMMANDS, server_requests};

/// A target's body.
pub type Body = fn(&[u8]) -> Met;

/// Every target: its name and its body.
pub const TARGETS: [(&str, Body); 11] = [
    ("skiplist_ops", skiplist_ops),
    ("memtable_ops", memtable_ops),
    ("engine_ops", engine_ops),
    ("log_replay", log_replay),
    ("table_block", table_block),
    ("table_partition", table_partition),
    ("table_root", table_root),
    ("table_footer", table_footer),
    ("manifest", manifest),
    ("file_dump", file_dump),
    ("server_requests", server_requests),
];
