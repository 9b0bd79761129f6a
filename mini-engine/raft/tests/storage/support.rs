//! The application of the tests, which sets keys and counts, and helpers to call a store.

use std::fmt;
use std::future::Future;
use std::io::Result;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use futures_util::stream;
use mini_engine::fs::FileSystem;
use mini_engine::{Db, Options, WriteBatch};
use openraft::entry::RaftEntry;
use openraft::storage::{IOFlushed, LogState, RaftLogStorage, RaftLogStorageExt, RaftStateMachine};
use openraft::type_config::alias::{EntryOf, LogIdOf, VoteOf};
use openraft::vote::RaftLeaderIdExt;
use openraft::{Entry, EntryPayload, RaftLogReader};
use openraft_mini_engine::{Apply, LogStore, Logs, StateMachine};
use serde::{Deserialize, Serialize};

openraft::declare_raft_types!(
    pub(crate) TypeConfig: D = Request, R = u64, AsyncRuntime = openraft_rt_tokio::TokioRuntime
);

pub(crate) type LogId = LogIdOf<TypeConfig>;
pub(crate) type AnEntry = EntryOf<TypeConfig>;
pub(crate) type Vote = VoteOf<TypeConfig>;
pub(crate) type Log = LogStore<TypeConfig>;
pub(crate) type Machine = StateMachine<TypeConfig, App>;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Request {
    /// Sets a key, without reading anything.
    Set(String, String),
    /// Adds one to the number of a key, which shows if the entry is applied twice.
    Count(String),
    /// Removes every key of the application, and others.
    Clear,
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

/// The response to a count is the new number, to others 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct App;

impl Apply<TypeConfig> for App {
    fn apply(&mut self, entry: AnEntry, db: &Db, batch: &mut WriteBatch) -> Result<u64> {
        match entry.payload {
            EntryPayload::Blank | EntryPayload::Membership(_) => {}
            EntryPayload::Normal(Request::Set(key, value)) => batch.insert(key, value)?,
            EntryPayload::Normal(Request::Clear) => batch.remove_range(..)?,
            EntryPayload::Normal(Request::Count(key)) => {
                let count = number(db, &key)? + 1;
                batch.insert(key, count.to_string())?;
                return Ok(count);
            }
        }
        Ok(0)
    }

    fn reads(&self, entry: &AnEntry) -> bool {
        matches!(entry.payload, EntryPayload::Normal(Request::Count(_)))
    }
}

/// The number stored under a counted key.
pub(crate) fn number(db: &Db, key: &str) -> Result<u64> {
    Ok(db.get(key)?.map_or(0, |text| String::from_utf8_lossy(&text).parse().expect("a number")))
}

pub(crate) fn log_id(term: u64, index: u64) -> LogId {
    LogId::new(openraft::impls::leader_id_adv::LeaderId::new_committed(term, 1), index)
}

pub(crate) fn set(term: u64, index: u64, value: impl Into<String>) -> AnEntry {
    Entry::new_normal(log_id(term, index), Request::Set(format!("key{index}"), value.into()))
}

/// Entries of one term that set the same value.
pub(crate) fn sets(term: u64, indexes: Range<u64>, value: &str) -> Vec<AnEntry> {
    indexes.map(|index| set(term, index, value)).collect()
}

pub(crate) fn count(index: u64) -> AnEntry {
    Entry::new_normal(log_id(1, index), Request::Count("count".into()))
}

/// Options with which little data already makes tables.
pub(crate) fn small() -> Options {
    Options::default().memtable_bytes(64 << 10).table_file_bytes(16 << 10).level1_bytes(64 << 10)
}

/// A database of logs on a file system, and the log of its group 0.
pub(crate) fn open_log(fs: &(impl FileSystem + Clone + 'static)) -> (Logs, Log) {
    let logs = Logs::open_with("/node/log", small(), Arc::new(fs.clone())).unwrap();
    let log = logs.group(0).unwrap();
    (logs, log)
}

pub(crate) fn open_machine(fs: &(impl FileSystem + Clone + 'static), dir: impl AsRef<Path>) -> Machine {
    Machine::open_with(dir, App, small(), Arc::new(fs.clone())).unwrap()
}

/// Runs a test's calls.
pub(crate) fn run<F: Future>(calls: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(calls)
}

/// Appends, and waits until the entries are durable.
pub(crate) async fn append(log: &mut Log, entries: impl IntoIterator<Item = AnEntry>) {
    log.blocking_append(entries.into_iter().collect::<Vec<_>>()).await.unwrap();
}

/// Appends without waiting for durability.
pub(crate) async fn append_soon(log: &mut Log, entries: impl IntoIterator<Item = AnEntry>) {
    log.append(entries.into_iter().collect::<Vec<_>>(), IOFlushed::noop()).await.unwrap();
}

/// The entries of a log.
pub(crate) async fn entries(log: &mut Log) -> Vec<AnEntry> {
    log.get_log_reader().await.try_get_log_entries(..).await.unwrap()
}

/// The indexes of a log's entries.
pub(crate) async fn indexes(log: &mut Log) -> Vec<u64> {
    indexes_of(&entries(log).await)
}

pub(crate) fn indexes_of(entries: &[AnEntry]) -> Vec<u64> {
    entries.iter().map(RaftEntry::index).collect()
}

pub(crate) async fn vote(log: &mut Log) -> Option<Vote> {
    log.get_log_reader().await.read_vote().await.unwrap()
}

pub(crate) async fn state(log: &mut Log) -> LogState<TypeConfig> {
    log.get_log_state().await.unwrap()
}

pub(crate) async fn apply(machine: &mut Machine, entries: impl IntoIterator<Item = AnEntry>) {
    try_apply(machine, entries).await.unwrap();
}

pub(crate) async fn try_apply(machine: &mut Machine, entries: impl IntoIterator<Item = AnEntry>) -> Result<()> {
    let items: Vec<_> = entries.into_iter().map(|entry| Ok((entry, None))).collect();
    machine.apply(stream::iter(items)).await
}
