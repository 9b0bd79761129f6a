//! Writers during a freeze: the frozen table has every acknowledged entry, and nothing else.

use std::cell::RefCell;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use fastskip::{ConcurrentSkipList, InsertError, Memtable, Op};

fn key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

fn number(key: &[u8]) -> u64 {
    u64::from_be_bytes(key.try_into().unwrap())
}

/// Catches a frozen table that lacks an acknowledged insert, or has one that was refused.
#[test]
fn frozen_table_holds_exactly_what_was_acknowledged() {
    let mut seen = 0;
    for round in 0..60 {
        let (list, barrier) = (ConcurrentSkipList::with_shards(1 + round % 3), Barrier::new(4));
        let acknowledged: Vec<u64> = thread::scope(|scope| {
            let write = |worker: u64| {
                let (list, barrier) = (&list, &barrier);
                move || {
                    barrier.wait();
                    let keys = (0..).map(|i| i * 3 + worker);
                    keys.take_while(|k| match list.try_insert(&key(*k), &key(*k)) {
                        Ok(()) => true,
                        Err(refusal) => {
                            assert_eq!(refusal, InsertError::Frozen);
                            false
                        }
                    })
                    .collect::<Vec<_>>()
                }
            };
            let threads: Vec<_> = (0..3).map(|worker| scope.spawn(write(worker))).collect();
            barrier.wait();
            (0..round * 50).for_each(|_| std::hint::spin_loop());
            list.freeze();
            let at_freeze: Vec<_> = list.iter().map(|entry| number(entry.key)).collect();
            let mut all: Vec<_> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
            all.sort_unstable();
            assert_eq!(at_freeze, all, "in the table when freeze returned, and acknowledged");
            all
        });
        let (frozen, fresh) = list.seal().unwrap();
        seen += acknowledged.len();
        assert!(frozen.is_sealed() && !fresh.is_sealed());
        assert!(frozen.iter().map(|entry| number(entry.key)).eq(acknowledged));
        assert!(fresh.is_empty() && fresh.insert(b"open", b""));
        frozen.validate();
    }
    assert!(seen > 0, "each table was frozen before anything was stored");
}

/// Catches a freeze that keeps only a part of a batch, one that does not wait for a reservation, and one that waits for ever for a
/// reservation that a panic dropped.
#[test]
fn freeze_waits_for_open_reservations_and_lets_none_in_after() {
    for round in 0..60_u64 {
        let memtable = Memtable::builder().shards(2).build();
        let barrier = Barrier::new(3);
        thread::scope(|scope| {
            for worker in 0..2 {
                let (memtable, barrier) = (&memtable, &barrier);
                scope.spawn(move || {
                    barrier.wait();
                    for batch in 0.. {
                        let keys = [0, 1, 2].map(|i| key(worker << 32 | batch << 8 | i));
                        let ops = keys.each_ref().map(|key| Op::Put { key, value: b"v" });
                        let Ok(reservation) = memtable.reserve(&ops) else { break };
                        if batch % 5 == 4 {
                            let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
                                let _held = reservation;
                                std::panic::resume_unwind(Box::new("a writer unwinds"));
                            }));
                            assert!(unwound.is_err());
                        } else {
                            assert_eq!(reservation.apply(batch * 3).stored, 3);
                        }
                    }
                });
            }
            barrier.wait();
            (0..round * 50).for_each(|_| std::hint::spin_loop());
            let frozen = memtable.freeze();
            let count = frozen.all_versions().count();
            assert_eq!(count % 3, 0, "a batch was cut");
            assert_eq!(memtable.reserve(&[]).unwrap_err(), InsertError::Frozen);
            thread::yield_now();
            assert_eq!(frozen.all_versions().count(), count, "the frozen table changed");
        });
        memtable.validate();
    }
}

