//! The block cache: decompressed data blocks and partitions, bounded by bytes.
//!
//! Blocks never change and table numbers are never reused, so nothing here expires; data blocks of deleted tables become cold and are evicted.
//! [`clock`] decides which blocks stay and is scan-resistant; hits take no lock and compute no hash.
//!
//! A partition contains the handles of about a hundred data blocks; without the partition none of them can be read. So partitions evict data blocks,
//! up to half of the bytes, and data blocks never evict partitions. The two are separate caches, and the one for data blocks shrinks by the bytes of
//! the partitions. These bytes are reserved in steps before they are used, so that both together never exceed the limit.
//!
//! The roots of the tables are outside of these caches, and are never evicted. The cache of data blocks shrinks by the roots' bytes, too, as long as
//! an eighth of the limit is left.
//!
//! Hits take no reference: a reader is pinned (`epoch.rs`), so an evicted block is freed some time after its eviction. Until then it counts among the
//! cache's bytes: a block for which there is no room yet is not kept. So even a thread that is stopped while it reads cannot make the cache exceed
//! its limit.
//!
//! A partition holds the slots of its data blocks ([`Group`]). When the partition is evicted, its own slot keeps a weak reference to these slots: if
//! it is read again while one of its data blocks is in memory, it uses the same slots.

pub(crate) mod clock;

use std::fmt;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::thread;

use crate::codec;
use crate::epoch::{Loaded, Pin, Retired, Slot, TURNS, collect, pin, reclaim};
use crate::lock::lock;
use crate::metrics::Counters;

use clock::{CacheSlot, Cached, Clock, Evict};

/// Memory that a block needs besides its bytes: 80 bytes for two reference counts and the allocator's overhead, and 80 for its slot, its entry in the
/// clock and its entry as a ghost. It is counted, so that a large number of tiny blocks cannot exceed the budget.
const ENTRY_BYTES: u64 = 160;

/// The way in which a read uses the block cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CacheUse {
    /// Searches the cache first, and inserts the blocks that it reads from files.
    Fill,
    /// Reads from the file and does not change the cache.
    Bypass,
}

/// The identity of a block: the number of its table, and its offset there.
type BlockId = (u64, u64);

/// The slots of the data blocks that a partition leads to.
type Blocks<D> = Arc<[Slot<Cached<D>>]>;

/// The slots of a table's partitions.
pub(crate) type Partitions<P, D> = Arc<[Slot<Cached<Group<P, D>>>]>;

/// A partition with the slots of its data blocks; or the remainder after its eviction.
#[derive(Debug)]
pub(crate) enum Group<P, D> {
    Resident { partition: P, blocks: Blocks<D> },
    Evicted { blocks: Weak<[Slot<Cached<D>>]> },
}

impl<P, D> Evict for Group<P, D> {
    fn is_resident(&self) -> bool {
        matches!(self, Self::Resident { .. })
    }

    fn remainder(&self) -> Option<Self> {
        let Self::Resident { blocks, .. } = self else { return None };
        Some(Self::Evicted { blocks: Arc::downgrade(blocks) })
    }
}

/// A partition in memory, with a count of its own.
#[derive(Debug)]
pub(crate) struct CachedPartition<P, D>(Arc<Cached<Group<P, D>>>);

impl<P, D: Evict + Send + Sync + 'static> CachedPartition<P, D> {
    /// A partition that is not in the cache, and neither are its data blocks.
    pub(crate) fn uncached(partition: P) -> Self {
        Self::with_blocks(partition, 0)
    }

    /// A partition that is not in the cache, although its data blocks may be.
    pub(crate) fn with_blocks(partition: P, count: usize) -> Self {
        Self(Cached::new(Group::Resident { partition, blocks: Slot::several(count) }, 0))
    }

    #[inline]
    pub(crate) fn group(&self) -> &Group<P, D> {
        &self.0
    }
}

impl<P, D> Group<P, D> {
    fn parts(&self) -> (&P, &Blocks<D>) {
        match self {
            Self::Resident { partition, blocks } => (partition, blocks),
            Self::Evicted { .. } => unreachable!("what is made and what is found is resident"),
        }
    }
}

impl<P, D> Deref for Group<P, D> {
    type Target = P;

    #[inline]
    fn deref(&self) -> &P {
        self.parts().0
    }
}

impl<P, D> Deref for CachedPartition<P, D> {
    type Target = Group<P, D>;

    #[inline]
    fn deref(&self) -> &Group<P, D> {
        &self.0
    }
}

