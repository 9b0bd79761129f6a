//! Walks that are long enough to fetch the next entries in advance.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use fastskip::{ConcurrentSkipList, Memtable, Op};

const ENTRIES: u32 = 20_000;

/// Unordered keys. The multiplier is odd, so no two are equal.
fn key(number: u32) -> [u8; 4] {
    number.wrapping_mul(0x9e37_79b1).to_be_bytes()
}

fn filled() -> (ConcurrentSkipList, Vec<[u8; 4]>) {
    let list = ConcurrentSkipList::new();
    let keys: BTreeSet<_> = (0..ENTRIES).map(key).collect();
    (0..ENTRIES).for_each(|number| assert!(list.insert(&key(number), b"v")));
    (list, keys.into_iter().collect())
}

/// Catches a run of entries that is lost, doubled or put in the wrong order, at any distance from the start of a walk.
#[test]
fn walks_of_every_length_yield_what_lies_between() {
    let (list, keys) = filled();
    for (from, len) in
        [(0, ENTRIES as usize), (1, 5), (7, 9), (100, 108), (5000, 109), (5000, 250), (300, 3000), (9, 19_000)]
    {
        let (first, end) = (keys[from], keys.get(from + len).copied().unwrap_or([0xff; 4]));
        let expected = &keys[from..(from + len).min(keys.len())];
        let expected: Vec<_> = expected.iter().filter(|key| **key < end).copied().collect();
        let forward: Vec<_> = list.range(first..end).map(|entry| entry.key.to_vec()).collect();
        assert_eq!(forward, expected, "forward from {from}");
        let mut backward: Vec<_> = list.range(first..end).rev().map(|entry| entry.key.to_vec()).collect();
        backward.reverse();
        assert_eq!(backward, expected, "backward to {from}");
    }
}

/// Catches ends that pass each other, or stop short, when both have fetched nodes in advance.
#[test]
fn ends_meet_wherever_they_take_turns() {
    let (list, keys) = filled();
    for share in [1, 2, 3, 50, 700] {
        let (mut front, mut back) = (Vec::new(), Vec::new());
        let mut iter = list.iter();
        'walk: loop {
            for _ in 0..share {
                let Some(entry) = iter.next() else { break 'walk };
                front.push(entry.key.to_vec());
            }
            let Some(entry) = iter.next_back() else { break };
            back.push(entry.key.to_vec());
        }
        front.extend(back.into_iter().rev());
        assert_eq!(front, keys, "one from the back after {share} from the front");
    }
}

/// Catches a walk that skips or repeats entries that were there before it began, while others insert around it.
#[test]
fn long_walks_beside_writers_keep_order_and_miss_nothing() {
    let memtable = Memtable::new();
    (0..ENTRIES).for_each(|number| assert!(memtable.put(&key(number), 1, b"old").is_ok()));
    let done = AtomicBool::new(false);
    let old: Vec<_> = memtable.iter(1).map(|version| version.key.to_vec()).collect();
    thread::scope(|scope| {
        scope.spawn(|| {
            for batch in (ENTRIES..4 * ENTRIES).collect::<Vec<_>>().chunks(100) {
                let keys: Vec<_> = batch.iter().map(|&number| key(number)).collect();
                let ops: Vec<_> = keys.iter().map(|key| Op::Put { key, value: b"new" }).collect();
                assert_eq!(memtable.reserve(&ops).unwrap().apply(2).stored, ops.len());
            }
            done.store(true, Ordering::Release);
        });
        let mut is_done = false;
        while !is_done {
            // Read before the walks, so that at least one walk follows.
            is_done = done.load(Ordering::Acquire);
            let all: Vec<_> = memtable.all_versions().map(|version| (version.key.to_vec(), version.seqno)).collect();
            assert!(all.is_sorted_by(|a, b| a.0 < b.0));
            assert!(memtable.iter(1).map(|version| version.key).eq(&old));
            assert!(memtable.iter(1).rev().map(|version| version.key).eq(old.iter().rev()));
        }
    });
    assert_eq!(memtable.iter(u64::MAX).count(), 4 * ENTRIES as usize);
    memtable.validate();
}

/// Catches a step, in either direction, that misses an entry which its own thread stored before: a walk back may have fetched its nodes earlier.
#[test]
fn steps_see_what_was_stored_before_them() {
    for len in [2, 3, 10, 100_u8] {
        let list = ConcurrentSkipList::with_shards(1);
        let memtable = Memtable::builder().shards(1).build();
        let store = |key: u8| {
            memtable.put(&[key], 1, b"").unwrap();
            assert!(list.insert(&[key], b""));
        };
        // Even keys are stored first. While a walk is at an even key, the next odd key is stored.
        (0..=len).for_each(|key| store(2 * key));
        let (mut cursor, mut versions, mut iter) = (list.cursor(), memtable.cursor().visible_at(1), list.iter());
        assert!(cursor.seek_to_last() && versions.seek_to_last());
        for key in (1..=2 * len).rev() {
            if key % 2 == 1 {
                store(key);
            }
            let expected = Some(&[key][..]);
            assert_eq!(cursor.prev().map(|entry| entry.key), expected);
            assert_eq!(versions.prev().map(|version| version.key), expected);
            assert_eq!(iter.next_back().map(|entry| entry.key), expected);
        }
        let list = ConcurrentSkipList::with_shards(1);
        assert!(list.insert(&[0], b""));
        let (mut cursor, mut iter) = (list.cursor(), list.iter());
        for key in 0..len {
            assert_eq!(cursor.next().map(|entry| entry.key), Some(&[key][..]));
            assert_eq!(iter.next().map(|entry| entry.key), Some(&[key][..]));
            assert!(list.insert(&[key + 1], b""));
        }
    }
}
