//! Whether a group accepts more data, and the compactions that make room for it.
//!
//! Each node measures its disk about each second, and tells the others whether it is almost full. A leader refuses writes that add data while its own
//! disk is almost full, or while the live voters with room are no majority; if they are one, it makes one of them the leader instead. Followers refuse
//! no entries: so removals are committed, and all nodes stay alike.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use mini_engine::Error;
use mini_engine_server::replicated::KEYSPACE;
use tokio::task::spawn_blocking;

use super::changes::LEVEL;
use super::handle::Group;
use super::pace::Pace;

/// A compaction is worth it if it frees this part of the tables.
const PART_FREED: u64 = 16;
/// The most measures between two compactions: about a quarter of an hour.
const LONGEST_PAUSE: u32 = 1000;

impl Group {
    /// Whether this node, as the leader, refuses writes that add data.
    pub(crate) fn refuses_growth(&self) -> bool {
        // ORDERING: Relaxed, here and below; the value publishes nothing.
        self.refuses_growth.load(Ordering::Relaxed)
    }

    /// Compacts what was removed if it is time, because the node lacks room. Called about each second; `one_group` is locked while one of the node's
    /// groups is compacted.
    pub(crate) fn compact(&self, lacks_room: bool, one_group: &Arc<Mutex<()>>) {
        let Ok(mut pace) = self.pace.try_lock() else { return };
        if !lacks_room {
            *pace = Pace::default();
            return;
        }
        pace.left = pace.left.saturating_sub(1);
        if pace.left > 0 {
            return;
        }
        drop(pace);
        let (one_group, pace, applied_bytes) =
            (Arc::clone(one_group), Arc::clone(&self.pace), Arc::clone(&self.applied_bytes));
        let (db, number, damage) = (self.db(), self.number(), self.damage.clone());
        spawn_blocking(move || {
            let (Ok(_one_group), Ok(mut pace)) = (one_group.try_lock(), pace.try_lock()) else { return };
            // Dropped before the locks are released.
            let db = db;
            let tables = || db.metrics().levels.iter().map(|level| level.bytes).sum::<u64>();
            // The next purge makes a snapshot first, so the log becomes shorter, too.
            applied_bytes.store(u64::MAX / 2, Ordering::Relaxed);
            let flushed = db.flush();
            let before = tables();
            match flushed.and_then(|()| db.keyspace(KEYSPACE)?.compact_range(..)) {
                Ok(()) | Err(Error::Closed) => {}
                Err(error @ Error::Corruption { .. }) => _ = damage.send_replace(Some(error.to_string())),
                Err(error) => tracing::warn!(group = number, %error, "could not compact a group without room"),
            }
            let has_freed = before.saturating_sub(tables()) >= (before / PART_FREED).max(1);
            pace.pause = if has_freed { Pace::default().pause } else { (2 * pace.pause).min(LONGEST_PAUSE) };
            pace.left = pace.pause;
        });
    }

    /// As the leader, decides whether writes that add data are refused. `reports` says which other nodes lacked room when they were heard last.
    pub(crate) async fn decide_growth(&self, lacks_room: bool, reports: &BTreeMap<u64, bool>) {
        let (own, now, live) = (*self.raft.node_id(), self.describe(), self.followers());
        let lacks_room = |node: &u64| if *node == own { lacks_room } else { reports.get(node) == Some(&true) };
        let live = now.voters.iter().copied().filter(|node| *node == own || live.contains(node));
        let (lacking, with_room): (Vec<u64>, Vec<u64>) = live.partition(lacks_room);
        let (leads, has_majority) = (self.leads().is_ok(), with_room.len() > now.voters.len() / 2);
        let matched = |node: &u64| now.matched.get(node).copied().unwrap_or(0);
        let next = with_room.into_iter().filter(|node| matched(node) + LEVEL >= now.last).max_by_key(matched);
        let next = next.filter(|_| leads && has_majority && lacking.contains(&own));
        let is_short = lacking.contains(&own) || !has_majority && !lacking.is_empty();
        let refuses = leads && is_short && next.is_none();
        if self.refuses_growth.swap(refuses, Ordering::Relaxed) != refuses {
            let does = if refuses { "refuses" } else { "no longer refuses" };
            tracing::warn!(group = self.number(), "this node {does} writes that add data");
        }
        match next {
            Some(next) => self.hand_over_to(next).await,
            // Keys expire although nothing is written.
            None if refuses => drop(self.settle().await),
            None => {}
        }
    }
}
