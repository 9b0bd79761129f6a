//! Recovery: makes a new cluster from backups, or from the directories of nodes that are left.
//!
//! The new directory is that of node 1, the only member of every group. Each group gets the state of its copy, the log entries after it, and one more
//! entry, which makes this node the only member. Such a log could also be that of a node that the others have elected, so openraft goes on from there:
//! entries that the old nodes had acknowledged are applied, even if this node did not learn that they were committed. New members get a snapshot,
//! because the log begins after the state.
//!
//! The new cluster has another number than the old one. So nodes of the old one do not talk to it (`wire/handshake.rs`).

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use mini_engine::fs::{FileSystem, StdFs};
use mini_engine::{Error as EngineError, Options, TimeSource};
use openraft::entry::RaftEntry;
use openraft::storage::{IOFlushed, LogState, RaftLogStorage};
use openraft::type_config::alias::{EntryOf, LogIdOf, VoteOf};
use openraft::{LogId, LogIdOptionExt, RaftLogReader, Vote};
use openraft_mini_engine::{LogStore, Logs, StoredState};

use super::backup::Backup;
use super::new_directory::make_directory;
use crate::error::{Error, Result, io};
use crate::identity::{Identity, Joined, Record, draw, state_of};
use crate::types::{Member, Position, TypeConfig};

/// The number of the node that a recovery makes.
const NODE: u64 = 1;

/// Makes `dir`, which must not exist, the directory of the only node of a new cluster, with the groups in the directories `from`: backups, or
/// directories of nodes that do not run. They are only read. If several have a group, the copy with the last log entry is used, as in an election.
/// The node must be started with the addresses in `member`. Calls `progress` after each group, with the directory that was used and the last log entry
/// there; later entries of the old cluster are lost. Returns the number of the new cluster.
///
/// # Errors
/// Returns an error if `from` lacks a group, belongs to several clusters or contradicts itself, a node runs there, or files are damaged. Then nothing was
/// made.
pub async fn recover(
    from: &[PathBuf],
    dir: &Path,
    member: Member,
    mut progress: impl FnMut(u32, &Path, Position),
) -> Result<u64> {
    let sources = from.iter().map(|dir| Source::open(dir)).collect::<Result<Vec<_>>>()?;
    let Some(first) = sources.first() else { return Err(Error::unusable(dir, "expected a directory to recover from")) };
    if let Some(other) = sources.iter().find(|other| (other.cluster, other.count) != (first.cluster, first.count)) {
        let reason = format!("expected cluster {:016x}, found {:016x}", first.cluster, other.cluster);
        return Err(Error::unusable(&other.dir, reason));
    }
    make_directory(dir, async |dir: &Path| {
        let log = dir.join("log");
        let logs = Logs::open(&log).map_err(io("create", log.display()))?;
        let cluster = draw()?;
        let mut record = Record::new(Identity { cluster, node: NODE, groups: first.count });
        // The copies of only one group are open at a time, because each takes memory and file handles.
        for group in 0..first.count {
            let copy = newest(&sources, group).await?;
            let (from, last) = (copy.from, Position::of(&copy.last));
            let state = state_of(dir, group);
            copy.state.copy_to(&state).map_err(io("copy", state.display()))?;
            let joined = copy.write_log(&logs, group, &member).await;
            let joined = joined.map_err(io("write", format!("the log of group {group}")))?;
            record.join(Joined::from([(group, Some(joined))]));
            progress(group, from, last);
        }
        logs.close().map_err(io("write", log.display()))?;
        // This file comes last: without it, no node starts on what a killed command has left.
        record.write(&StdFs, dir)?;
        Ok(cluster)
    })
    .await
}

/// Chooses the copy of a group. Fails if there is none, or if another copy has applied an entry that the chosen one lacks: they are not of one history.
async fn newest(sources: &[Source], group: u32) -> Result<GroupCopy<'_>> {
    let mut copies = Vec::new();
    for source in sources {
        copies.extend(source.copy(group).await?);
    }
    copies.sort_by_key(|copy| (copy.last, copy.applied));
    let Some(mut newest) = copies.pop() else {
        let reason = format!("expected group {group}, found no data of it: give a directory that has it as well");
        return Err(Error::unusable(&sources[sources.len() - 1].dir, reason));
    };
    for other in copies {
        if let Some(applied) = other.applied
            && !newest.has(applied).await.map_err(io("read", newest.from.display()))?
        {
            let (newest, other) = (newest.from.display(), other.from);
            let reason =
                format!("group {group} has applied entry {applied}, which is not in {newest}: give only one of them");
            return Err(Error::unusable(other, reason));
        }
    }
    Ok(newest)
}

/// A backup, or the directory of a node.
struct Source {
    dir: PathBuf,
    cluster: u64,
    /// The number of groups of the cluster.
    count: u32,
    /// The groups that are here; of a backup with the last entry of each.
    here: BTreeMap<u32, Option<Position>>,
    /// The logs of a node. They keep the node from starting meanwhile.
    logs: Option<Logs>,
}

