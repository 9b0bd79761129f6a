//! Limits, errors, and the end of transactions.

use crate::support::*;

#[test]
fn memory_is_bounded_and_what_is_refused_has_no_effect() {
    // Catches reads that do not count for the limit, a loop over one key that counts each time, and a refused write that is committed.
    let (_dir, db) = opened(|b| b.max_transaction_bytes(16 << 10));
    fill(&db, 0..200, "");
    let is_refused = |result: Result<(), Error>| match result {
        Err(Error::Full(text)) => text.contains("max_transaction_bytes") && text.contains("16384"),
        Ok(()) => false,
        Err(other) => panic!("{other}"),
    };
    let transaction = db.transaction();
    for _ in 0..1000 {
        transaction.insert("a", [0; 1000]).unwrap();
        transaction.remove_range("b".."d").unwrap();
        transaction.get(key(1)).unwrap();
    }
    assert!(is_refused(transaction.insert("big", [0; 16 << 10])));
    let written = (0..100).take_while(|n| !is_refused(transaction.insert(format!("x{n}"), [0; 1000]))).count();
    assert!((8..16).contains(&written), "{written} values");
    assert!(is_refused(transaction.get_many((0..100).map(key)).map(drop)));
    transaction.commit(Durability::Buffered).unwrap();
    assert_eq!(db.prefix("x").count(), written);
    for is_range in [false, true] {
        let transaction = db.transaction();
        let read = |n| match is_range {
            true => transaction.range(key(n)..).next().transpose().map(drop),
            false => transaction.get(key(n)).map(drop),
        };
        let count = (0..200).take_while(|n| !is_refused(read(*n))).count();
        assert!((50..190).contains(&count), "{count} reads");
        assert!(is_refused(transaction.insert("a", [0; 1000])));
    }
    let transaction = db.transaction();
    assert_eq!(transaction.iter().count(), db.iter().count(), "a scan is one range, however long");
}

#[test]
fn a_write_past_its_limit_is_refused_and_the_transaction_goes_on() {
    // Catches a write that is refused only at the commit.
    let (_dir, db) = fresh();
    let transaction = db.transaction();
    let long = vec![0; MAX_KEY_LEN + 1];
    let refused = [
        transaction.insert(&long, ""),
        transaction.remove(&long),
        transaction.remove_range(long.clone()..),
        transaction.remove_range(..long.clone()),
    ];
    assert!(refused.iter().all(|result| matches!(result, Err(Error::InvalidArgument(_)))), "{refused:?}");
    for n in 0..1024 {
        transaction.remove_range(key(2 * n)..key(2 * n + 1)).unwrap();
    }
    assert!(matches!(transaction.remove_range("x".."y"), Err(Error::InvalidArgument(_))));
    transaction.remove_range(key(0)..key(3)).unwrap();
    transaction.remove_range("z".."y").unwrap();
    transaction.insert("a", "").unwrap();
    transaction.commit(Durability::Buffered).unwrap();
    assert_eq!(keys(&db), ["a"]);
}

#[test]
fn a_transaction_that_is_dropped_leaves_nothing() {
    // Catches a snapshot that stays registered, because of which compactions would retain old versions for ever.
    let (_dir, db) = fresh();
    db.insert("a", "1").unwrap();
    for is_refused in [false, true] {
        let transaction = db.transaction();
        assert!(transaction.contains_key("a").unwrap() && db.metrics().oldest_view_age.is_some());
        transaction.insert("a", "2").unwrap();
        if is_refused {
            db.insert("a", "1").unwrap();
            assert!(transaction.commit(Durability::Buffered).is_err());
        } else {
            drop(transaction);
        }
        assert_eq!(db.metrics().oldest_view_age, None);
    }
    assert_eq!(db.get("a").unwrap().as_deref(), Some(&b"1"[..]));
}

#[test]
fn a_repeated_transaction_ends_after_so_many_tries() {
    // Catches endless retries.
    let (_dir, db) = fresh();
    let mut tries = 0;
    let always_late: Result<(), Error> = db.transact(|transaction| {
        tries += 1;
        transaction.get("a")?;
        transaction.insert("b", "")?;
        db.insert("a", "")
    });
    assert!(matches!(always_late, Err(Error::Conflict { .. })) && tries == 1000, "{always_late:?} after {tries}");
    assert_eq!(keys(&db), ["a"]);
}

