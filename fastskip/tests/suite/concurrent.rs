//! Real threads on both tables. Values carry their key, a generation and a hash of both, so that a torn or foreign value
//! cannot pass.

use std::collections::HashSet;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;

use fastskip::{ConcurrentSkipList, InsertError, Kind, Lookup, Memtable, Op};

const KEYS: u64 = 512;

fn key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

fn hash(key: u64, generation: u64) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one((key, generation))
}

/// `<key, generation, hash>`, padded so that lengths differ.
fn value(number: u64, generation: u64) -> Vec<u8> {
    let mut value = [number, generation, hash(number, generation)].map(u64::to_be_bytes).concat();
    value.resize(24 + (generation % 50) as usize, generation as u8);
    value
}

/// The generation of a value, which must be the whole value that some writer wrote under `number`.
fn generation(number: u64, bytes: &[u8]) -> u64 {
    let generation = u64::from_be_bytes(bytes[8..16].try_into().unwrap());
    assert_eq!(bytes, value(number, generation), "a value that nobody wrote");
    generation
}

fn number(key: &[u8]) -> u64 {
    u64::from_be_bytes(key.try_into().unwrap())
}

/// Catches lost, torn or misplaced versions, and reads that go back in time: a reader at a published number must see,
/// of every key, a generation at least as new as the one it saw before, whole and under its own key.
#[test]
fn readers_see_whole_values_that_never_go_back() {
    let memtable = Memtable::builder().shards(3).build();
    let (next, published, writers) = (AtomicU64::new(1), AtomicU64::new(0), AtomicUsize::new(2));
    thread::scope(|scope| {
        for worker in 0..2_u64 {
            let (memtable, next, published, writers) = (&memtable, &next, &published, &writers);
            scope.spawn(move || {
                for step in 0..15_000_u64 {
                    let k = step.wrapping_mul(2_654_435_761).wrapping_add(worker) % KEYS;
                    let seqno = next.fetch_add(1, Ordering::Relaxed);
                    memtable.put(&key(k), seqno, &value(k, seqno)).unwrap();
                    // In order, as an engine does: nobody publishes a number before those below it are stored.
                    while published
                        .compare_exchange_weak(seqno - 1, seqno, Ordering::Release, Ordering::Relaxed)
                        .is_err()
                    {
                        thread::yield_now();
                    }
                }
                writers.fetch_sub(1, Ordering::Relaxed);
            });
        }
        for _ in 0..2 {
            scope.spawn(|| read_until_done(&memtable, &published, &writers));
        }
    });
    assert_eq!(memtable.len(), 30_000);
    memtable.validate();
}

fn read_until_done(memtable: &Memtable, published: &AtomicU64, writers: &AtomicUsize) {
    let mut newest = vec![0; KEYS as usize];
    let mut scans = 0;
    while writers.load(Ordering::Relaxed) > 0 || scans == 0 {
        let seqno = published.load(Ordering::Acquire);
        let mut seen = HashSet::new();
        for version in memtable.iter(seqno) {
            let k = number(version.key);
            assert!(version.seqno <= seqno && seen.insert(k));
            assert_eq!(generation(k, version.value), version.seqno);
            assert!(version.seqno >= newest[k as usize], "key {k} went back");
            newest[k as usize] = version.seqno;
        }
        let known = newest.iter().filter(|generation| **generation > 0).count();
        assert_eq!(seen.len(), known, "a key that was there is missing");
        let backward: Vec<_> = memtable.iter(seqno).rev().map(|version| version.seqno).collect();
        assert!(backward.iter().rev().eq(memtable.iter(seqno).map(|version| version.seqno).collect::<Vec<_>>().iter()));
        for k in (0..KEYS).step_by(37) {
            match memtable.get(&key(k), seqno) {
                Lookup::Value(bytes) => assert_eq!(generation(k, bytes), newest[k as usize]),
                other => assert!(other == Lookup::Absent && newest[k as usize] == 0),
            }
        }
        scans += 1;
    }
}

