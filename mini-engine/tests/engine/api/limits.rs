//! Keys, values and batches at and beyond their limits.

use crate::support::*;

#[test]
fn rule_15_keys_and_values_past_their_limits_are_invalid_arguments() {
    // Catches a length that is cut off when it is encoded: the log would replay another key.
    let (dir, db) = fresh();
    let long = vec![b'k'; MAX_KEY_LEN + 1];
    assert!(matches!(db.insert(&long, ""), Err(Error::InvalidArgument(_))));
    assert!(matches!(db.remove(&long), Err(Error::InvalidArgument(_))));
    assert!(matches!(db.insert("k", vec![0; MAX_VALUE_LEN + 1]), Err(Error::InvalidArgument(_))));
    assert_eq!(db.get(&long).unwrap(), None);
    // No part of it was written, and the database still works.
    assert_eq!((db.snapshot().seqno(), db.iter().count()), (0, 0));
    db.insert(&long[1..], "at the limit").unwrap();
    let db = reopened(db, &dir);
    assert_eq!(db.get(&long[1..]).unwrap().as_deref(), Some(&b"at the limit"[..]));
    db.flush().unwrap();
    assert!(db.contains_key(&long[1..]).unwrap() && !db.contains_key(&long[2..]).unwrap());
}

#[test]
fn empty_keys_and_values_are_ordinary() {
    // Catches an empty key taken for "no key", and an empty value for a tombstone.
    let (_dir, db) = fresh();
    db.insert("", "").unwrap();
    db.insert("a", "").unwrap();
    for _ in 0..2 {
        assert_eq!(db.get("").unwrap().as_deref(), Some(&b""[..]));
        assert_eq!(db.iter().count(), 2);
        assert_eq!(&*db.iter().next().unwrap().unwrap().0, b"");
        assert_eq!(db.prefix("").count(), 2);
        db.flush().unwrap();
    }
    db.remove("").unwrap();
    assert_eq!((db.get("").unwrap(), db.iter().count()), (None, 1));
}

#[test]
fn an_empty_batch_writes_nothing() {
    // Catches a frame without operations, and a sequence number without an operation.
    let (_dir, fs, db) = hooked(|b| b);
    db.insert("a", "1").unwrap();
    fs.take();
    assert_eq!(db.write(WriteBatch::new(), Durability::Buffered).unwrap(), 1);
    assert_eq!(fs.take(), []);
    // A synced empty batch makes earlier writes durable.
    assert_eq!(db.write(WriteBatch::new(), Durability::Synced).unwrap(), 1);
    assert_eq!(count(&fs.take(), Op::Sync, ".log"), 1);
}

#[test]
fn a_batch_larger_than_half_a_memtable_has_a_log_and_a_memtable_of_its_own() {
    // Catches a large batch that can never be reserved, spans two logs, or shares a log with other writes.
    for entries in [30, 100, 1000] {
        let (dir, fs) = (TempDir::new().unwrap(), unmapped());
        let open = || {
            Db::builder(dir.path()).file_system(fs.arc()).memtable_bytes(8192).immutable_memtables(4).open().unwrap()
        };
        let db = open();
        db.insert("before", "").unwrap();
        fs.take();
        // No flush ends meanwhile, so that no log reuses another one's file.
        let (_arrivals, go) = fs.hold(Op::Create, ".sst", Answer::Go);
        let batch = batch((0..entries).map(|n| (key(n), [n as u8; 200])));
        let last = db.write(batch, Durability::Synced).unwrap();
        assert_eq!(last, 1 + entries);
        db.insert("after", "").unwrap();
        let events = fs.take();
        let writes = events.iter().filter(|event| event.is(Op::Write, ".log"));
        let logs: std::collections::BTreeSet<_> = writes.map(|event| event.name().to_owned()).collect();
        // The batch is in the first log, "after" in the second.
        assert_eq!((logs.len(), count(&events, Op::Create, ".log")), (2, 2), "{events:?}");
        drop(go);
        drop(db);
        let db = open();
        assert_eq!(db.iter().map(Result::unwrap).count() as u64, entries + 2);
        assert_eq!(db.snapshot().seqno(), entries + 2);
    }
}

#[test]
fn an_option_out_of_range_creates_nothing() {
    // Catches a check that comes only after the directory and its lock were made.
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("db");
    let options = Options::default().memtable_bytes(1);
    assert!(matches!(Db::builder(&path).options(options).open(), Err(Error::InvalidArgument(_))));
    assert!(!path.exists());
}