/// An error of an application.
#[derive(Debug, PartialEq)]
enum Refusal {
    Taken,
    Store(String),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::Store(error.to_string())
    }
}

#[test]
fn an_error_of_the_application_rolls_back_and_hides_no_conflict() {
    // Catches writes that are committed despite the application's own error, a retry after such an error, a conflict that is not retried
    // because it was converted to the application's error type, and a repeated transaction whose writes are lost.
    let (_dir, db) = fresh();
    let mut tries = 0;
    let taken = db.transact(|transaction| {
        tries += 1;
        transaction.insert("a", "")?;
        Err::<(), _>(Refusal::Taken)
    });
    assert_eq!((taken, tries), (Err(Refusal::Taken), 1));
    let mut tries = 0;
    let second = db.transact_with(Durability::Synced, |transaction| {
        tries += 1;
        transaction.get("b")?;
        if tries == 1 {
            db.insert("b", "")?;
        }
        transaction.insert("e", "")?;
        transaction.check()?;
        Ok::<_, Refusal>(tries)
    });
    assert_eq!(second, Ok(2));
    let refused = db.transact(|transaction| Ok::<_, Refusal>(transaction.insert(vec![0; MAX_KEY_LEN + 1], "")?));
    assert!(matches!(refused, Err(Refusal::Store(_))), "{refused:?}");

    let entries = [Ok(("c", "")), Err(Refusal::Taken), Ok(("d", ""))];
    assert_eq!(db.try_ingest(entries), Err(Refusal::Taken));
    let unsorted = [Ok::<_, Refusal>(("d", "")), Ok(("c", ""))];
    assert!(matches!(db.try_ingest(unsorted), Err(Refusal::Store(_))));
    assert_eq!(keys(&db), ["b", "e"]);
}

#[test]
fn a_transaction_as_large_as_several_memtables_is_committed() {
    // Catches a commit that repeats its check for ever because its own rotations come in between.
    for kind in [MemtableKind::SkipList, MemtableKind::Vector] {
        let (dir, db) = opened(|b| b.memtable_bytes(8 << 10).memtable_kind(kind));
        fill(&db, 0..50, [1; 100]);
        let transaction = db.transaction();
        assert_eq!(transaction.iter().count(), 50);
        for n in 0..200 {
            transaction.insert(key(n), [2; 200]).unwrap();
        }
        let seqno = transaction.commit(Durability::Synced).unwrap();
        assert_eq!(seqno, 250);
        assert_eq!(reopened(db, &dir).iter().count(), 200);
    }
}

#[test]
fn a_transaction_of_a_database_that_was_closed_or_only_reads_is_refused_as_a_write_is() {
    // Catches reads after a close, and an acknowledged commit that is lost.
    let (dir, db) = fresh();
    db.insert("a", "1").unwrap();
    let other = db.clone();
    let before = other.transaction();
    before.insert("b", "").unwrap();
    db.close().unwrap();
    assert_eq!(before.get("a").unwrap().as_deref(), Some(&b"1"[..]), "as a snapshot");
    assert!(matches!(before.commit(Durability::Buffered), Err(Error::Closed)));
    let after = other.transaction();
    assert!(matches!(after.get("a"), Err(Error::Closed)));
    assert!(matches!(after.iter().next(), Some(Err(Error::Closed))));
    assert!(matches!(after.commit(Durability::Buffered), Err(Error::Closed)));
    drop(other);
    let db = Db::builder(dir.path()).read_only(true).open().unwrap();
    let reader = db.transaction();
    assert_eq!(reader.first().unwrap().unwrap().1.as_ref(), b"1");
    assert_eq!(reader.commit(Durability::Synced).unwrap(), 1);
    let writer = db.transaction();
    writer.get("a").unwrap();
    writer.insert("a", "2").unwrap();
    assert!(matches!(writer.commit(Durability::Buffered), Err(Error::ReadOnly { .. })));
}

#[test]
fn a_transaction_can_be_sent_to_another_thread() {
    // Catches a transaction type that cannot move to another thread.
    let (_dir, db) = fresh();
    let transaction = db.transaction();
    transaction.insert("a", "").unwrap();
    thread::spawn(move || transaction.commit(Durability::Buffered)).join().unwrap().unwrap();
    assert!(db.contains_key("a").unwrap());
}
