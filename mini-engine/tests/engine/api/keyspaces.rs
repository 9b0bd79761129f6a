//! Keyspaces: separate sets of keys, which are made, listed and dropped durably.

use allocation_counter::measure;

use crate::support::*;

fn no_keyspace<T: std::fmt::Debug>(result: Result<T, Error>, expected: &str) {
    assert!(matches!(&result, Err(Error::NoKeyspace { name }) if name == expected), "{result:?}");
}

#[test]
fn pops_of_one_keyspace_leave_the_others_alone() {
    // Catches a cached end that is shared by all keyspaces.
    let (_dir, db) = fresh();
    let a = db.keyspace("a").unwrap();
    for key in ["1", "2", "3"] {
        db.insert(key, "default").unwrap();
        a.insert(key, "a").unwrap();
    }
    let pop = |space: &Keyspace| space.pop_first().unwrap().map(|(key, value)| (key.to_vec(), value.to_vec()));
    let entry = |key: &str, value: &str| Some((key.as_bytes().to_vec(), value.as_bytes().to_vec()));
    assert_eq!(pop(&a), entry("1", "a"));
    assert_eq!(pop(&a), entry("2", "a"));
    assert_eq!(pop(&db), entry("1", "default"));
    a.insert("0", "a").unwrap();
    assert_eq!(pop(&a), entry("0", "a"));
    assert_eq!(a.pop_last().unwrap().map(|entry| entry.0.to_vec()), Some(b"3".to_vec()));
    assert_eq!((pop(&a), a.pop_last().unwrap()), (None, None));
    assert_eq!(db.iter().count(), 2);
}

#[test]
fn a_dropped_keyspace_is_gone_for_every_handle_and_its_name_is_free() {
    // Catches a handle of a dropped keyspace that reads or writes a new one of the same name, and keys that come back.
    let (dir, db) = fresh();
    let old = db.keyspace("a").unwrap();
    old.insert("k", "old").unwrap();
    let (snapshot, iter) = (db.snapshot().keyspace(&old), old.iter());
    let mut batch = WriteBatch::new();
    batch.insert("k", "").unwrap();
    batch.keyspace(&old).insert("l", "").unwrap();
    db.drop_keyspace("a").unwrap();
    no_keyspace(db.drop_keyspace("a"), "a");
    assert_eq!(db.keyspaces(), [""; 0]);
    let new = db.keyspace("a").unwrap();
    for _ in 0..2 {
        no_keyspace(old.get("k"), "a");
        no_keyspace(old.get_many(["k"]), "a");
        no_keyspace(old.contains_key("k"), "a");
        no_keyspace(old.insert("k", ""), "a");
        no_keyspace(old.remove("k"), "a");
        no_keyspace(old.remove_range(..), "a");
        no_keyspace(old.compare_and_swap("k", None, None), "a");
        no_keyspace(old.ingest([("k", "")]), "a");
        no_keyspace(old.first(), "a");
        no_keyspace(old.pop_first(), "a");
        no_keyspace(old.iter().next().unwrap(), "a");
        no_keyspace(old.cursor().seek_to_first(), "a");
        no_keyspace(old.compact_range(..), "a");
        no_keyspace(old.approximate_size(), "a");
        no_keyspace(snapshot.get("k"), "a");
        no_keyspace(db.snapshot().keyspace(&old).iter().next().unwrap(), "a");
        no_keyspace(db.write(&batch, Durability::Buffered), "a");
        no_keyspace(db.try_write(&batch, Durability::Buffered), "a");
        assert_eq!((new.iter().count(), db.iter().count()), (0, 0));
        new.insert("n", "new").unwrap();
        db.flush().unwrap();
        db.compact().unwrap();
        new.remove("n").unwrap();
    }
    assert_eq!(pairs(iter), [(b"k".to_vec(), b"old".to_vec())]);
    new.insert("n", "new").unwrap();
    drop((old, new, snapshot));
    let db = reopened(db, &dir);
    assert_eq!(pairs(db.keyspace("a").unwrap().iter()), [(b"n".to_vec(), b"new".to_vec())]);
}