/// The number of steps in which the partitions' share of the bytes grows and shrinks; each step visits every shard of the data blocks.
const STEPS: u64 = 64;
/// The part of the bytes that is left for data blocks, however large the roots are.
const DATA_PART: u64 = 8;
/// Bytes of cache for each lock, and the maximum number of locks.
const SHARD_BYTES: u64 = 8 << 20;
const MOST_SHARDS: u64 = 16;

/// The part of a shard's bytes that blocks may take which are evicted and not freed; if they take more, nothing else is evicted.
const RETIRED_PART: u64 = 8;
/// The number of times that an insertion collects before it gives up.
const MOST_TURNS: usize = 8;
/// The part of a shard's bytes that is evicted at once.
const EVICTED_PART: u64 = 128;

/// Blocks of all tables of one database: partitions `P`, and data blocks `D`.
pub(crate) struct BlockCache<P: Send + Sync + 'static, D: Evict + Send + Sync + 'static> {
    data: Shards<D>,
    partitions: Shards<Group<P, D>>,
    bytes: u64,
    /// Locked after a partition was read from a file, and to count bytes; a hit never locks it.
    shares: Mutex<Shares>,
    counters: Arc<Counters>,
}

/// Bytes of the partitions. Each update is complete in itself, so a panic of a thread that holds the lock cannot leave them inconsistent.
#[derive(Debug, Default)]
struct Shares {
    /// Bytes for all partitions and roots, taken from the data blocks in steps.
    reserved: u64,
    /// Bytes of the roots of all tables.
    roots: u64,
}

impl<P: Send + Sync, D: Evict + Send + Sync> BlockCache<P, D> {
    pub(crate) fn new(bytes: u64, counters: Arc<Counters>) -> Self {
        Self { data: Shards::new(bytes), partitions: Shards::new(bytes / 2), bytes, shares: Mutex::default(), counters }
    }

    /// Data block `at` of a partition, if the block is in the cache.
    #[inline(always)]
    pub(crate) fn get<'a>(&self, pin: &'a Pin, group: &'a Group<P, D>, at: usize) -> Option<Loaded<'a, Cached<D>>> {
        let hit = group.parts().1.get(at)?.load(pin)?;
        self.counters.cache_hits.add(1);
        hit.mark();
        Some(hit)
    }

    /// Whether data block `at` of a partition is in the cache; not counted.
    pub(crate) fn has(&self, group: &Group<P, D>, at: usize) -> bool {
        group.parts().1.get(at).is_some_and(|slot| slot.load(&pin()).is_some())
    }

