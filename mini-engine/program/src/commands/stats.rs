//! `stats`: draws the levels, and prints the findings of the recovery and the engine's counters.

use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use clap::Args;
use indicatif::BinaryBytes;
use mini_engine::{AsideFile, Error, KeyspaceSize, LevelMetrics, Metrics, RecoveryReport};
use serde_json::{Map, Value, json};

use crate::database::{DatabaseArgs, OpenFor};
use crate::failure::{Exit, Failure};
use crate::levels;
use crate::output::Output;

/// Draw the levels of the database, and print what its last opening found and did
///
/// For each level: its sorted runs and tables and their size, then, since the database was created,
/// bytes that compactions read there, bytes written there, and those for each byte that came from above.
/// Read amplification is the number of sorted runs: filters spare a get most of them.
/// Other counters begin when a process opens the database, so they are of this command alone; those
/// that are zero are left out, but for --json. Writes that are in logs only are counted as replayed;
/// no level has them yet. Then come the keyspaces, if there are any besides the default one, and
/// files that opens have set aside.
#[derive(Args)]
#[command(after_help = "\
Examples:
  mini-engine stats files.db
  mini-engine stats files.db --json")]
pub(crate) struct StatsArgs {
    #[command(flatten)]
    database: DatabaseArgs,
    /// Print one JSON object: bytes as numbers, times in nanoseconds
    #[arg(long)]
    json: bool,
}

/// A keyspace with its approximate size.
type Sized = (KeyspaceSize, String);

