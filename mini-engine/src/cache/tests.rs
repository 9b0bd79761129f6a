//! The cache by itself: slots, bytes, threads; and its hits compared with those of `quick_cache`.

use std::collections::HashMap;
use std::thread;

use super::*;
use crate::epoch::STOPPED_READERS;
use proof::{Random, hash};

/// A test partition is just its number.
type TestCache = BlockCache<u64, Arc<[u8]>>;

type TestPartition = CachedPartition<u64, Arc<[u8]>>;

fn cache(bytes: u64) -> TestCache {
    BlockCache::new(bytes, Arc::default())
}

fn block(len: usize) -> Arc<[u8]> {
    Arc::from(vec![0; len])
}

/// The slots of `count` data blocks.
fn group(count: usize) -> TestPartition {
    CachedPartition::with_blocks(0, count)
}

/// Whether data block `at` is in the cache; counted as a use.
fn finds(cache: &TestCache, group: &TestPartition, at: usize) -> bool {
    cache.get(&pin(), group, at).is_some()
}

fn insert(cache: &TestCache, group: &TestPartition, blocks: std::ops::Range<usize>) {
    for at in blocks {
        cache.insert((group, at), (1, at as u64), block(4096), 4096);
        assert!(cache.bytes() <= cache.bytes, "{cache:?}");
    }
}

fn insert_partition(cache: &TestCache, partitions: &Partitions<u64, Arc<[u8]>>, at: usize) -> TestPartition {
    let partition = cache.insert_partition(partitions, at, (2, at as u64), at as u64, (8192, 100));
    assert!(cache.bytes() <= cache.bytes, "{cache:?}");
    partition
}

#[test]
fn a_block_is_found_in_its_own_place_only() {
    // Catches slots that are mixed up: reads of one block would return another.
    let _turn = lock(&STOPPED_READERS);
    let cache = cache(1 << 20);
    let (one, other) = (group(3), group(3));
    cache.insert((&one, 2), (1, 8192), Arc::from(&b"block"[..]), 5);
    assert_eq!(cache.get(&pin(), &one, 2).map(|block| block.to_vec()), Some(b"block".to_vec()));
    assert!(!finds(&cache, &other, 2) && !finds(&cache, &one, 1) && !finds(&cache, &one, 3));
    assert_eq!(cache.counters.cache_hits.get(), 1);
    // Inserting at a position out of range is not an error; the block is not kept.
    cache.insert((&one, 3), (1, 9000), block(10), 10);
    assert!(!finds(&cache, &one, 3));
}

#[test]
fn a_block_is_freed_when_its_slot_goes_and_the_last_reader_has_dropped_it() {
    // Catches a slot that never frees its block, and a block that is freed while a reader has it.
    let _turn = lock(&STOPPED_READERS);
    let value: Arc<[u8]> = Arc::from(&b"block"[..]);
    let held = || Arc::strong_count(&value);
    let slots = Slot::several(2);
    let cache = cache(1 << 20);
    let reader = cache.data.insert((&slots, 1), (1, 8192), Cached::new(value.clone(), 5));
    drop((slots, cache));
    assert_eq!((held(), &***reader), (2, &b"block"[..]));
    drop(reader);
    assert_eq!(held(), 1);
}

#[test]
fn the_cache_stays_within_its_bytes() {
    // Catches a weight of one per block, which would make `cache_bytes` a number of blocks.
    let _turn = lock(&STOPPED_READERS);
    let (cache, group) = (cache(1 << 20), group(2000));
    insert(&cache, &group, 0..2000);
    assert!(cache.data.len() > 50, "{cache:?}");
    let there = (0..2000).filter(|at| finds(&cache, &group, *at)).count();
    assert_eq!(there, cache.data.len(), "E1");
}

