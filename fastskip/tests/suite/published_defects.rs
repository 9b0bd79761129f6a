//! The defects of the published fastskip 0.1.1: one test for each, named after the right behaviour. Seven more defects have no test here, because
//! other tests catch them. `maps` catches snapshots that show later deletions, cursors on an empty list, tombstones of absent keys, refusals with
//! the wrong error, and full lists that open again. Shuttle's programs catch snapshots that change, and a length below zero.

use std::thread;

use fastskip::{ConcurrentSkipList, InsertError, MAX_KEY_LEN, MAX_VALUE_LEN, Memtable};

fn key(number: usize) -> [u8; 8] {
    (number as u64).to_be_bytes()
}

/// Catches shards that are used up by threads that have ended.
#[test]
fn threads_that_come_and_go_by_the_thousand_can_all_insert() {
    let list = ConcurrentSkipList::with_shards(4);
    for number in 0..4000 {
        thread::scope(|scope| {
            scope.spawn(|| assert!(list.insert(&key(number), b"v")));
        });
    }
    assert_eq!(list.len(), 4000);
    list.validate();
}

/// Catches per-thread state that is keyed by a list's address and outlives the list.
#[test]
fn lists_that_come_and_go_under_living_threads_keep_their_own_entries() {
    let rounds = 300;
    for _ in 0..rounds {
        let list = Box::new(ConcurrentSkipList::with_shards(2));
        thread::scope(|scope| {
            for worker in 0..4 {
                let list = &list;
                scope.spawn(move || (0..50).for_each(|i| assert!(list.insert(&key(worker * 50 + i), &key(i)))));
            }
        });
        assert_eq!(list.len(), 200);
        assert!(list.iter().enumerate().all(|(i, entry)| entry.key == key(i)));
        list.validate();
    }
}

/// Catches such per-thread state with threads that outlive the lists and write to several in turn.
#[test]
fn one_thread_may_write_to_any_number_of_lists_in_turn() {
    let lists: Vec<_> =
        (0..if crate::FEW_ADDRESSES { 100 } else { 1000 }).map(|_| ConcurrentSkipList::with_shards(3)).collect();
    thread::scope(|scope| {
        for worker in 0..4 {
            let lists = &lists;
            scope.spawn(move || lists.iter().for_each(|list| assert!(list.insert(&key(worker), b""))));
        }
    });
    for list in &lists {
        assert_eq!(list.iter().map(|entry| entry.key).collect::<Vec<_>>(), (0..4).map(key).collect::<Vec<_>>());
        list.validate();
    }
}

/// Catches a list of one shard that has no shard left after its head.
#[test]
fn one_shard_serves_any_number_of_threads() {
    for shards in [0, 1] {
        let list = ConcurrentSkipList::with_shards(shards);
        assert!(list.insert(b"first", b""));
        thread::scope(|scope| {
            for worker in 0..16 {
                let list = &list;
                scope.spawn(move || (0..100).for_each(|i| assert!(list.insert(&key(worker * 100 + i), b""))));
            }
        });
        assert_eq!(list.len(), 1601);
        list.validate();
    }
}

/// Catches an iterator that dereferences the end of the list.
#[test]
fn next_after_the_end_stays_none() {
    let list = ConcurrentSkipList::new();
    list.insert(b"a", b"");
    let snapshot = list.snapshot();
    let (mut iter, mut cursor, mut frozen) = (list.iter(), list.cursor(), snapshot.iter());
    assert!(iter.next().is_some() && cursor.next().is_some() && frozen.next().is_some());
    for _ in 0..3 {
        assert_eq!((iter.next(), iter.next_back(), cursor.next(), frozen.next()), (None, None, None, None));
    }
    list.insert(b"b", b"");
    assert_eq!((iter.next(), cursor.next_entry()), (None, None));
}

