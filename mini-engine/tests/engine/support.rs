//! Helpers of all tests: names, databases, keys and writes, the contents of a database, its files and damage to them, waits, and a simulated
//! file system. A test imports everything in it.

pub(crate) use std::collections::{BTreeMap, BTreeSet};
pub(crate) use std::fs;
pub(crate) use std::io::ErrorKind;
pub(crate) use std::ops::{Bound, ControlFlow, Range};
pub(crate) use std::path::{Path, PathBuf};
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
pub(crate) use std::sync::{Arc, Mutex, mpsc};
pub(crate) use std::thread;
pub(crate) use std::time::{Duration, Instant};

pub(crate) use mini_engine::dump::PartKind;
pub(crate) use mini_engine::fs::{FileSystem, StdFs};
pub(crate) use mini_engine::{
    Builder, Compaction, CompareAndSwapError, Compression, Db, Durability, Error, Iter, Keyspace, KeyspaceOptions,
    LevelMetrics, MAX_KEY_LEN, MAX_VALUE_LEN, MemtableKind, Metrics, Options, RecoveryMode, SalvageReport, Slice,
    Snapshot, TableReads, Transaction, WriteBatch, dump, incomplete_directory,
};
pub(crate) use proof::disk::{Answer, Disk, Event, Fault, FaultFs, Held, MemFs, Op, Operation, Repeat, Step};

pub(crate) use proof::{Clock, Map, PATIENCE, POLICIES, Random, TempDir, entries, key, pairs, second, wait_while};

/// The directory of a database in memory.
pub(crate) const DB: &str = "/db";

/// The contents of a database whose keys and values are text.
pub(crate) type Texts = BTreeMap<String, String>;

/// A database in a directory of its own, with the options that `set` chooses.
pub(crate) fn opened(set: impl FnOnce(Builder) -> Builder) -> (TempDir, Db) {
    let dir = TempDir::new().unwrap();
    let db = set(Db::builder(dir.path())).open().unwrap();
    (dir, db)
}

/// A database in a directory of its own, with default options.
pub(crate) fn fresh() -> (TempDir, Db) {
    opened(|builder| builder)
}

/// As [`opened`], on a file system whose operations fail on demand.
pub(crate) fn hooked(set: impl FnOnce(Builder) -> Builder) -> (TempDir, FaultFs, Db) {
    let fs = unmapped();
    let (dir, db) = opened(|builder| set(builder.file_system(fs.arc())));
    (dir, fs, db)
}

/// Drops the database in `dir` and opens it again, with default options.
pub(crate) fn reopened(db: Db, dir: &TempDir) -> Db {
    drop(db);
    Db::open(dir.path()).unwrap()
}

/// A file system whose operations fail on demand, and that does not map files.
pub(crate) fn unmapped() -> FaultFs {
    FaultFs::of_system().unmapped()
}

/// A database on a disk in memory.
pub(crate) fn in_memory(mem: &MemFs) -> Builder {
    Db::builder(DB).file_system(Arc::new(mem.clone()))
}

/// The key of number `n`. Keys of each group spread over the range of the other groups, so that no table can be moved down without a rewrite.
pub(crate) fn scattered(n: u64) -> [u8; 8] {
    n.reverse_bits().to_be_bytes()
}

/// Writes the keys of these numbers, one by one.
pub(crate) fn fill(db: &Db, numbers: impl IntoIterator<Item = u64>, value: impl AsRef<[u8]>) {
    numbers.into_iter().for_each(|n| db.insert(key(n), &value).unwrap());
}

pub(crate) fn batch<K: AsRef<[u8]>, V: AsRef<[u8]>>(entries: impl IntoIterator<Item = (K, V)>) -> WriteBatch {
    let mut batch = WriteBatch::new();
    entries.into_iter().for_each(|(key, value)| batch.insert(key, value).unwrap());
    batch
}

/// Writes one entry.
pub(crate) fn put(db: &Db, key: &str, value: &str, durability: Durability) -> Result<u64, Error> {
    db.write(batch([(key, value)]), durability)
}

/// The entries of a database that holds text.
pub(crate) fn texts(db: &Db) -> Texts {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    entries(db).into_iter().map(|(key, value)| (text(key), text(value))).collect()
}

/// The keys of a database whose keys are text.
pub(crate) fn keys(db: &Keyspace) -> Vec<String> {
    pairs(db.iter()).into_iter().map(|(key, _)| String::from_utf8(key).unwrap()).collect()
}

