//! Damage to every byte of every file of a small database: it is reported, or it does no harm.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mini_engine::fs::{Disk, FileSystem, MemFs};
use mini_engine::{Db, Durability, Error, RecoveryMode, WriteBatch};

use crate::run::DIR;

const WRITES: usize = 24;
/// The last write that is known to have been synced, since later ones say so.
const SYNCED: usize = 22;

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

#[derive(Clone, Copy, Debug)]
enum Damage {
    Flip {
        at: usize,
        bit: u32,
    },
    /// To this length.
    Cut(usize),
    /// From here for 512 bytes.
    Zeros(usize),
}

impl Damage {
    fn of(self, mut bytes: Vec<u8>) -> Vec<u8> {
        match self {
            Damage::Flip { at, bit } => bytes[at] ^= 1 << bit,
            Damage::Cut(len) => bytes.truncate(len),
            Damage::Zeros(at) => {
                let end = bytes.len().min(at + 512);
                bytes[at..end].fill(0);
            }
        }
        bytes
    }
}

fn open(mem: &MemFs) -> Result<Db, Error> {
    let builder = Db::builder(DIR).memtable_bytes(64 << 10).block_bytes(512).partition_bytes(128).l0_trigger(100);
    builder.file_system(Arc::new(mem.clone())).open()
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

/// Whether the log stands in a file of its own, or in that of another log whose frames are behind its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Log {
    Fresh,
    Recycled,
}

const LOGS: [Log; 2] = [Log::Fresh, Log::Recycled];

/// Two tables, a manifest with an edit for each, and a log that records a sync and goes on after it. The states after each
/// number of writes.
fn database(log: Log) -> (Disk, Vec<Map>) {
    let mem = MemFs::default();
    let db = open(&mem).unwrap();
    let mut states = vec![Map::new()];
    for n in 1..=WRITES {
        let mut map = states[n - 1].clone();
        // The file of a log that was synced is used again.
        let is_previous = log == Log::Recycled && n <= 8;
        // So long that frames of the previous log are left; and no frame of the other begins where 512 zeros do: zeros from the
        // end of a frame on are space that was not used.
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
        while is_previous && n == 8 && !mem.exists(&Path::new(DIR).join("SPARE")).unwrap() {
            std::thread::yield_now();
        }
    }
    assert_eq!(db.metrics().wal_recycled, u64::from(log == Log::Recycled));
    drop(db);
    (mem.disk(), states)
}

/// What `db` holds, or the typed error that reading it meets. Every single read must be right or fail.
fn read(db: &Db, states: &[Map]) -> Result<Map, Error> {
    let mut first_error = None;
    let mut found = Map::new();
    for entry in db.iter() {
        match entry {
            Ok((key, value)) => drop(found.insert(key.to_vec(), value.to_vec())),
            Err(error) => first_error = Some(error),
        }
    }
    for n in 0..7 {
        let key = format!("key{n}").into_bytes();
        match db.get(&key) {
            // A part of the keys may be readable where others are not.
            Ok(value) if first_error.is_some() => {
                assert_eq!(value.as_deref(), states[WRITES].get(&key).map(Vec::as_slice), "{n} is wrong");
            }
            Ok(value) => assert_eq!(value.as_deref(), found.get(&key).map(Vec::as_slice), "{n} differs from a scan"),
            Err(error) => first_error = Some(error),
        }
    }
    first_error.map_or(Ok(found), Err)
}

fn is_typed(error: &Error) -> bool {
    match error {
        Error::Corruption { file, .. } | Error::UnsupportedVersion { file, .. } => file.starts_with(DIR),
        _ => false,
    }
}

/// What damage led to.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    Refused,
    Reported,
    /// Writes that were never recorded as synced are missing, and the report of recovery says so.
    Torn,
    /// Of a log cut between two writes nothing can tell that there were more.
    Shorter,
    Harmless,
}

fn outcome(disk: &Disk, path: &Path, damage: Damage, states: &[Map]) -> Outcome {
    let context = || format!("{} with {damage:?}", path.display());
    let mem = MemFs::on(disk.clone());
    let bytes = damage.of(disk.read(path).unwrap().to_vec());
    let file = mem.open_write(path).unwrap();
    file.truncate(0).unwrap();
    file.write_all_at(&bytes, 0).unwrap();
    let db = match open(&mem) {
        Ok(db) => db,
        Err(error) => {
            assert!(is_typed(&error), "{}: {error}", context());
            return Outcome::Refused;
        }
    };
    let problems = db.verify().unwrap().problems;
    assert!(problems.iter().all(is_typed), "{}: {problems:?}", context());
    let found = match read(&db, states) {
        Ok(found) => found,
        Err(error) => {
            assert!(is_typed(&error) && !problems.is_empty(), "{}: {error}, {problems:?}", context());
            return Outcome::Reported;
        }
    };
    if found == states[WRITES] {
        return if problems.is_empty() { Outcome::Harmless } else { Outcome::Reported };
    }
    let is_log = path.extension().is_some_and(|kind| kind == "log");
    assert!(is_log && states.contains(&found), "{}: silently wrong", context());
    if db.recovery().torn.is_none() {
        assert!(matches!(damage, Damage::Cut(_)), "{}: silently shorter", context());
        return Outcome::Shorter;
    }
    assert!(matches!(damage, Damage::Cut(_)) || states[SYNCED..].contains(&found), "{}: a synced write", context());
    Outcome::Torn
}