/// A number with its name, which is the same in JSON and in text.
type Named = (&'static str, u64);

pub(crate) fn run(args: &StatsArgs) -> Result<Exit, Failure> {
    let db = args.database.open(OpenFor::Reading)?;
    let metrics = db.metrics();
    let (recovery, aside) = (db.recovery(), db.set_aside()?);
    let sized = |name: String| Ok((db.keyspace(&name)?.approximate_size()?, name));
    let keyspaces = db.keyspaces().into_iter().map(sized).collect::<Result<Vec<_>, Error>>()?;
    let mut output = Output::new();
    if args.json {
        let all = json(recovery, &metrics, &keyspaces, &aside);
        output.write(|out| writeln!(out, "{all}"))?;
    } else {
        output.write(|out| draw(out, &args.database.path, recovery, &metrics))?;
        output.write(|out| draw_keyspaces(out, &keyspaces))?;
        output.write(|out| draw_aside(out, &aside))?;
    }
    output.finish()?;
    Ok(Exit::Done)
}

fn recovered(report: &RecoveryReport) -> [Named; 7] {
    [
        ("logs_replayed", report.logs_replayed as u64),
        ("batches_replayed", report.batches_replayed),
        ("operations_replayed", report.operations_replayed),
        ("last_seqno", report.last_seqno),
        ("torn_bytes_dropped", report.torn.as_ref().map_or(0, |torn| torn.dropped_bytes)),
        ("files_set_aside", report.set_aside.len() as u64),
        ("orphans_removed", report.orphans_removed as u64),
    ]
}

/// Counters since the database was created.
fn counted_ever(metrics: &Metrics) -> [Named; 1] {
    [("flushed_user_bytes", metrics.flushed_user_bytes)]
}

/// Counters since it was opened.
fn counters(metrics: &Metrics) -> [Named; 36] {
    let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    [
        ("writes", metrics.writes),
        ("user_bytes", metrics.user_bytes),
        ("wal_bytes", metrics.wal_bytes),
        ("wal_zero_bytes", metrics.wal_zero_bytes),
        ("wal_writes", metrics.wal_writes),
        ("wal_syncs", metrics.wal_syncs),
        ("wal_recycled", metrics.wal_recycled),
        ("flushes", metrics.flushes),
        ("flush_bytes", metrics.flush_bytes),
        ("compactions", metrics.compactions),
        ("compaction_bytes_read", metrics.compaction_bytes_read),
        ("compaction_bytes_written", metrics.compaction_bytes_written),
        ("verify_bytes_read", metrics.verify_bytes_read),
        ("stalls", metrics.stalls),
        ("stall_nanos", nanos(metrics.stall_time)),
        ("slowdowns", metrics.slowdowns),
        ("slowdown_nanos", nanos(metrics.slowdown_time)),
        ("log_waits", metrics.log_waits),
        ("log_wait_nanos", nanos(metrics.log_wait_time)),
        ("gets", metrics.gets),
        ("get_blocks", metrics.get_blocks),
        ("filter_negatives", metrics.filter_negatives),
        ("filter_false_positives", metrics.filter_false_positives),
        ("block_reads", metrics.block_reads),
        ("partition_reads", metrics.partition_reads),
        ("partition_hits", metrics.partition_hits),
        ("partition_misses", metrics.partition_misses),
        ("cache_hits", metrics.cache_hits),
        ("cache_misses", metrics.cache_misses),
        ("memtable_bytes", metrics.memtable_bytes),
        ("cache_bytes", metrics.cache_bytes),
        ("cache_evicted_bytes", metrics.cache_evicted_bytes),
        ("retired_views", metrics.retired_views),
        ("table_memory_bytes", metrics.table_memory_bytes),
        ("open_files", metrics.open_files),
        ("clock_ahead_nanos", nanos(metrics.clock_ahead)),
    ]
}

fn json(recovery: &RecoveryReport, metrics: &Metrics, keyspaces: &[Sized], aside: &[AsideFile]) -> Value {
    let object = |named: &[Named]| named.iter().map(|&(name, n)| (name.into(), n.into())).collect::<Map<_, _>>();
    let levels: Vec<Value> = metrics.levels.iter().map(level).collect();
    let amplification = json!({
        "write": metrics.write_amplification(),
        "space": metrics.space_amplification(),
        // As in Pebble. The blocks that gets have read are unknown here, since the printing process did no gets.
        "read": metrics.levels.iter().map(|level| level.runs).sum::<u64>(),
    });
    json!({
        "compaction": metrics.compaction.name(),
        "levels": levels,
        "amplification": amplification,
        "recovery": object(&recovered(recovery)),
        "keyspaces": keyspaces.iter().map(|(size, name)| json!({ "name": name, "bytes": size.bytes, "entries": size.entries })).collect::<Vec<_>>(),
        "set_aside": aside.iter().map(file_aside).collect::<Vec<_>>(),
        "damaged_files": metrics.damaged_files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>(),
        "counters": object(&[&counters(metrics)[..], &counted_ever(metrics)].concat()),
    })
}

fn level(level: &LevelMetrics) -> Value {
    json!({
        "runs": level.runs,
        "tables": level.tables,
        "narrowed": level.narrowed,
        "range_tombstones": level.range_tombstones,
        "bytes": level.bytes,
        "arrived": level.arrived,
        "read": level.read,
        "written": level.written,
        "write_amplification": level.write_amplification(),
    })
}

fn file_aside(aside: &AsideFile) -> Value {
    json!({ "file": aside.file.display().to_string(), "bytes": aside.bytes, "quarantined": aside.is_quarantined })
}

fn draw_keyspaces(out: &mut dyn Write, keyspaces: &[Sized]) -> io::Result<()> {
    if !keyspaces.is_empty() {
        writeln!(out, "\nkeyspaces, about: bytes of tables, and entries in them")?;
    }
    keyspaces.iter().try_for_each(|(size, name)| {
        writeln!(out, "  {:<24} {:>11} {:>20}", name.escape_debug(), BinaryBytes(size.bytes).to_string(), size.entries)
    })
}

fn draw_aside(out: &mut dyn Write, aside: &[AsideFile]) -> io::Result<()> {
    if !aside.is_empty() {
        writeln!(out, "\nset aside; `repair` reads the quarantined tables, and `dump` shows what is in the others")?;
    }
    aside.iter().try_for_each(|aside| {
        let note = if aside.is_quarantined { ", quarantined" } else { "" };
        writeln!(out, "  {}: {} bytes{note}", aside.file.display(), aside.bytes)
    })
}

fn draw(out: &mut dyn Write, path: &Path, recovery: &RecoveryReport, metrics: &Metrics) -> io::Result<()> {
    writeln!(out, "{}", path.display())?;
    levels::draw(out, metrics)?;
    let sections: [(&str, &[Named]); 3] = [
        ("found when it was opened", &recovered(recovery)),
        ("counted since it was opened", &counters(metrics)),
        ("counted since it was created", &counted_ever(metrics)),
    ];
    for (title, numbers) in sections {
        // Zeros are left out, because most counters of a reading command are zero.
        let told: Vec<&Named> = numbers.iter().filter(|(_, n)| *n > 0).collect();
        if !told.is_empty() {
            writeln!(out, "\n{title}")?;
        }
        for (name, n) in told {
            writeln!(out, "  {:<24} {n:>20}", name.replace('_', " "))?;
        }
    }
    Ok(())
}
