//! The cost of reads through partitions, single and batched: file reads, and memory.

use std::ops::ControlFlow;

use super::*;
use crate::table::false_positive_rate;

impl Counted {
    fn partitions(&self) -> u64 {
        self.table.root().expect("open").index.len() as u64
    }

    fn get(&self, key: &[u8]) -> Option<(Kind, SeqNo, Slice)> {
        get(&self.table, key, MAX_SEQNO).expect("sound")
    }

    /// The number of partition lookups, whether or not in the cache.
    fn looked(&self) -> u64 {
        self.counters.partition_hits.get() + self.counters.partition_misses.get()
    }
}

fn key(n: u64) -> Vec<u8> {
    format!("key/{n:012}").into_bytes()
}

/// Even keys; the odd keys are absent.
fn evens(n: u64) -> Vec<Entry> {
    (0..n).map(|i| value(key(2 * i), 1, [b'v'; 100])).collect()
}

#[test]
fn a_cold_get_reads_a_partition_and_a_data_block_and_an_absent_key_mostly_a_partition() {
    // Catches an index that is read as a whole, and a filter in a separate block.
    let counted = Counted::new(&raw(), &evens(20_000), 0);
    assert_eq!(counted.fs.reads(), 3, "opened, asked for its length, and read once for footer, properties and root");
    assert!(counted.partitions() > 3, "{} partitions", counted.partitions());
    let mut absent = 0;
    for n in (0..20_000).step_by(97) {
        assert_eq!(counted.reads(|| drop(counted.get(&key(2 * n)).expect("stored"))), 2, "key {n}");
        let reads = counted.reads(|| assert_eq!(counted.get(&key(2 * n + 1)), None));
        assert!((1..=2).contains(&reads), "{reads} reads for an absent key");
        absent += reads - 1;
    }
    assert!(absent < 12, "{absent} of 207 absent keys were looked for in a data block");
}

#[test]
fn a_warm_get_reads_nothing_and_looks_for_one_partition_and_one_data_block() {
    // Catches a partition that is read and not cached, and one that is looked up twice, for its filter and for its fences.
    let counted = Counted::new(&raw(), &evens(5_000), 16 << 20);
    (0..5_000).for_each(|n| drop(counted.get(&key(2 * n)).expect("stored")));
    let (looked, blocks) = (counted.looked(), counted.counters.get_blocks.get());
    assert_eq!(counted.reads(|| (0..5_000).for_each(|n| drop(counted.get(&key(2 * n)).expect("stored")))), 0);
    assert_eq!((counted.looked() - looked, counted.counters.get_blocks.get() - blocks), (5_000, 5_000));
    assert_eq!(counted.counters.partition_reads.get(), counted.partitions());
}

#[test]
fn a_get_of_a_block_that_is_not_cached_reads_the_file_once() {
    // Catches a partition that is evicted by data blocks, a block that is read in parts, and one that is not cached.
    let counted = Counted::new(&raw(), &evens(20_000), 1 << 20);
    (0..20_000).step_by(50).for_each(|n| drop(counted.get(&key(2 * n)).expect("stored")));
    let mut uncached = 0;
    for n in (0..40_000).map(|n| n * 7919 % 20_000) {
        let missed = counted.counters.cache_misses.get();
        let reads = counted.reads(|| drop(counted.get(&key(2 * n)).expect("stored")));
        let missed = counted.counters.cache_misses.get() - missed;
        assert!(reads == missed && missed <= 1, "key {n}: {reads} reads for {missed} blocks that were not cached");
        uncached += reads;
    }
    assert!((10_000..30_000).contains(&uncached), "{uncached} of 40,000");
}

#[test]
fn an_open_table_keeps_a_small_root_in_memory_and_nothing_that_grows_with_its_keys() {
    // Catches filters or fences of data blocks that stay in memory: 2 to 4 % of the data.
    let counted = Counted::new(&raw(), &evens(600_000), 0);
    let (size, memory) = (counted.table.meta().size, counted.table.memory_len());
    assert!((60 << 20..68 << 20).contains(&size), "{size}");
    println!("{size} bytes, {} partitions, {memory} bytes of root", counted.partitions());
    assert!((2 << 10..12 << 10).contains(&memory), "{memory} bytes for a table of {size}");
    let (mut at, mut lens) = (0, Vec::new());
    let root = counted.table.root().expect("open");
    while let Some(handle) = root.index.handle(at) {
        lens.push(handle.len);
        at += 1;
    }
    let last = lens.pop().expect("partitions");
    assert!(lens.iter().all(|len| (7_000..=8_205).contains(len)) && last <= 8_205, "{lens:?}, {last}");
    assert_eq!(counted.counters.partition_reads.get(), 0, "opening reads no partition");
}

