//! [`Handle`]: the part that all handles of an open database share.

use std::sync::{Arc, Mutex};

use super::background::Workers;
use super::core::{Core, Phase, remove_spare};
use super::recovery::RecoveryReport;
use crate::lock::lock;

/// The part that all handles share, those of the keyspaces too. It is dropped with the last one.
#[derive(Debug)]
pub(crate) struct Handle {
    pub(crate) core: Arc<Core>,
    pub(super) workers: Mutex<Option<Workers>>,
    pub(super) report: RecoveryReport,
}

impl Handle {
    /// Ends the workers: a running flush or compaction is given up, and its partial output is removed. Its inputs, including the logs, stay in
    /// place. The log and the file that were prepared for the next log are removed.
    pub(super) fn stop(&self) {
        if self.core.is_forked() {
            // The workers and the files belong to the other process.
            return;
        }
        self.core.enter_phase(Phase::Stopped);
        // Taken out first, so that the lock is not held while joining.
        let workers = lock(&self.workers).take();
        if let Some(workers) = workers {
            workers.join();
        }
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
