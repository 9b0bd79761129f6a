//! Shards: memory use shows that threads and settings are spread over them.

use std::sync::Barrier;
use std::thread;

use fastskip::ConcurrentSkipList;

/// The size of a shard's first chunk, in bytes.
const CHUNK: usize = 64 << 10;

/// Chunks that are reserved once `threads` threads, all there at once, have stored an entry each.
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
    // Blocks of the index may be reserved beside: how many depends on how threads meet.
    list.stats().memory_reserved / CHUNK
}

/// Catches threads that all write to one shard, and a number of shards that is not the one asked for.
#[test]
fn threads_have_shards_of_their_own_as_far_as_there_are_any() {
    assert_eq!(reserved(&ConcurrentSkipList::with_shards(1), 1), 1);
    assert_eq!(reserved(&ConcurrentSkipList::with_shards(1), 8), 1);
    assert!(reserved(&ConcurrentSkipList::with_shards(64), 8) > 1);
}
