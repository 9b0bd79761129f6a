//! The conflicts between reads of a transaction and writes of others, which may be in the memtable, in tables, or compacted by then.

use crate::support::*;

/// The stored keys, among those that other writers change.
const STORED: [&str; 4] = ["b", "d", "f", "h"];
const CHANGED: Range<u8> = b'a'..b'j';

/// A read, and the keys whose change conflicts with it. An upper-case letter is a key that was not read although places right before it were. A
/// removal of a range with such places is a conflict, even without a key there.
type Read = (&'static str, fn(&Transaction) -> Result<(), Error>, &'static str);

fn take(iter: impl Iterator<Item = Result<(Slice, Slice), Error>>, count: usize) -> Result<(), Error> {
    iter.take(count).try_for_each(|entry| entry.map(drop))
}

const READS: [Read; 18] = [
    ("get", |tx| tx.get("d").map(drop), "d"),
    ("get of what is not there", |tx| tx.get("e").map(drop), "e"),
    ("contains_key", |tx| tx.contains_key("d").map(drop), "d"),
    ("get_many", |tx| tx.get_many(["b", "e"]).map(drop), "be"),
    ("first", |tx| tx.first().map(drop), "ab"),
    ("last", |tx| tx.last().map(drop), "hi"),
    ("iter", |tx| take(tx.iter(), 9), "abcdefghi"),
    ("range", |tx| take(tx.range("c".."f"), 9), "cdeF"),
    ("range without entries", |tx| take(tx.range("i"..), 9), "i"),
    ("range between excluded keys", |tx| take(tx.range((Bound::Excluded("b"), Bound::Excluded("d"))), 9), "cD"),
    ("prefix", |tx| take(tx.prefix("d"), 9), "dE"),
    ("two entries", |tx| take(tx.iter(), 2), "abcd"),
    ("two entries backward", |tx| take(tx.iter().rev(), 2), "fghi"),
    (
        "one entry from each end",
        |tx| {
            let mut iter = tx.range("b".."i");
            take(iter.by_ref(), 1)?;
            take(iter.rev(), 1)
        },
        "bhI",
    ),
    (
        "until the ends meet",
        |tx| {
            let mut iter = tx.range("d"..="f");
            take(iter.by_ref(), 1)?;
            take(iter.by_ref().rev(), 1)?;
            take(iter, 1)
        },
        "def",
    ),
    (
        "an iterator that is not asked",
        |tx| {
            drop(tx.iter());
            Ok(())
        },
        "",
    ),
    (
        "its own write",
        |tx| {
            tx.insert("d", "")?;
            tx.remove("e")?;
            tx.get_many(["d", "e"])?;
            tx.contains_key("d").map(drop)
        },
        "",
    ),
    (
        "its own removal of a range",
        |tx| {
            tx.remove_range("c".."g")?;
            tx.get("d")?;
            tx.get("g").map(drop)
        },
        "g",
    ),
];

