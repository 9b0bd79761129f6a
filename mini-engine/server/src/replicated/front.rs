//! What the connections of a node share: the settings, who is connected, the scripts that were sent, the numbers of INFO, the cursors of SCAN.

use std::fmt::Display;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime};

use mini_engine::Db;

use super::request::MAX_REQUEST_BYTES;
use crate::settings::{Limits, Settings};
use crate::state::clock::since_1970;
use crate::state::cursors::Cursors;
use crate::state::databases::Database;
use crate::state::refused::Cause;
use crate::state::shared::Shared;

/// What the connections of a node of a cluster share. It holds the database that it was given first, and the one that it was given last.
pub struct Front {
    shared: Mutex<Shared>,
    cursors: Mutex<Cursors>,
    /// What clients have selected: none of their requests is carried out there, so it need not be the present one.
    pub(super) selected: Database,
    pub(super) is_one_group: bool,
}

impl Front {
    /// The front of a node with so many groups that listens on `address` and `port`. Of the settings, the password and the limits count, and the time
    /// from which on a request is slow. INFO describes `db`.
    pub fn new(settings: Settings, groups: u16, (address, port): (String, u16), db: Db) -> Self {
        let request_bytes = settings.limits.request_bytes.min(MAX_REQUEST_BYTES);
        let settings = Settings { limits: Limits { request_bytes, ..settings.limits }, databases: 1, ..settings };
        let first_cursor = since_1970(SystemTime::now()).as_nanos() as u64;
        let selected = Database::first(&db);
        let mut shared = Shared::new(db, settings, first_cursor);
        (shared.is_in_cluster, shared.address, shared.port) = (true, address, port);
        let cursors = Cursors::new(first_cursor).into();
        Self { shared: shared.into(), cursors, selected, is_one_group: groups == 1 }
    }

    /// From now on INFO describes `db`.
    pub fn use_db(&self, db: Db) {
        self.shared().db = db;
    }

    /// Records that the client with this `address` was refused or disconnected, for INFO; `why` is for the log.
    pub fn note(&self, cause: Cause, address: &str, why: impl Display) {
        self.shared().refused.note(cause, address, why);
    }

    /// The messages for the log that are due. To be called now and then.
    pub fn news(&self) -> impl Iterator<Item = String> {
        self.shared().refused.news(Instant::now()).into_iter().flatten()
    }

    pub(super) fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn cursors(&self) -> MutexGuard<'_, Cursors> {
        self.cursors.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
