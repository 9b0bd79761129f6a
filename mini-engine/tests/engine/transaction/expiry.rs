//! Entries that expire during a transaction.

use proof::second as at;

use crate::support::*;

#[test]
fn what_was_read_and_has_expired_by_the_commit_is_a_conflict_and_nothing_else_is() {
    // Catches an expiry that the check misses because it has no sequence number, for each kind of read. Also catches a false conflict with an
    // expiry of an entry that was not read or was absent before, and a key that expires inside of the transaction's view.
    type Read = fn(&Transaction) -> bool;
    let reads: [(Read, bool); 8] = [
        (|tx| tx.get("soon").unwrap().is_some(), true),
        (|tx| tx.contains_key("soon").unwrap(), true),
        (|tx| tx.get_many(["late", "soon"]).unwrap().iter().all(Option::is_some), true),
        (|tx| tx.iter().count() == 3, true),
        (|tx| tx.last().unwrap().unwrap().0.as_ref() == b"soon", true),
        (|tx| tx.first().unwrap().unwrap().0.as_ref() == b"late", false),
        (|tx| !tx.contains_key("gone").unwrap() && tx.get_many(["gone", "late", "plain"]).unwrap()[0].is_none(), false),
        (|tx| tx.insert("soon", "own").is_ok() && tx.get("soon").unwrap().is_some(), false),
    ];
    for is_flushed in [false, true] {
        for (number, (read, is_conflict)) in reads.into_iter().enumerate() {
            let clock = Clock::at(at(1000));
            let db = in_memory(&MemFs::default()).time_source(clock.source()).open().unwrap();
            db.insert_with_expiry("gone", "", at(1005)).unwrap();
            db.insert_with_expiry("late", "", at(2000)).unwrap();
            db.insert("plain", "").unwrap();
            db.insert_with_expiry("soon", "", at(1010)).unwrap();
            clock.set(at(1006));
            if is_flushed {
                db.flush().unwrap();
            }
            let transaction = db.transaction();
            assert!(read(&transaction), "read {number}");
            clock.set(at(1009) + Duration::from_millis(999));
            transaction.check().unwrap();
            clock.set(at(1010));
            assert!(read(&transaction), "read {number} again: the transaction has one instant");
            assert_eq!(transaction.check().is_err(), is_conflict, "{number}");
            transaction.insert("own", "").unwrap();
            let committed = transaction.commit(Durability::Buffered);
            match is_conflict {
                true => assert!(
                    matches!(&committed, Err(Error::Conflict { key, .. }) if key == b"soon"),
                    "{number}: {committed:?}"
                ),
                false => assert!(committed.is_ok(), "{number}: {committed:?}"),
            }
        }
    }
}

#[test]
fn a_transaction_has_a_time_for_its_own_writes_also_while_nothing_in_the_database_expires() {
    // Catches an already expired entry that is visible to the transaction that inserts it, because the database's clock is not running. Also catches
    // a transaction whose time moves on, and a clock that starts although no expiring entry was committed.
    let clock = Clock::at(at(1000));
    let db = in_memory(&MemFs::default()).time_source(clock.source()).open().unwrap();
    db.insert("past", "older").unwrap();
    let there = |transaction: &Transaction| {
        let keys: Vec<_> = transaction.iter().map(|entry| entry.unwrap().0.to_vec()).collect();
        for key in ["past", "now", "soon"] {
            assert_eq!(transaction.contains_key(key).unwrap(), keys.contains(&key.into()), "{key}");
        }
        keys
    };
    for is_committed in [false, true] {
        let transaction = db.transaction();
        for (key, seconds) in [("past", 999), ("now", 1000), ("soon", 1001)] {
            transaction.insert_with_expiry(key, "", at(seconds)).unwrap();
        }
        assert_eq!(there(&transaction), [b"soon"]);
        clock.set(at(1001));
        transaction.insert_with_expiry("soon", "", at(1001)).unwrap();
        assert_eq!(there(&transaction), [b"soon"], "the transaction has one instant");
        clock.set(at(1000));
        assert!(!db.has_expiring_entries());
        if is_committed {
            transaction.commit(Durability::Buffered).unwrap();
        }
    }
    assert!(db.has_expiring_entries());
    assert_eq!(keys(&db), ["soon"]);
    clock.set(at(1001));
    assert_eq!(keys(&db), [""; 0]);
}

#[test]
fn a_key_that_expires_during_a_conditional_write_is_absent_for_it() {
    // Catches an expired key that comes back because its expiry was removed after it had expired.
    let clock = Clock::at(at(1000));
    let db = in_memory(&MemFs::default()).time_source(clock.source()).open().unwrap();
    db.insert_with_expiry("a", "1", at(1010)).unwrap();
    let mut tries = 0;
    let seen = db.transact(|transaction| -> Result<bool, Error> {
        tries += 1;
        let value = transaction.get("a")?;
        transaction.insert("b", value.as_deref().unwrap_or(b"absent"))?;
        clock.set(at(1010));
        Ok(value.is_some())
    });
    assert_eq!((seen.unwrap(), tries), (false, 2));
    assert_eq!(db.get("b").unwrap().as_deref(), Some(&b"absent"[..]));
    assert!(!db.set_expiry("a", None).unwrap());
    assert_eq!(db.compare_and_swap("a", Some(b"1"), Some(b"2")).unwrap().unwrap_err().current, None);
}
