//! `stats`: draws the levels, and prints what opening found and what the engine counted since.

use std::io::{self, Write};
use std::path::Path;

use clap::Args;
use indicatif::BinaryBytes;
use mini_engine::{LevelMetrics, Metrics, RecoveryReport};
use serde_json::{Map, Value, json};

use super::Exit;
use super::database::{DatabaseArgs, IfMissing};
use super::failure::Failure;
use super::output::Output;

const BAR_WIDTH: u64 = 40;

/// Draw the levels of the database, and print what its last opening found and did
///
/// Counters begin when a process opens the database, so those printed are of this command alone.
#[derive(Args)]
#[command(
    verbatim_doc_comment,
    after_help = "\
Examples:
  mini-engine stats files.db
  mini-engine stats files.db --json"
)]
pub(crate) struct StatsArgs {
    #[command(flatten)]
    database: DatabaseArgs,
    /// Print one JSON object: bytes as numbers, times in nanoseconds
    #[arg(long)]
    json: bool,
}

/// A number by its name, the same in JSON and in words.
type Named = (&'static str, u64);

pub(crate) fn run(args: &StatsArgs) -> Result<Exit, Failure> {
    let db = args.database.open(IfMissing::Refuse)?;
    let metrics = db.metrics();
    let recovery = db.recovery();
    let mut output = Output::new();
    if args.json {
        let all = json(recovery, &metrics);
        output.write(|out| writeln!(out, "{all}"))?;
    } else {
        output.write(|out| draw(out, &args.database.path, recovery, &metrics))?;
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

fn counters(metrics: &Metrics) -> [Named; 20] {
    [
        ("writes", metrics.writes),
        ("user_bytes", metrics.user_bytes),
        ("wal_bytes", metrics.wal_bytes),
        ("wal_writes", metrics.wal_writes),
        ("wal_syncs", metrics.wal_syncs),
        ("flushes", metrics.flushes),
        ("flush_bytes", metrics.flush_bytes),
        ("compactions", metrics.compactions),
        ("compaction_bytes_read", metrics.compaction_bytes_read),
        ("compaction_bytes_written", metrics.compaction_bytes_written),
        ("stalls", metrics.stalls),
        ("stall_nanos", u64::try_from(metrics.stall_time.as_nanos()).unwrap_or(u64::MAX)),
        ("gets", metrics.gets),
        ("filter_negatives", metrics.filter_negatives),
        ("filter_false_positives", metrics.filter_false_positives),
        ("block_reads", metrics.block_reads),
        ("cache_hits", metrics.cache_hits),
        ("cache_misses", metrics.cache_misses),
        ("cache_bytes", metrics.cache_bytes),
        ("table_memory_bytes", metrics.table_memory_bytes),
    ]
}

fn json(recovery: &RecoveryReport, metrics: &Metrics) -> Value {
    let object = |named: &[Named]| named.iter().map(|&(name, n)| (name.into(), n.into())).collect::<Map<_, _>>();
    let levels: Vec<Value> =
        metrics.levels.iter().map(|level| json!({"tables": level.tables, "bytes": level.bytes})).collect();
    json!({"levels": levels, "recovery": object(&recovered(recovery)), "counters": object(&counters(metrics))})
}

fn draw(out: &mut dyn Write, path: &Path, recovery: &RecoveryReport, metrics: &Metrics) -> io::Result<()> {
    writeln!(out, "{}", path.display())?;
    writeln!(out, "level    tables         bytes")?;
    draw_levels(out, &metrics.levels)?;
    let sections: [(&str, &[Named]); 2] =
        [("found when it was opened", &recovered(recovery)), ("counted since", &counters(metrics))];
    for (title, numbers) in sections {
        writeln!(out, "\n{title}")?;
        for &(name, n) in numbers {
            writeln!(out, "  {:<24} {n:>20}", name.replace('_', " "))?;
        }
    }
    Ok(())
}

fn draw_levels(out: &mut dyn Write, levels: &[LevelMetrics]) -> io::Result<()> {
    let most = levels.iter().map(|level| level.bytes).max().unwrap_or(0).max(1);
    for (number, level) in levels.iter().enumerate() {
        let bar = u128::from(level.bytes) * u128::from(BAR_WIDTH) / u128::from(most);
        // A level that holds anything shows at least one mark.
        let bar = (bar as usize).max(usize::from(level.bytes > 0));
        draw_level(out, &format!("L{number}"), *level, &"#".repeat(bar))?;
    }
    let mut total = LevelMetrics::default();
    total.tables = levels.iter().map(|level| level.tables).sum();
    total.bytes = levels.iter().map(|level| level.bytes).sum();
    draw_level(out, "total", total, "")
}

fn draw_level(out: &mut dyn Write, name: &str, level: LevelMetrics, bar: &str) -> io::Result<()> {
    let bytes = BinaryBytes(level.bytes).to_string();
    writeln!(out, "{}", format_args!("{name:<8} {:>6}  {bytes:>12}  {bar}", level.tables).to_string().trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_level_is_drawn_in_proportion_and_none_that_holds_bytes_is_blank() {
        // Catches a bar scaled by the sum instead of the largest level, and a small level that vanishes.
        let level = |tables, bytes| {
            let mut level = LevelMetrics::default();
            (level.tables, level.bytes) = (tables, bytes);
            level
        };
        let mut drawn = Vec::new();
        draw_levels(&mut drawn, &[level(2, 1 << 20), level(1, 1 << 10), level(0, 0)]).unwrap();
        let drawn = String::from_utf8(drawn).unwrap();
        let expected = format!(
            "L0            2      1.00 MiB  {}\nL1            1      1.00 KiB  #\nL2            0           0 B\ntotal         3      1.00 MiB\n",
            "#".repeat(40)
        );
        assert_eq!(drawn, expected);
    }
}