/// Catches a length that is cut to 32 bits or less.
#[cfg(target_pointer_width = "64")]
#[test]
fn keys_and_values_past_the_limits_are_too_large() {
    let list = ConcurrentSkipList::new();
    let memtable = Memtable::new();
    // Never touched, so never committed.
    let huge = vec![0_u8; (1 << 32) + 3];
    for (key, value) in [
        (&huge[..], &b""[..]),
        (&huge[..MAX_KEY_LEN + 1], b""),
        (b"k", &huge[..]),
        (b"k", &huge[..MAX_VALUE_LEN + 1]),
        (&huge[..1 << 32], &huge[..8]),
    ] {
        assert_eq!(list.try_insert(key, value), Err(InsertError::TooLarge));
        assert_eq!(memtable.put(key, 1, value), Err(InsertError::TooLarge));
    }
    assert_eq!(list.try_insert(&huge[..MAX_KEY_LEN], b"fits"), Ok(()));
    assert_eq!(list.get_live(&huge[..MAX_KEY_LEN]), Some(&b"fits"[..]));
    assert_eq!((list.len(), memtable.len()), (1, 0));
    list.validate();
    memtable.validate();
}

/// Catches a frozen table whose cursors cannot be moved again.
#[test]
fn a_cursor_over_a_frozen_table_can_seek_any_number_of_times() {
    let list = ConcurrentSkipList::new();
    (0..100).for_each(|i| assert!(list.insert(&key(i), b"")));
    let (frozen, _fresh) = list.seal().unwrap();
    let mut cursor = frozen.cursor();
    for i in [50, 3, 99, 0] {
        assert!(cursor.seek(&key(i)));
        assert_eq!(cursor.next_entry().unwrap().key, key(i));
    }
}

/// Catches a successful result of a write that stored nothing.
#[test]
fn get_or_insert_reports_only_what_it_stored() {
    let list = ConcurrentSkipList::with_capacity_and_shards(0, 1, 0, 1);
    assert_eq!(list.get_or_insert(b"a", b"1"), (&b"1"[..], true));
    assert_eq!(list.get_or_insert(b"a", b"2"), (&b"1"[..], false));
    assert_eq!(list.get_or_insert(b"b", b"2"), (&b"2"[..], false));
    assert_eq!(list.try_get_or_insert(b"b", b"2"), Err(InsertError::Full));
    assert_eq!(list.get(b"b"), None);
    list.freeze();
    assert_eq!(list.try_get_or_insert(b"a", b"2"), Ok((&b"1"[..], false)));
    assert_eq!(list.try_get_or_insert(b"b", b"2"), Err(InsertError::Frozen));
}

/// Catches limits that are exceeded by more than one entry for each writing thread, and limits that leave room unused on idle shards.
#[test]
fn limits_are_passed_by_at_most_one_entry_a_thread() {
    let (threads, limit, value) = (8, 200_000, [7; 300]);
    let list = ConcurrentSkipList::with_capacity_and_shards(64 << 10, 4, limit, 0);
    thread::scope(|scope| {
        for worker in 0..threads {
            let list = &list;
            scope.spawn(move || {
                let refused = (0..).map(|i| list.try_insert(&key(i * threads + worker), &value)).find(Result::is_err);
                assert_eq!(refused, Some(Err(InsertError::Full)));
                assert_eq!(list.try_insert(b"tiny key", b""), Err(InsertError::Full));
            });
        }
    });
    let (stats, entry) = (list.stats(), 400);
    assert!(stats.memory_usage <= limit + threads * entry, "{stats:?}");
    assert!(stats.memory_usage >= limit - threads * entry, "{stats:?}");
    assert!(stats.is_under_backpressure);
    list.validate();

    let list = ConcurrentSkipList::with_capacity_and_shards(64 << 10, 4, 0, 1000);
    thread::scope(|scope| {
        for worker in 0..threads {
            let list = &list;
            scope.spawn(move || (0..1000).filter(|i| list.insert(&key(i * threads + worker), b"")).count());
        }
    });
    // Some inserts were refused while another thread moved the last leases, so a few entries can still be stored.
    assert!((9000..10_001).any(|i| !list.insert(&key(i), b"")));
    assert_eq!(list.len(), 1000);
    list.validate();
}

