//! Readahead: the number of file reads, and the effect of damage.

use super::*;

const KEYS: usize = 20_000;

fn key(n: usize) -> Vec<u8> {
    format!("key/{n:06}").into_bytes()
}

/// A table of many uncompressed blocks, with a cache of `cache_bytes`, and the number of its blocks.
fn many_blocks(cache_bytes: u64) -> (Counted, u64) {
    let entries: Vec<Entry> = (0..KEYS).map(|n| value(key(n), 1, [b'v'; 100])).collect();
    let counted = Counted::new(&raw().filter_bits_per_key(0), &entries, cache_bytes);
    let blocks = counted.table.verify(None).expect("sound").blocks;
    assert!(blocks > 400, "{blocks} blocks");
    (counted, blocks)
}

/// The number of file reads that a scan makes.
fn reads(counted: &Counted, scan: impl FnOnce(&mut TableIter)) -> u64 {
    counted.reads(|| scan(&mut counted.table.iter()))
}

#[test]
fn a_long_scan_reads_many_blocks_at_once_in_both_directions() {
    // Catches a scan that reads block by block, and one that reads the wrong blocks ahead.
    let (counted, blocks) = many_blocks(0);
    let mut expected: Vec<Vec<u8>> = (0..KEYS).map(key).collect();
    let mut seen = Vec::new();
    let forward = reads(&counted, |iter| {
        iter.seek_to_first().expect("sound");
        seen = walk(iter, usize::MAX, TableIter::next);
    });
    assert_eq!(seen, expected);
    assert!(forward < blocks / 20, "{forward} reads for {blocks} blocks");
    expected.reverse();
    let backward = reads(&counted, |iter| {
        iter.seek_to_last().expect("sound");
        seen = walk(iter, usize::MAX, TableIter::prev);
    });
    assert_eq!(seen, expected);
    assert!(backward < blocks / 20, "{backward} reads for {blocks} blocks");
}

#[test]
fn a_compaction_reads_ahead_from_its_first_block() {
    // Catches a compaction that does not read ahead from the start, although it reads all blocks.
    let counted = many_blocks(0).0;
    let reads = counted.reads(|| {
        let mut iter = counted.table.iter_uncached();
        iter.seek_to_first().expect("sound");
        walk(&mut iter, usize::MAX, TableIter::next);
    });
    let bytes = counted.table.meta().size;
    assert!(reads <= bytes.div_ceil(200 << 10), "{reads} reads for {bytes} bytes");
}

#[test]
fn short_scans_and_jumps_read_what_they_need_and_no_more() {
    // Catches a read of 256 KiB for ten entries, or for each of many seeks.
    let counted = many_blocks(0).0;
    let one_block = reads(&counted, |iter| {
        iter.seek(b"key/010000", MAX_SEQNO).expect("sound");
        walk(iter, 3, TableIter::next);
    });
    assert!(one_block <= 2, "{one_block} reads");
    let jumps = reads(&counted, |iter| {
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
    let counted = many_blocks(64 << 20).0;
    let all = |iter: &mut TableIter| {
        iter.seek_to_first().expect("sound");
        walk(iter, usize::MAX, TableIter::next);
    };
    assert!(reads(&counted, all) > 0);
    assert_eq!(reads(&counted, all), 0);
}

#[test]
fn damage_ahead_of_a_scan_does_not_stop_it_before_it_comes_there() {
    // Catches a scan that fails, or ends, because of a block that was only read ahead.
    let counted = many_blocks(0).0;
    let half = counted.table.meta().size as usize / 2;
    flip(counted.dir.path(), half);
    let mut iter = counted.table.iter();
    let mut seen = 0;
    let mut result = iter.seek_to_first();
    while result.is_ok() && iter.valid() {
        assert_eq!(iter.key(), key(seen));
        seen += 1;
        result = iter.next();
    }
    let Err(Error::Corruption { offset, .. }) = result else { panic!("the damage was not seen: {result:?}") };
    assert!(offset <= half as u64 && half as u64 - offset < 4200, "the damage at {half} was seen at {offset}");
    // All entries of the blocks before the damaged one were returned.
    let mut rest = counted.table.iter();
    rest.seek(&key(seen - 1), MAX_SEQNO).expect("sound");
    assert!(rest.valid() && rest.next().is_err());
}

#[test]
fn a_failed_read_ahead_is_no_error_of_the_block_that_can_be_read() {
    // Catches an error of later blocks that ends a scan before it reaches them, and an error of the scan's own blocks that is lost.
    let counted = many_blocks(0).0;
    let mut iter = counted.table.iter_uncached();
    // The first read is that of the partition.
    counted.fs.fail_read(counted.fs.reads() + 1, Fault::Device, Repeat::Once);
    iter.seek_to_first().expect("the block alone can be read");
    assert_eq!(iter.key(), key(0));
    counted.fs.fail_read(counted.fs.reads(), Fault::Device, Repeat::FromThenOn);
    let mut result = Ok(());
    while result.is_ok() && iter.valid() {
        result = iter.next();
    }
    assert!(matches!(result, Err(Error::Io { op: "read", .. })), "{result:?}");
}
