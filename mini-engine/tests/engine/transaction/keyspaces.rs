//! Transactions that span keyspaces.

use crate::support::*;

#[test]
fn keyspaces_are_written_together_and_conflict_by_their_own_keys() {
    // Catches a key that is taken for the same key of another keyspace in a read, a write or a check. Also catches a commit that writes only one
    // keyspace's part, and a conflict whose error does not name the keyspace.
    let (_dir, db) = fresh();
    let (users, emails) = (db.keyspace("users").unwrap(), db.keyspace("emails").unwrap());
    users.insert("k", "user").unwrap();
    let transaction = || {
        let transaction = db.transaction();
        assert_eq!(transaction.get("k").unwrap(), None);
        assert_eq!(transaction.keyspace(&users).get("k").unwrap().as_deref(), Some(&b"user"[..]));
        transaction.keyspace(&emails).insert("k", "email").unwrap();
        transaction.insert("own", "").unwrap();
        transaction
    };
    let (refused, committed) = (transaction(), transaction());
    emails.insert("k", "blind").unwrap();
    committed.commit(Durability::Buffered).unwrap();
    assert_eq!(emails.get("k").unwrap().as_deref(), Some(&b"email"[..]));
    users.insert("k", "other").unwrap();
    let Err(Error::Conflict { keyspace, key, what }) = refused.commit(Durability::Buffered) else { panic!("lost") };
    assert_eq!((&*keyspace, &key[..]), ("users", &b"k"[..]));
    assert_eq!(what, "key \"k\" of keyspace \"users\" was read at 1, and changed at 5");
    assert_eq!(keys(&db), ["own"]);
}

#[test]
fn ranges_of_neighbouring_keyspaces_stay_apart() {
    // Catches removed keys that return: a transaction joined the removals of neighbouring keyspaces, and one of these was dropped with the whole range.
    for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2], [1, 2, 0]] {
        for dropped in 0..3 {
            let (_dir, db) = fresh();
            let spaces = ["a", "b", "c"].map(|name| db.keyspace(name).unwrap());
            spaces.iter().for_each(|space| space.insert("k", "").unwrap());
            db.flush().unwrap();
            let transaction = db.transaction();
            for at in order {
                transaction.keyspace(&spaces[at]).remove_range("m"..).unwrap();
                transaction.keyspace(&spaces[at]).remove_range(.."m").unwrap();
            }
            transaction.commit(Durability::Buffered).unwrap();
            assert_eq!(db.snapshot().seqno(), 6, "three entries and a range for each keyspace");
            db.drop_keyspace(spaces[dropped].name()).unwrap();
            for _ in 0..2 {
                let rest = spaces.iter().enumerate().filter(|(at, _)| *at != dropped);
                assert!(rest.map(|(_, space)| space.iter().count()).eq([0, 0]), "{order:?}, {dropped} dropped");
                db.flush().unwrap();
            }
        }
    }
}

#[test]
fn a_scan_of_a_keyspace_conflicts_with_no_write_to_its_neighbours() {
    // Catches an unbounded range that goes past the borders of its keyspace.
    let (_dir, db) = fresh();
    let [a, b, c] = ["a", "b", "c"].map(|name| db.keyspace(name).unwrap());
    let transaction = db.transaction();
    assert_eq!(transaction.keyspace(&b).iter().count(), 0);
    transaction.keyspace(&b).insert("k", "").unwrap();
    a.insert([0xff, 0xff], "").unwrap();
    c.insert("", "").unwrap();
    transaction.commit(Durability::Buffered).unwrap();
}

#[test]
fn a_keyspace_that_was_dropped_or_is_another_databases_refuses_the_commit() {
    // Catches a commit that has read keys of a dropped keyspace, which no check can find any more, and a write to the keyspace of the same number in
    // the wrong database.
    let (_dir, db) = fresh();
    let (dropped, kept) = (db.keyspace("dropped").unwrap(), db.keyspace("kept").unwrap());
    dropped.insert("k", "").unwrap();
    let transaction = db.transaction();
    assert!(transaction.keyspace(&dropped).contains_key("k").unwrap());
    transaction.keyspace(&kept).insert("k", "").unwrap();
    db.drop_keyspace("dropped").unwrap();
    db.compact_range(..).unwrap();
    assert!(matches!(transaction.keyspace(&dropped).get("k"), Err(Error::NoKeyspace { .. })));
    let refused = transaction.commit(Durability::Buffered);
    assert!(matches!(refused, Err(Error::NoKeyspace { ref name }) if name == "dropped"), "{refused:?}");
    let (_other_dir, other) = fresh();
    let foreign = other.keyspace("foreign").unwrap();
    let of_foreign = |transaction: &Transaction| transaction.keyspace(&foreign).insert("k", "").unwrap();
    let transaction = db.transaction();
    transaction.keyspace(&kept).insert("k", "").unwrap();
    of_foreign(&transaction);
    assert!(matches!(transaction.keyspace(&foreign).get("x"), Err(Error::InvalidArgument(_))));
    assert!(matches!(transaction.keyspace(&foreign).iter().next(), Some(Err(Error::InvalidArgument(_)))));
    assert!(matches!(transaction.commit(Durability::Buffered), Err(Error::InvalidArgument(_))));
    assert!(!kept.contains_key("k").unwrap() && !foreign.contains_key("k").unwrap());
}