/// What an open that goes on without damaged files makes of them: every read is right for some number of writes, at least
/// those before the damage to a log, or refused; and the next open, a strict one, agrees, as does one before that only reads.
fn quarantined(disk: &Disk, path: &Path, damage: Damage, states: &[Map]) -> Outcome {
    let context = || format!("{} with {damage:?}", path.display());
    let mem = MemFs::on(disk.clone());
    let bytes = damage.of(disk.read(path).unwrap().to_vec());
    let file = mem.open_write(path).unwrap();
    file.truncate(0).unwrap();
    file.write_all_at(&bytes, 0).unwrap();
    let is_log = path.extension().is_some_and(|kind| kind == "log");
    let builder = Db::builder(DIR).memtable_bytes(64 << 10).block_bytes(512).partition_bytes(128).l0_trigger(100);
    let builder = builder.recovery_mode(RecoveryMode::Quarantine).file_system(Arc::new(mem.clone()));
    mem.record();
    let shown = builder.clone().read_only(true).open().map(|db| read_each(&db)).ok();
    assert_eq!(mem.take_record().len(), 0, "{}: a read-only open wrote", context());
    let opened = builder.open();
    assert_eq!(shown.is_some(), opened.is_ok(), "{}: read-only {shown:?}", context());
    let db = match opened {
        Ok(db) => db,
        Err(error @ Error::UnsupportedVersion { .. }) => {
            assert!(is_typed(&error), "{}: {error}", context());
            return Outcome::Refused;
        }
        Err(error) => {
            assert!(is_typed(&error) && path.extension().is_none(), "{}: {error}", context());
            return Outcome::Refused;
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
    if given_up { Outcome::Reported } else { Outcome::Harmless }
}

/// What a point read of each key shows: a value, none, or that it is refused (`None`).
fn read_each(db: &Db) -> BTreeMap<Vec<u8>, Option<Option<Vec<u8>>>> {
    let read = |n: u64| {
        let key = format!("key{n}").into_bytes();
        let found = match db.get(&key) {
            Ok(found) => Some(found.map(|value| value.to_vec())),
            Err(error) => {
                assert!(is_typed(&error), "{error}");
                None
            }
        };
        (key, found)
    };
    (0..7).map(read).collect()
}

#[test]
fn rule_10_an_open_that_quarantines_shows_no_older_value_whatever_byte_is_damaged() {
    // Catches a suspect left out of the version without a trace, and damage that still keeps everything else away.
    let mut met = BTreeMap::new();
    for log in LOGS {
        let (disk, states) = database(log);
        let names = MemFs::on(disk.clone()).read_dir(Path::new(DIR)).unwrap();
        for path in names.iter().map(|name| PathBuf::from(DIR).join(name)).filter(|path| !path.ends_with("LOCK")) {
            let len = disk.read(&path).unwrap().len();
            for damage in (0..len).step_by(3).flat_map(|at| [Damage::Flip { at, bit: at as u32 % 8 }, Damage::Cut(at)])
            {
                *met.entry(quarantined(&disk, &path, damage, &states)).or_insert(0) += 1;
            }
        }
    }
    println!("{met:?}");
    assert!(met.get(&Outcome::Reported).is_some_and(|&met| met > 100), "{met:?}");
}

#[test]
fn damage_to_any_byte_is_reported_or_does_no_harm() {
    // Catches a byte that no checksum covers, a panic, and a wrong value given out as if it were right.
    let bits = if crate::number("CRASH_POINTS").is_some() { 0..8 } else { 3..4 };
    let (mut tried, mut kinds) = (0, BTreeSet::new());
    for log in LOGS {
        let (disk, states) = database(log);
        let names = MemFs::on(disk.clone()).read_dir(Path::new(DIR)).unwrap();
        for path in names.iter().map(|name| PathBuf::from(DIR).join(name)).filter(|path| !path.ends_with("LOCK")) {
            let met = damage_all(&disk, &path, bits.clone(), &states);
            tried += met.values().sum::<u32>();
            println!("{log:?}, {}: {met:?}", path.display());
            kinds.insert(path.extension().map(|kind| kind.to_string_lossy().into_owned()));
            assert!(met.contains_key(&Outcome::Refused) || met.contains_key(&Outcome::Reported), "{met:?}");
        }
    }
    // Tables, the log, and what has no extension: the manifest and the pointer to it.
    assert!(kinds.len() == 3 && tried > 4000, "{kinds:?}, {tried}");
}

/// Every byte of a file flipped in `bits`, cut off, and zeroed with others.
fn damage_all(disk: &Disk, path: &Path, bits: Range<u32>, states: &[Map]) -> BTreeMap<Outcome, u32> {
    let len = disk.read(path).unwrap().len();
    let flips = (0..len).flat_map(|at| bits.clone().map(move |bit| Damage::Flip { at, bit: (bit + at as u32) % 8 }));
    let cuts = (0..len).map(Damage::Cut).chain((0..len).step_by(512).map(Damage::Zeros));
    let mut met = BTreeMap::new();
    for damage in flips.chain(cuts) {
        *met.entry(outcome(disk, path, damage, states)).or_insert(0) += 1;
    }
    met
}
