//! The block cache: decompressed data blocks and partitions by table number and offset, bounded by bytes.
//!
//! Blocks never change and table numbers are never used twice, so nothing here expires; blocks of deleted tables are
//! evicted as they grow cold. Scan-resistant and concurrent by `quick_cache`.
//!
//! A partition leads to a hundred data blocks, and without it none of them can be read. So partitions evict data blocks, up to half of
//! the bytes, and data blocks never evict partitions: the two are caches of their own, and that of the data blocks shrinks by what
//! the partitions take. What they take is reserved in steps before it is taken, so that both together never exceed the bytes.

use std::fmt;
use std::hint::black_box;
use std::sync::{Arc, Mutex, PoisonError};

use quick_cache::Weighter;
use quick_cache::sync::Cache;

use crate::metrics::Counters;

type BlockId = (u64, u64);

/// Memory that a block costs beside its bytes: the reference count and what the allocator adds, 24 bytes; key, pointer, links
/// and a place in the table of the cache, 72. So many tiny blocks cannot exceed the budget unseen.
const ENTRY_BYTES: u64 = 96;

/// What a read does with the block cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CacheUse {
    /// Looks there first and leaves there what it read.
    Fill,
    /// Reads from the file and leaves the cache as it is.
    Bypass,
}

#[derive(Clone)]
struct ByBytes;

fn weight(bytes: &[u8]) -> u64 {
    bytes.len() as u64 + ENTRY_BYTES
}

impl Weighter<BlockId, Arc<[u8]>> for ByBytes {
    fn weight(&self, _: &BlockId, block: &Arc<[u8]>) -> u64 {
        weight(block)
    }
}

impl Weighter<BlockId, DataBlock> for ByBytes {
    fn weight(&self, _: &BlockId, block: &DataBlock) -> u64 {
        weight(&block.0)
    }
}

/// A data block in the cache. A hit clones it, and that is when its memory is asked for: see [`DataBlock::clone`].
struct DataBlock(Arc<[u8]>);

impl Clone for DataBlock {
    /// A search begins at the block's end, where its restarts are. That line and the reference count's are two cache misses, and nothing
    /// passes an atomic increment: so both are read before it, side by side. Safe code has no other prefetch.
    #[inline]
    fn clone(&self) -> Self {
        black_box((self.0.first().copied(), self.0.last().copied()));
        Self(Arc::clone(&self.0))
    }
}

type Blocks<B> = Cache<BlockId, B, ByBytes>;

/// Steps in which the partitions' share of the bytes grows and shrinks: each of them visits every shard of the data blocks.
const STEPS: u64 = 64;

/// Blocks of all tables of one database.
pub(crate) struct BlockCache {
    data: Blocks<DataBlock>,
    partitions: Blocks<Arc<[u8]>>,
    bytes: u64,
    /// Bytes that the data blocks leave to the partitions. Locked after a partition was read, and never by hits.
    reserved: Mutex<u64>,
    counters: Arc<Counters>,
}

impl BlockCache {
    /// A cache of at most `bytes`, for blocks of about `block_bytes`.
    pub(crate) fn new(bytes: u64, block_bytes: usize, counters: Arc<Counters>) -> Self {
        let blocks = |bytes: u64| (bytes / (block_bytes.max(1) as u64)).clamp(1, 1 << 24) as usize;
        let data = Cache::with_weighter(blocks(bytes), bytes, ByBytes);
        let partitions = Cache::with_weighter(blocks(bytes / 2), bytes / 2, ByBytes);
        Self { data, partitions, bytes, reserved: Mutex::new(0), counters }
    }

    /// The data block at `offset` of table `table`, if it is here; counted as a hit or a miss.
    pub(crate) fn get(&self, table: u64, offset: u64) -> Option<Arc<[u8]>> {
        let block = self.data.get(&(table, offset));
        let counter = if block.is_some() { &self.counters.cache_hits } else { &self.counters.cache_misses };
        counter.add(1);
        block.map(|block| block.0)
    }

    /// The partition at `offset` of table `table`, if it is here; counted as a hit or a miss.
    pub(crate) fn get_partition(&self, table: u64, offset: u64) -> Option<Arc<[u8]>> {
        let block = self.partitions.get(&(table, offset));
        let counter = if block.is_some() { &self.counters.partition_hits } else { &self.counters.partition_misses };
        counter.add(1);
        block
    }

    /// Bytes of memory that the cached blocks take.
    pub(crate) fn bytes(&self) -> u64 {
        self.data.weight() + self.partitions.weight()
    }

    /// Bytes of memory that the cached partitions take.
    #[cfg(test)]
    pub(crate) fn partition_bytes(&self) -> u64 {
        self.partitions.weight()
    }

