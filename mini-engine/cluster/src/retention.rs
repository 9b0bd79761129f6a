//! [`Retention`]: the part of a group's log that is kept although a snapshot has it, because a member lacks it.
//!
//! In a healthy group the log is purged up to each snapshot. While a member is away or catches up, the entries that it lacks are kept, up to a number of
//! bytes. Beyond that, the member that lacks most is given up: it gets a snapshot. While the snapshot is sent, the entries after it are kept in the
//! same way: otherwise it would be outdated on arrival, and the member would need another one, without end.
//!
//! openraft postpones a purge as long as it sends the same entries to a member, however slowly. So appends that begin before [`Retention::first`] fail:
//! then openraft purges, and turns to a snapshot.
//!
//! Only the leader knows what members have. It sends the index of its first entry with each append, and its followers keep the same entries. So a
//! member that was away gets entries from the next leader too.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::lock::lock;

/// Bytes of entries that are purged together while others before the snapshot are kept.
const PURGED_TOGETHER: u64 = 64 << 20;

/// Shared by a group and the connections to its members.
#[derive(Debug, Default)]
pub(crate) struct Retention {
    /// The first entry that this node keeps.
    first: AtomicU64,
    /// The first entry that the leader keeps.
    first_of_leader: AtomicU64,
    term: AtomicU64,
    /// `first` as it was when the term began: a member of which this node, as the leader, has not heard may lack it.
    first_of_term: AtomicU64,
    /// The first entry after the snapshot that a member gets, or got last.
    after_snapshots: Mutex<BTreeMap<u64, u64>>,
}

impl Retention {
    /// The first entry that this node keeps. Earlier entries are purged, or will be as soon as openraft sends them to no member.
    pub(crate) fn first(&self) -> u64 {
        // ORDERING: Relaxed, here and below; the indexes decide when entries are purged, and publish nothing.
        self.first.load(Ordering::Relaxed)
    }

    /// Notes the present term; called by one task.
    pub(crate) fn note_term(&self, term: u64) {
        if self.term.swap(term, Ordering::Relaxed) != term {
            self.first_of_term.store(self.first(), Ordering::Relaxed);
        }
    }

    /// Notes that this node has purged the entries before `first`.
    pub(crate) fn note_purged(&self, first: u64) {
        self.first.fetch_max(first, Ordering::Relaxed);
    }

    pub(crate) fn hear_leader(&self, first: u64) {
        self.first_of_leader.fetch_max(first, Ordering::Relaxed);
    }

    /// Notes that a snapshot is being sent to a member, which then needs the entries from `next` on.
    pub(crate) fn begin_snapshot(&self, node: u64, next: u64) {
        lock(&self.after_snapshots).insert(node, next);
    }

    /// Notes that the member did not get the snapshot.
    pub(crate) fn fail_snapshot(&self, node: u64) {
        lock(&self.after_snapshots).remove(&node);
    }

    /// The first entry that each other member may lack, with the member. `matched` has the first entry that it is not known to have, or `None` if this
    /// leader has not heard of it.
    pub(crate) fn needs_of_members(&self, matched: impl Iterator<Item = (u64, Option<u64>)>) -> Vec<(u64, u64)> {
        let (after, first) = (lock(&self.after_snapshots), self.first_of_term.load(Ordering::Relaxed));
        // An earlier snapshot was sent in an earlier term.
        let after = |node| after.get(&node).copied().filter(|next| *next >= first);
        matched.map(|(node, matched)| (matched.max(after(node)).unwrap_or(first), node)).collect()
    }

    /// The first entry that the leader keeps for others, for its followers.
    pub(crate) fn need_of_leader(&self) -> u64 {
        match self.first_of_leader.load(Ordering::Relaxed) {
            0 => self.first(),
            first => first,
        }
    }

    /// Chooses the first entry that is kept, at most `after_snapshot`, and never one before the present choice, which stays if a purge would free little.
    /// `bytes_from` has the bytes of the entries from an index on, of which at most `max_bytes` are kept for members. Returns the member that is given up.
    pub(crate) fn advance(
        &self,
        mut needs: Vec<(u64, u64)>,
        after_snapshot: u64,
        bytes_from: impl Fn(u64) -> u64,
        max_bytes: u64,
    ) -> Option<u64> {
        let first = self.first();
        // A member that lacks earlier entries needs a snapshot in any case.
        needs.retain(|(need, _)| (first..after_snapshot).contains(need));
        needs.sort_unstable();
        let kept = needs.iter().map(|(need, _)| *need).find(|need| bytes_from(*need) <= max_bytes);
        let kept = kept.unwrap_or(after_snapshot);
        let given_up = needs.first().filter(|(need, _)| *need < kept).map(|(_, node)| *node);
        let frees = || bytes_from(first).saturating_sub(bytes_from(kept));
        if kept == after_snapshot || given_up.is_some() || frees() >= PURGED_TOGETHER {
            self.note_purged(kept);
        }
        given_up
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each entry has a MiB, the last one is entry 999.
    fn bytes_from(index: u64) -> u64 {
        (1000 - index) << 20
    }

    #[test]
    fn entries_are_kept_for_the_members_whose_needs_are_within_the_bound() {
        // Catches a node that is given up because another one lacks more, a log that is kept for ever, a snapshot that is outdated on arrival, and one of
        // an earlier term that counts as sent.
        let leader = |max_mib: u64, matched: [Option<u64>; 2]| {
            let retention = Retention::default();
            retention.begin_snapshot(2, 50);
            retention.note_purged(100);
            retention.note_term(1);
            retention.begin_snapshot(3, 850);
            let needs = retention.needs_of_members((2..).zip(matched));
            let given_up = retention.advance(needs, 900, bytes_from, max_mib << 20);
            (retention.first(), given_up)
        };
        for (max_mib, matched, expected, case) in [
            (0, [Some(1000), Some(900)], (900, None), "healthy"),
            (750, [Some(250), Some(1000)], (250, None), "just within the bound"),
            (749, [Some(250), Some(1000)], (900, Some(2)), "just beyond it"),
            (700, [Some(250), Some(50)], (850, Some(2)), "the entries after a snapshot, for another member"),
            (900, [None, Some(1000)], (100, None), "a new leader"),
            (899, [None, Some(1000)], (900, Some(2)), "a new leader, and a lower bound"),
            (900, [Some(1000), None], (850, None), "a snapshot of this term"),
            (900, [Some(99), Some(1000)], (900, None), "it needs a snapshot in any case"),
            (900, [Some(163), None], (100, None), "a purge that would free little"),
            (900, [Some(164), None], (164, None), "a purge that frees enough"),
        ] {
            assert_eq!(leader(max_mib, matched), expected, "{case}");
        }

        let leader = Retention::default();
        let advance = |after| leader.advance(leader.needs_of_members([(2, None)].into_iter()), after, bytes_from, 0);
        assert_eq!((advance(100), advance(200), leader.first()), (Some(2), None, 200), "it is given up once");

        let follower = Retention::default();
        let keep = |max_mib: u64| {
            follower.advance(vec![(follower.need_of_leader(), 1)], 900, bytes_from, max_mib << 20);
            follower.first()
        };
        follower.hear_leader(300);
        assert_eq!((keep(700), keep(699)), (300, 900), "without news of a leader the log does not grow for ever");
        follower.hear_leader(950);
        assert_eq!(keep(0), 900, "no snapshot has the other entries");
    }
}