/// Checks by every kind of read that the database holds `map` and nothing else. Point reads look up the keys `asked`.
#[track_caller]
pub(crate) fn assert_holds<K: AsRef<[u8]>>(db: &Db, map: &Map, asked: impl IntoIterator<Item = K>) {
    let owned = |(key, value): (&Vec<u8>, &Vec<u8>)| (key.clone(), value.clone());
    assert_eq!(&entries(db), map);
    assert!(pairs(db.iter().rev()).into_iter().eq(map.iter().rev().map(owned)));
    let ends = [db.first(), db.last()].map(|end| pairs(end.transpose().into_iter()).pop());
    assert_eq!(ends, [map.first_key_value(), map.last_key_value()].map(|end| end.map(owned)));
    let asked: Vec<K> = asked.into_iter().collect();
    for (key, many) in asked.iter().map(K::as_ref).zip(db.get_many(&asked).unwrap()) {
        let (what, expected) = (key.escape_ascii(), map.get(key).map(Vec::as_slice));
        assert_eq!(db.get(key).unwrap().as_deref(), expected, "{what}");
        assert_eq!(many.as_deref(), expected, "{what} among many");
        assert_eq!(db.get_with_expiry(key).unwrap().map(|found| found.0).as_deref(), expected, "{what}");
        assert_eq!(db.snapshot().get(key).unwrap().as_deref(), expected, "{what} of a snapshot");
        assert_eq!(db.contains_key(key).unwrap(), expected.is_some(), "{what}");
        let next = map.range(key.to_vec()..).next().map(owned);
        assert_eq!(pairs(db.range(key..).take(1)).pop(), next, "from {what} on");
        let last = map.range(..=key.to_vec()).next_back().map(owned);
        assert_eq!(pairs(db.range(..=key).rev().take(1)).pop(), last, "up to {what}");
    }
}

/// Checks that a verification finds nothing.
#[track_caller]
pub(crate) fn assert_sound(db: &Db) {
    let problems = db.verify().unwrap().problems;
    assert!(problems.is_empty(), "{problems:?}");
}

/// Whether this is the error of a full disk.
pub(crate) fn is_full(error: &Error) -> bool {
    matches!(error, Error::Io { source, .. } if source.kind() == ErrorKind::StorageFull)
}

/// Whether this is the error that `answer` causes.
pub(crate) fn is_the_cause(error: &Error, answer: Answer) -> bool {
    let Error::Io { source, .. } = error else { return false };
    match answer {
        Answer::Fail(kind) => source.kind() == kind,
        Answer::FailOs(number) => source.raw_os_error() == Some(number),
        _ => false,
    }
}

/// The sum over all levels.
pub(crate) fn sum(metrics: &Metrics, of: impl Fn(&LevelMetrics) -> u64) -> u64 {
    metrics.levels.iter().map(of).sum()
}

/// The bytes of all tables.
pub(crate) fn table_bytes(db: &Db) -> u64 {
    sum(&db.metrics(), |level| level.bytes)
}

/// The tables of level 0.
pub(crate) fn level_0(db: &Db) -> u64 {
    db.metrics().levels.first().map_or(0, |level| level.tables)
}

/// The paths of the files in `dir` whose names contain `part`, sorted.
pub(crate) fn paths(dir: &Path, part: &str) -> Vec<PathBuf> {
    files(dir, part).iter().map(|name| dir.join(name)).collect()
}

/// The paths of the files of the database in memory whose names contain `part`, sorted.
pub(crate) fn paths_on(fs: &dyn FileSystem, part: &str) -> Vec<PathBuf> {
    let mut names = fs.read_dir(Path::new(DB)).unwrap();
    names.retain(|name| name.to_string_lossy().contains(part));
    names.sort();
    names.iter().map(|name| Path::new(DB).join(name)).collect()
}

/// The path of the only file in `dir` whose name contains `part`.
pub(crate) fn the_file(dir: &Path, part: &str) -> PathBuf {
    let mut paths = paths(dir, part);
    assert_eq!(paths.len(), 1, "{paths:?}");
    paths.remove(0)
}

pub(crate) fn newest_table(dir: &Path) -> PathBuf {
    paths(dir, ".sst").pop().unwrap()
}

/// A copy of the files, as a kill at this moment would leave them.
pub(crate) fn copy(from: &Path) -> TempDir {
    let to = TempDir::new().unwrap();
    for name in files(from, "") {
        fs::copy(from.join(&name), to.path().join(&name)).unwrap();
    }
    to
}

