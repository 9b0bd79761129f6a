//! Limits and settings at their edges.

use std::sync::Barrier;
use std::thread;

use fastskip::{ConcurrentSkipList, InsertError, Memtable, Op};

fn key(number: usize) -> [u8; 8] {
    (number as u64).to_be_bytes()
}

/// Catches an allocation beyond the end of the address range. The range is larger than the limit, but smaller than limit and value together.
#[test]
fn entry_past_the_end_of_the_range_is_full_and_nothing_is_written() {
    let list = ConcurrentSkipList::with_capacity_and_shards(0, 1, 1 << 20, 0);
    let value = vec![7; 100_000];
    (0..10).for_each(|i| assert_eq!(list.try_insert(&key(i), &value), Ok(())));
    let (beyond, impossible) = (vec![8; 7 << 18], vec![9; 3 << 20]);
    assert_eq!(list.try_insert(b"beyond", &beyond), Err(InsertError::Full));
    assert_eq!(list.try_insert(b"impossible", &impossible), Err(InsertError::TooLarge));
    assert_eq!(list.try_insert(b"last", &value), Ok(()));
    assert_eq!(list.try_insert(b"more", b""), Err(InsertError::Full));
    assert!(list.iter().all(|entry| entry.value == value));
    list.validate();
}

/// Catches writes that are accepted into the rest of a chunk although the memory limit is already exceeded.
#[test]
fn entry_that_passes_the_limit_is_the_last() {
    let (limit, large) = (1 << 20, vec![1; 1 << 20]);
    for shards in [1, 8] {
        let mut list = ConcurrentSkipList::with_capacity_and_shards(64 << 10, shards, limit, 0);
        for _ in 0..2 {
            assert!(list.insert(b"small", b""));
            assert!(list.memory_idle() > 1000);
            assert_eq!(list.try_insert(b"large", &large), Ok(()));
            assert!(list.memory_usage() > limit && list.is_under_backpressure());
            assert_eq!(list.try_insert(b"late", b""), Err(InsertError::Full));
            assert_eq!(list.try_delete(b"small"), Err(InsertError::Full));
            list.validate();
            list.reset();
        }
        let memtable = Memtable::builder().shards(shards).max_memory_bytes(limit).build();
        let ops = [Op::Delete { key: b"small" }, Op::Put { key: b"large", value: &large }];
        memtable.put(b"first", 1, b"").unwrap();
        assert_eq!(memtable.reserve(&ops).unwrap().apply(2).stored, 2);
        assert_eq!(memtable.put(b"late", 4, b""), Err(InsertError::Full));
        memtable.validate();
    }
}

/// Catches room that stays unused in the chunks of shards whose threads have ended.
#[test]
fn room_in_other_shards_is_found_before_the_table_is_full() {
    let (limit, value) = (1 << 20, [1; 100]);
    let list = ConcurrentSkipList::with_capacity_and_shards(64 << 10, 8, limit, 0);
    let barrier = Barrier::new(8);
    thread::scope(|scope| {
        for worker in 0..8 {
            let (list, barrier, value) = (&list, &barrier, &value);
            scope.spawn(move || {
                assert!(list.insert(&key(1_000_000 + worker), value));
                barrier.wait();
            });
        }
    });
    let stored = (0..).take_while(|i| list.insert(&key(*i), &value)).count();
    let stats = list.stats();
    assert!(stored > 0 && stats.memory_usage + 8 * 300 > limit, "{stats:?}");
    list.validate();
}

