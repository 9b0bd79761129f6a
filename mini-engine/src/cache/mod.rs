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
//! The partitions that are read first, up to an eighth of the bytes, are pinned until their tables are closed: a read of one writes to no shared
//! cache line, and takes no reference. Partitions take a fiftieth of the bytes of their data blocks. So if the database is at most six times as large
//! as the cache, all partitions are pinned; otherwise the partitions that gets and scans read first, until their tables are compacted.
//!
//! A partition holds the slots of its data blocks ([`Group`]). When the partition is evicted, its own slot keeps a weak reference to these slots: if
//! it is read again while one of its data blocks is in memory, it uses the same slots.

pub(crate) mod clock;

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Mutex, OnceLock, Weak};

use crate::codec;
use crate::lock::lock;
use crate::metrics::Counters;

use clock::{CacheSlot, Cached, Clock, Evict, Hit};

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
type Blocks<D> = Arc<[CacheSlot<D>]>;

/// A partition with the slots of its data blocks; or the remainder after its eviction.
#[derive(Debug)]
enum Group<P, D> {
    Resident { partition: P, blocks: Blocks<D> },
    Evicted { blocks: Weak<[CacheSlot<D>]> },
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

/// The slots of a table's partitions.
#[derive(Debug)]
pub(crate) struct Partitions<P, D> {
    pinned: Box<[OnceLock<CachedPartition<P, D>>]>,
    /// The slots of partitions that are not pinned.
    slots: Arc<[CacheSlot<Group<P, D>>]>,
}

impl<P, D> Partitions<P, D> {
    /// Slots for `count` partitions, none of which is in memory.
    pub(crate) fn new(count: usize) -> Self {
        Self { pinned: (0..count).map(|_| OnceLock::new()).collect(), slots: CacheSlot::several(count) }
    }

    pub(crate) fn memory_len(&self) -> usize {
        size_of_val(&*self.pinned) + size_of_val(&*self.slots)
    }

    /// Bytes of memory that the pinned partitions take.
    fn pinned_bytes(&self) -> u64 {
        self.pinned.iter().filter_map(OnceLock::get).map(|partition| partition.0.weight()).sum()
    }
}

/// A partition that was found.
pub(crate) enum FoundPartition<'a, P, D> {
    Pinned(&'a CachedPartition<P, D>),
    Cached(CachedPartition<P, D>),
}

impl<P, D> FoundPartition<'_, P, D> {
    /// The partition with a reference of its own, which may be held for a long time.
    pub(crate) fn to_owned(&self) -> CachedPartition<P, D> {
        CachedPartition::clone(self)
    }
}

impl<P, D> Deref for FoundPartition<'_, P, D> {
    type Target = CachedPartition<P, D>;

    #[inline]
    fn deref(&self) -> &CachedPartition<P, D> {
        match self {
            Self::Pinned(partition) => partition,
            Self::Cached(partition) => partition,
        }
    }
}

/// A partition in memory.
#[derive(Debug)]
pub(crate) struct CachedPartition<P, D>(Hit<Group<P, D>>);

impl<P, D> CachedPartition<P, D> {
    /// A partition that is not in the cache, and neither are its data blocks.
    pub(crate) fn uncached(partition: P) -> Self {
        Self::with_blocks(partition, 0)
    }

    /// A partition that is not in the cache, although its data blocks may be.
    pub(crate) fn with_blocks(partition: P, count: usize) -> Self {
        let group = Group::Resident { partition, blocks: CacheSlot::several(count) };
        Self(Hit::of(Cached::new(group, 0)))
    }

    fn parts(&self) -> (&P, &Blocks<D>) {
        match &*self.0 {
            Group::Resident { partition, blocks } => (partition, blocks),
            Group::Evicted { .. } => unreachable!("what is made and what is found is resident"),
        }
    }
}

impl<P, D> Deref for CachedPartition<P, D> {
    type Target = P;