/// Catches an iterator of the live list that misses what was there when it was made, from either end.
#[test]
fn an_iterator_never_misses_what_was_there() {
    let list = ConcurrentSkipList::with_shards(2);
    (0..2000).step_by(2).for_each(|k| assert!(list.insert(&key(k), &value(k, 0))));
    let writers = AtomicUsize::new(2);
    thread::scope(|scope| {
        for worker in 0..2 {
            let (list, writers) = (&list, &writers);
            scope.spawn(move || {
                (0..60_000)
                    .for_each(|i| assert!(list.insert(&key(i * 2 + 1 + worker * 120_000), &value(i * 2 + 1, 1))));
                writers.fetch_sub(1, Ordering::Relaxed);
            });
        }
        let mut looks = 0;
        while writers.load(Ordering::Relaxed) > 0 || looks == 0 {
            let even = |k: &u64| k.is_multiple_of(2) && *k < 2000;
            let forward: Vec<_> = list.iter().map(|entry| number(entry.key)).collect();
            assert!(forward.is_sorted() && forward.iter().copied().filter(even).eq((0..2000).step_by(2)));
            let backward: Vec<_> = list.iter().rev().map(|entry| number(entry.key)).filter(even).collect();
            assert!(backward.iter().rev().copied().eq((0..2000).step_by(2)));
            let (mut iter, mut both) = (list.iter(), HashSet::new());
            while let Some(front) = iter.next() {
                assert!(both.insert(number(front.key)), "yielded twice");
                let Some(back) = iter.next_back() else { break };
                assert!(both.insert(number(back.key)), "yielded twice");
            }
            assert!((0..2000).step_by(2).all(|k| both.contains(&k)));
            looks += 1;
        }
    });
    list.validate();
}

