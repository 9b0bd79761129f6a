//! Checks that each option has its documented effect, and is not only accepted.
//!
//! Options that other tests cover: `compaction_threads`, `l0_slowdown` and the policy's memory in `compaction`; `l0_stop` and `wait_for_space` in
//! `space`; `log_compression` in `group`; `recovery_mode` in `quarantine`; `create_if_missing` in `directory`; the results of a memtable of either
//! kind in `model`; the shape of levels under each policy in the unit tests of `compaction::policy`.

use crate::support::*;

/// The stored bytes of each data block of a table, their compression, and the uncompressed length: see `docs/src/formats.md`.
fn stored(table: &Path) -> Vec<(Vec<u8>, u8, usize)> {
    let file = fs::read(table).unwrap();
    let block = |(offset, len): (usize, usize)| {
        let (stored, trailer) = file[offset..offset + len].split_at(len - 13);
        (stored.to_vec(), trailer[0], u32::from_le_bytes(trailer[1..5].try_into().unwrap()) as usize)
    };
    blocks(table).into_iter().map(block).collect()
}

fn compressions(dir: &Path) -> BTreeSet<u8> {
    paths(dir, ".sst").iter().flat_map(|table| stored(table)).map(|(_, compression, _)| compression).collect()
}

#[test]
fn defaults_are_those_that_are_documented() {
    // Catches a default that was changed in one place only.
    let documented = Options::default()
        .memtable_bytes(64 << 20)
        .memtable_kind(MemtableKind::SkipList)
        .immutable_memtables(1)
        .size_ratio(10)
        .l0_slowdown(20)
        .l0_stop(36)
        .level1_bytes(64 << 20)
        .table_file_bytes(64 << 20)
        .compaction_threads(2)
        .bytes_per_sync(4 << 20)
        .block_bytes(4096)
        .partition_bytes(8192)
        .filter_bits_per_key(10)
        .compression_per_level([Compression::None, Compression::None, Compression::Lz4])
        .cache_bytes(32 << 20)
        .durability(Durability::Buffered)
        .log_compression(false)
        .recovery_mode(RecoveryMode::Strict)
        .create_if_missing(true);
    assert_eq!(Options::default(), documented);
}

#[test]
fn an_option_past_either_end_of_its_range_is_refused_with_name_value_and_range() {
    // Catches a bound that is not checked, a builder method that sets another option, and a check that comes only after the directory was made.
    let dir = TempDir::new().unwrap();
    let builder = || Db::builder(dir.path().join("db"));
    type Set = fn(Builder, u64) -> Builder;
    let options: [(&str, Set, u64, u64); 17] = [
        ("memtable_bytes", |b, n| b.memtable_bytes(n as usize), 4096, 16 << 30),
        ("immutable_memtables", |b, n| b.immutable_memtables(n as usize), 1, 64),
        ("size_ratio", Builder::size_ratio, 2, 32),
        ("l0_trigger", |b, n| b.l0_trigger(n as usize), 1, 1000),
        ("l0_slowdown", |b, n| b.l0_slowdown(n as usize), 1, 1000),
        ("l0_stop", |b, n| b.l0_stop(n as usize), 1, 1000),
        ("level1_bytes", Builder::level1_bytes, 1 << 10, 1 << 50),
        ("table_file_bytes", Builder::table_file_bytes, 1 << 10, 16 << 30),
        ("max_compaction_bytes", Builder::max_compaction_bytes, 1 << 10, 1 << 50),
        ("max_transaction_bytes", |b, n| b.max_transaction_bytes(n as usize), 4096, 1 << 30),
        ("replay_memory_bytes", Builder::replay_memory_bytes, 64 << 10, 1 << 50),
        ("compaction_threads", |b, n| b.compaction_threads(n as usize), 1, 64),
        ("bytes_per_sync", Builder::bytes_per_sync, 64 << 10, 16 << 30),
        ("block_bytes", |b, n| b.block_bytes(n as usize), 512, 64 << 10),
        ("partition_bytes", |b, n| b.partition_bytes(n as usize), 128, 1 << 20),
        ("compression_per_level (levels)", |b, n| b.compression_per_level(vec![Compression::Lz4; n as usize]), 1, 8),
        (
            "compression zstd level",
            |b, n| b.compression_per_level([Compression::None, Compression::Zstd { level: n as i32 }]),
            1,
            22,
        ),
    ];
    let refuse = |builder: Builder, name: &str, value: u64, range: &str| match builder.open() {
        Err(Error::InvalidArgument(what)) => assert_eq!(what, format!("option {name} is {value}: it must be {range}")),
        other => panic!("{name} = {value}: {other:?}"),
    };
    for (name, set, low, high) in options {
        for past in [low - 1, high + 1] {
            refuse(set(builder(), past), name, past, &format!("{low} to {high}"));
        }
    }
    // Options that may be 0.
    refuse(builder().filter_bits_per_key(33), "filter_bits_per_key", 33, "0 to 32");
    refuse(builder().cache_bytes((1 << 50) + 1), "cache_bytes", (1 << 50) + 1, "0 to 1125899906842624");
    // The other two ways to set options.
    let (whole, zstd) = (Options::default().memtable_bytes(1), Compression::Zstd { level: 23 });
    refuse(builder().options(whole), "memtable_bytes", 1, "4096 to 17179869184");
    refuse(builder().compression(zstd), "compression zstd level", 23, "1 to 22");
    assert!(!dir.path().join("db").exists());
}