    #[inline]
    fn deref(&self) -> &P {
        self.parts().0
    }
}

impl<P, D> Clone for CachedPartition<P, D> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

/// The number of steps in which the partitions' share of the bytes grows and shrinks; each step visits every shard of the data blocks.
const STEPS: u64 = 64;
/// The part of the bytes that pinned partitions may take.
const PINNED_PART: u64 = 8;
/// The part of the bytes that is left for data blocks, however large the roots are.
const DATA_PART: u64 = 8;
/// Bytes of cache for each lock, and the maximum number of locks.
const SHARD_BYTES: u64 = 8 << 20;
const MOST_SHARDS: u64 = 16;

/// Blocks of all tables of one database: partitions `P`, and data blocks `D`.
pub(crate) struct BlockCache<P, D> {
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
    /// Bytes of the pinned partitions.
    pinned: u64,
    /// Bytes of the roots of all tables.
    roots: u64,
}

impl<P, D: Evict> BlockCache<P, D> {
    pub(crate) fn new(bytes: u64, counters: Arc<Counters>) -> Self {
        let (data, partitions) = (Shards::new(bytes), Shards::new(bytes / 2 - bytes / PINNED_PART));
        Self { data, partitions, bytes, shares: Mutex::default(), counters }
    }

    /// Data block `at` of a partition, if the block is in the cache; the call is counted as a hit or a miss.
    #[inline(always)]
    pub(crate) fn get(&self, partition: &CachedPartition<P, D>, at: usize) -> Option<Hit<D>> {
        let Some(hit) = partition.parts().1.get(at).and_then(CacheSlot::get) else {
            self.counters.cache_misses.add(1);
            return None;
        };
        self.counters.cache_hits.add(1);
        hit.mark();
        Some(hit)
    }

    /// Whether data block `at` of a partition is in the cache; not counted.
    pub(crate) fn has(&self, partition: &CachedPartition<P, D>, at: usize) -> bool {
        partition.parts().1.get(at).and_then(CacheSlot::get).is_some()
    }

