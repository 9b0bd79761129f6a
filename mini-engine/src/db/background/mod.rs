//! Flushes and compactions, and the threads that run them. No other folder starts long-lived threads.

mod backoff;
mod compaction;
mod flush;
mod log;
mod scoped;
mod worker;

pub(crate) use self::compaction::{
    CompactionJob, end_compaction, fail_if_unsafe, is_others_turn, progress, run_job, settle_level_0, wait_idle,
};
pub(crate) use self::flush::{flush_all, wait_flushed};
pub(crate) use self::scoped::spawn_scoped;
pub(crate) use self::worker::Workers;
