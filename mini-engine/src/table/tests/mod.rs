//! Tables that are written and read back: `damage` for damaged bytes, `forged` for valid parts that do not agree with each other, `runs` for several
//! tables that are read as one, `partitions` for the cost of reads, `mapped` for mapped tables.

mod damage;
mod filter;
mod forged;
mod heads;
mod mapped;
mod partitions;
mod readahead;
mod runs;

use std::collections::BTreeMap;
use std::fs as std_fs;
use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;

use super::read::iter::TableIter;
use super::*;
use crate::codec;
use crate::disk::{Fault, FaultFs, Repeat};
use crate::error::{Error, Result};
use crate::fs::{FileSystem, StdFs};
use crate::iter::EntryIter;
use crate::iter::MergeIter;
use crate::iter::model::{Entry, SortedVec, assert_same, current, entries, moves};
use crate::metrics::Counters;
use crate::options::{Compression, Options, TableReads};
use crate::types::{Kind, MAX_SEQNO, MAX_STORED_KEY_LEN, SeqNo, Slice};
use proof::TempDir;

fn dir() -> TempDir {
    TempDir::new().expect("a temporary directory")
}

fn real() -> Arc<dyn FileSystem> {
    Arc::new(StdFs)
}

fn level_0(options: &Options) -> TableOptions {
    TableOptions::at_level(options, 0, f64::from(options.filter_bits_per_key))
}

fn build(dir: &Path, number: u64, options: &Options, entries: &[Entry]) -> Result<TableMeta> {
    let mut builder = Builder::new(&real(), dir, number, level_0(options))?;
    for entry in entries {
        builder.add(&entry.key, entry.seqno, entry.kind, &entry.value)?;
    }
    builder.finish()
}

fn open(dir: &Path, number: u64) -> Result<Arc<Table>> {
    let blocks = Arc::new(BlockCache::new(1 << 20, Arc::default()));
    let tables = TableCache::new(real(), dir.to_path_buf(), blocks, Arc::default(), (10, TableReads::Pread));
    Table::open(&tables, number, None)
}

/// Opens table 1 with the given way of reading and a block cache of `cache_bytes`.
fn open_as(
    (reads, cache_bytes): (TableReads, u64),
    fs: Arc<dyn FileSystem>,
    dir: &Path,
    counters: &Arc<Counters>,
) -> Result<Arc<Table>> {
    let blocks = Arc::new(BlockCache::new(cache_bytes, counters.clone()));
    Table::open(&TableCache::new(fs, dir.to_path_buf(), blocks, counters.clone(), (10, reads)), 1, None)
}

/// A table whose file reads are counted.
struct Counted {
    dir: TempDir,
    fs: FaultFs,
    table: Arc<Table>,
    counters: Arc<Counters>,
}

impl Counted {
    fn new(options: &Options, entries: &[Entry], cache_bytes: u64) -> Self {
        let dir = dir();
        build(dir.path(), 1, options, entries).expect("built");
        let (fs, counters) = (FaultFs::new(real()), Arc::new(Counters::default()));
        let reads = (TableReads::Pread, cache_bytes);
        let table = open_as(reads, Arc::new(fs.clone()), dir.path(), &counters).expect("sound");
        Self { dir, fs, table, counters }
    }

    /// The number of file reads that `work` makes.
    fn reads(&self, work: impl FnOnce()) -> u64 {
        let before = self.fs.reads();
        work();
        self.fs.reads() - before
    }
}

fn raw() -> Options {
    Options::default().compression(Compression::None)
}

/// Flips a bit of table 1.
fn flip(dir: &Path, at: usize) {
    let path = dir.join(file_name(1));
    let mut bytes = std_fs::read(&path).expect("the table");
    bytes[at] ^= 1;
    std_fs::write(&path, bytes).expect("damaged");
}

fn get(table: &Table, key: &[u8], seqno: SeqNo) -> Result<Option<(Kind, SeqNo, Slice)>> {
    table.get(key, codec::key_hash(key), seqno)
}

fn value(key: impl Into<Vec<u8>>, seqno: SeqNo, value: impl Into<Vec<u8>>) -> Entry {
    Entry { key: key.into(), seqno, kind: Kind::Value, value: value.into() }
}