    /// Partition `at` of a table, if it is in the cache; counted as a hit or a miss, unless there is no such partition.
    #[inline(always)]
    pub(crate) fn get_partition<'a>(
        &self,
        partitions: &'a Partitions<P, D>,
        at: usize,
    ) -> Option<FoundPartition<'a, P, D>> {
        if let Some(partition) = partitions.pinned.get(at)?.get() {
            self.counters.partition_hits.add(1);
            return Some(FoundPartition::Pinned(partition));
        }
        let Some(hit) = partitions.slots.get(at)?.get().filter(|hit| hit.is_resident()) else {
            self.counters.partition_misses.add(1);
            return None;
        };
        self.counters.partition_hits.add(1);
        hit.mark();
        Some(FoundPartition::Cached(CachedPartition(hit)))
    }

    /// Bytes of memory of the cached blocks at one moment; no bytes move between the two caches meanwhile.
    pub(crate) fn bytes(&self) -> u64 {
        let shares = lock(&self.shares);
        self.data.bytes() + self.partitions.bytes() + shares.pinned
    }

    /// Bytes of memory that the cached partitions take.
    #[cfg(test)]
    pub(crate) fn partition_bytes(&self) -> u64 {
        let shares = lock(&self.shares);
        self.partitions.bytes() + shares.pinned
    }

    /// Inserts data block `at` of a partition, which takes `len` bytes, unless it is larger than the cache can hold.
    pub(crate) fn insert(
        &self,
        (partition, at): (&CachedPartition<P, D>, usize),
        id: BlockId,
        block: D,
        len: usize,
    ) -> Hit<D> {
        let weight = len as u64 + ENTRY_BYTES;
        self.data.insert((partition.parts().1, at), id, Cached::new(block, weight))
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
        let weight = len as u64 + ENTRY_BYTES + (blocks * size_of::<CacheSlot<D>>()) as u64;
        let before = partitions.slots.get(at).and_then(CacheSlot::get).and_then(|hit| match &*hit {
            Group::Resident { blocks, .. } => Some(blocks.clone()),
            Group::Evicted { blocks } => blocks.upgrade(),
        });
        let blocks = before.unwrap_or_else(|| CacheSlot::several(blocks));
        let mut shares = lock(&self.shares);
        self.reserve(&mut shares, weight);
        let group = Cached::new(Group::Resident { partition, blocks }, weight);
        match partitions.pinned.get(at) {
            Some(place) if shares.pinned + weight <= self.bytes / PINNED_PART => {
                // Another thread may have read the partition too.
                place
                    .get_or_init(|| {
                        shares.pinned += weight;
                        CachedPartition(Hit::of(group))
                    })
                    .clone()
            }
            _ => CachedPartition(self.partitions.insert((&partitions.slots, at), id, group)),
        }
    }

    /// Drops the partitions of a table that no longer has readers, except for pinned ones, which are dropped with the table.
    pub(crate) fn remove_partitions(&self, partitions: &Partitions<P, D>) {
        self.partitions.forget(&partitions.slots);
    }

    /// Counts the root of a table, which takes `bytes`.
    pub(crate) fn add_root(&self, bytes: u64) {
        let mut shares = lock(&self.shares);
        shares.roots += bytes;
        self.reserve(&mut shares, 0);
    }

    /// Stops counting the root of a table, which takes `root` bytes and is about to be dropped with its pinned partitions.
    pub(crate) fn release(&self, partitions: &Partitions<P, D>, root: u64) {
        let mut shares = lock(&self.shares);
        shares.pinned -= partitions.pinned_bytes();
        shares.roots -= root;
    }

    /// Takes from the data blocks the bytes that the roots and the partitions need, including a new partition of `weight`.
    fn reserve(&self, shares: &mut Shares, weight: u64) {
        let step = self.bytes / STEPS + 1;
        let partitions = self.partitions.bytes() + shares.pinned + weight;
        let partitions = partitions.next_multiple_of(step).min(self.bytes / 2);
        let wanted = (partitions + shares.roots).min(self.bytes - self.bytes / DATA_PART);
        if wanted > shares.reserved || wanted + 2 * step < shares.reserved {
            shares.reserved = wanted;
            self.data.set_capacity(self.bytes - wanted);
        }
    }
}

/// Clocks with one lock each, which share the blocks equally.
struct Shards<T>(Box<[Mutex<Clock<T>>]>);

impl<T: Evict> Shards<T> {
    fn new(bytes: u64) -> Self {
        let count = (bytes / SHARD_BYTES).clamp(1, MOST_SHARDS);
        Self((0..count).map(|_| Mutex::new(Clock::new(bytes / count))).collect())
    }

    fn insert(&self, slot: (&Arc<[CacheSlot<T>]>, usize), (table, offset): BlockId, cached: Arc<Cached<T>>) -> Hit<T> {
        let id = codec::seed([table, offset]);
        let (shard, mut evicted) = ((id % self.0.len() as u64) as usize, Vec::new());
        // Evicted blocks are dropped after the lock is released.
        let hit = lock(&self.0[shard]).insert(slot, id, cached, &mut evicted);
        drop(evicted);
        hit
    }

    fn set_capacity(&self, bytes: u64) {
        for shard in &self.0 {
            let mut evicted = Vec::new();
            lock(shard).set_capacity(bytes / self.0.len() as u64, &mut evicted);
        }
    }

    fn forget(&self, slots: &Arc<[CacheSlot<T>]>) {
        self.0.iter().for_each(|shard| lock(shard).forget(slots));
    }

    fn bytes(&self) -> u64 {
        self.0.iter().map(|shard| lock(shard).bytes()).sum()
    }

    fn len(&self) -> usize {
        self.0.iter().map(|shard| lock(shard).len()).sum()
    }
}

impl<P, D: Evict> fmt::Debug for BlockCache<P, D> {
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
