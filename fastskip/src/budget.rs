//! A limit on the number of entries, leased to shards so that most inserts touch no shared line.
//!
//! A shard takes a share of what is left, smaller and smaller towards the limit. When nothing is left, whoever needs an
//! entry collects what other shards hold unused, so the limit is reached exactly. A thread that looks while another one
//! is collecting may be refused the last few entries.

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

    fn collect(&self) -> u64 {
        if self.0.load(Ordering::Relaxed) == 0 { 0 } else { self.0.swap(0, Ordering::Relaxed) }
    }
}

/// What is not leased yet of a table's limit.
#[derive(Debug)]
pub(crate) struct Budget {
    limit: u64,
    left: CachePadded<AtomicU64>,
}

impl Budget {
    /// A budget of `limit` entries; 0 means no limit.
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit: limit as u64, left: CachePadded::new(AtomicU64::new(limit as u64)) }
    }

    /// The limit; 0 means none.
    pub(crate) fn limit(&self) -> u64 {
        self.limit
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
        let share = |left: u64| left.saturating_sub(entries) / (4 * leases.len() as u64);
        let granted = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(entries + share(left)));
        if let Ok(left) = granted {
            lease.0.fetch_add(share(left), Ordering::Relaxed);
            return true;
        }
        let found = self.left.swap(0, Ordering::Relaxed) + leases.map(Lease::collect).sum::<u64>();
        self.give_back(if found >= entries { found - entries } else { found });
        found >= entries
    }

    /// Returns entries that were taken and not stored.
    pub(crate) fn give_back(&self, entries: u64) {
        if self.limit != 0 && entries != 0 {
            self.left.fetch_add(entries, Ordering::Relaxed);
        }
    }

    /// Entries that can still be stored, as far as one look can tell.
    pub(crate) fn remaining<'a>(&self, leases: impl Iterator<Item = &'a Lease>) -> u64 {
        self.left.load(Ordering::Relaxed) + leases.map(|lease| lease.0.load(Ordering::Relaxed)).sum::<u64>()
    }

    /// Whether a limit is set and nothing remains of it.
    pub(crate) fn is_spent<'a>(&self, leases: impl Iterator<Item = &'a Lease>) -> bool {
        self.limit != 0 && self.left.load(Ordering::Relaxed) == 0 && self.remaining(leases) == 0
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
            let budget = Budget::new(limit);
            let mut taken = 0;
            // Shards take turns at the start, then one shard has to find what the others hold.
            while taken < limit && budget.take(1, &leases[taken % 3], leases.iter()) {
                taken += 1;
            }
            assert_eq!(taken, limit);
            assert!(budget.is_spent(leases.iter()));
            assert!(!budget.take(1, &leases[5], leases.iter()));
            budget.give_back(1);
            assert!(!budget.take(2, &leases[5], leases.iter()));
            assert!(budget.take(1, &leases[5], leases.iter()));
        }
    }
}