#[test]
fn a_reader_that_is_stopped_makes_the_cache_neither_exceed_its_bytes_nor_lose_its_blocks() {
    // Catches evicted blocks that are not counted until they are freed, a block that is freed under its reader, and a cache that evicts everything
    // although that frees nothing.
    let _turn = lock(&STOPPED_READERS);
    let (cache, group) = (cache(1 << 20), group(5000));
    insert(&cache, &group, 0..400);
    cache.insert((&group, 4000), (1, 4000), Arc::from(&b"block"[..]), 4096);
    let pinned = pin();
    let read = cache.get(&pinned, &group, 4000).expect("just inserted");
    insert(&cache, &group, 400..2000);
    let evicted = cache.retired_bytes();
    assert!(
        (1..=(1 << 20) / RETIRED_PART + 2 * 4256).contains(&evicted) && cache.data.len() > 200,
        "{evicted}: {cache:?}"
    );
    assert_eq!(read[..], b"block"[..]);
    drop(pinned);
    insert(&cache, &group, 2000..3000);
    assert!((2900..3000).any(|at| finds(&cache, &group, at)), "the cache works again: {cache:?}");
}

#[test]
fn large_blocks_that_displace_each_other_do_not_stop_the_cache() {
    // Catches evicted blocks that wait for the collector although they were never passed to it: from then on, every new block would be refused.
    let _turn = lock(&STOPPED_READERS);
    let (cache, group) = (cache(1 << 20), group(100));
    let put = |at: usize| drop(cache.insert((&group, at), (1, at as u64), block(8), 200 << 10));
    for at in [0, 1, 2, 3] {
        put(at);
        (0..3).for_each(|_| assert!(finds(&cache, &group, at)));
    }
    for round in 0..20 {
        for at in [4, 5, 4, 0, 6, 5] {
            put(at);
        }
        let fresh = 10 + round;
        let is_kept = |_| {
            put(fresh);
            thread::yield_now();
            finds(&cache, &group, fresh)
        };
        assert!((0..1000).any(is_kept), "{cache:?}");
    }
}

#[test]
fn partitions_take_up_to_half_of_the_bytes_from_the_data_blocks_and_never_more() {
    // Catches two caches that together exceed the bytes, a share that stays unused, and data blocks that evict partitions.
    let _turn = lock(&STOPPED_READERS);
    let (cache, group, partitions) = (cache(1 << 20), group(5000), Slot::several(500));
    insert(&cache, &group, 0..1000);
    assert!(cache.bytes() > 900 << 10, "without partitions the data blocks take all: {cache:?}");
    (0..20).for_each(|at| drop(insert_partition(&cache, &partitions, at)));
    insert(&cache, &group, 1000..2000);
    assert!(
        (0..20).all(|at| cache.hold_partition(&partitions, at).is_some_and(|found| **found == at as u64)),
        "{cache:?}"
    );
    assert!(cache.data.bytes() > 750 << 10, "{cache:?}");
    for at in 20..500 {
        insert_partition(&cache, &partitions, at);
        assert!(cache.partition_bytes() <= 512 << 10, "{cache:?}");
    }
    assert!(cache.partition_bytes() > 400 << 10, "{cache:?}");
    insert(&cache, &group, 2000..3000);
    assert!(cache.data.bytes() > 400 << 10, "{cache:?}");
    cache.remove_partitions(&partitions);
    assert_eq!(cache.partition_bytes(), 0);
    assert!((0..500).all(|at| cache.hold_partition(&partitions, at).is_none()));
    // A thread of another test may be pinned, and keep what was removed for a moment.
    let is_given_back = |_| {
        insert_partition(&cache, &Slot::several(1), 0);
        insert(&cache, &group, 3000..4000);
        std::thread::yield_now();
        cache.data.bytes() > 900 << 10
    };
    assert!((0..1000).any(is_given_back), "what is removed is given back: {cache:?}");
}

