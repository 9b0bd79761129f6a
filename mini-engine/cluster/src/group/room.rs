//! Whether a group accepts more data, and the compactions that make room for it.
//!
//! Each node measures its disk about each second, and tells the others whether it is almost full. A leader refuses writes that add data while its own
//! disk is almost full, or while the live voters with room are no majority; if they are one, it makes one of them the leader instead. It also
//! refuses them while the group has more than its quota. Followers refuse no entries: so removals are committed, and all nodes stay alike.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use mini_engine::Error;
use mini_engine_server::replicated::KEYSPACE;
use tokio::task::spawn_blocking;

use super::handle::{Group, Pace};
use crate::space::table_bytes;

/// The pause after a compaction is so many times as long as the compaction.
const PAUSES: u32 = 10;
/// The least pause after a compaction that has failed, for lack of space, say.
const AFTER_FAILURE: Duration = Duration::from_secs(60);

impl Group {
    /// Whether this node, as the leader, refuses writes that add data.
    pub(crate) fn refuses_growth(&self) -> bool {
        // ORDERING: Relaxed, here and below; the value publishes nothing.
        self.refuses_growth.load(Ordering::Relaxed)
    }

    /// Whether the group's tables have more bytes. After they had, they must have a quarter less.
    pub(crate) fn has_more_than(&self, bytes: u64) -> bool {
        table_bytes(&self.db()) > if self.refuses_growth() { bytes - bytes / 4 } else { bytes }
    }

    /// Compacts what was removed if it is time, because the node or the group lacks room. Called about each second; `one_group` is locked while one of the
    /// node's groups is compacted.
    pub(crate) fn compact(self: &Arc<Self>, lacks_room: bool, one_group: &Arc<Mutex<()>>) {
        let Ok(mut pace) = self.pace.try_lock() else { return };
        if !lacks_room {
            *pace = Pace::default();
            return;
        }
        if pace.next.is_some_and(|next| Instant::now() < next) || pace.applied == Some(self.applied()) {
            return;
        }
        drop(pace);
        let (group, one_group) = (Arc::clone(self), Arc::clone(one_group));
        spawn_blocking(move || {
            let (Ok(_one_group), Ok(mut pace)) = (one_group.try_lock(), group.pace.try_lock()) else { return };
            // Dropped before the locks are released.
            let db = group.db();
            // The next purge makes a snapshot first, so the log becomes shorter, too.
            group.applied_bytes.store(u64::MAX / 2, Ordering::Relaxed);
            let (begun, applied) = (Instant::now(), group.applied());
            let mut least = Duration::ZERO;
            match db.flush().and_then(|()| db.keyspace(KEYSPACE)?.compact_range(..)) {
                Ok(()) => pace.applied = Some(applied),
                Err(Error::Closed) => {}
                Err(error @ Error::Corruption { .. }) => group.failure.tell(error),
                Err(error) => {
                    tracing::warn!(group = group.number, %error, "could not compact a group without room");
                    least = AFTER_FAILURE;
                }
            }
            pace.next = Some(Instant::now() + least.max(PAUSES * begun.elapsed()));
        });
    }

    /// As the leader, decides whether writes that add data are refused. `lacking` has the nodes that lacked room when they were heard last.
    pub(crate) async fn decide_growth(&self, lacking: &BTreeSet<u64>, is_too_large: bool) {
        let (own, followers, voters) = (*self.raft.node_id(), self.followers(), self.describe().membership.voters);
        let (leads, lacks_room) = (self.leads().is_ok(), lacking.contains(&own));
        let live = voters.iter().filter(|node| **node == own || followers.contains(node));
        let (without_room, with_room): (Vec<u64>, Vec<u64>) = live.partition(|node| lacking.contains(node));
        let has_majority = with_room.len() > voters.len() / 2;
        let next = if leads && lacks_room && has_majority { self.fit_leader(lacking) } else { None };
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