/// A change of a key by another writer.
type Change = (&'static str, fn(&Db, &str));

const CHANGES: [Change; 5] = [
    ("insert", |db, key| db.insert(key, "new").unwrap()),
    ("remove", |db, key| db.remove(key).unwrap()),
    ("remove a range that begins there", |db, key| db.remove_range(key..=key).unwrap()),
    ("remove a range that begins before", |db, key| {
        let before = (key.as_bytes()[0] - 1) as char;
        db.remove_range((Bound::Excluded(format!("{before}x")), Bound::Included(key.to_owned()))).unwrap();
    }),
    ("load", |db, key| assert!(db.ingest([(key, "new")]).unwrap() > 0)),
];

/// An event between the change and the commit.
type Pass = (&'static str, fn(&Db));

const MEANWHILE: [Pass; 5] = [
    ("nothing", |_| ()),
    ("a write elsewhere", |db| db.insert("z", "").unwrap()),
    ("a flush", |db| db.flush().unwrap()),
    ("a flush and a compaction", |db| db.compact_range(..).unwrap()),
    // After the load, the record of recent writes no longer covers the change.
    ("a load elsewhere", |db| assert!(db.ingest([("z", "")]).unwrap() > 0)),
];

#[test]
fn a_commit_conflicts_with_a_change_of_what_was_read_and_with_nothing_else() {
    // Catches a phantom, an unchecked absence, an iterator whose read range is too long or too short, a removal that does not count as a change, a
    // range tombstone that is missed in memory or in a table, and writes that conflict without a read.
    let mem = MemFs::on(Disk::default());
    let db = in_memory(&mem).memtable_bytes(16 << 10).block_bytes(512).open().unwrap();
    let (mut conflicts, mut commits) = (0, 0);
    for (at, (meanwhile, pass)) in MEANWHILE.iter().enumerate() {
        for (change, write) in CHANGES {
            for key in CHANGED.map(|byte| (byte as char).to_string()) {
                for (name, read, wrong) in &READS {
                    let mut all = batch(STORED.map(|key| (key, "old")));
                    all.remove_range("i"..).unwrap();
                    ["a", "c", "e", "g"].into_iter().for_each(|key| all.remove(key).unwrap());
                    db.write(all, Durability::Buffered).unwrap();
                    let transaction = db.transaction();
                    read(&transaction).unwrap();
                    transaction.insert("own", "").unwrap();
                    write(&db, &key);
                    pass(&db);
                    // The place behind all other keys was read too.
                    let is_elsewhere = [1, 4].contains(&at)
                        && ["last", "iter", "range without entries", "two entries backward"].contains(name);
                    let begins_before = change == "remove a range that begins before";
                    let is_touched = begins_before && wrong.contains(&key.to_uppercase());
                    let is_conflict = wrong.contains(&key) || is_touched || is_elsewhere;
                    match transaction.commit(Durability::Buffered) {
                        Err(Error::Conflict { key: found, what, .. }) if is_conflict => {
                            assert!(
                                is_elsewhere || begins_before || found == key.as_bytes(),
                                "{name}, {change} {key}: {what}"
                            );
                            conflicts += 1;
                        }
                        Ok(_) if !is_conflict => commits += 1,
                        other => panic!("{name}, {change} {key}, {meanwhile}: {other:?}"),
                    }
                    assert_eq!(db.get("own").unwrap().is_some(), !is_conflict);
                    db.remove("own").unwrap();
                }
            }
        }
    }
    assert!(conflicts > 500 && commits > 1000, "{conflicts} conflicts, {commits} commits");
}

#[test]
fn write_skew_is_refused() {
    // Catches a check of only the written keys: here two transactions read each other's written keys.
    let (_dir, db) = fresh();
    db.write(batch([("x", "1"), ("y", "1")]), Durability::Buffered).unwrap();
    let (one, other) = (db.transaction(), db.transaction());
    for transaction in [&one, &other] {
        assert_eq!(pairs(transaction.iter()).len(), 2);
    }
    one.remove("x").unwrap();
    other.remove("y").unwrap();
    other.check().unwrap();
    one.commit(Durability::Buffered).unwrap();
    assert!(matches!(other.check(), Err(Error::Conflict { key, .. }) if key == b"x"));
    let Err(Error::Conflict { key, what, .. }) = other.commit(Durability::Buffered) else { panic!("write skew") };
    assert_eq!((&key[..], &*what), (&b"x"[..], "a range was read at 2, and its key \"x\" changed at 3"));
    assert_eq!(keys(&db), ["y"]);
}

#[test]
fn a_transaction_that_only_reads_or_only_writes_never_conflicts() {
    // Catches a reader that is refused although it has a consistent view, and a conflict between blind writes.
    let (_dir, db) = fresh();
    db.insert("a", "1").unwrap();
    let (reader, writer) = (db.transaction(), db.transaction());
    assert_eq!(reader.get("a").unwrap().as_deref(), Some(&b"1"[..]));
    writer.insert("a", "2").unwrap();
    db.insert("a", "3").unwrap();
    assert_eq!(reader.get("a").unwrap().as_deref(), Some(&b"1"[..]));
    assert_eq!(reader.commit(Durability::Synced).unwrap(), 1);
    assert_eq!(writer.commit(Durability::Synced).unwrap(), 3);
    assert_eq!(db.get("a").unwrap().as_deref(), Some(&b"2"[..]));
}

#[test]
fn an_old_transaction_finds_a_change_that_was_flushed_compacted_and_removed_again() {
    // Catches a compaction that drops a tombstone although an open transaction needs it to detect the change.
    let (_dir, db) = opened(|b| b.memtable_bytes(16 << 10).block_bytes(512).l0_trigger(2));
    fill(&db, 0..100, [1; 100]);
    db.compact_range(..).unwrap();
    let transaction = |key: u64| {
        let transaction = db.transaction();
        transaction.get(self::key(key)).unwrap();
        transaction.insert("own", "").unwrap();
        transaction
    };
    let (removed, in_range, absent, unchanged) = (transaction(10), transaction(20), transaction(500), transaction(30));
    db.remove(key(10)).unwrap();
    db.remove_range(key(15)..key(25)).unwrap();
    db.insert(key(500), "").unwrap();
    db.remove(key(500)).unwrap();
    for _ in 0..2 {
        db.flush().unwrap();
        db.compact_range(..).unwrap();
        fill(&db, 600..700, [1; 100]);
    }
    for (name, of) in [("removed", removed), ("removed with others", in_range), ("inserted and removed", absent)] {
        assert!(matches!(of.commit(Durability::Buffered), Err(Error::Conflict { .. })), "{name}");
    }
    unchanged.commit(Durability::Buffered).unwrap();
}

#[test]
fn a_change_while_a_commit_waits_for_room_is_found_in_the_memtable_that_it_then_freezes() {
    // Catches a check under the write lock that searches only the active memtable.
    let changes: [fn(&Db); 3] =
        [|db| db.insert("k", "").unwrap(), |db| db.remove("k").unwrap(), |db| db.remove_range("j".."l").unwrap()];
    for change in changes {
        for is_range in [false, true] {
            let (_dir, fs, db) = hooked(|b| b.memtable_bytes(64 << 10).immutable_memtables(1));
            let (arrivals, go) = fs.hold(Op::Create, ".sst", Answer::Go);
            // This write fills a memtable by itself, whose flush is held.
            db.insert("first", [0; 40 << 10]).unwrap();
            db.insert("small", "").unwrap();
            arrivals.recv().unwrap();
            let transaction = db.transaction();
            let read = if is_range { transaction.range("j".."l").count() } else { transaction.get("k").iter().count() };
            assert!(read <= 1);
            transaction.insert("second", [0; 40 << 10]).unwrap();
            thread::scope(|scope| {
                let commit = scope.spawn(|| transaction.commit(Durability::Buffered));
                wait_while(|| db.metrics().stalls == 0 && !commit.is_finished());
                change(&db);
                drop(go);
                let refused = commit.join().unwrap();
                assert!(matches!(refused, Err(Error::Conflict { .. })), "{refused:?}");
            });
            assert!(!db.contains_key("second").unwrap());
        }
    }
}
