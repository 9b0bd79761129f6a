//! The cost of each compaction policy, in bytes written, blocks read and bytes kept.
//!
//! `cargo bench -p mini-engine --bench amplification [-- MIB]`: loads MIB (24 by default) times the size of level 1 in random
//! order, does three times as many overwrites of random keys, waits until no compaction is due, and counts. The counts hardly
//! depend on the machine; they vary with the interleaving of flushes and compactions. Definitions, as in `Metrics`:
//! * write: bytes of tables written by flushes and compactions, for each byte of keys and values flushed. Given once for the load
//!   and the overwrites together, and once for the overwrites alone, which is the harder case. The log would add one to each.
//! * read: data blocks read, from the cache or not, for each get of a random existing key.
//! * space: bytes of all tables, for each byte that they have after a compaction into one run. The figure at the end varies with timing: leveled
//!   compaction sometimes misses its goal.

use mini_engine::{Compaction, Compression, Db, Metrics};
use proof::Random;

/// Bytes of level 1 and of a memtable: small, so that there are many levels and the run is short.
const LEVEL1_BYTES: u64 = 1 << 20;
const MEMTABLE_BYTES: usize = 1 << 20;
const TABLE_FILE_BYTES: u64 = 1 << 20;
const KEY_LEN: usize = 16;
const VALUE_LEN: usize = 100;
const OVERWRITES: u64 = 3;
const GETS: u64 = 50_000;

/// A policy with the options that it is measured with.
struct Subject {
    name: &'static str,
    policy: Compaction,
    size_ratio: u64,
    l0_trigger: usize,
    /// The goals: upper bounds for write, read and space. A policy between leveled and tiered has goals between theirs.
    goal: [f64; 3],
}

const SUBJECTS: [Subject; 4] = [
    Subject { name: "leveled", policy: Compaction::Leveled, size_ratio: 10, l0_trigger: 4, goal: [10.0, 1.2, 1.15] },
    Subject { name: "tiered", policy: Compaction::Tiered, size_ratio: 10, l0_trigger: 10, goal: [3.0, 3.0, 1.6] },
    Subject {
        name: "lazy-leveled",
        policy: Compaction::LazyLeveled,
        size_ratio: 4,
        l0_trigger: 4,
        goal: [10.0, 3.0, 1.6],
    },
    Subject { name: "partial", policy: Compaction::Partial, size_ratio: 4, l0_trigger: 4, goal: [10.0, 3.0, 1.6] },
];

fn key(n: u64) -> String {
    format!("{n:0KEY_LEN$}")
}

fn put(db: &Db, n: u64, random: &mut Random) -> mini_engine::Result<()> {
    let mut value = [0; VALUE_LEN];
    value.chunks_mut(8).for_each(|chunk| chunk.copy_from_slice(&random.next().to_le_bytes()[..chunk.len()]));
    db.insert(key(n), value)
}

fn settle(db: &Db) -> mini_engine::Result<Metrics> {
    db.flush()?;
    db.wait_for_compactions()?;
    Ok(db.metrics())
}

fn written(metrics: &Metrics) -> u64 {
    metrics.levels.iter().map(|level| level.written).sum()
}

fn table_bytes(metrics: &Metrics) -> u64 {
    metrics.levels.iter().map(|level| level.bytes).sum()
}

/// The counts for one subject.
struct Figures {
    written: f64,
    written_by_overwrites: f64,
    read: f64,
    kept: f64,
    most_kept: f64,
    levels: String,
}

fn measure(subject: &Subject, keys: u64) -> mini_engine::Result<Figures> {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let builder = Db::builder(dir.path()).compaction(subject.policy).size_ratio(subject.size_ratio);
    let builder = builder.l0_trigger(subject.l0_trigger).level1_bytes(LEVEL1_BYTES).memtable_bytes(MEMTABLE_BYTES);
    let db = builder.table_file_bytes(TABLE_FILE_BYTES).compression(Compression::None).open()?;
    let mut random = Random(1);
    let mut order: Vec<u64> = (0..keys).collect();
    for at in (1..order.len()).rev() {
        order.swap(at, (random.next() % (at as u64 + 1)) as usize);
    }
    order.iter().try_for_each(|&n| put(&db, n, &mut random))?;
    let loaded = settle(&db)?;
    let mut most_bytes = 0;
    for n in 0..OVERWRITES * keys {
        let key = random.next() % keys;
        put(&db, key, &mut random)?;
        if n % 10_000 == 0 {
            most_bytes = most_bytes.max(table_bytes(&db.metrics()));
        }
    }
    let overwritten = settle(&db)?;
    for _ in 0..GETS {
        let found = db.get(key(random.next() % keys))?;
        assert!(found.is_some(), "a key is missing");
    }
    let read = db.metrics();
    db.compact_range(..)?;
    let least = table_bytes(&settle(&db)?);
    let level = |(number, level): (usize, &mini_engine::LevelMetrics)| {
        (level.bytes > 0)
            .then(|| format!("L{number} {:.1} MiB in {} of {}", mib(level.bytes), level.runs, level.tables))
    };
    Ok(Figures {
        written: written(&overwritten) as f64 / overwritten.flushed_user_bytes as f64,
        written_by_overwrites: (written(&overwritten) - written(&loaded)) as f64
            / (overwritten.flushed_user_bytes - loaded.flushed_user_bytes) as f64,
        read: (read.get_blocks - overwritten.get_blocks) as f64 / GETS as f64,
        kept: table_bytes(&overwritten) as f64 / least as f64,
        most_kept: most_bytes.max(table_bytes(&overwritten)) as f64 / least as f64,
        levels: overwritten.levels.iter().enumerate().filter_map(level).collect::<Vec<_>>().join(", "),
    })
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

fn main() -> mini_engine::Result<()> {
    // Cargo passes flags too, so this skips arguments that are no number.
    let times = std::env::args().skip(1).find_map(|arg| arg.parse::<u64>().ok()).unwrap_or(24);
    let keys = times * LEVEL1_BYTES / (KEY_LEN + VALUE_LEN) as u64;
    println!(
        "{keys} keys of {KEY_LEN} + {VALUE_LEN} bytes, {times} x level 1 ({} KiB), memtables of {} KiB, tables of {} KiB; \
         loaded in random order, then {OVERWRITES} x as many random overwrites",
        LEVEL1_BYTES >> 10,
        MEMTABLE_BYTES >> 10,
        TABLE_FILE_BYTES >> 10
    );
    println!("policy        ratio  L0  written  (overwrites)  blocks a get  space  (at most)  goals");
    for subject in SUBJECTS {
        let Figures { written, written_by_overwrites, read, kept, most_kept, levels } = measure(&subject, keys)?;
        let goals = subject.goal.map(|goal| goal.to_string()).join(" / ");
        let met = [written, read, kept].iter().zip(subject.goal).all(|(found, goal)| *found <= goal);
        println!(
            "{:<12} {:>6} {:>3} {written:>8.2} {written_by_overwrites:>13.2} {read:>13.3} {kept:>6.3} {most_kept:>10.3}  \
             {goals} {}",
            subject.name,
            subject.size_ratio,
            subject.l0_trigger,
            if met { "met" } else { "MISSED" }
        );
        println!("             {levels}");
    }
    Ok(())
}