    /// Partition `at` of a table, if it is in the cache; not counted.
    #[inline(always)]
    pub(crate) fn get_partition<'a>(
        &self,
        pin: &'a Pin,
        partitions: &'a Partitions<P, D>,
        at: usize,
    ) -> Option<Loaded<'a, Cached<Group<P, D>>>> {
        partitions.get(at)?.load(pin).filter(|hit| hit.is_resident())
    }

    /// Counts a use of a partition that was found.
    #[inline]
    pub(crate) fn count_partition(&self, hit: &Cached<Group<P, D>>) {
        self.counters.partition_hits.add(1);
        hit.mark();
    }

    /// Like [`BlockCache::get_partition`], with a count of its own, and counted as a use.
    pub(crate) fn hold_partition(&self, partitions: &Partitions<P, D>, at: usize) -> Option<CachedPartition<P, D>> {
        let held = self.get_partition(&pin(), partitions, at)?.to_arc();
        self.count_partition(&held);
        Some(CachedPartition(held))
    }

    /// Bytes of memory of the cached blocks at one moment, with those that are evicted and not freed; no bytes move between the two caches meanwhile.
    pub(crate) fn bytes(&self) -> u64 {
        let _shares = lock(&self.shares);
        self.data.bytes() + self.partitions.bytes()
    }

    /// Bytes of memory that the cached partitions take.
    #[cfg(test)]
    pub(crate) fn partition_bytes(&self) -> u64 {
        self.partitions.bytes() - self.partitions.retired()
    }

    /// Bytes of memory of blocks that are evicted and not freed.
    pub(crate) fn retired_bytes(&self) -> u64 {
        self.data.retired() + self.partitions.retired()
    }

    /// Inserts data block `at` of a partition, which takes `len` bytes, unless it is larger than the cache can hold.
    pub(crate) fn insert(
        &self,
        (group, at): (&Group<P, D>, usize),
        id: BlockId,
        block: D,
        len: usize,
    ) -> Arc<Cached<D>> {
        let weight = len as u64 + ENTRY_BYTES;
        self.data.insert((group.parts().1, at), id, Cached::new(block, weight))
    }

    /// Inserts partition `at` of a table, which takes `len` bytes and has `blocks` data blocks, unless it is larger than one shard of the cache can
    /// hold.
    pub(crate) fn insert_partition(
        &self,
        partitions: &Partitions<P, D>,
        at: usize,
        id: BlockId,
        partition: P,
        (len, blocks): (usize, usize),
    ) -> CachedPartition<P, D> {
        let weight = len as u64 + ENTRY_BYTES + (blocks * size_of::<Slot<Cached<D>>>()) as u64;
        let mut shares = lock(&self.shares);
        // Data blocks in the slots of a partition that is not kept could not be found again.
        if !self.reserve(&mut shares, weight) {
            return CachedPartition::uncached(partition);
        }
        let before = partitions.get(at).and_then(CacheSlot::get).and_then(|hit| match &**hit {
            Group::Resident { blocks, .. } => Some(blocks.clone()),
            Group::Evicted { blocks } => blocks.upgrade(),
        });
        let blocks = before.unwrap_or_else(|| Slot::several(blocks));
        let group = Cached::new(Group::Resident { partition, blocks }, weight);
        CachedPartition(self.partitions.insert((partitions, at), id, group))
    }

    /// Drops the partitions of a table that no longer has readers.
    pub(crate) fn remove_partitions(&self, partitions: &Partitions<P, D>) {
        self.partitions.forget(partitions);
    }

    /// Counts the root of a table, which takes `bytes`.
    pub(crate) fn add_root(&self, bytes: u64) {
        let mut shares = lock(&self.shares);
        shares.roots += bytes;
        self.reserve(&mut shares, 0);
    }

    /// Stops counting the root of a table, which takes `bytes`.
    pub(crate) fn remove_root(&self, bytes: u64) {
        lock(&self.shares).roots -= bytes;
    }

    /// Takes from the data blocks the bytes that the roots and the partitions need, including a new partition of `weight`. Returns whether it has them.
    fn reserve(&self, shares: &mut Shares, weight: u64) -> bool {
        let step = self.bytes / STEPS + 1;
        let partitions = (self.partitions.bytes() + weight).next_multiple_of(step).min(self.bytes / 2);
        let wanted = (partitions + shares.roots).min(self.bytes - self.bytes / DATA_PART);
        if wanted > shares.reserved || wanted + 2 * step < shares.reserved {
            shares.reserved = wanted;
            self.data.set_capacity(self.bytes - wanted);
        }
        self.data.is_within()
    }
}

/// Clocks with one lock each, which share the blocks equally.
struct Shards<T: Evict + Send + Sync + 'static>(Box<[Shard<T>]>);

/// A clock, and the blocks that were evicted from it and are not freed.
struct Shard<T: Evict + Send + Sync + 'static> {
    blocks: Mutex<ShardBlocks<T>>,
    /// The weight of the evicted blocks. Relaxed: only the holder of the lock adds to it, and a thread that reads a weight too much keeps less.
    retired: Arc<AtomicU64>,
}

struct ShardBlocks<T: Evict + Send + Sync + 'static> {
    clock: Clock<Slot<Cached<T>>>,
    /// Evicted blocks that are not in the collector's queue: each addition to it takes as long as some evictions.
    out: Vec<Retired<Cached<T>>>,
}

impl<T: Evict + Send + Sync> Shard<T> {
    fn insert(&self, slot: (&Blocks<T>, usize), id: u64, cached: Arc<Cached<T>>) -> Arc<Cached<T>> {
        let (mut blocks, weight) = (lock(&self.blocks), cached.weight());
        if blocks.clock.fits(weight) && !self.make_room(&mut blocks, weight) {
            return cached;
        }
        self.evicting(&mut blocks, |clock, out| clock.insert(slot, id, cached, out))
    }

    /// Evicts blocks until a block of this weight has room. Returns false if too much of what was evicted cannot be freed yet.
    fn make_room(&self, blocks: &mut ShardBlocks<T>, weight: u64) -> bool {
        let capacity = blocks.clock.capacity();
        let has_room = |blocks: &ShardBlocks<T>| blocks.clock.bytes() + self.retired() + weight <= capacity;
        if has_room(blocks) {
            return true;
        }
        // Only what is in the collector's queue can be freed below.
        self.reclaim(blocks);
        if self.retired() > capacity / RETIRED_PART {
            collect();
            return has_room(blocks);
        }
        let left = capacity - weight.max(capacity / EVICTED_PART);
        self.evicting(blocks, |clock, out| clock.shrink_to(left, out));
        self.reclaim(blocks);
        self.collect_until(|| has_room(blocks))
    }

