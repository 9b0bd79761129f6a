//! The counted costs of a commit.

use crate::support::*;

const READ: u64 = 20_000;

type Read = fn(&Transaction) -> u64;

const READS: [Read; 3] = [
    |tx| tx.range("key".."l").count() as u64,
    |tx| tx.get_many((0..READ).map(key)).unwrap().iter().flatten().count() as u64,
    |tx| tx.range("key".."l").rev().count() as u64,
];

#[test]
fn a_commit_looks_at_the_newer_writes_and_not_at_what_was_read() {
    // Catches a check that scans the read range again: this costs as much as the read, with the write lock held.
    let (_dir, db) = fresh();
    fill(&db, 0..READ, "");
    for is_flushed in [false, true] {
        for newer in [0, 1, 50, 3000] {
            for read in READS {
                let transaction = db.transaction();
                assert_eq!(read(&transaction), READ);
                transaction.insert("own", "").unwrap();
                (0..newer).for_each(|n| db.insert(format!("other{n}"), "").unwrap());
                if is_flushed {
                    db.flush().unwrap();
                }
                let before = db.metrics().commit_checks;
                transaction.commit(Durability::Buffered).unwrap();
                assert_eq!(db.metrics().commit_checks - before, newer);
            }
        }
    }
}

#[test]
fn a_commit_that_is_older_than_the_record_of_writes_finds_every_change() {
    // Catches a change that was dropped from the record of recent writes, before or after the search of the view, and an incomplete record that is
    // taken for complete.
    let (_dir, db) = opened(|b| b.max_transaction_bytes(4 << 10));
    fill(&db, 0..100, "");
    for changed in [None, Some(0), Some(700), Some(999)] {
        let transaction = db.transaction();
        assert_eq!(transaction.range("key".."l").count(), 100);
        transaction.insert("own", "").unwrap();
        (0..1000).for_each(|n| match changed == Some(n) {
            true => db.insert(key(7), "new").unwrap(),
            false => db.insert(format!("other{n}"), "").unwrap(),
        });
        let before = db.metrics().commit_checks;
        match (transaction.commit(Durability::Buffered), changed) {
            (Ok(_), None) => assert_eq!(db.metrics().commit_checks - before, 100, "the range was searched once"),
            (Err(Error::Conflict { key: found, .. }), Some(_)) => assert_eq!(found, key(7).as_bytes()),
            (other, _) => panic!("{other:?} with a change at {changed:?}"),
        }
    }
}