/// `n` keys with two versions each: the older one is a value, and for every fifth key the newer one is a tombstone.
fn sample(n: u64) -> Vec<Entry> {
    let versions = |i: u64| {
        let key = format!("key/{:05}", i * 3).into_bytes();
        let kind = if i.is_multiple_of(5) { Kind::Tombstone } else { Kind::Value };
        let new = if kind == Kind::Value { format!("new {i}").into_bytes() } else { Vec::new() };
        [Entry { key: key.clone(), seqno: 2 * i + 2, kind, value: new }, value(key, 2 * i + 1, format!("old {i}"))]
    };
    (0..n).flat_map(versions).collect()
}

/// Reads all entries. Returns the entries, or the first error. A mapped table must give the same result.
fn read_all(dir: &Path, keys: &[Entry]) -> Result<Vec<Entry>> {
    let [read, mapped] = [TableReads::Pread, TableReads::Mmap].map(|reads| read_all_as(reads, dir, keys));
    let text = |result: &Result<Vec<Entry>>| result.as_ref().err().map(ToString::to_string);
    assert_eq!((read.as_ref().ok(), text(&read)), (mapped.as_ref().ok(), text(&mapped)));
    read
}

fn read_all_as(reads: TableReads, dir: &Path, keys: &[Entry]) -> Result<Vec<Entry>> {
    let table = open_as((reads, 1 << 20), real(), dir, &Arc::default())?;
    for key in keys {
        if let Some((kind, seqno, found)) = get(&table, &key.key, key.seqno)? {
            assert_eq!((kind, seqno, &*found), (key.kind, key.seqno, &key.value[..]), "a wrong value was returned");
        } else {
            panic!("a stored key was not found");
        }
    }
    let mut iter = if reads == TableReads::Mmap { table.iter() } else { table.iter_uncached() };
    let mut all = Vec::new();
    iter.seek_to_first()?;
    while iter.valid() {
        all.extend(current(&iter));
        iter.next()?;
    }
    table.verify(None)?;
    Ok(all)
}

/// The keys of the next entries, at most `steps` of them.
fn walk(iter: &mut TableIter, steps: usize, step: fn(&mut TableIter) -> Result<()>) -> Vec<Vec<u8>> {
    let mut keys = Vec::new();
    while iter.valid() && keys.len() < steps {
        keys.push(iter.key().to_vec());
        step(iter).expect("sound");
    }
    keys
}

fn small_blocks() -> Options {
    Options::default().block_bytes(512)
}

fn compressions() -> impl Strategy<Value = Compression> {
    prop_oneof![Just(Compression::None), Just(Compression::Lz4), Just(Compression::Zstd { level: 1 })]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_table_holds_exactly_what_was_added(
        all in entries(150), compression in compressions(), filter in prop_oneof![Just(0u32), Just(10)],
        pad in 0usize..200, partition in prop_oneof![Just(128usize), Just(400), Just(8192)], moves in moves(),
    ) {
        // Catches an entry that is lost at the border of two blocks or partitions, a wrong version, and a filter that excludes a key whose versions
        // are in two partitions.
        prop_assume!(!all.is_empty());
        let padded = all.into_iter().map(|mut entry| {
            if entry.kind == Kind::Value {
                entry.value.resize(entry.value.len() + pad, b'.');
            }
            entry
        });
        let mut model = SortedVec::new(padded.collect());
        let dir = dir();
        let options = small_blocks().compression(compression).filter_bits_per_key(filter).partition_bytes(partition);
        let meta = build(dir.path(), 3, &options, model.entries())?;
        let table = open(dir.path(), 3)?;
        prop_assert_eq!(table.meta(), &meta);
        prop_assert_eq!(meta.size, std_fs::metadata(dir.path().join(file_name(3))).expect("the file").len());
        let report = table.verify(None)?;
        prop_assert_eq!(report.entries, model.entries().len() as u64);

        let versions: BTreeMap<(&[u8], std::cmp::Reverse<SeqNo>), &Entry> =
            model.entries().iter().map(|e| ((&e.key[..], std::cmp::Reverse(e.seqno)), e)).collect();
        let absent = [b"zz".to_vec(), b"".to_vec(), vec![0, 1, 2, 3, 4, 5]];
        for key in model.entries().iter().map(|e| e.key.clone()).chain(absent) {
            for seqno in (0..52).step_by(3).chain([MAX_SEQNO]) {
                let range = (&key[..], std::cmp::Reverse(seqno))..=(&key[..], std::cmp::Reverse(0));
                let expected = versions.range(range).next().map(|(_, e)| (e.kind, e.seqno, Slice::from(&e.value[..])));
                prop_assert_eq!(get(&table, &key, seqno)?, expected, "{:?} at {}", key, seqno);
            }
        }
        assert_same(&mut table.iter(), &mut model.clone(), &moves);
        build(dir.path(), 1, &options, model.entries())?;
        let mapped = open_as((TableReads::Mmap, 1 << 20), real(), dir.path(), &Arc::default())?;
        assert_same(&mut mapped.iter(), &mut model.clone(), &moves);
        for entry in model.entries() {
            let expected = Some((entry.kind, entry.seqno, Slice::from(&entry.value[..])));
            prop_assert_eq!(get(&mapped, &entry.key, entry.seqno)?, expected);
        }
        assert_same(&mut table.iter_uncached(), &mut model, &moves);
    }
}

