//! Keys, values and batches at and beyond their limits.

use crate::support::*;

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
