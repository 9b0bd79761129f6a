//! Real threads on both tables. Values carry their key, a generation and a hash of both, so that a torn or foreign value cannot pass.

use std::collections::HashSet;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;

use fastskip::{ConcurrentSkipList, InsertError, Lookup, Memtable};

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

/// Catches lost, torn or misplaced versions, and reads that go back in time. A reader at a published sequence number must see, for every key, a
/// whole value of this key whose generation is not older than the one it saw before.
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
                    // An engine publishes in order too: a sequence number is published only when all lower ones are stored.
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

/// Catches an entry, a refusal or a deletion that a live read saw and a later snapshot lacks.
#[test]
fn what_was_seen_is_in_every_later_snapshot() {
    let list = ConcurrentSkipList::with_shards(2);
    thread::scope(|scope| {
        scope.spawn(|| {
            for k in 0..40_000 {
                // The other thread may have stored an odd key first.
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

/// Catches tables that each reserve too much address space for thousands of them.
#[test]
fn thousands_of_tables_can_be_open_at_once() {
    let tables: Vec<_> = (0..if crate::FEW_ADDRESSES { 400 } else { 4000 }).map(|_| Memtable::new()).collect();
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
    (0..1000).for_each(|k| assert!(memtable.put(&key(k), k, &value(k, k)).is_ok()));
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