#[test]
fn a_memtable_is_frozen_at_memtable_bytes() {
    // Catches a size that is ignored, or taken for a number of entries, and an ignored kind: each kind uses another amount of memory for an entry.
    let entries_of_first = |kind: MemtableKind, bytes: usize, value: &[u8]| {
        let (dir, fs, db) = hooked(|b| b.memtable_bytes(bytes).memtable_kind(kind).immutable_memtables(64));
        // No log is removed meanwhile.
        let (_arrivals, _go) = fs.hold(Op::Create, ".sst", Answer::Go);
        // The second log is made in advance. It is in use once it has a frame.
        let is_second_used = || match &files(dir.path(), ".log")[..] {
            [_, second, ..] => std::fs::read(dir.path().join(second)).unwrap().iter().skip(56).any(|byte| *byte != 0),
            _ => false,
        };
        let mut written = 0;
        while !is_second_used() {
            db.insert(key(written), value).unwrap();
            written += 1;
        }
        // The last entry is the first of the next memtable.
        written - 1
    };
    for kind in [MemtableKind::SkipList, MemtableKind::Vector] {
        for bytes in [16 << 10, 256 << 10] {
            let held = entries_of_first(kind, bytes, &[7; 1000]) as usize * 1008;
            assert!((bytes * 4 / 5..=bytes + 1008).contains(&held), "{kind:?}: {held} of {bytes} bytes");
        }
    }
    let [list, vector] =
        [MemtableKind::SkipList, MemtableKind::Vector].map(|kind| entries_of_first(kind, 64 << 10, b""));
    assert_ne!(list, vector);
}

#[test]
fn writers_wait_once_as_many_memtables_as_allowed_wait_for_their_flush() {
    // Catches a queue that holds one more or one less memtable than the option allows.
    for allowed in [1, 3] {
        let (dir, fs, db) = hooked(|b| b.memtable_bytes(4096).immutable_memtables(allowed));
        let (_arrivals, go) = fs.hold(Op::Create, ".sst", Answer::Go);
        thread::scope(|scope| {
            let writer = scope.spawn(|| (0..200).for_each(|n| db.insert(key(n), [7; 400]).unwrap()));
            wait_while(|| db.metrics().stalls == 0 && !writer.is_finished());
            // One more log is made in advance.
            wait_while(|| files(dir.path(), ".log").len() < allowed + 2 && !writer.is_finished());
            assert_eq!((files(dir.path(), ".log").len(), db.metrics().flushes), (allowed + 2, 0));
            drop(go);
        });
        assert_eq!(db.iter().map(Result::unwrap).count(), 200);
    }
}

