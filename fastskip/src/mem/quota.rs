//! A limit on the number of entries, leased to shards so that most inserts touch no shared line.
//!
//! A shard leases a share of what is left, smaller and smaller towards the limit. When too little is left, a writer that
//! needs an entry returns the unused leases of other shards to the common rest, one after the other. So the limit is
//! reached exactly.

use crossbeam_utils::CachePadded;

use crate::sync::{AtomicU64, Ordering};

/// What a shard may still store without asking.
#[derive(Debug, Default)]
pub(crate) struct Lease(AtomicU64);

impl Lease {
    fn spend(&self, entries: u64) -> bool {
        // Relaxed, as everything here: these are counts, no other memory is published through them.
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(entries)).is_ok()
    }
}

/// What is not leased yet of a table's limit.
#[derive(Debug)]
pub(crate) struct Quota {
    limit: u64,
    left: CachePadded<AtomicU64>,
}

impl Quota {
    /// A quota of `limit` entries; 0 means no limit.
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit: limit as u64, left: CachePadded::new(AtomicU64::new(limit as u64)) }
    }

    /// The limit; 0 means none.
    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    /// Whether an empty table could hold `entries`.
    pub(crate) fn could_hold(&self, entries: u64) -> bool {
        self.limit == 0 || entries <= self.limit
    }

    /// Takes `entries` from `lease`, one of `leases`, or from whatever is left elsewhere.
    #[inline]
    pub(crate) fn take<'a, L>(&self, entries: u64, lease: &Lease, leases: L) -> bool
    where
        L: ExactSizeIterator<Item = &'a Lease>,
    {
        self.limit == 0 || lease.spend(entries) || self.refill(entries, lease, leases)
    }

    #[cold]
    fn refill<'a, L>(&self, entries: u64, lease: &Lease, leases: L) -> bool
    where
        L: ExactSizeIterator<Item = &'a Lease>,
    {
        let shards = leases.len() as u64;
        if self.grant(entries, shards, lease) {
            return true;
        }
        for other in leases {
            if other.0.load(Ordering::Relaxed) != 0 {
                self.give_back(other.0.swap(0, Ordering::Relaxed));
                if self.grant(entries, shards, lease) {
                    return true;
                }
            }
        }
        false
    }

    /// Takes `entries`, and a share of the rest for `lease`.
    fn grant(&self, entries: u64, shards: u64, lease: &Lease) -> bool {
        let share = |left: u64| left.saturating_sub(entries) / (4 * shards);
        let granted = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            left.checked_sub(entries)?.checked_sub(share(left))
        });
        match granted.map(share) {
            Ok(0) => true,
            Ok(share) => {
                lease.0.fetch_add(share, Ordering::Relaxed);
                true
            }
            Err(_) => false,
        }
    }

    /// Returns entries that were taken and not stored.
    pub(crate) fn give_back(&self, entries: u64) {
        if self.limit != 0 && entries != 0 {
            self.left.fetch_add(entries, Ordering::Relaxed);
        }
    }

    /// Whether `stored` entries are at least `part` of the limit. Asked of what is stored, which only grows, and not of
    /// what is left, which others may be moving. To count them is a look at every shard's lines, which their writers then
    /// miss: it is not done while the entries that no shard has leased show by themselves that there is room.
    pub(crate) fn is_used(&self, part: f64, stored: impl FnOnce() -> u64) -> bool {
        let part = self.limit as f64 * part;
        let taken = || self.limit - self.left.load(Ordering::Relaxed).min(self.limit);
        self.limit != 0 && taken() as f64 >= part && stored() as f64 >= part
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches leases that strand entries on idle shards, or hand out more than the limit.
    #[test]
    fn every_entry_of_the_limit_is_handed_out_once() {
        for limit in [1, 2, 7, 100, 1000] {
            let leases: [Lease; 8] = Default::default();
            let quota = Quota::new(limit);
            let mut taken = 0;
            // Shards take turns at the start, then one shard has to find what the others hold.
            while taken < limit && quota.take(1, &leases[taken % 3], leases.iter()) {
                taken += 1;
            }
            assert_eq!(taken, limit);
            assert!(!quota.take(1, &leases[5], leases.iter()));
            quota.give_back(1);
            assert!(!quota.take(2, &leases[5], leases.iter()));
            assert!(quota.take(1, &leases[5], leases.iter()));
        }
    }

    /// Catches shares so large that one idle shard keeps the others searching, or so small that each entry asks.
    #[test]
    fn lease_is_a_quarter_of_a_shards_part() {
        let leases: [Lease; 4] = Default::default();
        let quota = Quota::new(1601);
        assert!(quota.take(1, &leases[0], leases.iter()));
        assert_eq!(leases[0].0.load(Ordering::Relaxed), 100);
        assert_eq!(quota.left.load(Ordering::Relaxed), 1500);
        assert!(!quota.is_used(0.07, || 1) && !quota.is_used(0.05, || 1) && quota.is_used(0.05, || 100));
    }

    /// Catches a refused request that takes along what would have been enough for others, and sums that overflow.
    #[test]
    fn refused_request_leaves_everything_where_others_find_it() {
        let leases: [Lease; 4] = Default::default();
        let quota = Quota::new(usize::MAX);
        assert!(quota.take(1, &leases[0], leases.iter()));
        assert!(quota.take(u64::MAX - 1, &leases[1], leases.iter()));
        assert!(!quota.take(1, &leases[2], leases.iter()));
        quota.give_back(5);
        assert!(!quota.take(6, &leases[3], leases.iter()));
        assert!(quota.take(5, &leases[0], leases.iter()));
    }
}
