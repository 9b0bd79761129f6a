//! Whether replies must wait for a sync.

use crate::settings::ServerDurability;

pub(crate) struct Syncs {
    durability: ServerDurability,
    /// Whether something was written since the last sync.
    pub(crate) is_unsynced: bool,
    /// Whether a client requested a sync, independently of the durability setting.
    pub(crate) is_requested: bool,
    /// The number of jobs under way whose writes may be seen before they are synced.
    pub(crate) loads: usize,
}

impl Syncs {
    pub(crate) fn new(durability: ServerDurability) -> Self {
        Self { durability, is_unsynced: false, is_requested: false, loads: 0 }
    }

    /// Whether the replies of this turn must wait for a sync.
    pub(crate) fn are_needed(&self) -> bool {
        let shows_unsynced = self.is_unsynced || self.loads > 0;
        self.is_requested || (shows_unsynced && self.durability == ServerDurability::Synced)
    }

    /// Records that a sync of everything that was written begins.
    pub(crate) fn begin(&mut self) {
        (self.is_unsynced, self.is_requested) = (false, false);
    }

    /// Records the end of a job that has loaded a file. A job that has failed has not synced its writes.
    pub(crate) fn end_load(&mut self) {
        (self.loads, self.is_unsynced) = (self.loads - 1, true);
    }
}
