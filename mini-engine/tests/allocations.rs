//! Reads of cached data do not allocate for each entry. The tests count allocations, so that an extra copy or box fails a test. A pinned reader may free what
//! another database has retired, and allocate for that, so these tests have a process of their own and take turns.

use std::sync::Mutex;

use allocation_counter::measure;
use mini_engine::{Compression, Db, Durability, WriteBatch};

static TURN: Mutex<()> = Mutex::new(());

const ENTRIES: u64 = 10_000;
const VALUE: [u8; 100] = [7; 100];

/// A key of 16 bytes, which a slice stores inline.
fn key(n: u64) -> [u8; 16] {
    let mut key = *b"user/---/-------";
    key[8..].copy_from_slice(&n.to_be_bytes());
    key
}

/// The place of the entries: all in the memtable, in two runs and a memtable, or in one run.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    Memtable,
    Spread,
    Run,
}

const PLACES: [Place; 3] = [Place::Memtable, Place::Spread, Place::Run];

/// A database whose blocks are all in the cache.
fn database(dir: &std::path::Path, place: Place) -> Db {
    let db = Db::builder(dir).compression(Compression::None).open().unwrap();
    for part in 0..3 {
        let mut batch = WriteBatch::new();
        (0..ENTRIES).filter(|n| n % 3 == part).for_each(|n| batch.insert(key(n), VALUE).unwrap());
        db.write(batch, Durability::Buffered).unwrap();
        if place == Place::Run || place == Place::Spread && part < 2 {
            db.flush().unwrap();
        }
    }
    if place == Place::Run {
        db.compact_range(..).unwrap();
    }
    assert_eq!(db.iter().map(Result::unwrap).count() as u64, ENTRIES);
    assert!((0..ENTRIES).all(|n| db.get(key(n)).unwrap().is_some()));
    db
}

/// Counts allocations of a scan, and of a scan of twice the distance. The difference is the allocations for entries, without those for the start
/// and the buffers.
fn difference(mut scan: impl FnMut(usize)) -> u64 {
    let [once, twice] = [2000, 4000].map(|entries| measure(|| scan(entries)).count_total);
    twice - once
}

#[test]
fn a_cursor_allocates_nothing_an_entry_and_little_at_its_start() {
    // Catches a key or a value that is copied by a lending step, and sources or buffers that are made again for each block.
    let _turn = TURN.lock();
    for place in PLACES {
        let dir = proof::TempDir::new().unwrap();
        let db = database(dir.path(), place);
        let scan = |entries| {
            let mut cursor = db.cursor();
            cursor.seek(key(17)).unwrap();
            (0..entries).for_each(|_| cursor.advance().unwrap());
            assert_eq!(cursor.key(), key(17 + entries as u64));
        };
        assert_eq!(difference(scan), 0, "{place:?}");
        let start = measure(|| scan(100)).count_total;
        assert!(start <= 12, "{start} allocations at the start of a scan: {place:?}");
    }
}

#[test]
fn an_iterator_allocates_at_most_once_an_entry() {
    // Catches separate copies of key and value, and allocations for the back end of an iterator that only goes forward.
    let _turn = TURN.lock();
    for (place, most) in PLACES.into_iter().zip([2000, 2000, 0]) {
        let dir = proof::TempDir::new().unwrap();
        let db = database(dir.path(), place);
        let scan = |entries| assert_eq!(db.range(key(17)..).take(entries).map(Result::unwrap).count(), entries);
        let allocated = difference(scan);
        assert!(allocated <= most, "{allocated} for 2000 entries: {place:?}");
        let start = measure(|| scan(1)).count_total;
        assert!(start <= 12, "{start} allocations at the start of a scan: {place:?}");
        let back =
            |entries| assert_eq!(db.range(..key(9_000)).rev().take(entries).map(Result::unwrap).count(), entries);
        let allocated = difference(back);
        assert!(allocated <= most, "{allocated} for 2000 entries backward: {place:?}");
    }
}

#[test]
fn a_get_of_a_cached_block_allocates_only_the_copy_of_a_short_value() {
    // Catches a value that is copied more than once, and a path or a guard that is allocated although no file is read.
    let _turn = TURN.lock();
    let dir = proof::TempDir::new().unwrap();
    let db = database(dir.path(), Place::Run);
    let gets = |found: bool| {
        let start = if found { 0 } else { ENTRIES };
        measure(|| (start..start + 1000).for_each(|n| assert_eq!(db.get(key(n)).unwrap().is_some(), found))).count_total
    };
    assert_eq!((gets(true), gets(false)), (1000, 0));
}

#[test]
fn a_put_allocates_nothing_and_calls_the_system_once_in_twenty_at_most() {
    // Catches an allocated batch or list of writers for each put, and a log that is written by system calls.
    let _turn = TURN.lock();
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let db = Db::open(dir.path()).unwrap();
    let puts = |from: u64| (from..from + ENTRIES).for_each(|n| db.insert(key(n), VALUE).unwrap());
    // The first log after an open is not mapped from its beginning.
    puts(0);
    let before = db.metrics().wal_writes;
    let allocated = measure(|| puts(ENTRIES)).count_total;
    // The memtable's index allocates when it splits a block, about once in 17 puts.
    assert!(allocated <= ENTRIES / 10, "{allocated} allocations for {ENTRIES} puts");
    let calls = db.metrics().wal_writes - before;
    let is_mapped = calls < ENTRIES;
    // If the file system cannot map files, each put is one system call; two would be too many.
    assert!(calls <= if is_mapped { ENTRIES / 20 } else { ENTRIES }, "{calls} calls for {ENTRIES} puts");
}
