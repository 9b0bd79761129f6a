//! Retained versions and files: a snapshot retains the versions that it sees, an iterator retains the files of its view, and neither retains both.

use crate::support::*;

const KEYS: u32 = 200;
const VALUE_LEN: usize = 4000;
/// Bytes of keys and values.
const DATA: u64 = KEYS as u64 * (VALUE_LEN as u64 + 4);
/// Bytes of filters, indexes and ends of blocks.
const OVERHEAD: u64 = DATA / 10;

/// Compactions on request only.
fn quiet(dir: &TempDir) -> Builder {
    Db::builder(dir.path()).l0_trigger(1000).l0_slowdown(1000).l0_stop(1000).table_file_bytes(100_000)
}

/// Incompressible bytes, which differ in each round.
fn value(key: u32, round: u32) -> Vec<u8> {
    proof::noise(VALUE_LEN, u64::from(key) << 32 | u64::from(round))
}

fn overwrite_all(db: &Db, round: u32) {
    for key in 0..KEYS {
        db.insert(key.to_be_bytes(), value(key, round)).unwrap();
    }
    flush_to_the_end(db);
    db.compact_range(..).unwrap();
}

/// Waits until the files take no more than this: a thread of another test may be pinned, and delay their removal for a moment.
#[cfg(target_os = "linux")]
fn settle(dir: &TempDir, bytes: u64) {
    wait_while(|| held_bytes(dir) > bytes);
}

/// Bytes of tables of `dir` that take space: with a name, or unlinked but open in this process.
#[cfg(target_os = "linux")]
fn held_bytes(dir: &TempDir) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let named = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path());
    let named = named.filter(|path| path.extension().is_some_and(|kind| kind == "sst"));
    let open = std::fs::read_dir("/proc/self/fd").unwrap().map(|entry| entry.unwrap().path());
    // Another test may close its handle meanwhile.
    let unlinked = open.filter(|fd| {
        let target = std::fs::read_link(fd).unwrap_or_default();
        target.starts_with(dir.path()) && target.to_string_lossy().ends_with(".sst (deleted)")
    });
    // A file may be removed meanwhile.
    let files = named.chain(unlinked).filter_map(|path| match std::fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        found => Some(found.unwrap()),
    });
    let files: BTreeMap<u64, u64> = files.map(|file| (file.ino(), file.len())).collect();
    files.values().sum()
}

fn is_round(iter: Iter, round: u32) -> bool {
    let entries: Vec<_> = iter.map(Result::unwrap).collect();
    let expected = |key: u32| (key.to_be_bytes().to_vec(), value(key, round));
    entries.len() == KEYS as usize
        && entries.iter().zip(0..).all(|((key, value), n)| (key.to_vec(), value.to_vec()) == expected(n))
}

#[cfg(target_os = "linux")]
#[test]
fn a_snapshot_keeps_the_versions_that_it_sees_and_no_file() {
    // Catches a snapshot that also pins the files that existed when it was taken: their space would be taken twice.
    let dir = TempDir::new().unwrap();
    let db = quiet(&dir).open().unwrap();
    overwrite_all(&db, 0);
    let snapshot = db.snapshot();
    for round in 1..6 {
        overwrite_all(&db, round);
        settle(&dir, table_bytes(&db));
        let (live, held) = (table_bytes(&db), held_bytes(&dir));
        assert_eq!(held, live, "round {round}: files that no version names are kept");
        assert!((2 * DATA..=2 * (DATA + OVERHEAD)).contains(&live), "round {round}: {live}");
    }
    assert!(is_round(snapshot.iter(), 0) && is_round(db.iter(), 5));
    drop(snapshot);
    overwrite_all(&db, 6);
    settle(&dir, table_bytes(&db));
    assert!(table_bytes(&db) <= DATA + OVERHEAD && held_bytes(&dir) == table_bytes(&db));
}

#[cfg(target_os = "linux")]
#[test]
fn an_idle_iterator_keeps_its_files_and_no_versions() {
    // Catches an iterator whose sequence number is also registered: every compaction would write its versions again.
    let dir = TempDir::new().unwrap();
    let db = quiet(&dir).open().unwrap();
    overwrite_all(&db, 0);
    let snapshot = db.snapshot();
    let mut iters = [db.iter(), snapshot.iter()];
    drop(snapshot);
    for iter in &mut iters {
        assert_eq!(&*iter.next().unwrap().unwrap().0, 0u32.to_be_bytes());
    }
    for round in 1..6 {
        overwrite_all(&db, round);
        settle(&dir, 2 * (DATA + OVERHEAD));
        let (live, held) = (table_bytes(&db), held_bytes(&dir));
        assert!(live <= DATA + OVERHEAD, "round {round}: {live}: versions are kept that no snapshot sees");
        assert!(held <= 2 * (DATA + OVERHEAD), "round {round}: {held}");
    }
    for mut iter in iters {
        assert!((1..KEYS).all(|key| *iter.next().unwrap().unwrap().1 == *value(key, 0)));
        assert!(iter.next().is_none());
    }
    overwrite_all(&db, 6);
    settle(&dir, table_bytes(&db));
    assert_eq!(held_bytes(&dir), table_bytes(&db));
}