/// Catches settings at which something overflows, panics or waits for ever.
#[test]
fn odd_settings_make_working_tables() {
    for shards in [0, 1, 3, usize::MAX] {
        for bytes in [0, 1, 4096, usize::MAX] {
            for limit in [0, 1, 8, 5000, usize::MAX] {
                let list = ConcurrentSkipList::with_capacity_and_shards(bytes, shards, limit, limit);
                assert!(!list.is_under_backpressure());
                assert_eq!(list.try_insert(b"first", b"v"), Ok(()));
                assert_eq!(list.try_insert(b"first", b"v"), Err(InsertError::DuplicateKey));
                assert_eq!(list.try_insert(b"second", b"v").is_ok(), limit != 1 && limit != 8, "limit {limit}");
                assert_eq!(list.is_under_backpressure(), limit == 1 || limit == 8);
                list.validate();
            }
        }
    }
    assert!(ConcurrentSkipList::with_capacity(usize::MAX).insert(b"k", b"v"));
    assert!(ConcurrentSkipList::builder().backpressure_at(f64::NAN).clone().build().insert(b"k", b"v"));
}

/// Catches a reset that leaves a limit used up or a flag set.
#[test]
fn reset_opens_a_full_list_again() {
    let mut list = ConcurrentSkipList::with_capacity_and_shards(0, 2, 0, 3);
    for _ in 0..3 {
        (0..3).for_each(|i| assert!(list.insert(&key(i), b"")));
        assert_eq!(list.try_insert(b"k", b""), Err(InsertError::Full));
        assert!(list.is_under_backpressure());
        list.freeze();
        list.reset();
        assert!(!list.is_under_backpressure() && !list.is_sealed());
        assert_eq!((list.len(), list.total_inserts(), list.avg_key_size()), (0, 0, 0.0));
    }
}

/// Catches a successor without the settings of its predecessor.
#[test]
fn seal_keeps_every_setting() {
    let list =
        ConcurrentSkipList::builder().shards(2).max_entries(10).max_memory_bytes(1 << 20).backpressure_at(0.5).build();
    let (_, fresh) = list.seal().unwrap();
    assert_eq!((fresh.max_entries(), fresh.max_memory_bytes()), (10, 1 << 20));
    for i in 0..10 {
        assert_eq!(fresh.is_under_backpressure(), i >= 5);
        assert!(fresh.insert(&key(i), b""));
    }
}

/// Catches a memtable that does not report a freeze or a near limit, or reports it too early.
#[test]
fn memtable_says_when_it_is_frozen_and_when_a_limit_is_near() {
    let memtable = Memtable::builder().shards(1).max_entries(10).build();
    for number in 0..10 {
        assert_eq!(memtable.is_under_backpressure(), number >= 9, "with {number} of 10 entries");
        assert!(memtable.put(&key(number), 1, b"").is_ok());
    }
    assert!(memtable.is_under_backpressure() && !memtable.is_frozen());
    let frozen = memtable.freeze();
    assert!(memtable.is_frozen() && frozen.is_frozen());
    frozen.validate();
}

/// Catches statistics whose sequence number bounds ignore a shard, and a refused write that changes these bounds.
#[test]
fn stats_bound_the_sequence_numbers() {
    let memtable = Memtable::builder().shards(4).build();
    let bounds = || (memtable.stats().lowest_seqno, memtable.stats().highest_seqno);
    assert_eq!(bounds(), (None, None));
    memtable.put(b"a", u64::MAX, b"").unwrap();
    assert_eq!(bounds(), (Some(u64::MAX), Some(u64::MAX)));
    thread::scope(|scope| {
        for seqno in [7, 3, 900] {
            let memtable = &memtable;
            scope.spawn(move || memtable.delete(b"k", seqno).unwrap());
        }
    });
    assert_eq!(bounds(), (Some(3), Some(u64::MAX)));
    drop(memtable.reserve(&[Op::Delete { key: b"k" }]).unwrap());
    memtable.freeze();
    assert_eq!(memtable.put(b"b", 1, b""), Err(InsertError::Frozen));
    assert_eq!(bounds(), (Some(3), Some(u64::MAX)));
    memtable.validate();
    let list = ConcurrentSkipList::new();
    assert!(list.insert(b"k", b"") && list.stats().lowest_seqno.is_none() && list.stats().highest_seqno.is_none());
}