#[test]
fn level_0_is_compacted_once_it_holds_more_than_l0_trigger_tables() {
    // Catches a trigger that is off by one, or fixed.
    for trigger in [1, 5] {
        let (_dir, db) = opened(|b| b.l0_trigger(trigger));
        let flush = || {
            db.insert("key", "").unwrap();
            db.flush().unwrap();
            db.wait_for_compactions().unwrap();
            (db.metrics().levels[0].tables, db.metrics().compactions)
        };
        for tables in 1..=trigger as u64 {
            assert_eq!(flush(), (tables, 0));
        }
        assert_eq!(flush(), (0, 1));
    }
}

#[test]
fn a_tier_holds_one_run_less_than_the_size_ratio() {
    // Catches a ratio that is ignored by policies that use it as a number of runs, and one policy taken for another.
    let most_runs = |policy: Compaction, ratio: u64| {
        let builder = in_memory(&MemFs::default()).compaction(policy).size_ratio(ratio).l0_trigger(1);
        let db = builder.compression(Compression::None).open().unwrap();
        // The oldest run is so large that the tiers are not compacted with it.
        fill(&db, 0..2000, [7; 100]);
        db.compact_range(..).unwrap();
        let runs = |_| {
            db.insert(key(1), "1").unwrap();
            db.flush().unwrap();
            db.wait_for_compactions().unwrap();
            db.metrics().levels[1].runs
        };
        (0..14).map(runs).max()
    };
    assert_eq!(most_runs(Compaction::Tiered, 2), Some(1));
    assert_eq!(most_runs(Compaction::Tiered, 5), Some(4));
    assert_eq!(most_runs(Compaction::LazyLeveled, 5), Some(4));
    assert_eq!(most_runs(Compaction::Leveled, 5), Some(0));
}

#[test]
fn levels_come_between_by_size_ratio_and_level1_bytes() {
    // Catches options that are not passed to the policy, whose own tests set them directly.
    let levels = |ratio: u64, level1_bytes: u64| {
        let builder = in_memory(&MemFs::default()).memtable_bytes(4096).l0_trigger(1).table_file_bytes(4096);
        let builder = builder.compression(Compression::None).size_ratio(ratio).level1_bytes(level1_bytes);
        let db = builder.open().unwrap();
        for n in 0..1500u64 {
            db.insert(key(n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 55), [7; 200]).unwrap();
            // One compaction at a time, so that the result does not depend on its speed.
            if n % 10 == 9 {
                db.flush().unwrap();
                db.wait_for_compactions().unwrap();
            }
        }
        // Counts levels that ever held data, since a compaction may just have emptied one.
        db.metrics().levels.iter().skip(1).filter(|level| level.arrived > 0).count()
    };
    assert_eq!(levels(2, 1 << 20), 1);
    let (wide, narrow) = (levels(8, 4096), levels(2, 4096));
    assert!(1 < wide && wide < narrow, "{wide} levels by 8, {narrow} by 2");
}

#[test]
fn compactions_cut_tables_at_table_file_bytes() {
    // Catches a size that is ignored, or that counts something other than bytes.
    for bytes in [2048, 16384] {
        let (dir, db) = opened(|b| b.table_file_bytes(bytes).compression(Compression::None).block_bytes(512));
        // Written twice, because a table without overlap would be moved unchanged.
        for _ in 0..2 {
            fill(&db, 0..2000, [7; 50]);
            db.flush().unwrap();
        }
        db.compact_range(..).unwrap();
        let sizes: Vec<u64> =
            paths(dir.path(), ".sst").iter().map(|table| fs::metadata(table).unwrap().len()).collect();
        assert!(sizes.len() > 5 && sizes.iter().filter(|&&size| size < bytes).count() <= 1, "{sizes:?}");
        assert!(sizes.iter().all(|&size| size < bytes * 5 / 4 + 1024), "{sizes:?}");
    }
}

