//! The checkpoints of SAVE and BGSAVE.

use std::path::PathBuf;

use super::clock::unix_seconds;
use super::job::Job;
use crate::protocol::reply::Refusal;

pub(crate) struct Saves {
    /// The time of the last checkpoint, in seconds since 1970.
    pub(crate) last: u64,
    pub(crate) is_under_way: bool,
    /// Whether the last attempt to make a checkpoint failed.
    pub(crate) has_failed: bool,
}

impl Saves {
    pub(crate) fn new() -> Self {
        Self { last: unix_seconds(), is_under_way: false, has_failed: false }
    }

    /// Begins to make a checkpoint below this directory.
    pub(crate) fn begin(&mut self, checkpoints: PathBuf) -> Result<Job, Refusal> {
        match std::mem::replace(&mut self.is_under_way, true) {
            true => Err(Refusal::new("ERR Background save already in progress")),
            false => Ok(Job::Save(checkpoints)),
        }
    }

    pub(crate) fn end(&mut self, is_done: bool) {
        (self.is_under_way, self.has_failed) = (false, !is_done);
        if is_done {
            self.last = unix_seconds();
        }
    }
}