#[test]
fn metrics_tell_the_age_of_the_oldest_snapshot_or_iterator() {
    // Catches an age that includes ended snapshots or iterators, and a missing age for an iterator that retains files.
    let (_dir, db) = fresh();
    let age = || db.metrics().oldest_view_age;
    assert_eq!(age(), None);
    let kept: [&dyn Fn() -> Box<dyn std::any::Any>; 3] =
        [&|| Box::new(db.snapshot()), &|| Box::new(db.iter()), &|| Box::new(db.cursor())];
    for take in kept {
        let first = take();
        let begun = Instant::now();
        let second = take();
        // The first view is older than this moment, the second one younger.
        let elapsed = begun.elapsed();
        assert!(age().is_some_and(|age| age >= elapsed));
        drop(first);
        assert!(age().is_some_and(|age| age <= begun.elapsed()));
        drop(second);
        assert_eq!(age(), None);
    }
}

/// The key and the value of write `n`, counted from 0, which has sequence number `n + 1`; no value for a removal.
fn write(n: u64) -> (u64, Option<u64>) {
    (n.wrapping_mul(7) % 64, (n % 11 != 10).then_some(n))
}

/// The expected contents of a snapshot at `seqno`.
fn model(seqno: u64) -> BTreeMap<u64, u64> {
    let mut map = BTreeMap::new();
    // Each key is written at least once in the last 64 * 11 writes.
    for (key, value) in (seqno.saturating_sub(64 * 11)..seqno).map(write) {
        match value {
            Some(value) => drop(map.insert(key, value)),
            None => drop(map.remove(&key)),
        }
    }
    map
}

fn check(snapshot: &Snapshot) {
    let number = |bytes: &[u8]| u64::from_be_bytes(bytes.try_into().unwrap());
    let expected = model(snapshot.seqno());
    let found = |iter: Iter| -> BTreeMap<u64, u64> {
        iter.map(Result::unwrap).map(|(key, value)| (number(&key), number(&value))).collect()
    };
    let mut iter = snapshot.iter();
    let first = iter.next().map(|entry| number(&entry.unwrap().0));
    assert_eq!(found(snapshot.iter()), expected, "a scan at {}", snapshot.seqno());
    let keys: Vec<[u8; 8]> = (0..64u64).map(u64::to_be_bytes).collect();
    let many = snapshot.get_many(&keys).unwrap();
    for (key, value) in keys.iter().zip(many) {
        let one = snapshot.get(key).unwrap();
        let expected = expected.get(&number(key)).copied();
        assert_eq!((one.map(|one| number(&one)), value.map(|value| number(&value))), (expected, expected));
    }
    // An iterator continues at its position, even after compactions.
    assert_eq!(first, expected.keys().next().copied());
    assert_eq!(found(iter), expected.into_iter().skip(1).collect());
}

#[test]
fn a_snapshot_shows_every_write_up_to_its_number_and_none_after_whatever_is_compacted() {
    // Catches a flush or a compaction that drops a version which a snapshot sees: it missed the snapshot's sequence number, or the snapshot
    // was registered while it ran. Also catches a sequence number that includes an invisible write.
    let dir = TempDir::new().unwrap();
    let db = Db::builder(dir.path()).memtable_bytes(4096).l0_trigger(2).block_bytes(512).table_file_bytes(2048);
    let db = db.level1_bytes(4096).size_ratio(2).open().unwrap();
    let busy = AtomicU64::new(1);
    thread::scope(|scope| {
        let (db, busy) = (&db, &busy);
        scope.spawn(move || {
            for n in 0..30_000 {
                match write(n) {
                    (key, Some(value)) => db.insert(key.to_be_bytes(), value.to_be_bytes()).unwrap(),
                    (key, None) => db.remove(key.to_be_bytes()).unwrap(),
                }
            }
            busy.store(0, Ordering::SeqCst);
        });
        scope.spawn(move || {
            while busy.load(Ordering::SeqCst) > 0 {
                db.compact_range(10u64.to_be_bytes()..50u64.to_be_bytes()).unwrap();
            }
        });
        for kept in [1, 5] {
            scope.spawn(move || {
                let mut snapshots: Vec<Snapshot> = Vec::new();
                let mut rounds = 0;
                while rounds < 20 || busy.load(Ordering::SeqCst) > 0 {
                    snapshots.push(db.snapshot());
                    snapshots.iter().for_each(check);
                    if snapshots.len() > kept {
                        snapshots.remove(rounds % kept);
                    }
                    rounds += 1;
                }
            });
        }
    });
    assert!(db.metrics().compactions > 20 && db.metrics().flushes > 20, "{:?}", db.metrics());
    check(&db.snapshot());
    assert_eq!(db.metrics().oldest_view_age, None);
}