#[test]
fn a_handle_of_another_database_is_refused() {
    // Catches a batch with a keyspace of another database that writes into the keyspace of the same number here.
    let ((_dir, db), (_other_dir, other)) = (fresh(), fresh());
    let (_here, there) = (db.keyspace("a").unwrap(), other.keyspace("a").unwrap());
    let mut batch = WriteBatch::new();
    batch.keyspace(&there).insert("k", "").unwrap();
    for result in [db.write(&batch, Durability::Buffered).map(drop), db.snapshot().keyspace(&there).get("k").map(drop)]
    {
        assert!(matches!(result, Err(Error::InvalidArgument(_))), "{result:?}");
    }
    other.write(&batch, Durability::Buffered).unwrap();
}

#[test]
fn names_are_listed_and_kept_and_bad_ones_refused() {
    // Catches a name that a later open does not find, and an accepted name that cannot be stored.
    let (dir, db) = fresh();
    let long = "n".repeat(255);
    for name in ["b", "a", "\n", &long, "b"] {
        db.keyspace(name).unwrap();
    }
    for name in ["", &"n".repeat(256)] {
        assert!(matches!(db.keyspace(name), Err(Error::InvalidArgument(_))));
    }
    db.drop_keyspace("a").unwrap();
    assert_eq!(db.keyspaces(), ["\n", "b", &long]);
    let db = reopened(db, &dir);
    assert_eq!(db.keyspaces(), ["\n", "b", &long]);
    drop(db);
    let db = Db::builder(dir.path()).read_only(true).open().unwrap();
    assert_eq!(db.keyspace("b").unwrap().iter().count(), 0);
    no_keyspace(db.keyspace("a"), "a");
    assert!(matches!(db.drop_keyspace("b"), Err(Error::ReadOnly { .. })));
    let other = KeyspaceOptions::default().compression(Compression::None);
    assert!(matches!(db.keyspace_with("b", other), Err(Error::ReadOnly { .. })));
}

#[test]
fn a_handle_keeps_the_database_open_and_a_close_ends_it() {
    // Catches workers that end while a handle of a keyspace can still write.
    let (_dir, db) = opened(|builder| builder.memtable_bytes(4096));
    let a = db.keyspace("a").unwrap();
    let again = db.clone();
    drop(db);
    for n in 0..200 {
        a.insert(key(n), [0; 100]).unwrap();
    }
    assert_eq!(a.iter().count(), 200);
    again.close().unwrap();
    assert!(matches!(a.get("k"), Err(Error::Closed)));
    assert!(matches!(a.insert("k", ""), Err(Error::Closed)));
}

#[test]
fn rule_15_keys_and_values_past_their_limits_are_invalid_arguments_in_every_keyspace() {
    // Catches a stored key longer than a table allows, so that each flush fails, and a prefix that shortens the longest allowed key; also in
    // transactions. Also catches a length that is cut off when it is encoded, and a part of a refused write that is written.
    let (dir, db) = fresh();
    let a = db.keyspace("a").unwrap();
    let longest = [b'k'; MAX_KEY_LEN];
    a.insert(longest, "v").unwrap();
    a.remove_range(longest..).unwrap();
    db.transact(|tx| tx.keyspace(&a).insert(longest, "in a transaction")).unwrap();
    db.transact(|tx| tx.keyspace(&a).remove(longest)).unwrap();
    a.compare_and_swap(longest, None, Some(b"swapped")).unwrap().unwrap();
    assert!(a.set_expiry(longest, a.now() + std::time::Duration::from_secs(3600)).unwrap());
    a.insert(longest, "w").unwrap();
    let written = db.snapshot().seqno();
    let past = [(&a, &[b'k'; MAX_KEY_LEN + 1][..]), (&*db, &[0xff; MAX_KEY_LEN + 1]), (&*db, &[0; MAX_KEY_LEN + 1])];
    for (space, key) in past {
        for refused in
            [space.insert(key, ""), space.remove(key), space.remove_range(key..), space.ingest([(key, "")]).map(drop)]
        {
            assert!(matches!(refused, Err(Error::InvalidArgument(_))), "{refused:?}");
        }
        assert_eq!(space.get(key).unwrap(), None);
    }
    assert!(matches!(db.insert("k", vec![0; MAX_VALUE_LEN + 1]), Err(Error::InvalidArgument(_))));
    assert_eq!((db.snapshot().seqno(), db.iter().count()), (written, 0));
    db.insert([0xff; MAX_KEY_LEN], "v").unwrap();
    assert!(!db.contains_key([0xff; MAX_KEY_LEN - 1]).unwrap());
    drop(a);
    let db = reopened(db, &dir);
    db.flush().unwrap();
    assert_eq!(db.keyspace("a").unwrap().get(longest).unwrap().as_deref(), Some(&b"w"[..]));
    assert_eq!(db.last().unwrap().map(|entry| entry.0.len()), Some(MAX_KEY_LEN));
}

