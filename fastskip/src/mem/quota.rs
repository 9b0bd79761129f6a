//! A limit on the number of entries, leased to shards so that most inserts touch no shared cache line.
//!
//! A shard leases a share of the remaining entries; shares become smaller towards the limit. When too few are left, a writer takes the entries that
//! it needs from the leases of other shards. So the limit is reached exactly, and a table is not reported as full while any lease has entries left.
//!
//! A share moves from the shared word to a lease, and a thread may be stopped in between. So the step that takes a share announces it in that word:
//!
//! ```text
//!   left       { version, pending shard and share, entries left }      announce (CAS) -> deliver -> clear (CAS)
//!   lease      { version of the last share delivered, entries }        deliver (CAS)
//! ```
//!
//! The first thread that reads an announcement delivers the share and clears the announcement. A lease that has the announced version has already got
//! its share. A lease that was read with another version has not got the share, if the announcement was still there after that read. If the lease
//! gets the share later, the CAS fails. So each share is delivered once, and no entry is invisible. The same version is used again after 65 536
//! shares. An announcement never uses the version that its lease has now, however long ago that lease got its last share. A thread could be misled
//! only if all those shares were announced between two of its steps.

use crossbeam_utils::CachePadded;

use crate::sync::{AtomicU64, Ordering, ord};

/// The number of times that a batch tries to gather entries while other threads take them, before it is refused.
const GATHER_TRIES: u32 = 4;

/// The number of entries that a shard may still store without using the shared word.
#[derive(Debug, Default)]
pub(crate) struct Lease(AtomicU64);

impl Lease {
    const ENTRIES: u64 = (1 << 48) - 1;

    fn entries(word: u64) -> u64 {
        word & Self::ENTRIES
    }

    fn version(word: u64) -> u16 {
        (word >> 48) as u16
    }

    fn left(&self) -> u64 {
        Self::entries(self.0.load(Ordering::Relaxed))
    }

    fn spend(&self, entries: u64) -> bool {
        // Relaxed, like most accesses here: these are counts, and no other memory is published through them.
        let rest = |word| Self::entries(word).checked_sub(entries).map(|_| word - entries);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, rest).is_ok()
    }
}

/// The shared word: the remaining entries, and the announcement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Left(u64);

impl Left {
    const PENDING: u64 = 1 << 47;

    fn entries(self) -> u64 {
        self.0 as u32 as u64
    }

    fn version(self) -> u16 {
        (self.0 >> 48) as u16
    }

    /// The word after `entries` were taken from it and a share of two to the power of `log` was announced for `shard`. The announced version differs
    /// from `old`, the version of the shard's lease.
    fn announced(self, entries: u64, shard: usize, log: u32, old: u16) -> Self {
        let left = self.entries() - entries - (1 << log);
        let next = self.version().wrapping_add(1);
        let version = u64::from(if next == old { next.wrapping_add(1) } else { next });
        Self(version << 48 | Self::PENDING | (shard as u64) << 37 | u64::from(log) << 32 | left)
    }
}

/// The part of a table's limit that is not leased yet.
#[derive(Debug)]
pub(crate) struct Quota {
    /// The limit; 0 means none.
    pub(crate) limit: u64,
    /// The limit as a plain number. 32 bits are enough for the entries of any table.
    whole: u64,
    shards: usize,
    left: CachePadded<AtomicU64>,
}

impl Quota {
    /// A quota of `limit` entries for this many shards; 0 means no limit.
    pub(crate) fn new(limit: usize, shards: usize) -> Self {
        let whole = (limit as u64).min(u32::MAX.into());
        Self { limit: limit as u64, whole, shards, left: CachePadded::new(AtomicU64::new(whole)) }
    }

    /// Whether an empty table could hold `entries`.
    pub(crate) fn could_hold(&self, entries: u64) -> bool {
        self.limit == 0 || entries <= self.limit
    }