#[test]
fn filters_in_partitions_let_as_many_absent_keys_pass_as_a_whole_one() {
    // Catches keys that are in the wrong partition's filter, and filters with too few lines.
    for bits in [4, 10] {
        let counted = Counted::new(&raw().filter_bits_per_key(bits), &evens(50_000), 64 << 20);
        (0..49_999).for_each(|n| assert_eq!(counted.get(&key(2 * n + 1)), None));
        let passed = counted.counters.filter_false_positives.get() as f64;
        assert_eq!(passed + counted.counters.filter_negatives.get() as f64, 49_999.0);
        let expected = false_positive_rate(f64::from(bits)) * 49_999.0;
        // The last line of a filter is not completely full.
        assert!(
            (passed - expected).abs() < expected * 0.1 + 5.0 * expected.sqrt(),
            "{bits} bits: {passed}, {expected}"
        );
    }
}

#[test]
fn a_scan_reads_each_partition_once_in_both_directions() {
    // Catches a partition that is looked up again for each of its blocks.
    type Moves = (fn(&mut TableIter) -> Result<()>, fn(&mut TableIter) -> Result<()>);
    let moves: [Moves; 2] = [(TableIter::seek_to_first, TableIter::next), (TableIter::seek_to_last, TableIter::prev)];
    for (begin, step) in moves {
        for is_uncached in [false, true] {
            let counted = Counted::new(&raw().partition_bytes(1024), &evens(5_000), 1 << 20);
            let mut iter = if is_uncached { counted.table.iter_uncached() } else { counted.table.iter() };
            begin(&mut iter).expect("sound");
            assert_eq!(walk(&mut iter, usize::MAX, step).len(), 5_000);
            assert_eq!(counted.counters.partition_reads.get(), counted.partitions());
            assert_eq!(counted.looked(), if is_uncached { 0 } else { counted.partitions() });
        }
    }
}

#[test]
fn many_reads_at_once_look_for_each_partition_once() {
    // Catches a batch that probes the filter key by key.
    let counted = Counted::new(&raw().partition_bytes(512), &evens(3_000), 16 << 20);
    let keys: Vec<Vec<u8>> = (0..6_000).map(key).collect();
    assert_eq!(get_many(&counted.table, &keys).expect("sound"), 3_000);
    // The last key is after the last fence.
    assert!(counted.partitions() > 10);
    assert_eq!(counted.looked(), counted.partitions());
    let passed = counted.counters.filter_negatives.get() + counted.counters.filter_false_positives.get();
    assert_eq!(passed, 2_999);
}

#[test]
fn partitions_stay_in_the_cache_while_scans_pass_through_it() {
    // Catches data blocks that evict the partitions, which every read needs.
    let counted = Counted::new(&raw(), &evens(20_000), 256 << 10);
    (0..20_000).step_by(50).for_each(|n| drop(counted.get(&key(2 * n)).expect("stored")));
    for _ in 0..3 {
        let mut iter = counted.table.iter();
        iter.seek_to_first().expect("sound");
        walk(&mut iter, usize::MAX, TableIter::next);
    }
    assert_eq!(counted.counters.partition_reads.get(), counted.partitions());
    assert!(counted.counters.block_reads.get() > 1000, "the data blocks do not fit");
}

#[test]
fn a_table_that_is_removed_leaves_its_partitions_room_to_others() {
    // Catches partitions of obsolete tables that are never read again but take half the cache for ever.
    let counted = Counted::new(&raw(), &evens(20_000), 4 << 20);
    (0..20_000).step_by(50).for_each(|n| drop(counted.get(&key(2 * n)).expect("stored")));
    let (blocks, before) = (counted.table.cache(), counted.table.cache().partition_bytes());
    assert!(before > 8192 * (counted.partitions() - 1), "{before}");
    counted.table.set_obsolete();
    drop(counted.table);
    assert_eq!(blocks.partition_bytes(), 0);
}

/// Looks up all of `keys` at once. Returns the number of keys found.
fn get_many(table: &Table, keys: &[Vec<u8>]) -> Result<usize> {
    get_many_of(table, keys, usize::MAX)
}

