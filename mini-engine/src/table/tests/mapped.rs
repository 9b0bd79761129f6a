//! Mapped tables: their checks, their lifetime, and the fallback for files that cannot be mapped.

use std::ops::ControlFlow;

use super::*;

const KEYS: u64 = 3_000;

fn entries() -> Vec<Entry> {
    (0..KEYS).map(|i| value(format!("key/{i:06}"), 1, vec![i as u8; 100])).collect()
}

fn built(compression: Compression) -> TempDir {
    let dir = dir();
    build(dir.path(), 1, &Options::default().compression(compression), &entries()).expect("built");
    dir
}

fn open_mapped(fs: Arc<dyn FileSystem>, dir: &TempDir) -> (Arc<Table>, Arc<Counters>) {
    let counters = Arc::new(Counters::default());
    (open_as((TableReads::Mmap, 1 << 20), fs, dir.path(), &counters).expect("sound"), counters)
}

/// Reads all entries in each way that uses the mapping.
fn read_everything(table: &Arc<Table>) {
    let all = entries();
    for entry in &all {
        let found = get(table, &entry.key, MAX_SEQNO).expect("sound").expect("stored");
        assert_eq!(*found.2, *entry.value);
    }
    let keys: Vec<&[u8]> = all.iter().map(|entry| &entry.key[..]).collect();
    let hashes: Vec<u64> = keys.iter().map(|key| codec::key_hash(key)).collect();
    let mut found = 0;
    let asked = table
        .get_many(&keys, &hashes, MAX_SEQNO, |at, _, value| {
            assert_eq!(*value, *all[at].value);
            found += 1;
            ControlFlow::Continue(())
        })
        .expect("sound");
    assert!(asked.is_continue());
    let mut iter = table.iter();
    iter.seek_to_first().expect("sound");
    for entry in &all {
        assert_eq!(current(&iter).as_ref(), Some(entry));
        iter.next().expect("sound");
    }
    assert_eq!((found, iter.valid()), (all.len(), false));
}

#[test]
fn each_block_of_a_mapped_table_is_checked_once_and_never_copied() {
    // Catches a checksum that is verified for each read, and blocks that take memory in addition to the page cache.
    let dir = built(Compression::None);
    let fs = FaultFs::new(real());
    let (table, counters) = open_mapped(Arc::new(fs.clone()), &dir);
    let blocks = open(dir.path(), 1).expect("sound").verify(None).expect("sound").blocks;
    let reads = fs.reads();
    (0..3).for_each(|_| read_everything(&table));
    assert_eq!(counters.block_reads.get(), blocks);
    assert_eq!(counters.cache_hits.get() + counters.cache_misses.get(), 0);
    assert_eq!(fs.reads(), reads, "all of it is in the mapping");
    let root = table.root().expect("read");
    let partitions = root.index.len() as u64;
    assert_eq!(counters.partition_reads.get(), partitions);
    assert!(table.cache().bytes() < 1024 * partitions + 32 * blocks, "{:?}", table.cache());
}

#[test]
fn compressed_blocks_of_a_mapped_table_go_through_the_cache() {
    // Catches compressed bytes that are searched directly, and blocks that are decompressed for each read.
    let dir = built(Compression::Lz4);
    let (table, counters) = open_mapped(real(), &dir);
    let blocks = open(dir.path(), 1).expect("sound").verify(None).expect("sound").blocks;
    (0..3).for_each(|_| read_everything(&table));
    assert_eq!(counters.block_reads.get(), blocks);
    assert!(counters.cache_hits.get() > 0);
}

#[test]
fn a_value_of_a_mapped_table_outlives_the_table_and_its_file() {
    // Catches a mapping that is dropped with the table although values still share it.
    let dir = built(Compression::None);
    let (table, _) = open_mapped(real(), &dir);
    let all = entries();
    let values: Vec<Slice> = all.iter().map(|e| get(&table, &e.key, 9).expect("sound").expect("stored").2).collect();
    let (first, rest) = values[7].clone().split_at(40);
    drop(table);
    std_fs::remove_file(dir.path().join(file_name(1))).expect("removed");
    assert!(values.iter().zip(&all).all(|(found, entry)| **found == *entry.value));
    assert_eq!((&*first, &*rest), (&[7; 40][..], &[7; 60][..]));
}

#[test]
fn damage_to_a_mapped_block_is_an_error_of_that_block_each_time_it_is_read() {
    // Catches a block that counts as verified although the check failed, and damage that hides other blocks.
    let dir = built(Compression::None);
    flip(dir.path(), 9_000);
    let (table, _) = open_mapped(real(), &dir);
    for _ in 0..2 {
        let found: Vec<bool> = entries().iter().map(|entry| get(&table, &entry.key, MAX_SEQNO).is_ok()).collect();
        let damaged = found.iter().filter(|found| !**found).count();
        assert!((20..50).contains(&damaged), "{damaged} keys of a block");
        let mut iter = table.iter();
        let error = iter.seek(&entries()[found.iter().position(|found| !found).expect("one")].key, MAX_SEQNO);
        assert!(matches!(error, Err(Error::Corruption { offset: 8000..=9000, .. })), "{error:?}");
    }
}

#[test]
fn a_table_that_cannot_be_mapped_is_read_by_calls() {
    // Catches an open that fails on a file system without mappings.
    let dir = built(Compression::None);
    let fs = FaultFs::new(real());
    // The three reads are: open, length, read.
    fs.fail_read(3, Fault::Device, Repeat::Once);
    let (table, counters) = open_mapped(Arc::new(fs.clone()), &dir);
    assert!(table.root().expect("read").map.is_none());
    read_everything(&table);
    assert!(counters.cache_hits.get() > 0);
}