#[test]
fn entries_out_of_order_or_past_a_limit_are_refused() {
    // Catches a merge in the wrong order, which would write a table whose keys cannot be found.
    let dir = dir();
    let mut builder = Builder::new(&real(), dir.path(), 1, level_0(&small_blocks())).expect("a new file");
    builder.add(b"b", 5, Kind::Value, b"x").expect("the first");
    let refused = [
        builder.add(b"b", 5, Kind::Value, b"x"),
        builder.add(b"b", 6, Kind::Value, b"x"),
        builder.add(b"a", 9, Kind::Value, b"x"),
        builder.add(b"c", MAX_SEQNO + 1, Kind::Value, b"x"),
        builder.add(&[b'c'; MAX_STORED_KEY_LEN + 1], 1, Kind::Value, b"x"),
    ];
    for result in refused {
        assert!(matches!(result, Err(Error::InvalidArgument(_))), "{result:?}");
    }
    builder.add(b"b", 4, Kind::Tombstone, b"").expect("an older version");
    assert_eq!(builder.finish().expect("built").entries, 2);
}

#[test]
fn values_larger_than_a_block_and_extreme_keys_are_kept() {
    // Catches a block length that assumes the block size, and wrong handling of the empty or the longest key.
    let dir = dir();
    let all = [
        value("", 3, ""),
        value("a", 2, vec![7; 300_000]),
        value("a", 1, vec![8; 3 << 20]),
        value(vec![b'k'; MAX_STORED_KEY_LEN], 9, "long key"),
        value(vec![b'k'; MAX_STORED_KEY_LEN], 8, "older"),
    ];
    for compression in [Compression::None, Compression::Lz4, Compression::Zstd { level: 1 }] {
        build(dir.path(), 1, &small_blocks().compression(compression), &all).expect("built");
        assert_eq!(read_all(dir.path(), &all).expect("sound"), all);
        std_fs::remove_file(dir.path().join(file_name(1))).expect("removed");
    }
}

#[test]
fn each_failing_step_of_building_is_an_error_and_leaves_no_file() {
    // Catches a table that is used although it was not synced, and space that a failed flush still occupies.
    let all = sample(3000);
    for fault in [Fault::Device, Fault::ShortWrite] {
        let mut index = 0;
        loop {
            let dir = dir();
            let fs = FaultFs::new(real());
            fs.fail_mutation(index, fault, Repeat::Once);
            let wrapped: Arc<dyn FileSystem> = Arc::new(fs.clone());
            let options = Options::default().compression(Compression::None);
            let built = Builder::new(&wrapped, dir.path(), 1, level_0(&options)).and_then(|mut builder| {
                all.iter().try_for_each(|e| builder.add(&e.key, e.seqno, e.kind, &[7; 100]))?;
                builder.finish()
            });
            if built.is_ok() {
                break;
            }
            assert!(matches!(built, Err(Error::Io { .. })), "{built:?}");
            assert!(!fs.exists(&dir.path().join(file_name(1))).expect("known"), "operation {index} left a file");
            index += 1;
        }
        assert_eq!(index, 5, "create, three writes, sync");
    }
}

#[test]
fn an_abandoned_or_empty_table_leaves_no_file() {
    // Catches a table without entries, which has no smallest key, and the file of a cancelled merge.
    let dir = dir();
    let builder = || Builder::new(&real(), dir.path(), 1, level_0(&small_blocks())).expect("a new file");
    let path = dir.path().join(file_name(1));
    let mut abandoned = builder();
    abandoned.add(b"k", 1, Kind::Value, b"v").expect("added");
    assert!(path.exists());
    drop(abandoned);
    assert!(!path.exists());
    assert!(matches!(builder().finish(), Err(Error::InvalidArgument(_))));
    assert!(!path.exists());
    drop(builder());
    assert!(!path.exists());
}
