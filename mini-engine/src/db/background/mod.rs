//! Flushes and compactions, and the threads that run them. No other folder starts a thread.

mod beside;
mod compaction;
mod flush;
mod log;
mod worker;

pub(crate) use self::beside::beside;
pub(crate) use self::compaction::{Job, end, fail_if_unsafe, progress, run_job, settle_level_0, wait_idle};
pub(crate) use self::flush::{flush_all, wait_flushed};
pub(crate) use self::worker::Workers;