impl Source {
    fn open(dir: &Path) -> Result<Self> {
        let dir = std::path::absolute(dir).map_err(io("find", dir.display()))?;
        if let Some(Backup { cluster, groups, .. }) = Backup::read(&dir)? {
            let here: BTreeMap<_, _> = groups.into_iter().map(|(group, last)| (group, Some(last))).collect();
            return Ok(Self { dir, cluster, count: here.len() as u32, here, logs: None });
        }
        let record = Record::read(&StdFs, &dir)?;
        let record = record.ok_or_else(|| Error::unusable(&dir, "expected backup.json or node.json, found neither"))?;
        let log = dir.join("log");
        let options = Logs::options().read_only(true).create_if_missing(false);
        let logs = Logs::open_with(&log, options, Arc::new(StdFs)).map_err(io("open", log.display()));
        let logs = logs.map_err(|error| match error {
            Error::Engine(EngineError::Locked { .. }) => Error::unusable(&dir, "a node runs here: stop it first"),
            other => other,
        })?;
        let Identity { cluster, groups: count, .. } = record.identity();
        let here = record.joined.into_keys().map(|group| (group, None)).collect();
        Ok(Self { dir, cluster, count, here, logs: Some(logs) })
    }

    /// The copy of a group that is here, unless it is empty: a node that was being added may have nothing yet.
    async fn copy(&self, group: u32) -> Result<Option<GroupCopy<'_>>> {
        let Some(expected) = self.here.get(&group) else { return Ok(None) };
        let (dir, log) = (state_of(&self.dir, group), format!("the log of group {group} in {}", self.dir.display()));
        // Nothing expires while it is copied: entries of the log may depend on it.
        let options = Options::default().time_source(TimeSource::new(|| SystemTime::UNIX_EPOCH));
        let files: Arc<dyn FileSystem> = Arc::new(StdFs);
        let state = StoredState::<TypeConfig>::open(&dir, options, files).map_err(io("open", dir.display()))?;
        let Some(state) = state else { return Ok(None) };
        let applied = state.meta().last_log_id;
        if let Some(expected) = expected
            && applied.as_ref().map(Position::of) != Some(*expected)
        {
            return Err(Error::unusable(
                &dir,
                format!("expected entries up to {expected:?}, found them up to {applied:?}"),
            ));
        }
        let (mut store, mut last) = (None, applied);
        if let Some(logs) = &self.logs {
            let mut opened = logs.group::<TypeConfig>(group).map_err(io("open", &log))?;
            opened.settle(applied).map_err(io("use", &log))?;
            let LogState { last_purged_log_id: purged, last_log_id } =
                opened.get_log_state().await.map_err(io("read", &log))?;
            if let Some(purged) = purged.filter(|purged| Some(*purged) > applied) {
                let reason =
                    format!("the log begins after entry {purged}, which is not in the state: no node can use them");
                return Err(Error::unusable(&dir, reason));
            }
            last = last.max(last_log_id);
            store = Some(opened);
        }
        Ok(last.map(|last| GroupCopy { from: &self.dir, state, applied, log: store, last }))
    }
}

/// A group in a source.
struct GroupCopy<'a> {
    from: &'a Path,
    state: StoredState<TypeConfig>,
    applied: Option<LogIdOf<TypeConfig>>,
    log: Option<LogStore<TypeConfig>>,
    last: LogIdOf<TypeConfig>,
}

impl GroupCopy<'_> {
    /// Whether this entry is in the log, or in the state as far as that can be known.
    async fn has(&mut self, entry: LogIdOf<TypeConfig>) -> std::io::Result<bool> {
        if let Some(log) = &mut self.log {
            let stored = log.get_log_reader().await.try_get_log_entries(entry.index..=entry.index).await?;
            if let Some(stored) = stored.first() {
                return Ok(stored.log_id() == entry);
            }
        }
        Ok(self.applied.is_some_and(|own| own == entry || (own > entry && own.index > entry.index)))
    }

    /// Writes the log of the new group. Returns the position from which on this node is the only member. The caller makes the log durable.
    async fn write_log(self, logs: &Logs, group: u32, member: &Member) -> std::io::Result<Position> {
        let mut store = logs.group::<TypeConfig>(group)?;
        // As if this node had been elected, and had then appended the last entry.
        let vote: VoteOf<TypeConfig> = Vote::new_committed(self.last.leader_id.term.saturating_add(1), NODE);
        store.save_vote(&vote).await?;
        if let Some(applied) = self.applied {
            store.purge(applied).await?;
        }
        if let Some(mut log) = self.log {
            let (mut reader, mut next) = (log.get_log_reader().await, self.applied.next_index());
            while next <= self.last.index {
                let entries = reader.limited_get_log_entries(next, self.last.index + 1).await?;
                let Some(last) = entries.last() else { break };
                next = last.index() + 1;
                store.append(entries, IOFlushed::noop()).await?;
            }
        }
        if store.get_log_state().await?.last_log_id != Some(self.last) {
            let missing = format!("entries before {} are missing", self.last);
            return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, missing));
        }
        let log_id = LogId::new(vote.leader_id, self.last.index + 1);
        let members = BTreeMap::from([(NODE, member.clone())]);
        let membership =
            openraft::Membership::new(vec![BTreeSet::from([NODE])], members).map_err(std::io::Error::other)?;
        store.append([EntryOf::<TypeConfig>::new_membership(log_id, membership)], IOFlushed::noop()).await?;
        store.save_committed(Some(log_id)).await?;
        Ok(Position::of(&log_id))
    }
}
