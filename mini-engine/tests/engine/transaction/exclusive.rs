//! Exclusive transactions, and savepoints.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::support::*;

#[test]
fn exclusive_transactions_never_conflict_with_each_other() {
    // Catches two that run at once, a turn that ends before the writes are visible, and an exclusive transaction that overwrites the write of another
    // thread that needs no turn.
    const EACH: u64 = 200;
    let (_dir, db) = opened(|b| b.memtable_bytes(4 << 10).l0_trigger(2).block_bytes(512));
    let increment = |transaction: &Transaction| -> Result<u64, Error> {
        let count = transaction.get("count")?.map_or(0, |count| u64::from_le_bytes(count[..].try_into().unwrap()));
        transaction.insert("count", (count + 1).to_le_bytes()).map(|()| count)
    };
    for others in [0, 2] {
        let conflicts = db.metrics().conflicts;
        db.remove("count").unwrap();
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..EACH).for_each(|_| _ = db.transact_exclusive(increment).unwrap()));
            }
            for _ in 0..others {
                scope.spawn(|| (0..EACH).for_each(|_| _ = db.transact(increment).unwrap()));
            }
        });
        assert_eq!(db.transact(increment).unwrap(), (4 + others) * EACH);
        assert!(others > 0 || db.metrics().conflicts == conflicts, "a retry without another writer");
    }
}

#[test]
fn a_queue_with_leases_takes_no_retries() {
    // Catches pops of concurrent consumers that conflict, a job that two get, and one that is lost.
    const JOBS: u64 = 500;
    let (dir, db) = fresh();
    let (waiting, leased) = (db.keyspace("waiting").unwrap(), db.keyspace("leased").unwrap());
    let lease = || {
        db.transact_exclusive_with(Durability::Synced, |tx| {
            let job = tx.keyspace(&waiting).pop_first()?;
            job.iter().try_for_each(|(key, job)| tx.keyspace(&leased).insert(key, job))?;
            Ok::<_, Error>(job.is_some())
        })
    };
    for n in 0..JOBS / 2 {
        waiting.insert(n.to_be_bytes(), n.to_string()).unwrap();
    }
    let taken: usize = thread::scope(|scope| {
        scope.spawn(|| (JOBS / 2..JOBS).for_each(|n| waiting.insert(n.to_be_bytes(), n.to_string()).unwrap()));
        let consumers: Vec<_> =
            (0..4).map(|_| scope.spawn(|| (0..).take_while(|_| lease().unwrap()).count())).collect();
        consumers.into_iter().map(|consumer| consumer.join().unwrap()).sum()
    });
    let rest = (0..).take_while(|_| lease().unwrap()).count();
    assert_eq!(((taken + rest) as u64, db.metrics().conflicts), (JOBS, 0));
    drop((waiting, leased));
    let db = reopened(db, &dir);
    let leased = db.keyspace("leased").unwrap();
    let all: Vec<_> = leased.iter().map(|entry| String::from_utf8(entry.unwrap().1.to_vec()).unwrap()).collect();
    assert_eq!(all, (0..JOBS).map(|n| n.to_string()).collect::<Vec<_>>());
}

#[test]
fn turn_ends_with_the_call_whatever_happens_in_it() {
    // Catches a turn that stays taken after an error or a panic, and a call that waits for itself.
    let (_dir, db) = fresh();
    let nested = db.transact_exclusive(|_| db.transact_exclusive(|tx| tx.insert("inner", "")));
    assert!(matches!(nested, Err(Error::InvalidArgument(_))), "{nested:?}");
    let failed: Result<(), Error> = db.transact_exclusive(|tx| {
        tx.insert("failed", "")?;
        tx.insert(vec![0; MAX_KEY_LEN + 1], "")
    });
    assert!(failed.is_err());
    let unwound = catch_unwind(AssertUnwindSafe(|| {
        db.transact_exclusive(|tx| -> Result<(), Error> {
            tx.insert("unwound", "")?;
            panic!("in a transaction")
        })
    }));
    assert!(unwound.is_err());
    thread::scope(|scope| scope.spawn(|| db.transact_exclusive(|tx| tx.insert("done", "")).unwrap()).join().unwrap());
    assert_eq!(keys(&db), ["done"]);
    let before = db.metrics().wal_syncs;
    db.transact_exclusive_with(Durability::Synced, |tx| tx.get("done").map(drop)).unwrap();
    assert_eq!(db.metrics().wal_syncs, before, "what writes nothing syncs nothing");
}