    /// Keeps a data block, unless it is larger than the cache can hold.
    pub(crate) fn insert(&self, table: u64, offset: u64, block: Arc<[u8]>) {
        self.data.insert((table, offset), DataBlock(block));
    }

    /// Keeps a partition, unless it is larger than half the cache can hold.
    pub(crate) fn insert_partition(&self, table: u64, offset: u64, block: Arc<[u8]>) {
        let id = (table, offset);
        // A number: no panic of another holder can have torn it.
        let mut reserved = self.reserved.lock().unwrap_or_else(PoisonError::into_inner);
        let (most, step) = (self.partitions.capacity(), self.bytes / STEPS + 1);
        let wanted = (self.partitions.weight() + weight(&block)).next_multiple_of(step).min(most);
        if wanted > *reserved || wanted + 2 * step < *reserved {
            *reserved = wanted;
            self.data.set_capacity(self.bytes.saturating_sub(wanted));
        }
        self.partitions.insert(id, block);
    }

    /// Drops a partition of a table that nobody reads any more.
    pub(crate) fn remove_partition(&self, table: u64, offset: u64) {
        self.partitions.remove(&(table, offset));
    }
}

impl fmt::Debug for BlockCache {
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
mod tests {
    use super::*;

    fn cache(bytes: u64) -> BlockCache {
        BlockCache::new(bytes, 4096, Arc::default())
    }

    #[test]
    fn a_block_is_found_under_its_own_table_and_offset_only() {
        // Catches a key that leaves out the table: reads of one table would return another's block.
        let cache = cache(1 << 20);
        cache.insert(1, 8192, Arc::from(&b"block"[..]));
        assert_eq!(cache.get(1, 8192).as_deref(), Some(&b"block"[..]));
        assert!(cache.get(2, 8192).is_none() && cache.get(1, 0).is_none());
        assert_eq!((cache.counters.cache_hits.get(), cache.counters.cache_misses.get()), (1, 2));
    }

    #[test]
    fn the_cache_stays_within_its_bytes() {
        // Catches a weight of one per block, which would make `cache_bytes` a number of blocks.
        let cache = cache(1 << 20);
        for i in 0..2000 {
            cache.insert(1, i * 4096, Arc::from(vec![0; 4096]));
        }
        assert!(cache.bytes() <= 1 << 20, "{cache:?}");
        assert!(cache.data.len() > 50, "{cache:?}");
    }

    #[test]
    fn partitions_take_up_to_half_of_the_bytes_from_the_data_blocks_and_never_more() {
        // Catches two caches that together exceed the bytes, a share that lies idle, and data blocks that evict partitions.
        let cache = cache(1 << 20);
        let fill = |from: u64, count: u64| {
            for i in from..from + count {
                cache.insert(1, i * 4096, Arc::from(vec![0; 4096]));
                assert!(cache.bytes() <= 1 << 20, "{cache:?}");
            }
        };
        fill(0, 1000);
        assert!(cache.bytes() > 900 << 10, "without partitions the data blocks take all: {cache:?}");
        for i in 0..20 {
            cache.insert_partition(2, i, Arc::from(vec![0; 8192]));
            assert!(cache.bytes() <= 1 << 20, "{cache:?}");
        }
        fill(1000, 1000);
        assert!((0..20).all(|i| cache.get_partition(2, i).is_some()), "{cache:?}");
        assert!(cache.data.weight() > 750 << 10, "{cache:?}");
        for i in 20..500 {
            cache.insert_partition(2, i, Arc::from(vec![0; 8192]));
            assert!(cache.bytes() <= 1 << 20 && cache.partition_bytes() <= 512 << 10, "{cache:?}");
        }
        assert!(cache.partition_bytes() > 400 << 10, "{cache:?}");
        fill(2000, 1000);
        assert!(cache.data.weight() > 400 << 10, "{cache:?}");
        (0..500).for_each(|i| cache.remove_partition(2, i));
        cache.insert_partition(2, 0, Arc::from(vec![0; 8192]));
        fill(3000, 1000);
        assert!(cache.data.weight() > 900 << 10, "what is removed is given back: {cache:?}");
    }

    #[test]
    fn a_block_larger_than_the_cache_is_not_kept() {
        // Catches a giant value that evicts everything else, and a cache of 0 bytes that panics.
        let small = cache(1 << 20);
        small.insert(1, 0, Arc::from(vec![0; 2 << 20]));
        assert!(small.get(1, 0).is_none());
        let none = cache(0);
        none.insert(1, 0, Arc::from(vec![0; 4096]));
        assert!(none.get(1, 0).is_none());
    }
}
