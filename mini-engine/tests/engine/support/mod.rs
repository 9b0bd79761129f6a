//! What tests of all kinds need: keys and writes, what a database holds, its files and damage to them, waits, and doubles of the
//! file system.

pub(crate) mod disks;
pub(crate) mod hook;

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mini_engine::fs::{FileSystem, MemFs, StdFs};
use mini_engine::{Builder, Compaction, Db, Durability, Error, LevelMetrics, Metrics, Result, Slice, WriteBatch, dump};

use crate::scratch::TempDir;
use hook::{HookFs, Op, files};

/// After which a wait has failed to end.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) const POLICIES: [Compaction; Compaction::ALL.len()] = *Compaction::ALL.first_chunk().unwrap();

/// The directory of a database in memory.
pub(crate) const DB: &str = "/db";

/// What a database holds.
pub(crate) type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// The same where keys and values are text.
pub(crate) type Texts = BTreeMap<String, String>;

/// A database on a disk in memory.
pub(crate) fn in_memory(mem: &MemFs) -> Builder {
    Db::builder(DB).file_system(Arc::new(mem.clone()))
}

/// Keys in the order of their numbers.
pub(crate) fn key(n: u64) -> String {
    format!("key{n:05}")
}

/// Keys of which each few are all over the range of the others, so that no table can be moved down without being rewritten.
pub(crate) fn scattered(n: u64) -> [u8; 8] {
    n.reverse_bits().to_be_bytes()
}

pub(crate) fn batch<K: AsRef<[u8]>, V: AsRef<[u8]>>(entries: impl IntoIterator<Item = (K, V)>) -> WriteBatch {
    let mut batch = WriteBatch::new();
    entries.into_iter().for_each(|(key, value)| batch.insert(key, value).unwrap());
    batch
}

/// Writes one entry.
pub(crate) fn put(db: &Db, key: &str, value: &str, durability: Durability) -> Result<u64> {
    db.write(batch([(key, value)]), durability)
}

/// What an iterator yields.
pub(crate) fn pairs(iter: impl Iterator<Item = Result<(Slice, Slice)>>) -> Vec<(Vec<u8>, Vec<u8>)> {
    iter.map(Result::unwrap).map(|(key, value)| (key.to_vec(), value.to_vec())).collect()
}

/// What a database holds, each key once and in order.
pub(crate) fn entries(db: &Db) -> Map {
    let pairs = pairs(db.iter());
    assert!(pairs.is_sorted_by(|(a, _), (b, _)| a < b));
    pairs.into_iter().collect()
}

/// The entries of a database that holds text.
pub(crate) fn texts(db: &Db) -> Texts {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    entries(db).into_iter().map(|(key, value)| (text(key), text(value))).collect()
}

/// The keys of a database whose keys are text.
pub(crate) fn keys(db: &Db) -> Vec<String> {
    pairs(db.iter()).into_iter().map(|(key, _)| String::from_utf8(key).unwrap()).collect()
}

/// Whether this is what a full disk answers.
pub(crate) fn is_full(error: &Error) -> bool {
    matches!(error, Error::Io { source, .. } if source.kind() == ErrorKind::StorageFull)
}

/// The sum over all levels.
pub(crate) fn sum(metrics: &Metrics, of: impl Fn(&LevelMetrics) -> u64) -> u64 {
    metrics.levels.iter().map(of).sum()
}

/// The tables of level 0.
pub(crate) fn level_0(db: &Db) -> u64 {
    db.metrics().levels.first().map_or(0, |level| level.tables)
}

/// Waits as long as `is_so`; fails if that does not end.
#[track_caller]
pub(crate) fn wait_while(mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while is_so() {
        assert!(begun.elapsed() < PATIENCE, "a wait that does not end");
        std::thread::yield_now();
    }
}

/// The paths of the files in `dir` whose names contain `part`, sorted.
pub(crate) fn paths(dir: &Path, part: &str) -> Vec<PathBuf> {
    files(dir, part).iter().map(|name| dir.join(name)).collect()
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

/// A database in three logs: "a" and "b" in the first, "c" in the second, "d" in the third, no table. Each key's write
/// is followed by a sync if it is in `synced`. The logs' paths, oldest first. They end with their last frames: the space that
/// they were given ahead is cut off.
pub(crate) fn three_logs(dir: &Path, synced: &str) -> Vec<PathBuf> {
    let hook = HookFs::new();
    let db = Db::builder(dir).file_system(hook.arc()).immutable_memtables(4).open().unwrap();
    hook.fail(Op::Create, ".sst", ErrorKind::StorageFull);
    for key in ["a", "b", "c", "d"] {
        put(&db, key, "value", if synced.contains(key) { Durability::Synced } else { Durability::Buffered }).unwrap();
        if key == "b" || key == "c" {
            db.flush().unwrap_err();
        }
    }
    drop(db);
    let logs: Vec<PathBuf> = paths(dir, ".log");
    assert_eq!(logs.len(), 3);
    logs.iter().for_each(|log| cut_space(log));
    logs
}

/// Cuts off the zeros behind the last frame.
fn cut_space(log: &Path) {
    let mut bytes = fs::read(log).unwrap();
    let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    bytes.truncate(used.next_multiple_of(8));
    fs::write(log, bytes).unwrap();
}

/// What a process that is killed now would leave.
pub(crate) fn copy(from: &Path) -> TempDir {
    let to = TempDir::new().unwrap();
    for name in files(from, "") {
        fs::copy(from.join(&name), to.path().join(&name)).unwrap();
    }
    to
}

/// Cuts so many bytes off the end of a file.
pub(crate) fn cut(path: &Path, bytes: u64) {
    let file = fs::OpenOptions::new().write(true).open(path).unwrap();
    file.set_len(file.metadata().unwrap().len() - bytes).unwrap();
}

/// Flips a bit of the byte at `at`, also of a file that is open. What the file held before.
pub(crate) fn flip(path: &Path, at: usize) -> Vec<u8> {
    let sound = fs::read(path).unwrap();
    let mut bytes = sound.clone();
    bytes[at] ^= 4;
    fs::write(path, bytes).unwrap();
    sound
}

/// The data blocks of a table, as its dump tells of them: offset, and length with the trailer.
pub(crate) fn blocks(table: &Path) -> Vec<(usize, usize)> {
    let mut blocks = Vec::new();
    let real: Arc<dyn FileSystem> = Arc::new(StdFs);
    let told = dump::table(&real, table, &mut |line| {
        if let Some(rest) = line.to_string().strip_prefix("data block ") {
            let words: Vec<&str> = rest.split([' ', ':']).collect();
            blocks.push((words[2].parse().unwrap(), words[4].parse().unwrap()));
        }
        ControlFlow::Continue(())
    });
    told.unwrap();
    blocks
}
