//! How threads and settings spread over shards, as far as memory shows it.

use std::sync::Barrier;
use std::thread;

use fastskip::{ConcurrentSkipList, InsertError, Memtable, Op};

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

/// Catches a batch that can never be stored and is refused as if a new table could take it, by either limit.
#[test]
fn what_no_empty_table_holds_is_too_large() {
    let ops = [Op::Delete { key: b"a" }, Op::Delete { key: b"b" }, Op::Delete { key: b"c" }];
    let memtable = Memtable::builder().max_entries(2).build();
    assert_eq!(memtable.reserve(&ops).err(), Some(InsertError::TooLarge));
    assert_eq!(memtable.reserve(&ops[..2]).map(|reservation| reservation.apply(1)), Ok(2));
    assert_eq!(memtable.reserve(&ops[2..]).err(), Some(InsertError::Full));

    let memtable = Memtable::builder().max_memory_bytes(4096).build();
    assert_eq!(memtable.put(b"a", 1, &vec![0; 8 << 20]), Err(InsertError::TooLarge));
    assert_eq!(memtable.put(b"a", 1, &vec![0; 4096]), Ok(()));
    assert_eq!(memtable.put(b"b", 1, b""), Err(InsertError::Full));
}