#[test]
fn an_acknowledged_exclusive_transaction_survives_a_power_cut() {
    // Catches a turn that ends before the sync, and a caller who returns without it; and a sync that fails because the database was closed meanwhile.
    let mem = MemFs::default();
    let open = || Db::builder("/db").file_system(Arc::new(mem.clone())).open().unwrap();
    let db = open();
    db.transact_exclusive_with(Durability::Synced, |tx| tx.insert("synced", "")).unwrap();
    db.transact_exclusive_with(Durability::Buffered, |tx| tx.insert("buffered", "")).unwrap();
    for seed in 0..20 {
        let after = MemFs::on(mem.disk().after_power_cut(seed).0);
        let db = Db::builder("/db").file_system(Arc::new(after)).open().unwrap();
        assert!(db.contains_key("synced").unwrap(), "seed {seed}");
    }
}

#[test]
fn an_iterator_that_was_open_at_a_rollback_hides_nothing_from_others() {
    // Catches a range that is recorded as written by an iterator that began while entries before it were.
    let (_dir, db) = fresh();
    fill(&db, 0..40, "1");
    let transaction = db.transaction();
    let savepoint = transaction.savepoint();
    (0..20).for_each(|_| drop(transaction.pop_first().unwrap()));
    let mut iter = transaction.iter();
    transaction.roll_back_to(&savepoint).unwrap();
    transaction.remove_range(key(16)..key(36)).unwrap();
    drop(iter.next());
    assert_eq!(transaction.first().unwrap().map(|(first, _)| first.to_vec()), Some(key(0).into()));
    assert_eq!(transaction.iter().count(), 20);
}

#[test]
fn savepoints_restore_all_that_was_written_before_them() {
    // Catches a rollback that keeps a removed range or loses one that was joined, that forgets memory, or that shows entries as still removed.
    let (_dir, db) = opened(|b| b.max_transaction_bytes(64 << 10));
    fill(&db, 0..100, "1");
    let transaction = db.transaction();
    transaction.remove_range(key(10)..key(20)).unwrap();
    transaction.insert(key(15), "own").unwrap();
    let view = |transaction: &Transaction| transaction.iter().collect::<Result<Vec<_>, _>>().unwrap();
    let (first, before) = (transaction.savepoint(), view(&transaction));
    for round in 0..200 {
        transaction.remove_range(key(5)..key(30)).unwrap();
        transaction.insert(key(40), vec![b'x'; 1000]).unwrap();
        let second = transaction.savepoint();
        if round == 0 {
            while transaction.pop_first().unwrap().is_some() {}
        }
        transaction.remove_range(..).unwrap();
        assert!(transaction.first().unwrap().is_none());
        transaction.roll_back_to(&second).unwrap();
        assert_eq!(transaction.get(key(40)).unwrap().unwrap().len(), 1000);
        transaction.roll_back_to(&first).unwrap();
        assert!(round % 50 > 0 || view(&transaction) == before);
        assert!(matches!(transaction.roll_back_to(&second), Err(Error::InvalidArgument(_))), "it has ended");
    }
    assert!(matches!(db.transaction().roll_back_to(&first), Err(Error::InvalidArgument(_))), "of another transaction");
    let fill = || (0..2000).take_while(|_| transaction.insert("k", [0; 100]).is_ok()).count();
    let written = fill();
    assert!((64..300).contains(&written), "{written}: what could be restored counts");
    let third = transaction.savepoint();
    transaction.release(&first).unwrap();
    assert!(transaction.roll_back_to(&third).is_err() && transaction.release(&first).is_err(), "they have ended");
    assert_eq!(fill(), 2000, "nothing is kept without a savepoint");
    transaction.remove("k").unwrap();
    transaction.remove_range("k"..="k").unwrap();
    transaction.commit(Durability::Buffered).unwrap();
    assert_eq!(db.iter().collect::<Result<Vec<_>, _>>().unwrap(), before);
}