/// Catches a pressure signal that comes too late, or goes away.
#[test]
fn backpressure_begins_at_nine_tenths_and_never_ends() {
    let list = ConcurrentSkipList::with_capacity_and_shards(0, 4, 0, 100);
    for i in 0..100 {
        assert_eq!(list.is_under_backpressure(), i >= 90, "at {i} entries");
        assert!(list.insert(&key(i), b""));
    }
    let by_memory = ConcurrentSkipList::builder().shards(2).max_memory_bytes(100_000).backpressure_at(0.5).build();
    let mut pressed = false;
    while by_memory.insert(&key(by_memory.len()), &[1; 100]) {
        let used = by_memory.memory_usage();
        assert!(!pressed || by_memory.is_under_backpressure());
        pressed = by_memory.is_under_backpressure();
        assert!(pressed || used < 50_200, "no pressure at {used} bytes");
        assert!(!pressed || used >= 49_992, "pressure at {used} bytes");
    }
    assert!(pressed);
}

/// Catches statistics that contradict each other.
#[test]
fn memory_figures_have_one_meaning() {
    let list = ConcurrentSkipList::with_shards(3);
    assert_eq!((list.memory_usage(), list.memory_reserved(), list.memory_utilization()), (0, 0, 0.0));
    for i in 0..1000 {
        assert!(list.insert(&key(i), &[0; 24]));
    }
    let stats = list.stats();
    assert_eq!(stats.memory_usage + stats.memory_idle, stats.memory_reserved);
    assert_eq!(
        (list.memory_usage(), list.memory_idle(), list.memory_reserved()),
        (stats.memory_usage, stats.memory_idle, stats.memory_reserved)
    );
    let used = stats.memory_usage as f64 / stats.memory_reserved as f64;
    assert_eq!((list.memory_utilization(), stats.memory_utilization()), (used, used));
    assert_eq!((list.avg_key_size(), list.avg_value_size()), (8.0, 24.0));
    assert_eq!((stats.total_inserts, list.total_inserts()), (1000, 1000));
    let overhead = stats.memory_usage as f64 / 1000.0 - 32.0;
    assert!((24.0..42.0).contains(&overhead), "{overhead} bytes an entry");
}

/// Catches memory use that grows with each seal of an empty list.
#[test]
fn empty_seals_and_resets_cost_no_memory() {
    let mut list = ConcurrentSkipList::with_capacity_and_shards(4096, 2, 1 << 20, 0);
    for _ in 0..200 {
        let (frozen, fresh) = list.seal().unwrap();
        assert_eq!((frozen.memory_reserved(), fresh.memory_reserved()), (0, 0));
        assert_eq!((fresh.max_memory_bytes(), fresh.stats().max_entries), (1 << 20, 0));
        list = fresh;
        list.reset();
    }
    assert!(list.insert(b"k", b"v"));
    list.reset();
    assert_eq!((list.memory_reserved(), list.len(), list.get(b"k")), (0, 0, None));
    assert!(list.insert(b"k", b"w"));
    assert_eq!(list.get_live(b"k"), Some(&b"w"[..]));
}

/// Catches nodes or hints in the wrong order, and nodes that are lost when a link is contended. `validate` checks the order of
/// nodes and of hints, the partial keys, and that all used words belong to linked nodes and blocks.
#[test]
fn contended_links_keep_the_list_sorted_and_lose_no_node() {
    for round in 0..30 {
        let list = ConcurrentSkipList::with_shards(4);
        thread::scope(|scope| {
            for worker in 0..4 {
                let list = &list;
                scope.spawn(move || {
                    for i in 0..1500 {
                        assert!(list.insert(&key((i * 7919 % 1500) * 4 + worker), &key(round)));
                    }
                });
            }
        });
        assert_eq!(list.iter().map(|entry| entry.key).collect::<Vec<_>>(), (0..6000).map(key).collect::<Vec<_>>());
        list.validate();
        assert_eq!(list.stats().memory_wasted % 8, 0);
    }
}
