//! Writes that depend on the stored value, and the two ends of the key order.

use crate::support::*;

const THREADS: u64 = 4;
const STEPS: u64 = 100;

/// Options with which the engine flushes and compacts all the time, so that conditions read tables too.
fn small(builder: Builder) -> Builder {
    builder.memtable_bytes(4 << 10).l0_trigger(2).block_bytes(512)
}

#[test]
fn a_value_is_swapped_only_for_the_one_that_is_there() {
    // Catches an expectation that is not compared, and `None` taken for an empty value.
    let (_dir, db) = opened(small);
    let refused = |current: Option<&[u8]>| Err(CompareAndSwapError { current: current.map(Slice::from) });
    assert_eq!(db.compare_and_swap("k", Some(b""), Some(b"1")).unwrap(), refused(None));
    assert_eq!(db.compare_and_swap("k", None, Some(b"1")).unwrap(), Ok(()));
    assert_eq!(db.compare_and_swap("k", None, Some(b"2")).unwrap(), refused(Some(b"1")));
    db.flush().unwrap();
    assert_eq!(db.compare_and_swap("k", Some(b"2"), None).unwrap(), refused(Some(b"1")));
    assert_eq!(db.compare_and_swap("k", Some(b"1"), Some(b"2")).unwrap(), Ok(()));
    assert_eq!(db.compare_and_swap("k", Some(b"2"), None).unwrap(), Ok(()));
    assert_eq!(db.get("k").unwrap(), None);
    assert!(matches!(db.compare_and_swap(vec![0; 70_000], None, None), Err(Error::InvalidArgument(_))));
}

#[test]
fn no_step_of_a_counter_is_lost_among_threads() {
    // Catches a value that is compared before the write lock is held, or while an earlier write is not visible yet.
    let (_dir, db) = opened(small);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let db = &db;
            scope.spawn(move || {
                for step in 0..STEPS {
                    while !increment(db) {}
                    // Fills memtables, and keeps other writers busy between the lock and the publication.
                    db.insert(format!("x{thread}{step}"), [7; 100]).unwrap();
                }
            });
        }
    });
    assert_eq!(db.get("counter").unwrap().as_deref(), Some((THREADS * STEPS).to_string().as_bytes()));
    assert!(db.metrics().flushes > 0);
}

/// Adds one to the counter, unless another thread did so meanwhile.
fn increment(db: &Db) -> bool {
    let current = db.get("counter").unwrap();
    let count: u64 = current.as_deref().map_or(0, |text| std::str::from_utf8(text).unwrap().parse().unwrap());
    let next = (count + 1).to_string();
    db.compare_and_swap("counter", current.as_deref(), Some(next.as_bytes())).unwrap().is_ok()
}

#[test]
fn every_entry_is_popped_once_and_from_its_end() {
    // Catches an entry that two threads pop, and entries that are popped out of order: each thread's own keys must be in order.
    let (_dir, db) = opened(small);
    for n in 0..THREADS * STEPS {
        db.insert(n.to_be_bytes(), [1; 40]).unwrap();
    }
    let pop_all = |from_front: bool| {
        let mut popped = Vec::new();
        while let Some((key, _)) = if from_front { db.pop_first() } else { db.pop_last() }.unwrap() {
            popped.push(key.to_vec());
        }
        assert!(popped.is_sorted_by(|a, b| (a < b) == from_front && a != b));
        popped
    };
    let mut all: Vec<Vec<u8>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(move || pop_all(thread % 2 == 0))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    all.sort();
    assert_eq!(all, (0..THREADS * STEPS).map(|n| n.to_be_bytes().to_vec()).collect::<Vec<_>>());
    assert_eq!(db.iter().count(), 0);
}

#[test]
fn what_is_stored_while_others_pop_is_popped_once() {
    // Catches a cached end that skips an entry which is just being stored, and a nonempty queue that seems empty.
    let (_dir, db) = opened(small);
    let (db, count) = (&db, THREADS * STEPS);
    let mut all: Vec<u64> = thread::scope(|scope| {
        for thread in 0..THREADS {
            // Each thread counts down, so that each key comes before the popped ones.
            scope.spawn(move || {
                (0..STEPS).rev().for_each(|n| db.insert((n * THREADS + thread).to_be_bytes(), "").unwrap())
            });
        }
        let pop = move |from_front: bool| {
            let mut popped = Vec::new();
            for _ in 0..count {
                let entry = if from_front { db.pop_first() } else { db.pop_last() }.unwrap();
                popped.extend(entry.map(|(key, _)| u64::from_be_bytes(key[..].try_into().unwrap())));
            }
            popped
        };
        let threads = [scope.spawn(move || pop(true)), scope.spawn(move || pop(false))];
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    while let Some((key, _)) = db.pop_first().unwrap() {
        all.push(u64::from_be_bytes(key[..].try_into().unwrap()));
    }
    assert_eq!(db.iter().count(), 0);
    all.sort_unstable();
    assert!(all.into_iter().eq(0..count));
}
