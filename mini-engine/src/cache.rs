//! The block cache: decompressed data blocks by table number and offset, bounded by bytes.
//!
//! Blocks never change and table numbers are never used twice, so nothing here expires; blocks of deleted tables are
//! evicted as they grow cold. Scan-resistant and concurrent by `quick_cache`.

use std::fmt;
use std::sync::Arc;

use quick_cache::Weighter;
use quick_cache::sync::Cache;

use crate::metrics::Counters;

type BlockId = (u64, u64);

/// Memory that a block costs beside its bytes: the reference count and what the allocator adds, 24 bytes; key, pointer, links
/// and a place in the table of the cache, 72. So many tiny blocks cannot exceed the budget unseen.
const ENTRY_BYTES: u64 = 96;

#[derive(Clone)]
struct ByBytes;

impl Weighter<BlockId, Arc<[u8]>> for ByBytes {
    fn weight(&self, _: &BlockId, block: &Arc<[u8]>) -> u64 {
        block.len() as u64 + ENTRY_BYTES
    }
}

/// Data blocks of all tables of one database.
pub(crate) struct BlockCache {
    blocks: Cache<BlockId, Arc<[u8]>, ByBytes>,
    counters: Arc<Counters>,
}

impl BlockCache {
    /// A cache of at most `bytes`, for blocks of about `block_bytes`.
    pub(crate) fn new(bytes: u64, block_bytes: usize, counters: Arc<Counters>) -> Self {
        let blocks = (bytes / (block_bytes.max(1) as u64)).clamp(1, 1 << 24) as usize;
        Self { blocks: Cache::with_weighter(blocks, bytes, ByBytes), counters }
    }

    /// The block at `offset` of table `table`, if it is here; counted as a hit or a miss.
    pub(crate) fn get(&self, table: u64, offset: u64) -> Option<Arc<[u8]>> {
        let block = self.blocks.get(&(table, offset));
        let counter = if block.is_some() { &self.counters.cache_hits } else { &self.counters.cache_misses };
        counter.add(1);
        block
    }

    /// Bytes of memory that the cached blocks take.
    pub(crate) fn bytes(&self) -> u64 {
        self.blocks.weight()
    }

    /// Keeps a block, unless it is larger than the cache can hold.
    pub(crate) fn insert(&self, table: u64, offset: u64, block: Arc<[u8]>) {
        self.blocks.insert((table, offset), block);
    }
}

impl fmt::Debug for BlockCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockCache")
            .field("blocks", &self.blocks.len())
            .field("bytes", &self.blocks.weight())
            .field("capacity", &self.blocks.capacity())
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
        assert!(cache.blocks.weight() <= 1 << 20, "{cache:?}");
        assert!(cache.blocks.len() > 50, "{cache:?}");
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