/// Catches refused writers that delay a freeze by endless retries, and a second call of freeze that does not return.
#[test]
fn freeze_returns_while_refused_writers_keep_trying() {
    let memtable = Memtable::builder().shards(1).build();
    let freezing = AtomicUsize::new(2);
    thread::scope(|scope| {
        for worker in 0..8 {
            let (memtable, freezing) = (&memtable, &freezing);
            scope.spawn(move || {
                let mut seqno = 0;
                while freezing.load(Ordering::Relaxed) > 0 {
                    seqno += u64::from(memtable.put(&key(worker), seqno, b"").is_ok());
                }
            });
        }
        for _ in 0..2 {
            scope.spawn(|| {
                let frozen = memtable.freeze();
                assert_eq!(frozen.put(b"late", 1, b""), Err(InsertError::Frozen));
                freezing.fetch_sub(1, Ordering::Relaxed);
            });
        }
    });
    memtable.validate();
}

/// Catches a table that reports itself frozen only after it refuses writes, or drained while a reservation is still open.
#[test]
fn table_is_frozen_at_once_and_drained_when_the_last_writer_leaves() {
    let memtable = Memtable::builder().shards(3).build();
    let ops = [Op::Put { key: b"k", value: b"v" }];
    let reservation = memtable.reserve(&ops).unwrap();
    assert!(!memtable.is_frozen() && !memtable.is_drained());
    thread::scope(|scope| {
        let freezers = [0, 1].map(|_| scope.spawn(|| memtable.freeze()));
        while memtable.put(b"other", 1, b"") != Err(InsertError::Frozen) {
            thread::yield_now();
        }
        assert!(memtable.is_frozen() && !memtable.is_drained());
        assert_eq!(reservation.apply(1).stored, 1);
        assert!(freezers.map(|freezer| freezer.join().unwrap()).iter().all(|frozen| frozen.is_drained()));
    });
    memtable.validate();
}

/// Catches a freeze that an `unpark` ends early, or that consumes an `unpark` for which its caller waits.
#[test]
fn an_unpark_neither_ends_a_freeze_nor_is_lost_in_it() {
    let memtable = Memtable::builder().shards(2).build();
    let ops = [Op::Put { key: b"k", value: b"v" }];
    let reservation = memtable.reserve(&ops).unwrap();
    thread::scope(|scope| {
        let freezer = scope.spawn(|| {
            thread::current().unpark();
            let frozen = memtable.freeze();
            let stored = (frozen.is_drained(), frozen.len());
            // The `unpark` token for this thread is still there; without it, this waits for ever.
            thread::park();
            stored
        });
        while !memtable.is_frozen() {
            thread::yield_now();
        }
        for _ in 0..5 {
            freezer.thread().unpark();
            thread::yield_now();
            assert!(!freezer.is_finished() && !memtable.is_drained());
        }
        assert_eq!(reservation.apply(1).stored, 1);
        assert_eq!(freezer.join().unwrap(), (true, 1));
    });
    memtable.validate();
}

/// Catches a freeze or a write that needs thread-locals while the thread destroys them.
#[test]
fn a_thread_freezes_while_its_thread_locals_are_destroyed() {
    struct Last(Memtable);
    impl Drop for Last {
        fn drop(&mut self) {
            assert!(self.0.put(b"last", 1, b"").is_ok());
            assert!(self.0.freeze().is_drained());
        }
    }
    thread_local! {
        static LAST: RefCell<Option<Last>> = const { RefCell::new(None) };
    }
    let memtable = Memtable::builder().shards(2).build();
    let ops = [Op::Put { key: b"k", value: b"v" }];
    let reservation = memtable.reserve(&ops).unwrap();
    let last = Last(memtable.clone());
    let dying = thread::spawn(move || {
        // Registered first and so destroyed last: after the thread-locals of the standard library and of this crate.
        LAST.with(|own| *own.borrow_mut() = Some(last));
        LAST.with(|own| assert!(own.borrow().as_ref().unwrap().0.put(b"first", 1, b"").is_ok()));
        thread::current().id()
    });
    while !memtable.is_frozen() {
        thread::yield_now();
    }
    assert!(!memtable.is_drained());
    drop(reservation);
    dying.join().unwrap();
    assert!(memtable.is_drained());
    assert_eq!(memtable.len(), 2);
    memtable.validate();
}
