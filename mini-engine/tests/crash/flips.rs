//! Damage to the files of a small database, which is then opened without the damaged files. `tests/engine/formats/damaged.rs` compares a
//! strict open with the independent reader, with damage at each byte.

use crate::prelude::*;
use proof::damage::{Damage, files, is_typed};
use proof::environment::step;

const WRITES: usize = 24;
/// The last write that later frames record as synced.
const SYNCED: usize = 22;

fn open(mem: &MemFs) -> Result<Db, Error> {
    builder(mem).open()
}

fn builder(mem: &MemFs) -> Builder {
    let builder = Db::builder(DIR).memtable_bytes(64 << 10).block_bytes(512).partition_bytes(128).l0_trigger(100);
    builder.file_system(Arc::new(mem.clone()))
}

fn write(map: &mut Map, n: usize, padding: usize) -> WriteBatch {
    let mut batch = WriteBatch::new();
    let (key, gone) = (format!("key{}", n % 7).into_bytes(), format!("key{}", (n + 3) % 7).into_bytes());
    let value = format!("value {n} of {}{}", key.escape_ascii(), ".".repeat(padding)).into_bytes();
    batch.insert(&key, &value).unwrap();
    map.insert(key, value);
    if n.is_multiple_of(3) {
        batch.remove(&gone).unwrap();
        map.remove(&gone);
    }
    batch
}

/// Whether the log is in a new file, or in the reused file of another log whose frames are behind its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Log {
    Fresh,
    Recycled,
}

/// A database with two tables, a manifest with an edit for each, and a log that records a sync and goes on after it. The
/// states after each number of writes.
fn database(log: Log) -> (Disk, Vec<Map>) {
    let mem = MemFs::default();
    let db = open(&mem).unwrap();
    let mut states = vec![Map::new()];
    for n in 1..=WRITES {
        let mut map = states[n - 1].clone();
        // The engine reuses the file of a synced log.
        let is_previous = log == Log::Recycled && n <= 8;
        // The previous log is so long that some of its frames are left. Also, no frame of the other log begins where 512 zeros do, since zeros
        // from the end of a frame on count as unused space.
        let padding = match log {
            Log::Fresh => 0,
            Log::Recycled if is_previous => 300,
            Log::Recycled => 80,
        };
        let durability = if n == SYNCED || is_previous { Durability::Synced } else { Durability::Buffered };
        db.write(write(&mut map, n, padding), durability).unwrap();
        states.push(map);
        if n == 8 || n == 16 {
            db.flush().unwrap();
        }
        wait_while(|| is_previous && n == 8 && !mem.exists(&Path::new(DIR).join("SPARE")).unwrap());
    }
    assert_eq!(db.metrics().wal_recycled, u64::from(log == Log::Recycled));
    drop(db);
    (mem.disk(), states)
}

/// Opens the database, which quarantines damaged files. Checks that every read is refused, or right after some number of writes (at least those
/// before the damage to a log). An earlier read-only open and the next open, a strict one, must agree. Returns whether a table was quarantined.
fn quarantined(disk: &Disk, path: &Path, damage: Damage, states: &[Map]) -> bool {
    let context = || format!("{} with {damage:?}", path.display());
    let mem = damage.to(disk, path);
    let is_log = path.extension().is_some_and(|kind| kind == "log");
    let builder = builder(&mem).recovery_mode(RecoveryMode::Quarantine);
    mem.record();
    let shown = builder.clone().read_only(true).open().map(|db| read_each(&db)).ok();
    assert_eq!(mem.take_record().len(), 0, "{}: a read-only open wrote", context());
    let opened = builder.open();
    assert_eq!(shown.is_some(), opened.is_ok(), "{}: read-only {shown:?}", context());
    let db = match opened {
        Ok(db) => db,
        Err(error) => {
            let may_be = path.extension().is_none() || matches!(error, Error::UnsupportedVersion { .. });
            assert!(is_typed(&error, DIR) && may_be, "{}: {error}", context());
            return false;
        }
    };
    let given_up = !db.quarantined().is_empty();
    let first = read_each(&db);
    assert_eq!(shown.as_ref(), Some(&first), "{}: a read-only open, another answer", context());
    drop(db);
    let db = open(&mem).unwrap_or_else(|error| panic!("{}: strict after it: {error}", context()));
    assert_eq!(first, read_each(&db), "{}: another open, another answer", context());
    let agrees = |state: &&Map| {
        first.iter().all(|(key, found)| found.as_ref().is_none_or(|found| found.as_ref() == state.get(key)))
    };
    assert!(states.iter().rev().any(|state| agrees(&state)), "{}: silently wrong: {first:?}", context());
    assert!(is_log || agrees(&&states[WRITES]), "{}: an older value: {first:?}", context());
    given_up
}

/// The result of a point read of each key: a value, none, or a refusal (`None`).
fn read_each(db: &Db) -> BTreeMap<Vec<u8>, Option<Option<Vec<u8>>>> {
    let read = |n: u64| {
        let key = format!("key{n}").into_bytes();
        let found = match db.get(&key) {
            Ok(found) => Some(found.map(|value| value.to_vec())),
            Err(error) => {
                assert!(is_typed(&error, DIR), "{error}");
                None
            }
        };
        (key, found)
    };
    (0..7).map(read).collect()
}

#[test]
fn rule_10_an_open_that_quarantines_shows_no_older_value_whatever_byte_is_damaged() {
    // Catches a damaged table that is silently left out of the version, and damage that still makes everything else unreadable.
    let mut given_up = 0;
    for log in [Log::Fresh, Log::Recycled] {
        let (disk, states) = database(log);
        for (path, len) in files(&disk, DIR) {
            for damage in (0..len).step_by(3 * step(3)).flat_map(|at| [Damage::Flip(at), Damage::Cut(at)]) {
                given_up += u64::from(quarantined(&disk, &path, damage, &states));
            }
        }
    }
    assert!(given_up * step(3) as u64 > 100, "{given_up} tables were given up");
}