#[test]
fn blocks_end_at_block_bytes() {
    // Catches a size that is ignored, and a larger entry that is refused or shares its block with others.
    for bytes in [512, 4096, 65536] {
        let (dir, db) = opened(|b| b.block_bytes(bytes).compression(Compression::None));
        fill(&db, 0..3000, [7; 50]);
        db.insert("large", vec![7; 70_000]).unwrap();
        db.flush().unwrap();
        let lengths: Vec<usize> = blocks(&paths(dir.path(), ".sst")[0]).iter().map(|(_, len)| *len).collect();
        let (large, ordinary) = lengths.split_last().unwrap();
        assert!((70_000..70_100).contains(large), "{large}");
        let (_, full) = ordinary.split_last().unwrap();
        assert!(full.iter().all(|len| (bytes * 3 / 4..=bytes + 13).contains(len)), "{bytes}: {full:?}");
    }
}

#[test]
fn partitions_end_at_partition_bytes() {
    // Catches a size that is ignored, and partitions of one data block each.
    let partitions = |bytes: usize| {
        let (_dir, db) = opened(|b| b.block_bytes(512).partition_bytes(bytes));
        fill(&db, 0..60_000, [7; 50]);
        db.flush().unwrap();
        assert_eq!(db.iter().count(), 60_000);
        db.metrics().partition_reads
    };
    let counts = [512, 4096, 32 << 10].map(partitions);
    for (more, fewer) in [(counts[0], counts[1]), (counts[1], counts[2])] {
        assert!((fewer * 7..=fewer * 11).contains(&more), "{counts:?}");
    }
}

#[test]
fn more_filter_bits_let_fewer_absent_keys_pass_and_none_let_all() {
    // Catches an ignored number of bits, and a table without a filter that is counted as having one.
    let passed = |bits: u32| {
        let (_dir, db) = opened(|b| b.filter_bits_per_key(bits));
        (0..8000).for_each(|n| db.insert(key(2 * n), "").unwrap());
        db.flush().unwrap();
        assert!((0..7999).all(|n| db.get(key(2 * n + 1)).unwrap().is_none()));
        let metrics = db.metrics();
        let told = metrics.filter_negatives + metrics.filter_false_positives;
        // Each key that passes the filter costs the read of a block.
        assert_eq!((told, metrics.get_blocks + metrics.filter_negatives), (if bits == 0 { 0 } else { 7999 }, 7999));
        // A combined read of many keys counts each of them.
        let absent: Vec<String> = (0..7999).map(|n| key(2 * n + 1)).collect();
        assert!(db.get_many(&absent).unwrap().iter().all(Option::is_none));
        let both = db.metrics();
        assert_eq!(both.filter_negatives, 2 * metrics.filter_negatives);
        assert_eq!(both.filter_false_positives, 2 * metrics.filter_false_positives);
        // For existing keys, the counters stay the same.
        assert!((0..8000).all(|n| db.get(key(2 * n)).unwrap().is_some()));
        assert_eq!(db.metrics().filter_false_positives, both.filter_false_positives);
        metrics.get_blocks
    };
    let [none, two, ten, twenty] = [0, 2, 10, 20].map(passed);
    assert!(none == 7999 && (2400..4000).contains(&two), "{none}, {two} of 7999");
    assert!((30..160).contains(&ten) && twenty < 10, "{ten}, {twenty} of 7999");
}

