//! Shards: memory use shows that threads and settings are spread over them.

use std::sync::Barrier;
use std::thread;

use fastskip::ConcurrentSkipList;

/// The size of a shard's first chunk, in bytes.
const CHUNK: usize = 64 << 10;

/// The number of chunks that are reserved after `threads` concurrent threads have each stored an entry.
fn reserved(list: &ConcurrentSkipList, threads: u8) -> usize {
    let barrier = Barrier::new(threads.into());
    thread::scope(|scope| {
        for number in 0..threads {
            let barrier = &barrier;
            scope.spawn(move || {
                barrier.wait();
                assert!(list.insert(&[number], b""));
                barrier.wait();
            });
        }
    });
    list.validate();
    // The index may have reserved blocks too; their number depends on the interleaving of threads.
    list.stats().memory_reserved / CHUNK
}

/// Catches threads that all write to one shard, and a number of shards other than the configured one.
#[test]
fn threads_have_shards_of_their_own_as_far_as_there_are_any() {
    assert_eq!(reserved(&ConcurrentSkipList::with_shards(1), 1), 1);
    assert_eq!(reserved(&ConcurrentSkipList::with_shards(1), 8), 1);
    assert!(reserved(&ConcurrentSkipList::with_shards(64), 8) > 1);
}
