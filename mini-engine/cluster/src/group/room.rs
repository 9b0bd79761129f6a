//! Whether a group accepts more data, and the compactions that make room for it.
//!
//! Each node measures its disk about each second, and tells the others whether it is almost full. A leader refuses writes that add data while its own
//! disk is almost full, or while the live voters with room are no majority; if they are one, it makes one of them the leader instead. It also
//! refuses them while the group has more than its quota. Followers refuse no entries: so removals are committed, and all nodes stay alike.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use mini_engine::Error;
use mini_engine_server::replicated::KEYSPACE;
use tokio::sync::OwnedMutexGuard;
use tokio::task::spawn_blocking;

use super::handle::Group;
use crate::space::table_bytes;

/// The pause after a compaction is so many times as long as the compaction.
const PAUSES: u32 = 10;
/// The least pause after a compaction that has failed, for lack of space, say.
const AFTER_FAILURE: Duration = Duration::from_secs(60);
/// The pause if nothing was removed since: a compaction keeps what a snapshot, such as that of a check, still sees.
const LONG_PAUSE: Duration = Duration::from_secs(900);

impl Group {
    /// Whether this node, as the leader, refuses writes that add data.
    pub(crate) fn refuses_growth(&self) -> bool {
        // ORDERING: Relaxed, here and below; the value publishes nothing.
        self.refuses_growth.load(Ordering::Relaxed)
    }

    /// Compares the bytes of the group's tables with its quota. After they had more, they must have a sixteenth less.
    pub(crate) fn measure(&self, quota: u64) {
        let slack = if self.is_too_large.load(Ordering::Relaxed) { quota / 16 } else { 0 };
        let is_too_large = quota < u64::MAX && table_bytes(&self.db()) > quota - slack;
        self.is_too_large.store(is_too_large, Ordering::Relaxed);
    }

    /// Whether the group lacks room, and a compaction could make some.
    pub(crate) fn is_due(&self, lacks_room: bool) -> bool {
        let may_shrink = |(applied, at): (u64, Instant)| applied != self.applied() || at.elapsed() > LONG_PAUSE;
        (lacks_room || self.is_too_large.load(Ordering::Relaxed))
            && self.compacted.try_lock().is_ok_and(|compacted| compacted.is_none_or(may_shrink))
    }

    /// Compacts the removed entries of the group on another thread. `next`, the time of the node's next compaction, stays locked until the end, and is
    /// set then.
    pub(crate) fn compact(self: &Arc<Self>, mut next: OwnedMutexGuard<Option<Instant>>) {
        let group = Arc::clone(self);
        spawn_blocking(move || {
            let mut compacted = group.compacted.blocking_lock();
            // Dropped before the lock is released.
            let db = group.db();
            // The next purge makes a snapshot first, so the log becomes shorter, too.
            group.applied_bytes.store(u64::MAX / 2, Ordering::Relaxed);
            let (begun, applied) = (Instant::now(), group.applied());
            let done = db.flush().and_then(|()| db.keyspace(KEYSPACE)?.compact_range(..));
            // The files of a closed database may be gone, which is no damage: then this is `Closed`.
            let read = || db.keyspace(KEYSPACE)?.contains_key("");
            let done = done.map_err(|error| read().err().unwrap_or(error));
            let mut pause = PAUSES * begun.elapsed();
            match done {
                Ok(()) => *compacted = Some((applied, Instant::now())),
                Err(Error::Closed) => {}
                Err(error @ Error::Corruption { .. }) => group.failure.tell(error),
                Err(error) => {
                    tracing::warn!(group = group.number, %error, "could not compact a group without room");
                    pause = pause.max(AFTER_FAILURE);
                }
            }
            *next = Some(Instant::now() + pause);
        });
    }

    /// As the leader, decides whether writes that add data are refused. `lacking` has the nodes that lacked room when they were heard last.
    pub(crate) async fn decide_growth(&self, lacking: &BTreeSet<u64>) {
        let (own, followers, voters) = (*self.raft.node_id(), self.followers(), self.describe().membership.voters);
        let (leads, lacks_room) = (self.leads().is_ok(), lacking.contains(&own));
        let live = voters.iter().filter(|node| **node == own || followers.contains(node));
        let (without_room, with_room): (Vec<u64>, Vec<u64>) = live.partition(|node| lacking.contains(node));
        let has_majority = with_room.len() > voters.len() / 2;
        let next = if leads && lacks_room && has_majority { self.fit_leader(lacking) } else { None };
        let is_too_large = self.is_too_large.load(Ordering::Relaxed);
        let is_short = lacks_room || is_too_large || !has_majority && !without_room.is_empty();
        let refuses = leads && is_short && next.is_none();
        if self.refuses_growth.swap(refuses, Ordering::Relaxed) != refuses {
            let does = if refuses { "refuses" } else { "no longer refuses" };
            tracing::warn!(group = self.number, "this node {does} writes that add data");
        }
        match next {
            Some(next) => self.hand_over_to(next).await,
            // Keys expire although nothing is written.
            None if refuses => drop(self.settle().await),
            None => {}
        }
    }
}