#[test]
fn roots_take_their_bytes_from_the_data_blocks_except_for_an_eighth_and_give_them_back() {
    // Catches memory of tables that is added to the cache's bytes instead of being part of them, and a large table that leaves no room for data
    // blocks or never returns its bytes.
    let _turn = lock(&STOPPED_READERS);
    let (cache, group, partitions) = (cache(1 << 20), group(5000), Slot::several(500));
    insert(&cache, &group, 0..1000);
    cache.add_root(300 << 10);
    assert!(cache.bytes() + (300 << 10) <= 1 << 20 && cache.data.bytes() > 600 << 10, "{cache:?}");
    (0..500).for_each(|at| drop(insert_partition(&cache, &partitions, at)));
    insert(&cache, &group, 1000..2000);
    assert!(cache.bytes() + (300 << 10) <= 1 << 20 && cache.data.bytes() > 128 << 10, "{cache:?}");
    cache.add_root(900 << 10);
    insert(&cache, &group, 2000..3000);
    assert!((100 << 10..=128 << 10).contains(&cache.data.bytes()), "{cache:?}");
    cache.remove_root(1200 << 10);
    cache.remove_partitions(&partitions);
    cache.add_root(0);
    insert(&cache, &group, 3000..4000);
    assert!(cache.data.bytes() > 900 << 10, "{cache:?}");
}

#[test]
fn a_block_larger_than_the_cache_is_not_kept() {
    // Catches a giant value that evicts everything else, and a cache of 0 bytes that panics.
    let _turn = lock(&STOPPED_READERS);
    let (small, group, partitions) = (cache(1 << 20), group(1), Slot::several(1));
    small.insert((&group, 0), (1, 0), block(10), 2 << 20);
    assert!(!finds(&small, &group, 0));
    let none = cache(0);
    none.insert((&group, 0), (1, 0), block(4096), 4096);
    assert!(!finds(&none, &group, 0));
    assert_eq!(**insert_partition(&none, &partitions, 0), 0);
    assert!(none.hold_partition(&partitions, 0).is_none() && none.bytes() == 0);
}

#[test]
fn a_partition_that_returns_leads_to_the_data_blocks_that_stayed() {
    // Catches data blocks that are in memory and cannot be found, in a cache that is small compared with the partitions.
    let _turn = lock(&STOPPED_READERS);
    let (cache, partitions) = (cache(1 << 20), Slot::several(200));
    (0..100).for_each(|at| drop(insert_partition(&cache, &partitions, at)));
    let first = insert_partition(&cache, &partitions, 100);
    cache.insert((&first, 7), (1, 7), block(4096), 4096);
    drop(first);
    (101..200).for_each(|at| drop(insert_partition(&cache, &partitions, at)));
    assert!(cache.hold_partition(&partitions, 100).is_none(), "evicted");
    let again = insert_partition(&cache, &partitions, 100);
    assert!(finds(&cache, &again, 7));
    assert!(!finds(&cache, &again, 8));
}

#[test]
fn threads_that_fill_the_cache_at_once_never_exceed_its_bytes() {
    // Catches bytes of two threads that are counted only once, a slot and a clock that disagree (E1), and a block in another's slot.
    let _turn = lock(&STOPPED_READERS);
    const BLOCKS: usize = 3000;
    let (cache, groups, partitions) = (cache(2 << 20), [group(BLOCKS), group(BLOCKS)], Slot::several(300));
    thread::scope(|scope| {
        for seed in 0..4 {
            let (cache, groups, partitions) = (&cache, &groups, &partitions);
            scope.spawn(move || {
                let mut random = Random(seed);
                for _ in 0..20_000 {
                    let (which, at) = ((random.next() % 2) as usize, (random.next() % BLOCKS as u64) as usize);
                    match cache.get(&pin(), &groups[which], at).map(|found| found.to_arc()) {
                        Some(found) => assert_eq!(found[..8], (which * BLOCKS + at).to_le_bytes()),
                        None => {
                            let mut bytes = vec![0; 1000 + 4096 * (at % 3)];
                            bytes[..8].copy_from_slice(&(which * BLOCKS + at).to_le_bytes());
                            let (id, len) = ((which as u64, at as u64), bytes.len());
                            cache.insert((&groups[which], at), id, Arc::from(bytes), len);
                        }
                    }
                    if random.next().is_multiple_of(16) && cache.hold_partition(partitions, at % 300).is_none() {
                        assert_eq!(**insert_partition(cache, partitions, at % 300), (at % 300) as u64);
                    }
                    assert!(cache.bytes() <= cache.bytes, "{cache:?}");
                }
            });
        }
    });
    let there = |at: &usize| groups.iter().filter(|group| finds(&cache, group, *at)).count();
    assert_eq!((0..BLOCKS).map(|at| there(&at)).sum::<usize>(), cache.data.len());
    let found = (0..300).filter(|at| cache.hold_partition(&partitions, *at).is_some()).count();
    assert_eq!(found, cache.partitions.len());
}

