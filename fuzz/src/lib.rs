//! The bodies of the fuzz targets. They read any bytes as a list of operations, which an ordinary map and a table (or the engine) both carry out;
//! or as damage to a file of a database; or as data that clients send to the server. A body panics where the map and the table differ. It returns
//! what it met: the operations, and how they ended.
//!
//! They are plain functions, so a test replays every committed input on a stable compiler.

mod damage;
mod engine;
/// The operations of both tables that fastskip's own tests draw.
#[path = "../../fastskip/tests/models/mod.rs"]
mod models;
mod seal;
mod server;

// A server without its sockets and threads, which no user of the server's crate could do with. Its files name each other from the root of
// their crate, so they are at the root of this one.
#[allow(dead_code, unused_imports, reason = "sockets, threads and clusters use it")]
#[path = "../../mini-engine/server/src/commands/mod.rs"]
mod commands;
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
pub use models::Met;
pub use models::list::{SkipListOp, skiplist_ops};
pub use models::memtable::{MemtableOp, memtable_ops};
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