/// Catches two winners of one key, or none.
#[test]
fn of_threads_that_insert_one_key_exactly_one_wins() {
    for _ in 0..200 {
        let (list, barrier) = (ConcurrentSkipList::with_shards(2), Barrier::new(4));
        let winners: Vec<u64> = thread::scope(|scope| {
            let insert = |worker| {
                let (list, barrier) = (&list, &barrier);
                move || {
                    barrier.wait();
                    let own = value(0, worker);
                    let (seen, stored) = list.get_or_insert(b"key", &own);
                    assert_eq!(generation(0, seen) == worker, stored);
                    stored.then_some(worker)
                }
            };
            let threads: Vec<_> = (0..4).map(|worker| scope.spawn(insert(worker))).collect();
            threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(winners.len(), 1);
        assert_eq!(generation(0, list.get_live(b"key").unwrap()), winners[0]);
        assert_eq!((list.len(), list.stats().entries), (1, 1));
        list.validate();
    }
}

/// Catches two callers that both believe they deleted the key.
#[test]
fn of_threads_that_delete_one_key_exactly_one_succeeds() {
    let list = ConcurrentSkipList::with_shards(2);
    (0..2000).for_each(|k| assert!(list.insert(&key(k), b"")));
    let delete_all = || (0..2000).filter(|k| list.delete(&key(*k))).count();
    let deleted: usize = thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(delete_all)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!((deleted, list.len(), list.stats().tombstones), (2000, 0, 2000));
    list.validate();
}

/// Catches a limit on a memtable that a batch passes by more than its last entry, or a refused batch that leaves a part.
#[test]
fn a_batch_is_reserved_whole_or_not_at_all() {
    let memtable = Memtable::builder().shards(2).max_entries(10).build();
    let keys: Vec<_> = (0..16).map(key).collect();
    let ops: Vec<_> = keys.iter().map(|key| Op::Delete { key }).collect();
    assert_eq!(memtable.reserve(&ops).unwrap_err(), InsertError::TooLarge);
    let held = memtable.reserve(&ops[..10]).unwrap();
    assert_eq!(memtable.put(b"k", 99, b""), Err(InsertError::Full));
    drop(held);
    assert_eq!(memtable.reserve(&ops[..8]).unwrap().apply(1), 8);
    assert_eq!(memtable.reserve(&ops[8..11]).unwrap_err(), InsertError::Full);
    drop(memtable.reserve(&ops[8..10]).unwrap());
    assert_eq!(memtable.reserve(&ops[8..10]).unwrap().apply(9), 2);
    assert_eq!(memtable.put(b"k", 99, b""), Err(InsertError::Full));
    assert!(memtable.all_versions().all(|version| version.kind == Kind::Tombstone));
    memtable.validate();

    let small = Memtable::builder().shards(1).max_memory_bytes(4096).build();
    let value = [0; 1000];
    let ops: Vec<_> = keys.iter().map(|key| Op::Put { key, value: &value }).collect();
    assert_eq!(small.reserve(&ops[..6]).unwrap_err(), InsertError::TooLarge);
    assert_eq!(small.reserve(&ops).unwrap_err(), InsertError::TooLarge);
    assert_eq!(small.reserve(&ops[..2]).unwrap().apply(1), 2);
    assert_eq!(small.reserve(&ops[2..6]).unwrap_err(), InsertError::Full);
    assert_eq!(small.reserve(&ops[2..4]).unwrap().apply(3), 2);
    assert!(small.stats().memory_usage <= 4096 + 1100);
    assert!(small.is_under_backpressure());
    small.validate();
}

/// Catches figures that contradict each other while chunks move between writers.
#[test]
fn stats_are_consistent_at_any_moment() {
    let list = ConcurrentSkipList::with_capacity_and_shards(256, 2, 0, 0);
    let writers = AtomicUsize::new(3);
    thread::scope(|scope| {
        for worker in 0..3 {
            let (list, writers) = (&list, &writers);
            scope.spawn(move || {
                (0..20_000).for_each(|i| assert!(list.insert(&key(i * 3 + worker), &[0; 40])));
                writers.fetch_sub(1, Ordering::Relaxed);
            });
        }
        let mut is_done = false;
        while !is_done {
            // Looked at before the figures, so that they are at least once.
            is_done = writers.load(Ordering::Relaxed) == 0;
            let stats = list.stats();
            assert_eq!(stats.memory_usage + stats.memory_idle, stats.memory_reserved);
            // Counted after they were stored and read before the memory is: 8 + 16 + 2 + 8 + 40 bytes each, or more.
            assert!(stats.memory_usage >= stats.entries * 80, "{stats:?}");
            assert!(stats.len <= stats.entries && stats.entries <= stats.total_inserts);
            assert!(stats.memory_wasted <= stats.memory_usage);
            assert!((0.0..=1.0).contains(&stats.memory_utilization()));
        }
    });
    list.validate();
}

/// Catches an entry, a refusal or a deletion that was seen live and is missing from a snapshot taken afterwards.
#[test]
fn what_was_seen_is_in_every_later_snapshot() {
    let list = ConcurrentSkipList::with_shards(2);
    thread::scope(|scope| {
        scope.spawn(|| {
            for k in 0..40_000 {
                // The other thread may have come first with an odd key.
                assert!(list.insert(&key(k), b"v") || k % 2 == 1);
                assert!(list.delete(&key(k)));
            }
        });
        scope.spawn(|| {
            for k in 0..40_000 {
                let seen = match k % 2 {
                    0 => std::iter::repeat_with(|| list.get(&key(k))).flatten().next().unwrap().1,
                    _ => {
                        list.try_insert(&key(k), b"v") == Err(InsertError::DuplicateKey) && list.get(&key(k)).unwrap().1
                    }
                };
                let snapshot = list.snapshot();
                let (_, dead) = snapshot.get(&key(k)).expect("an entry that was seen");
                assert!(dead || !seen, "a deletion that was seen");
            }
        });
    });
    list.validate();
}

/// Catches tables that reserve so much address space each that thousands do not fit.
#[test]
fn thousands_of_tables_can_be_open_at_once() {
    let tables: Vec<_> = (0..4000).map(|_| Memtable::new()).collect();
    for (i, table) in (0..).zip(&tables) {
        table.put(&key(i), 1, b"v").unwrap();
    }
    assert!(tables.iter().all(|table| table.len() == 1));
    tables.iter().for_each(Memtable::validate);
}

/// Catches an owned cursor that does not keep its table alive, or cannot leave its thread.
#[test]
fn an_owned_cursor_outlives_every_handle_and_moves_between_threads() {
    let memtable = Memtable::new();
    (0..1000).for_each(|k| memtable.put(&key(k), k, &value(k, k)).unwrap());
    memtable.validate();
    let mut cursor = memtable.owned_cursor();
    drop(memtable);
    let sum = thread::spawn(move || {
        let mut sum = 0;
        cursor.seek_to_last();
        while let Some(version) = cursor.prev() {
            sum += generation(number(version.key), version.value);
        }
        sum
    });
    assert_eq!(sum.join().unwrap(), 499_500);
}