/// The same, but ends after `most` were found.
fn get_many_of(table: &Table, keys: &[Vec<u8>], most: usize) -> Result<usize> {
    let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
    let hashes: Vec<u64> = keys.iter().map(|key| codec::key_hash(key)).collect();
    let mut found = 0;
    let asked = table.get_many(&keys, &hashes, MAX_SEQNO, |_, _, _| {
        found += 1;
        if found < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    assert_eq!(asked.is_break(), found == most);
    Ok(found)
}

#[test]
fn many_reads_at_once_read_each_block_once_and_neighbours_in_one_call() {
    // Catches a read call for each block, a block that is read for each of its keys, and adjacent blocks of which one is cached already.
    let counted = Counted::new(&raw(), &evens(6_000), 16 << 20);
    let blocks = counted.table.verify(None).expect("sound").blocks;
    let (before, partitions) = (counted.counters.block_reads.get(), counted.partitions());
    let keys: Vec<Vec<u8>> = (0..6_000).map(|n| key(2 * n)).collect();
    let some = [keys[600].clone(), keys[900].clone(), keys[4_000].clone()];
    let looked = counted.counters.partition_reads.get();
    let calls = counted.reads(|| assert_eq!(get_many(&counted.table, &some).expect("sound"), 3));
    assert_eq!(calls, 3 + counted.counters.partition_reads.get() - looked);
    let calls = counted.reads(|| assert_eq!(get_many(&counted.table, &keys).expect("sound"), keys.len()));
    assert_eq!(counted.counters.block_reads.get() - before, blocks, "each once");
    assert!(blocks > 150 && partitions >= 2, "{blocks} blocks in {partitions} partitions");
    // One read for each window, and further ones for the remaining partition, three interruptions, and a partition's end.
    let bytes = counted.table.meta().size;
    assert!(calls <= bytes.div_ceil(256 << 10) + 3 + 2 * partitions, "{calls} calls for {blocks} blocks");
    assert_eq!(counted.reads(|| assert_eq!(get_many(&counted.table, &keys).expect("sound"), keys.len())), 0);
    // Keys that are far apart: one read each, without the bytes between them.
    let cold = Counted::new(&raw(), &evens(6_000), 0);
    let far: Vec<Vec<u8>> = (0..6_000).step_by(200).map(|n| key(2 * n)).collect();
    assert_eq!(cold.reads(|| drop(get_many(&cold.table, &far))), far.len() as u64 + cold.partitions());
    // Reads the first partition and two of its blocks, and no more once two keys are found.
    assert_eq!(cold.reads(|| assert_eq!(get_many_of(&cold.table, &far, 2).expect("sound"), 2)), 1 + 2);
}

#[test]
fn a_failed_read_of_neighbours_is_no_error_of_a_block_that_can_be_read() {
    // Catches an error of a read for several keys that hides values of other blocks.
    let counted = Counted::new(&raw(), &evens(200), 16 << 20);
    let keys: Vec<Vec<u8>> = (0..200).map(|n| key(2 * n)).collect();
    // The first read is the partition, the second reads all data blocks together.
    counted.fs.fail_read(counted.fs.reads() + 1, Fault::Device, Repeat::Once);
    assert_eq!(get_many(&counted.table, &keys).expect("sound"), keys.len());
}

#[test]
fn a_scan_of_many_tables_leaves_those_files_open_that_gets_read() {
    // Catches a file that counts as used because a scan has opened it, or has read it often: it would displace the files that gets use.
    let (dir, fs, entries) = (dir(), FaultFs::new(real()), sample(60));
    let blocks = Arc::new(BlockCache::new(0, Arc::default()));
    let limits = (100, TableReads::Pread);
    let cache = TableCache::new(Arc::new(fs.clone()), dir.path().to_path_buf(), blocks, Arc::default(), limits);
    let made = (1..=300).map(|number| {
        build(dir.path(), number, &small_blocks(), &entries).expect("built");
        Table::open(&cache, number, None).expect("sound")
    });
    let tables: Vec<_> = made.collect();
    let reads_of_gets = || {
        let before = fs.reads();
        for table in &tables[200..220] {
            assert!(get(table, &entries[0].key, MAX_SEQNO).expect("sound").is_some());
        }
        fs.reads() - before
    };
    assert_eq!(reads_of_gets(), 60, "each opens the file, and reads a partition and a block");
    assert_eq!(reads_of_gets(), 40);
    for table in &tables {
        let mut iter = table.iter();
        iter.seek_to_first().expect("sound");
        walk(&mut iter, usize::MAX, TableIter::next);
    }
    assert_eq!(cache.open_tables(), 100);
    assert_eq!(reads_of_gets(), 40);
}

#[test]
fn fences_of_long_keys_that_begin_alike_take_little_memory_and_space() {
    // Catches a root with the keys of all blocks, which stays in memory outside of the cache, and partitions that are as long as the data. If the two
    // halves have different prefixes, the last fence of the first half is short.
    for (halves, most_memory) in [(b"kk", 90_000), (b"ab", 250_000)] {
        let key = |n: u64| [&[halves[n as usize / 120]; 20_000][..], &n.to_be_bytes()].concat();
        let entries: Vec<Entry> = (0..240).map(|n| value(key(n), 1, "value")).collect();
        let counted = Counted::new(&raw(), &entries, 16 << 20);
        let data = 240 * 20_000;
        let (memory, size) = (counted.table.memory_len(), counted.table.meta().size);
        assert!(memory < most_memory && size < data + data / 4, "{memory} bytes in memory, {size} in the file");
        for n in 0..240 {
            assert!(counted.get(&key(n)).is_some(), "{n}");
            assert_eq!(counted.get(&[&key(n)[..], b"\0"].concat()), None);
        }
        let wanted = [&b""[..], b"a", b"c", b"z", &[b'k'; 19_999], &[b'k'; 20_003]];
        assert!(wanted.iter().all(|key| counted.get(key).is_none()));
        assert_eq!(read_all(counted.dir.path(), &entries).expect("sound"), entries);
    }
}
