//! The state on which commands over keys depend.

use mini_engine::Db;

use super::scripts::Scripts;
use crate::protocol::cursors::ScanCursors;

/// The state on which commands over keys depend, other than the keys: no clients and no sockets.
pub(crate) struct KeyState {
    pub(crate) db: Db,
    /// The maximum bytes of a value and of a reply.
    pub(crate) request_bytes: usize,
    /// The number of databases.
    pub(crate) databases: usize,
    pub(crate) may_flush_all: bool,
    pub(crate) cursors: ScanCursors,
    pub(crate) scripts: Scripts,
}