/// Writes `entries` incompressible entries of a hundred bytes.
fn fill_keyspace(space: &Keyspace, entries: u64) {
    let mut random = Random(entries);
    for n in 0..entries {
        let value: Vec<u8> = (0..100).map(|_| random.next() as u8).collect();
        space.insert(key(n), value).unwrap();
    }
}

#[test]
fn the_space_of_a_dropped_keyspace_comes_back_without_a_read_whatever_snapshots_there_are() {
    // Catches tables with keys of several keyspaces, and tables of a dropped keyspace that stay, are rewritten, or are kept by a snapshot.
    for policy in POLICIES {
        let (_dir, db) = opened(|builder| {
            let builder = builder.memtable_bytes(8 << 10).table_file_bytes(16 << 10).level1_bytes(64 << 10);
            builder.compaction(policy).compression(Compression::None)
        });
        let spaces = ["a", "b", "c"].map(|name| db.keyspace(name).unwrap());
        spaces.iter().for_each(|space| fill_keyspace(space, 2000));
        db.compact().unwrap();
        let (before, read) = (table_bytes(&db), db.metrics().compaction_bytes_read);
        let snapshot = db.snapshot();
        db.drop_keyspace("b").unwrap();
        db.wait_for_compactions().unwrap();
        let after = table_bytes(&db);
        assert!((before * 2 / 3..before * 3 / 4).contains(&after), "{policy:?}: {before} bytes, then {after}");
        assert_eq!(db.metrics().compaction_bytes_read, read, "{policy:?}");
        db.compact().unwrap();
        let least = table_bytes(&db);
        assert!(least < before * 67 / 100, "{policy:?}: {before} bytes, {after}, then {least}");
        for space in [&spaces[0], &spaces[2]] {
            assert_eq!((space.iter().count(), snapshot.keyspace(space).iter().count()), (2000, 2000));
        }
        assert_sound(&db);
    }
}

#[test]
fn a_drop_that_a_close_interrupts_is_completed_after_the_next_open() {
    // Catches tables of a dropped keyspace that are never removed once the dropping process has ended, and keys of it in the log that are flushed.
    let (dir, db) = opened(|builder| builder.memtable_bytes(8 << 10));
    let a = db.keyspace("a").unwrap();
    fill_keyspace(&a, 500);
    db.compact().unwrap();
    a.insert("in the log", "only").unwrap();
    let left = copy(dir.path());
    // The manifest after the drop, together with all tables from before.
    db.drop_keyspace("a").unwrap();
    for name in files(dir.path(), "") {
        if name.starts_with("MANIFEST") || name == "CURRENT" {
            fs::copy(dir.path().join(&name), left.path().join(&name)).unwrap();
        }
    }
    let db = Db::builder(left.path()).open().unwrap();
    db.flush().unwrap();
    db.wait_for_compactions().unwrap();
    assert_eq!((table_bytes(&db), db.metrics().compaction_bytes_read), (0, 0));
    assert!(db.recovery().batches_replayed > 0);
}

