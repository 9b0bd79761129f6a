//! [`Handle`]: the part that all handles of an open database share.

use std::sync::{Arc, Mutex};

use super::background::Workers;
use super::core::{Core, Phase, remove_spare};
use super::recovery::{Follower, RecoveryReport};
use crate::lock::lock;

/// The part that all handles of a database and its keyspaces share. It is dropped with the last of them.
#[derive(Debug)]
pub(crate) struct Handle {
    pub(crate) core: Arc<Core>,
    pub(super) workers: Mutex<Option<Workers>>,
    pub(super) report: RecoveryReport,
    /// Of a reader beside a writer. Locked before all locks of the core.
    pub(super) follower: Option<Mutex<Follower>>,
}

impl Handle {
    /// Stops the workers: a running flush or compaction is cancelled, and its partial output is removed. The inputs, including the logs, stay in
    /// place. The log that was created for the next rotation is removed, and so is the spare file.
    pub(super) fn stop(&self) {
        if self.core.is_forked() {
            // In a fork, the workers and the files belong to the other process.
            return;
        }
        self.core.enter_phase(Phase::Stopped);
        // The workers are taken out first, so that the lock is not held during the join.
        let workers = lock(&self.workers).take();
        if let Some(workers) = workers {
            workers.join();
        }
        // A compaction may have ended after the thread that removes files.
        self.core.remove_obsolete();
        remove_spare(&self.core);
        self.core.cut_reserve();
        self.core.store.tables.close_all();
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.stop();
    }
}
