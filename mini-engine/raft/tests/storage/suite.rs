//! openraft's own suite, over stores that stay open and over stores that are closed and opened again before each call.

use std::sync::Arc;

use mini_engine::fs::FileSystem;
use openraft::StorageError;
use openraft::testing::log::{StoreBuilder, Suite};
use proof::disk::MemFs;

use crate::reopened::{ReopenedLog, ReopenedMachine};
use crate::support::{Log, Machine, TypeConfig, open_log, open_machine};

/// The suite sleeps seven seconds for purges; with a paused clock, the sleep ends when no other task can run.
fn run_at_once(suite: impl Future<Output = Result<(), StorageError<TypeConfig>>>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(suite).unwrap();
}

struct Open;

impl StoreBuilder<TypeConfig, Log, Machine> for Open {
    async fn build(&self) -> Result<((), Log, Machine), StorageError<TypeConfig>> {
        let fs: Arc<dyn FileSystem> = Arc::new(MemFs::default());
        Ok(((), open_log(&fs).1, open_machine(&fs, "/node/machine")))
    }
}

struct Reopened;

impl StoreBuilder<TypeConfig, ReopenedLog, ReopenedMachine> for Reopened {
    async fn build(&self) -> Result<((), ReopenedLog, ReopenedMachine), StorageError<TypeConfig>> {
        let fs: Arc<dyn FileSystem> = Arc::new(MemFs::default());
        Ok(((), ReopenedLog::new(&fs), ReopenedMachine::new(&fs)))
    }
}

#[test]
fn the_suite_of_openraft_passes() {
    // Catches the mistakes of stores that openraft's authors test for.
    run_at_once(Suite::test_all(Open));
}

#[test]
fn the_suite_of_openraft_passes_on_stores_that_are_reopened_before_each_call() {
    // Catches state that is only in memory: a last log id, a first index, a membership.
    run_at_once(Suite::test_all(Reopened));
}