#[test]
fn blocks_of_a_keyspace_have_its_compression() {
    // Catches a block with keys of two keyspaces, and options of a keyspace that are lost or that affect others.
    let (dir, db) = opened(|builder| builder.compression(Compression::None));
    let zstd = KeyspaceOptions::default().compression(Compression::Zstd { level: 1 });
    let (plain, dense) = (db.keyspace("plain").unwrap(), db.keyspace_with("dense", zstd.clone()).unwrap());
    for n in 0..500 {
        [&db, &plain, &dense].iter().for_each(|space: &&Keyspace| space.insert(key(n), [b'v'; 100]).unwrap());
    }
    db.flush().unwrap();
    let compressed = || {
        let blocks = blocks(&newest_table(dir.path()));
        let small = blocks.iter().filter(|(_, len)| *len < 1000).count();
        (small, blocks.len() - small)
    };
    let (small, large) = compressed();
    assert!(small > 5 && large > 2 * small - 4, "{small} blocks are small, {large} are not");
    assert!(matches!(
        db.keyspace_with("dense", KeyspaceOptions::default().compression(Compression::Zstd { level: 99 })),
        Err(Error::InvalidArgument(_))
    ));
    drop((plain, dense, db));
    let db = Db::builder(dir.path()).compression(Compression::None).open().unwrap();
    db.keyspace("dense").unwrap();
    db.keyspace_with("plain", zstd).unwrap();
    db.compact().unwrap();
    let (small, large) = compressed();
    assert!(small > 2 * large - 4 && large > 5, "{small} blocks are small, {large} are not");
    for name in ["plain", "dense"] {
        assert_eq!(db.keyspace(name).unwrap().iter().count(), 500);
    }
}

#[test]
fn the_size_of_a_keyspace_is_that_of_its_part_of_the_tables() {
    // Catches a size of a keyspace that includes its neighbours or all of a shared table, or that omits tables in between.
    let (_dir, db) = opened(|builder| builder.compression(Compression::None).memtable_bytes(64 << 10));
    let spaces = [
        (&*db, 300),
        (&db.keyspace("a").unwrap(), 1000),
        (&db.keyspace("empty").unwrap(), 0),
        (&db.keyspace("c").unwrap(), 30),
    ];
    let check = || {
        for (space, entries) in spaces {
            let size = space.approximate_size().unwrap();
            // An entry has some 120 bytes, and a block 4 KiB.
            let near = |found: u64, expected: u64, slack: u64| found.abs_diff(expected) <= expected / 8 + slack;
            assert!(
                near(size.entries, entries, 40) && near(size.bytes, entries * 122, 6000),
                "{}: {size:?}",
                space.name()
            );
        }
    };
    spaces.iter().for_each(|(space, entries)| fill_keyspace(space, *entries));
    db.flush().unwrap();
    check();
    db.compact().unwrap();
    check();
}

#[test]
fn making_and_dropping_a_keyspace_costs_hardly_more_among_ten_thousand() {
    // Catches an edit that copies a whole map of keyspaces (by name, by number, or of separate compressions): many keyspaces would take time
    // quadratic in their number.
    let fs = FaultFs::of_system();
    fs.answer_where(Answer::Pretend, |_| true);
    let (_dir, db) = opened(|builder| builder.file_system(fs.arc()));
    let options = || KeyspaceOptions::default().compression(Compression::Lz4);
    // The median of many, because a new manifest, which sometimes begins, writes all keyspaces.
    let median = |step: &dyn Fn(String)| {
        let mut bytes: Vec<u64> = (0..33).map(|n| measure(|| step(format!("of many {n}"))).bytes_total).collect();
        bytes.sort_unstable();
        bytes[bytes.len() / 2]
    };
    let costs = || {
        let made = median(&|name| drop(db.keyspace_with(&name, options()).unwrap()));
        [made, median(&|name| db.drop_keyspace(&name).unwrap())]
    };
    let few = costs();
    (0..10_000).for_each(|n| drop(db.keyspace_with(&format!("{n:05}"), options()).unwrap()));
    let many = costs();
    for (few, many) in few.into_iter().zip(many) {
        assert!(many < 4 * few, "{many} bytes are allocated among ten thousand keyspaces, {few} among a few");
    }
}