    /// Collects until `is_enough`, several times at most. A pinned thread that the system has stopped may continue while this thread yields to it.
    fn collect_until(&self, is_enough: impl Fn() -> bool) -> bool {
        (0..MOST_TURNS).any(|turn| {
            if turn >= TURNS {
                thread::yield_now();
            }
            collect();
            is_enough()
        })
    }

    /// Calls `change`, and counts what it evicts.
    fn evicting<R>(
        &self,
        blocks: &mut ShardBlocks<T>,
        change: impl FnOnce(&mut Clock<Slot<Cached<T>>>, &mut Vec<Retired<Cached<T>>>) -> R,
    ) -> R {
        let before = blocks.out.len();
        let result = change(&mut blocks.clock, &mut blocks.out);
        let weight = blocks.out[before..].iter().map(|cached| cached.weight()).sum();
        self.retired.fetch_add(weight, Ordering::Relaxed);
        result
    }

    /// Passes the evicted blocks to the collector.
    fn reclaim(&self, blocks: &mut ShardBlocks<T>) {
        if blocks.out.is_empty() {
            return;
        }
        let weight = blocks.out.iter().map(|cached| cached.weight()).sum();
        let retired = self.retired.clone();
        reclaim(blocks.out.drain(..), move |blocks| {
            drop(blocks);
            retired.fetch_sub(weight, Ordering::Relaxed);
        });
    }

    fn retired(&self) -> u64 {
        self.retired.load(Ordering::Relaxed)
    }
}

impl<T: Evict + Send + Sync> Shards<T> {
    fn new(bytes: u64) -> Self {
        let count = (bytes / SHARD_BYTES).clamp(1, MOST_SHARDS);
        let blocks = || ShardBlocks { clock: Clock::new(bytes / count), out: Vec::new() };
        Self((0..count).map(|_| Shard { blocks: Mutex::new(blocks()), retired: Arc::default() }).collect())
    }

    fn insert(&self, slot: (&Blocks<T>, usize), (table, offset): BlockId, cached: Arc<Cached<T>>) -> Arc<Cached<T>> {
        let id = codec::seed([table, offset]);
        self.0[(id % self.0.len() as u64) as usize].insert(slot, id, cached)
    }

    fn set_capacity(&self, bytes: u64) {
        let capacity = bytes / self.0.len() as u64;
        self.change(|clock, out| clock.set_capacity(capacity, out));
    }

    fn forget(&self, slots: &Blocks<T>) {
        self.change(|clock, out| clock.forget(slots, out));
    }

    /// Evicts blocks by `change`, and frees them unless readers delay that.
    fn change(&self, change: impl Fn(&mut Clock<Slot<Cached<T>>>, &mut Vec<Retired<Cached<T>>>)) {
        for shard in &self.0 {
            let mut blocks = lock(&shard.blocks);
            shard.evicting(&mut blocks, &change);
            shard.reclaim(&mut blocks);
        }
        self.0.iter().for_each(|shard| _ = shard.collect_until(|| shard.retired() == 0));
    }

    /// Whether no shard has more bytes than its capacity, with what is evicted and not freed.
    fn is_within(&self) -> bool {
        self.0.iter().all(|shard| {
            let blocks = lock(&shard.blocks);
            blocks.clock.bytes() + shard.retired() <= blocks.clock.capacity()
        })
    }

    fn bytes(&self) -> u64 {
        self.0.iter().map(|shard| lock(&shard.blocks).clock.bytes() + shard.retired()).sum()
    }

    fn retired(&self) -> u64 {
        self.0.iter().map(Shard::retired).sum()
    }

    fn len(&self) -> usize {
        self.0.iter().map(|shard| lock(&shard.blocks).clock.len()).sum()
    }
}

impl<P: Send + Sync, D: Evict + Send + Sync> fmt::Debug for BlockCache<P, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockCache")
            .field("data_blocks", &self.data.len())
            .field("partitions", &self.partitions.len())
            .field("bytes", &self.bytes())
            .field("capacity", &self.bytes)
            .finish()
    }
}

#[cfg(test)]
mod tests;
