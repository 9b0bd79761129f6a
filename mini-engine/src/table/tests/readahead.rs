//! Reading ahead: how often the file is read, and what damage does to it.

use super::*;
use crate::table::read::iter::TableIter;

/// A table of many raw blocks, opened so that its reads are counted, with a cache of `cache_bytes`.
struct Counted {
    dir: TempDir,
    fs: FaultFs,
    table: Arc<Table>,
    entries: Vec<Entry>,
    blocks: u64,
}

impl Counted {
    fn new(cache_bytes: u64) -> Self {
        let dir = dir();
        let entries: Vec<Entry> = (0..20_000).map(|i| value(format!("key/{i:06}"), 1, [b'v'; 100])).collect();
        let options = Options::default().compression(Compression::None).filter_bits_per_key(0);
        build(dir.path(), 1, &options, &entries).expect("built");
        let fs = FaultFs::new(real());
        let table = open_in(Arc::new(fs.clone()), dir.path(), 1, cache_bytes, &Arc::default()).expect("sound");
        let blocks = table.verify(None).expect("sound").blocks;
        assert!(blocks > 400, "{blocks} blocks");
        Self { dir, fs, table, entries, blocks }
    }

    /// Reads of the file that `scan` makes.
    fn reads(&self, scan: impl FnOnce(&mut TableIter)) -> u64 {
        let before = self.fs.reads();
        scan(&mut self.table.iter());
        self.fs.reads() - before
    }
}

fn walk(iter: &mut TableIter, steps: usize, step: fn(&mut TableIter) -> Result<()>) -> Vec<Vec<u8>> {
    let mut keys = Vec::new();
    while iter.valid() && keys.len() < steps {
        keys.push(iter.key().to_vec());
        step(iter).expect("sound");
    }
    keys
}

#[test]
fn a_long_scan_reads_many_blocks_at_once_in_both_directions() {
    // Catches a scan that reads block by block, and blocks read ahead that are the wrong ones.
    let counted = Counted::new(0);
    let mut expected: Vec<Vec<u8>> = counted.entries.iter().map(|entry| entry.key.clone()).collect();
    let mut seen = Vec::new();
    let forward = counted.reads(|iter| {
        iter.seek_to_first().expect("sound");
        seen = walk(iter, usize::MAX, TableIter::next);
    });
    assert_eq!(seen, expected);
    assert!(forward < counted.blocks / 20, "{forward} reads for {} blocks", counted.blocks);
    expected.reverse();
    let backward = counted.reads(|iter| {
        iter.seek_to_last().expect("sound");
        seen = walk(iter, usize::MAX, TableIter::prev);
    });
    assert_eq!(seen, expected);
    assert!(backward < counted.blocks / 20, "{backward} reads for {} blocks", counted.blocks);
}

#[test]
fn a_merge_reads_ahead_from_its_first_block() {
    // Catches a merge that has to show itself first, although it reads all there is.
    let counted = Counted::new(0);
    let before = counted.fs.reads();
    let mut iter = counted.table.iter_uncached();
    iter.seek_to_first().expect("sound");
    walk(&mut iter, usize::MAX, TableIter::next);
    let reads = counted.fs.reads() - before;
    let bytes = counted.table.meta().size;
    assert!(reads <= bytes.div_ceil(200 << 10), "{reads} reads for {bytes} bytes");
}

#[test]
fn short_scans_and_jumps_read_what_they_need_and_no_more() {
    // Catches a read of 256 KiB for ten entries, and for each of many seeks.
    let counted = Counted::new(0);
    let one_block = counted.reads(|iter| {
        iter.seek(b"key/010000", MAX_SEQNO).expect("sound");
        walk(iter, 3, TableIter::next);
    });
    assert!(one_block <= 2, "{one_block} reads");
    let jumps = counted.reads(|iter| {
        for i in 0..100 {
            iter.seek(format!("key/{:06}", i * 7919 % 20_000).as_bytes(), MAX_SEQNO).expect("sound");
            walk(iter, 2, TableIter::next);
        }
    });
    assert!((100..=200).contains(&jumps), "{jumps} reads for 100 jumps");
}

#[test]
fn what_was_read_ahead_goes_into_the_cache_and_what_is_there_is_not_read() {
    // Catches a scan that bypasses the cache, or that reads a file whose blocks are all in memory.
    let counted = Counted::new(64 << 20);
    let all = |iter: &mut TableIter| {
        iter.seek_to_first().expect("sound");
        walk(iter, usize::MAX, TableIter::next);
    };
    assert!(counted.reads(all) > 0);
    assert_eq!(counted.reads(all), 0);
}

#[test]
fn damage_ahead_of_a_scan_does_not_stop_it_before_it_comes_there() {
    // Catches a scan that fails, or ends, because of a block that was only read ahead.
    let counted = Counted::new(0);
    let path = counted.dir.path().join(file_name(1));
    let mut bytes = std_fs::read(&path).expect("the table");
    let half = bytes.len() / 2;
    bytes[half] ^= 1;
    std_fs::write(&path, bytes).expect("damaged");
    let mut iter = counted.table.iter();
    let mut seen = 0;
    let mut result = iter.seek_to_first();
    while result.is_ok() && iter.valid() {
        assert_eq!(iter.key(), counted.entries[seen].key);
        seen += 1;
        result = iter.next();
    }
    let Err(Error::Corruption { offset, .. }) = result else { panic!("the damage was not seen: {result:?}") };
    assert!(offset <= half as u64 && half as u64 - offset < 4200, "the damage at {half} was seen at {offset}");
    // All entries of the blocks before it were shown.
    let mut rest = counted.table.iter();
    rest.seek(&counted.entries[seen - 1].key, MAX_SEQNO).expect("sound");
    assert!(rest.valid() && rest.next().is_err());
}

#[test]
fn a_failed_read_ahead_is_no_error_of_the_block_that_can_be_read() {
    // Catches an error of later blocks that ends a scan which has not come to them; and one of its own that is lost.
    let counted = Counted::new(0);
    let mut iter = counted.table.iter_uncached();
    // The first read is that of the partition.
    counted.fs.fail_read(counted.fs.reads() + 1, Fault::Device, Repeat::Once);
    iter.seek_to_first().expect("the block alone can be read");
    assert_eq!(iter.key(), counted.entries[0].key);
    counted.fs.fail_read(counted.fs.reads(), Fault::Device, Repeat::FromThenOn);
    let mut result = Ok(());
    while result.is_ok() && iter.valid() {
        result = iter.next();
    }
    assert!(matches!(result, Err(Error::Io { op: "read", .. })), "{result:?}");
}