#[test]
fn each_level_has_its_own_compression() {
    // Catches a level that uses the option of another level, and an option for all levels that reaches only the first.
    let dir = TempDir::new().unwrap();
    let levels = [Compression::None, Compression::Lz4, Compression::Zstd { level: 1 }];
    let builder = Db::builder(dir.path()).compression_per_level(levels).compaction(Compaction::Tiered).l0_trigger(1);
    let db = builder.open().unwrap();
    let flush_to = |db: &Db, dir: &TempDir| {
        // These keys determine the size of a run, and so its level.
        (0..100u64).for_each(|n| db.insert(n.to_be_bytes(), [7; 100]).unwrap());
        db.flush().unwrap();
        db.wait_for_compactions().unwrap();
        wait_for_removals(db, dir.path());
    };
    let flush = |db: &Db| flush_to(db, &dir);
    flush(&db);
    assert_eq!((db.metrics().levels[0].tables, compressions(dir.path())), (1, BTreeSet::from([0])));
    flush(&db);
    assert_eq!((db.metrics().levels[1].tables, compressions(dir.path())), (1, BTreeSet::from([1])));
    // The runs are together as large as the oldest run, so they go to the deepest level.
    (0..2).for_each(|_| flush(&db));
    assert_eq!((db.metrics().levels.len(), compressions(dir.path())), (8, BTreeSet::from([2])));
    for (compression, id) in [(Compression::None, 0), (Compression::Lz4, 1), (Compression::Zstd { level: 22 }, 2)] {
        let (dir, db) = opened(|b| b.compression(compression));
        flush_to(&db, &dir);
        assert_eq!(compressions(dir.path()), BTreeSet::from([id]));
    }
}

#[test]
fn a_block_is_compressed_exactly_where_that_saves_12_percent() {
    // Catches blocks that are stored compressed to save only a few bytes and so are decompressed at each read, and compressible blocks that are
    // stored uncompressed.
    type Compress = fn(&[u8]) -> Vec<u8>;
    let codecs: [(Compression, Compress); 2] = [
        (Compression::Lz4, lz4_flex::block::compress),
        (Compression::Zstd { level: 3 }, |bytes| zstd::bulk::compress(bytes, 3).unwrap()),
    ];
    for (compression, compress) in codecs {
        let (dir, db) = opened(|b| b.compression(compression).block_bytes(512));
        let mut random = Random(1);
        for n in 0..400u64 {
            // Values from pure noise to a quarter of zeros.
            let value: Vec<u8> = (0..400).map(|at| if at < n / 4 { 0 } else { random.next() as u8 }).collect();
            db.insert(key(n), value).unwrap();
        }
        db.flush().unwrap();
        let saves = |stored: usize, len: usize| stored * 100 <= len * 88;
        let (mut raw, mut compressed) = (0, 0);
        for (stored, id, len) in stored(&newest_table(dir.path())) {
            match id {
                0 => {
                    raw += 1;
                    assert!(!saves(compress(&stored).len(), len), "{compression:?}: {len} bytes are stored raw");
                }
                _ => {
                    compressed += 1;
                    assert!(saves(stored.len(), len), "{compression:?}: {len} bytes are stored in {}", stored.len());
                }
            }
        }
        assert!(raw > 50 && compressed > 50, "{compression:?}: {raw} raw, {compressed} compressed");
    }
}

#[test]
fn blocks_are_read_again_only_without_room_in_the_cache() {
    // Catches an unused cache, and one of 0 bytes that keeps blocks. The tests in `reads` check the bound on the cache's bytes.
    for (bytes, again) in [(0, true), (16 << 20, false)] {
        let (_dir, db) = opened(|b| b.cache_bytes(bytes));
        fill(&db, 0..1000, [7; 100]);
        db.flush().unwrap();
        let read_all = || {
            let before = db.metrics().block_reads;
            assert!((0..1000).all(|n| db.get(key(n)).unwrap().is_some()));
            db.metrics().block_reads - before
        };
        let (first, second) = (read_all(), read_all());
        assert_eq!((first > 0, second > 0), (true, again), "{first} blocks, then {second}");
        assert_eq!(db.metrics().cache_bytes > 0, !again);
    }
}

#[test]
fn single_writes_have_the_durability_of_the_options() {
    // Catches a default that applies to inserts but not to removes, and one that affects batches, which set their own durability.
    for (durability, syncs) in [(Durability::Buffered, 0), (Durability::Synced, 2)] {
        let (_dir, fs, db) = hooked(|b| b.durability(durability));
        fs.take();
        db.insert("a", "1").unwrap();
        db.remove("a").unwrap();
        assert_eq!(count(&fs.take(), Op::Sync, ".log"), syncs);
        put(&db, "b", "2", Durability::Buffered).unwrap();
        assert_eq!(count(&fs.take(), Op::Sync, ".log"), 0);
    }
}
