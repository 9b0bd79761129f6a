//! Space and file handles that are wanting now and then, at random, under several writers.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use mini_engine::{Db, Durability, Error};

use crate::hook::{Answer, HookFs, Op, on_merge_thread};
use crate::scratch::TempDir;

fn random(state: &AtomicU64) -> u64 {
    let mut z = state.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::SeqCst);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[test]
fn whatever_finds_no_space_and_no_handle_for_a_while_nothing_acknowledged_is_lost() {
    // Catches a write that is lost or doubled when its log is cut and the next one takes it, and threads that wait for ever.
    for seed in 0..4u64 {
        let (dir, fs) = (TempDir::new().unwrap(), HookFs::new());
        let durability = if seed % 2 == 0 { Durability::Buffered } else { Durability::Synced };
        let db = Db::builder(dir.path())
            .file_system(fs.arc())
            .durability(durability)
            .memtable_bytes(8 << 10)
            .immutable_memtables(1 + (seed % 3) as usize)
            .l0_trigger(2)
            .open()
            .unwrap();
        let state = Arc::new(AtomicU64::new(seed << 32));
        let (acked, refused) = (Mutex::new(BTreeSet::new()), Mutex::new(BTreeSet::new()));
        let next = AtomicU64::new(0);
        for round in 0..6 {
            let dice = state.clone();
            let rate = [2, 5, 12][(round % 3) as usize];
            fs.set(move |event| {
                let roll = random(&dice) % 100;
                if on_merge_thread() {
                    return Answer::Go;
                }
                match event.op {
                    Op::Write if roll < rate => {
                        if roll.is_multiple_of(2) {
                            Answer::Fail(ErrorKind::StorageFull)
                        } else {
                            Answer::Short(40 + roll as usize)
                        }
                    }
                    Op::Create if roll < rate => {
                        if roll.is_multiple_of(2) {
                            Answer::Fail(ErrorKind::StorageFull)
                        } else {
                            Answer::FailOs(24)
                        }
                    }
                    _ => Answer::Go,
                }
            });
            std::thread::scope(|scope| {
                for thread in 0..3 {
                    let (db, acked, refused, next, state) = (&db, &acked, &refused, &next, &state);
                    scope.spawn(move || {
                        for _ in 0..60 {
                            let n = next.fetch_add(1, Ordering::SeqCst);
                            let len = [10, 200, 1000, 5000][(random(state) % 4) as usize];
                            match db.insert(n.to_be_bytes(), vec![7; len]) {
                                Ok(()) => {
                                    acked.lock().unwrap().insert(n);
                                }
                                Err(error) => {
                                    assert!(matches!(&error, Error::Io { .. }), "seed {seed} thread {thread}: {error}");
                                    refused.lock().unwrap().insert(n);
                                }
                            }
                            if random(state).is_multiple_of(40)
                                && let Err(error) = db.flush()
                            {
                                assert!(matches!(&error, Error::Io { .. }), "seed {seed} thread {thread}: {error}");
                            }
                        }
                    });
                }
            });
            let check = |db: &Db, what: &str| {
                let found: BTreeSet<u64> =
                    db.iter().map(|entry| u64::from_be_bytes(entry.unwrap().0[..].try_into().unwrap())).collect();
                let acked = acked.lock().unwrap();
                let lost: Vec<_> = acked.difference(&found).collect();
                let extra: Vec<_> = found.difference(&acked).collect();
                assert!(
                    lost.is_empty() && extra.is_empty(),
                    "seed {seed} round {round} {what}: lost {lost:?}, extra {extra:?}"
                );
            };
            check(&db, "live");
            fs.clear();
            // Quiet, so that the copy is of one moment.
            while db.metrics().flushes_running > 0 || db.metrics().logs_being_made > 0 {
                std::thread::yield_now();
            }
            if round % 2 == 1 {
                let _ = db.wait_for_compactions();
            }
            db.flush().unwrap();
            db.insert(u64::MAX.to_be_bytes(), "x").unwrap();
            db.remove(u64::MAX.to_be_bytes()).unwrap();
            let report = db.verify().unwrap();
            assert!(report.problems.is_empty(), "{:?}", report.problems);
        }
        db.wait_for_compactions().ok();
        drop(db);
        let reader = Db::builder(dir.path()).read_only(true).open().unwrap();
        let found = reader.iter().count();
        drop(reader);
        let db = Db::open(dir.path()).unwrap();
        assert!(db.recovery().findings().is_empty(), "{:?}", db.recovery().findings());
        let count = acked.lock().unwrap().len();
        assert_eq!((found, db.iter().count()), (count, count), "seed {seed}");
    }
}