/// For each operation of an open of `original`: its number, and a copy whose open has failed from this operation on.
pub(crate) fn failed_opens<'a>(
    original: &'a Path,
    open: impl Fn(&Path, &FaultFs) -> Result<Db, Error> + 'a,
) -> impl Iterator<Item = (u64, TempDir)> + 'a {
    let sound = FaultFs::of_system();
    drop(open(copy(original).path(), &sound).unwrap());
    let count = sound.mutations();
    assert!(count > 15, "only {count} operations");
    (0..count).map(move |index| {
        let (dir, faults) = (copy(original), FaultFs::of_system());
        faults.fail_mutation(index, Fault::Device, Repeat::FromThenOn);
        drop(open(dir.path(), &faults));
        (index, dir)
    })
}

/// Cuts `bytes` bytes off the end of a file.
pub(crate) fn cut(path: &Path, bytes: u64) {
    let file = fs::OpenOptions::new().write(true).open(path).unwrap();
    file.set_len(file.metadata().unwrap().len() - bytes).unwrap();
}

/// Flips a bit of the byte at `at`, also in an open file. Returns the old contents of the file.
pub(crate) fn flip(path: &Path, at: usize) -> Vec<u8> {
    let sound = fs::read(path).unwrap();
    let mut bytes = sound.clone();
    bytes[at] ^= 4;
    fs::write(path, bytes).unwrap();
    sound
}

/// The data blocks of a table: offset, and length with the trailer.
pub(crate) fn blocks(table: &Path) -> Vec<(usize, usize)> {
    let mut blocks = Vec::new();
    let real: Arc<dyn FileSystem> = Arc::new(StdFs);
    let shown = dump::table(&real, table, &mut |part| {
        blocks.extend((part.kind == PartKind::Block).then_some((part.offset as usize, part.len as usize)));
        ControlFlow::Continue(())
    });
    shown.unwrap();
    blocks
}

/// Whether this thread is one of the engine's compaction threads.
pub(crate) fn on_compaction_thread() -> bool {
    std::thread::current().name() == Some("mini-engine-compact")
}

/// Flushes, and waits for the work after a flush: the old log is removed, or its file is kept for the next log.
pub(crate) fn flush_to_the_end(db: &Db) {
    db.flush().unwrap();
    wait_for_flush(db);
}

/// Waits until no flush is running. The caller ensures that none is due.
pub(crate) fn wait_for_flush(db: &Db) {
    wait_while(|| db.metrics().flushes_running > 0);
}

/// Waits until only tables of the version have files in `dir`: a thread removes replaced tables later. Files that were set aside stay.
pub(crate) fn wait_for_removals(db: &Db, dir: &Path) {
    let tables = || files(dir, ".sst").iter().filter(|name| name.ends_with(".sst")).count() as u64;
    wait_while(|| tables() > db.metrics().levels.iter().map(|level| level.tables).sum());
}

/// The index of the first of `events` from `from` on that is `op` on a file whose name contains `part`.
pub(crate) fn position(events: &[Event], from: usize, op: Op, part: &str) -> usize {
    let found = events[from..].iter().position(|event| event.is(op, part));
    found.unwrap_or_else(|| panic!("no {op:?} of {part:?} after {from} in {events:#?}")) + from
}

/// The number of `events` that are `op` on a file whose name contains `part`.
pub(crate) fn count(events: &[Event], op: Op, part: &str) -> usize {
    events.iter().filter(|event| event.is(op, part)).count()
}

/// The names of the files in `dir` that contain `part`, sorted.
pub(crate) fn files(dir: &Path, part: &str) -> Vec<String> {
    let names = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|name| name.contains(part)).collect();
    names.sort();
    names
}

/// The indices of `steps` in `events`: each is the first match behind the previous one.
#[track_caller]
pub(crate) fn in_order(events: &[Event], steps: &[(Op, &str)]) -> Vec<usize> {
    let next = |from: &mut usize, (op, part): &(Op, &str)| {
        let at = position(events, *from, *op, part);
        *from = at + 1;
        Some(at)
    };
    steps.iter().scan(0, next).collect()
}

/// The states of the disk of `mem` during `work`, each with the operation that led to it: a process that is killed there leaves this state.
pub(crate) fn states_during(mem: &MemFs, work: impl FnOnce()) -> impl Iterator<Item = (Operation, Disk)> {
    let mut disk = mem.disk();
    mem.record();
    work();
    mem.take_record().into_iter().filter_map(move |step| {
        let Step::Operation(operation) = step else { return None };
        disk.apply(&operation).unwrap();
        Some((operation, disk.clone()))
    })
}

/// Whether this makes an edit of the manifest durable.
pub(crate) fn is_edit(operation: &Operation) -> bool {
    operation.to_string().starts_with("sync MANIFEST")
}