    /// Takes `entries` from the lease of `shard`, or from the entries that are left elsewhere.
    #[inline]
    pub(crate) fn take<'a>(&self, entries: u64, shard: usize, lease: impl Fn(usize) -> &'a Lease) -> bool {
        self.limit == 0 || lease(shard).spend(entries) || self.refill(entries, shard, &lease)
    }

    /// Takes `entries`, and a share for `shard`, from the remaining entries; if too few remain, takes entries from the leases.
    #[cold]
    fn refill<'a>(&self, entries: u64, shard: usize, lease: &impl Fn(usize) -> &'a Lease) -> bool {
        let mut tries = 0;
        loop {
            let seen = self.settled(lease);
            if let Some(rest) = seen.entries().checked_sub(entries) {
                let log = (rest / (4 * self.shards as u64)).checked_ilog2();
                // Relaxed: `settled` has acquired the last share of the lease. If there is a later share, `replace` fails.
                let old = Lease::version(lease(shard).0.load(Ordering::Relaxed));
                let taken = log.map_or(Left(seen.0 - entries), |log| seen.announced(entries, shard, log, old));
                if self.replace(seen, taken) {
                    self.settled(lease);
                    return true;
                }
                continue;
            }
            let leased = || (0..self.shards).map(|shard| lease(shard).left()).sum::<u64>();
            if entries == 1 && (0..self.shards).any(|shard| lease(shard).spend(1)) {
                return true;
            }
            if seen.entries() + leased() >= entries {
                tries += 1;
                if self.gather(entries, lease) {
                    return true;
                }
            } else if self.settled(lease) == seen {
                // No lease has grown since, so no entries were missed.
                return false;
            }
            if tries == GATHER_TRIES {
                return false;
            }
        }
    }

    /// The remaining entries, after any announced share was delivered.
    fn settled<'a>(&self, lease: &impl Fn(usize) -> &'a Lease) -> Left {
        loop {
            // ORDERING(quota.left.read): Acquire; pairs with `replace`, see there.
            let seen = Left(self.left.load(ord("quota.left.read", Ordering::Acquire)));
            if seen.0 & Left::PENDING == 0 {
                return seen;
            }
            self.deliver(seen, lease((seen.0 >> 37) as usize & 0x3ff));
        }
    }

    /// Delivers the share that `announced` announces, unless another thread already delivered it.
    fn deliver(&self, announced: Left, lease: &Lease) {
        loop {
            // ORDERING(quota.lease.read): Acquire; pairs with `quota.lease`. Weaker: a thread could see a lease that has got a later share together
            // with the earlier announcement, and deliver that share again (loom `share`).
            let seen = lease.0.load(ord("quota.lease.read", Ordering::Acquire));
            if Lease::version(seen) == announced.version() {
                break;
            }
            if self.left.load(Ordering::Relaxed) != announced.0 {
                return;
            }
            let entries = Lease::entries(seen) + (1 << (announced.0 >> 32 & 0x1f));
            let whole = u64::from(announced.version()) << 48 | entries;
            // ORDERING(quota.lease): Release; pairs with `quota.lease.read`, see there.
            let release = ord("quota.lease", Ordering::Release);
            if lease.0.compare_exchange(seen, whole, release, Ordering::Relaxed).is_ok() {
                break;
            }
        }
        self.replace(announced, Left(announced.0 & !Left::PENDING));
    }

    fn replace(&self, seen: Left, new: Left) -> bool {
        // ORDERING(quota.left): Release; pairs with `settled`. Weaker: a thread that sees no announcement could also see the lease without its share,
        // and report the table as full (loom `entries_on_their_way`).
        let release = ord("quota.left", Ordering::Release);
        self.left.compare_exchange(seen.0, new.0, release, Ordering::Relaxed).is_ok()
    }

    /// Takes `entries` from the remaining entries and from all leases; takes all of them or none.
    fn gather<'a>(&self, entries: u64, lease: &impl Fn(usize) -> &'a Lease) -> bool {
        // Takes up to `most` of the entries that are left in a word. Returns the number taken.
        let spend = |word: &AtomicU64, left: fn(u64) -> u64, most: u64| {
            let rest = |word| Some(word - left(word).min(most));
            word.fetch_update(Ordering::Relaxed, Ordering::Relaxed, rest).map_or(0, |word| left(word).min(most))
        };
        let mut gathered = spend(&self.left, |word| Left(word).entries(), entries);
        for shard in 0..self.shards {
            gathered += spend(&lease(shard).0, Lease::entries, entries - gathered);
        }
        if gathered < entries {
            self.give_back(gathered);
        }
        gathered == entries
    }

    /// Returns entries that were taken but not stored.
    pub(crate) fn give_back(&self, entries: u64) {
        if self.limit != 0 && entries != 0 {
            self.left.fetch_add(entries, Ordering::Relaxed);
        }
    }

    /// Whether `stored` entries are at least `part` of the limit. The computation uses the stored entries, which only grow, and not the remaining
    /// ones, which other threads may be moving. Counting them reads every shard's cache lines, which the shard's writers must then fetch again. So
    /// they are not counted while the entries that no shard has leased already show that there is room.
    pub(crate) fn is_used(&self, part: f64, stored: impl FnOnce() -> u64) -> bool {
        let part = self.limit as f64 * part;
        // Saturates: an order that breaks its promises can give back an entry that was not taken.
        let taken = || self.whole.saturating_sub(Left(self.left.load(Ordering::Relaxed)).entries());
        self.limit != 0 && taken() as f64 >= part && stored() as f64 >= part
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches leases that leave entries unusable on idle shards, or hand out more than the limit.
    #[test]
    fn every_entry_of_the_limit_is_handed_out_once() {
        for limit in [1, 2, 7, 100, 1000] {
            let leases: [Lease; 8] = Default::default();
            let quota = Quota::new(limit, leases.len());
            let mut taken = 0;
            // Shards take turns at the start; then one shard has to find the entries that the others hold.
            while taken < limit && quota.take(1, taken % 3, |shard| &leases[shard]) {
                taken += 1;
            }
            assert_eq!(taken, limit);
            assert!(!quota.take(1, 5, |shard| &leases[shard]));
            quota.give_back(1);
            assert!(!quota.take(2, 5, |shard| &leases[shard]));
            assert!(quota.take(1, 5, |shard| &leases[shard]));
        }
    }

    /// Catches shares so large that one idle shard makes the others search, or so small that each entry needs the shared word.
    #[test]
    fn lease_is_a_quarter_of_a_shards_part() {
        let leases: [Lease; 4] = Default::default();
        let quota = Quota::new(1601, 4);
        assert!(quota.take(1, 0, |shard| &leases[shard]));
        assert_eq!(leases[0].left(), 64, "the power of two up to that");
        assert_eq!(Left(quota.left.load(Ordering::Relaxed)).entries(), 1536);
        assert!(!quota.is_used(0.05, || 100) && !quota.is_used(0.04, || 1) && quota.is_used(0.04, || 100));
    }

    /// Catches a share that counts as delivered because its version equals, after a full cycle, that of the last share of its shard. The entries
    /// would be lost, and the table would be full too early.
    #[test]
    fn shares_are_delivered_when_versions_come_round() {
        let leases: [Lease; 2] = Default::default();
        let quota = Quota::new(1000, leases.len());
        let take = |entries, shard: usize| assert!(quota.take(entries, shard, |shard| &leases[shard]));
        let there = || Left(quota.left.load(Ordering::Relaxed)).entries() + leases.iter().map(Lease::left).sum::<u64>();
        // Each round spends the lease, requests a share, and returns all of it.
        let round = |shard: usize| {
            let held = leases[shard].left();
            take(held, shard);
            take(1, shard);
            quota.give_back(held + 1);
        };
        round(0);
        for shares in 1..=1 << 16 {
            round(if shares == 1 << 16 { 0 } else { 1 });
            assert_eq!(there(), 1000, "after {shares} shares");
        }
    }

    /// Catches a refused request that keeps entries which would have been enough for other requests, and sums that overflow.
    #[test]
    fn refused_request_leaves_everything_where_others_find_it() {
        let leases: [Lease; 4] = Default::default();
        let quota = Quota::new(usize::MAX, 4);
        assert!(quota.take(1, 0, |shard| &leases[shard]));
        assert!(quota.take(u64::from(u32::MAX) - 1, 1, |shard| &leases[shard]));
        assert!(!quota.take(1, 2, |shard| &leases[shard]));
        quota.give_back(5);
        assert!(!quota.take(6, 3, |shard| &leases[shard]));
        assert!(quota.take(5, 0, |shard| &leases[shard]));
    }
}