const BLOCKS: usize = 6000;

/// Numbers from 0 to `BLOCKS`, small ones more often: Zipf's law with exponent 0.99, drawn from a table of cumulative sums.
struct Zipf(Vec<f64>);

impl Zipf {
    fn new() -> Self {
        let sums = (1..=BLOCKS).scan(0.0, |sum, rank| {
            *sum += (rank as f64).powf(-0.99);
            Some(*sum)
        });
        Self(sums.collect())
    }

    fn rank(&self, n: u64) -> usize {
        let unit = (hash(n) >> 11) as f64 / (1u64 << 53) as f64;
        self.0.partition_point(|sum| *sum < unit * self.0[BLOCKS - 1]).min(BLOCKS - 1)
    }
}

/// The number of hits in the second half of 200,000 accesses.
fn hits(pattern: impl Fn(u64) -> usize, mut access: impl FnMut(usize) -> bool) -> u64 {
    (0..200_000).filter(|&n| access(pattern(n)) && n >= 100_000).count() as u64
}

#[test]
fn as_many_reads_hit_as_with_quick_cache() {
    // Catches a policy that loses its hot blocks to a scan, or that evicts frequently read blocks.
    let _turn = lock(&STOPPED_READERS);
    let zipf = Zipf::new();
    let scan = |n: u64| n as usize % BLOCKS;
    type Pattern<'a> = Box<dyn Fn(u64) -> usize + 'a>;
    let patterns: [(&str, Pattern<'_>); 6] = [
        ("uniform", Box::new(|n| (hash(n) % BLOCKS as u64) as usize)),
        ("zipf", Box::new(|n| zipf.rank(n))),
        ("zipf in blocks of four keys", Box::new(|n| (zipf.rank(n) + 1499 * (hash(n ^ 7) % 4) as usize) % BLOCKS)),
        ("scan", Box::new(scan)),
        ("scan beside zipf", Box::new(|n| if n % 2 == 0 { scan(n / 2) } else { zipf.rank(n) })),
        ("scans by turns with zipf", Box::new(|n| if n / 10_000 % 2 == 0 { scan(n) } else { zipf.rank(n) })),
    ];
    let mut found = HashMap::new();
    for (name, pattern) in &patterns {
        for percent in [1, 5, 10, 25, 50] {
            let blocks = BLOCKS * percent / 100;
            let mut peer = quick_cache::unsync::Cache::new(blocks);
            let theirs = hits(pattern, |at| {
                peer.get(&at).is_some() || {
                    peer.insert(at, ());
                    false
                }
            });
            let (cache, group) = (cache(blocks as u64 * (10 + ENTRY_BYTES)), group(BLOCKS));
            let ours = hits(pattern, |at| {
                finds(&cache, &group, at) || {
                    cache.insert((&group, at), (1, at as u64), block(10), 10);
                    false
                }
            });
            println!("{name}, {percent} %: {ours} of 100,000 hit, {theirs} with quick_cache");
            found.insert((*name, percent), (ours, theirs));
        }
    }
    // Half a percent of the reads, the size of random differences.
    let worse: Vec<_> = found.iter().filter(|(_, (ours, theirs))| ours + 500 < *theirs).collect();
    assert!(worse.is_empty(), "{worse:?}");
}
