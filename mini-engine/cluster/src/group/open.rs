//! Opens a group: its log, its database, openraft, and the group's tasks, which end with it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use openraft::async_runtime::WatchReceiver;
use openraft::errors::Fatal;
use openraft::metrics::RaftServerMetrics;
use openraft::storage::{RaftLogStorage, RaftStateMachine};
use openraft::type_config::alias::WatchReceiverOf;
use openraft::{RaftLogReader, RaftMetrics};
use tokio::sync::mpsc;

use super::barrier::Barrier;
use super::handle::Group;
use super::parts::Parts;
use super::proposals;
use crate::application::{Raft, open_state};
use crate::checks::Checks;
use crate::clock::GroupClock;
use crate::error::{Error, Failure, Result, io};
use crate::identity::{Identity, state_of};
use crate::network::Peers;
use crate::retention::Retention;
use crate::types::{Position, TypeConfig};

impl Group {
    /// Opens the group's log and database, and joins the group's Raft protocol. The node may vote when it has applied an entry at or after `before`.
    pub(crate) async fn open(
        parts: &Parts,
        Identity { cluster, node, .. }: Identity,
        number: u32,
        before: Option<Position>,
    ) -> Result<Arc<Group>> {
        let (dir, log_name) = (state_of(&parts.dir, number), format!("the log of group {number}"));
        let mut store = parts.logs.group::<TypeConfig>(number).map_err(io("open", &log_name))?;
        let failure = Failure::new(number, Arc::clone(&parts.ended));
        let checks = Checks::new(failure.clone());
        let (mut machine, instant, applied_bytes) = open_state(&dir, Arc::clone(&parts.files), checks.clone())?;
        let (state, mut log) = (machine.state(), store.get_log_reader().await);
        let has_voted = log.read_vote().await.map_err(io("read", "the vote"))?.is_some();
        let (applied, _) = machine.applied_state().await.map_err(io("read", dir.display()))?;
        if applied.is_some() && !has_voted {
            return Err(Error::forgotten(parts.dir.join("log")));
        }
        store.settle(applied).map_err(io("use", &log_name))?;
        // Entries in the log count here, even if a power cut has lost the record that they are committed: else nodes could wait for each other.
        let last = store.get_log_state().await.map_err(io("read", &log_name))?.last_log_id;
        let before = before.filter(|before| last.is_none_or(|last| Position::of(&last) < *before));
        let (retention, dialer) = (Arc::<Retention>::default(), Arc::clone(&parts.dialer));
        let peers = Peers { dialer, cluster, group: number, retention: Arc::clone(&retention) };
        let raft = Raft::new(node, parts.config(before.is_none())?, peers.clone(), store, machine).await;
        let raft = raft.map_err(|fatal| Error::Ended { group: number, reason: fatal.to_string() })?;

        let ((writes, queue), (reads, waiting)) = (mpsc::unbounded_channel(), mpsc::unbounded_channel());
        let clock = Arc::new(GroupClock::new(Arc::clone(&parts.clock), instant.clone()));
        tokio::spawn(proposals::run(raft.clone(), Arc::clone(&clock), queue));
        tokio::spawn(tell_end(raft.metrics(), raft.server_metrics(), failure.clone()));
        let group = Arc::new(Group {
            number,
            metrics: raft.metrics(),
            raft,
            state,
            log,
            retention,
            applied_bytes,
            refuses_growth: AtomicBool::default(),
            is_too_large: AtomicBool::default(),
            compacted: tokio::sync::Mutex::default(),
            heard: Mutex::default(),
            election_timeout: parts.longest_timeout(),
            may_elect: AtomicBool::new(before.is_none()),
            failure,
            instant,
            clock,
            checks,
            writes,
            reads,
        });
        tokio::spawn(Barrier::new(Arc::downgrade(&group), peers).run(waiting));
        if let Some(before) = before {
            let (raft, group) = (group.raft.clone(), Arc::downgrade(&group));
            tokio::spawn(async move {
                let has_it =
                    |metrics: &RaftMetrics<TypeConfig>| metrics.last_applied.as_ref().map(Position::of) >= Some(before);
                let is_back = raft.wait(None).metrics(has_it, "its log is back").await.is_ok();
                if let Some(group) = group.upgrade().filter(|_| is_back) {
                    // ORDERING: Relaxed; it publishes nothing: openraft compares logs, and has applied the entry.
                    group.may_elect.store(true, Ordering::Relaxed);
                    raft.runtime_config().elect(true);
                }
            });
        }
        Ok(group)
    }
}

/// Waits until openraft has ended, and tells the node unless the group was stopped.
async fn tell_end(
    metrics: WatchReceiverOf<TypeConfig, RaftMetrics<TypeConfig>>,
    mut server_metrics: WatchReceiverOf<TypeConfig, RaftServerMetrics<TypeConfig>>,
    failure: Failure,
) {
    // Unlike `metrics`, these do not change with each entry. They end with openraft.
    while server_metrics.changed().await.is_ok() {}
    match &metrics.borrow_watched().running_state {
        Err(Fatal::Stopped) => {}
        Err(fatal) => failure.tell(fatal),
        Ok(()) => failure.tell("its tasks are gone"),
    }
}
