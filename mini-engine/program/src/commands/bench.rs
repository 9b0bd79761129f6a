//! `bench`: times the most common operations of the engine, under the names that LevelDB's `db_bench` uses.
//!
//! The results of reads are checked within the measured time: a wrong result is an error and prints no figure.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};

use crate::bench::amounts::Amounts;
use crate::bench::bench_dir::BenchDir;
use crate::bench::data::{self, Data};
use crate::bench::workload::{Done, Run, Workload};
use crate::failure::{Exit, Failure};
use crate::output::{self, Output};
use crate::{progress, size};

/// Time reads and writes, and print what an operation took
///
/// Keys are 16 digits, values half random. NAMES run one after the other on one database: reads
/// find what an earlier name, or an earlier run on the same --db, has written. Everything read is
/// checked. Writes are buffered unless --synced; flushes and compactions go on beside what is
/// timed. Each figure is followed by percentiles, in microseconds: of batches where --batch is used.
/// Taking them costs each operation two readings of a clock, each of some 20 ns.
#[derive(Args)]
#[command(after_help = "\
Names:
  fillseq           write --num keys in order
  fillrandom        write --num random ones of --num keys
  overwrite         the same over what is there
  readrandom        get --num random keys
  readmissing       get --num keys that are not there
  readseq           read the first --num entries in order
  readreverse       read the last --num entries backwards
  seekrandom        seek to --num random keys
  readwhilewriting  readrandom, beside a thread that overwrites

Examples:
  mini-engine bench fillseq readrandom readseq
  mini-engine bench fillrandom readwhilewriting --num 1000000 --value-size 400
  mini-engine bench fillrandom --db bench.db --synced --num 10000 && mini-engine stats bench.db")]
pub(crate) struct BenchArgs {
    /// What to time, in this order
    #[arg(required = true, value_name = "NAME", hide_possible_values = true)]
    names: Vec<Workload>,
    /// Directory of a database to use and keep [default: a new one, removed at the end]
    #[arg(long, value_name = "DIR")]
    db: Option<PathBuf>,
    #[command(flatten)]
    amounts: Amounts,
    /// Bytes that a memtable holds before it is written out as a table, such as 16M [default: 64M]
    #[arg(long, value_name = "SIZE", value_parser = size::parse_in_memory)]
    memtable_bytes: Option<usize>,
}

pub(crate) fn run(args: &BenchArgs) -> Result<Exit, Failure> {
    let dir = BenchDir::new(args.db.as_deref())?;
    let db = dir.open(args.memtable_bytes)?;
    let data = Data::new(args.amounts.num, args.amounts.value_size);
    let mut output = Output::new();
    output.write(|out| writeln!(out, "{}", heading(&args.amounts)))?;
    for name in &args.names {
        let bar = progress::of_operations(args.amounts.num).with_message(name_of(*name));
        let begun = Instant::now();
        let done =
            name.run(&Run { db: &db, data: &data, amounts: &args.amounts, bar: &bar, path: dir.path(), thread: 0 });
        let time = begun.elapsed();
        bar.finish_and_clear();
        let done = done?;
        let line = figures(*name, &done, time);
        output.write(|out| writeln!(out, "{line}"))?;
        if *name != Workload::Readmissing && done.found_nothing() {
            let name = name_of(*name);
            output::say(format_args!("mini-engine: {name} found nothing: write first, for instance with fillrandom"));
        }
        // Flushed at once, so that each figure appears when its workload ends.
        output.flush()?;
    }
    db.close()?;
    output.finish()?;
    Ok(Exit::Done)
}

fn heading(amounts: &Amounts) -> String {
    let durability = if amounts.synced { "synced" } else { "buffered" };
    format!(
        "{} keys of {} bytes, values of {} bytes, {} in a batch, {durability}, {}; seed {}",
        amounts.num,
        data::KEY_LEN,
        amounts.value_size,
        amounts.batch,
        size::counted(amounts.threads.into(), "thread", "threads"),
        amounts.seed
    )
}

/// Microseconds an operation, operations a second, megabytes (10^6 bytes) of keys and values a second; then percentiles.
fn figures(name: Workload, done: &Done, time: Duration) -> String {
    let seconds = time.as_secs_f64().max(f64::MIN_POSITIVE);
    let operations = done.operations as f64;
    let micros = if done.operations == 0 { 0.0 } else { seconds * 1e6 / operations };
    let named = name_of(name);
    let mut line = format!(
        "{named:<16} : {micros:>10.3} micros/op {:>10.0} ops/sec {:>9.1} MB/s",
        operations / seconds,
        done.bytes as f64 / 1e6 / seconds
    );
    if let Some(found) = done.found {
        line += &format!(" ({found} of {} found)", done.operations);
    }
    let percentile = |p: f64| done.nanos.value_at_quantile(p) as f64 / 1e3;
    let (half, most, nearly_all) = (percentile(0.5), percentile(0.99), percentile(0.999));
    let longest = done.nanos.max() as f64 / 1e3;
    line + &format!("\n{:<16}   p50 {half:.1}  p99 {most:.1}  p99.9 {nearly_all:.1}  max {longest:.1}", "")
}

fn name_of(name: Workload) -> String {
    name.to_possible_value().map_or(String::new(), |value| value.get_name().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_time_by_operation_and_bytes_by_time() {
        // Catches an inverted rate, and a division by zero.
        let mut done = Done { operations: 1000, bytes: 5_000_000, found: Some(900), ..Done::new() };
        done.nanos.record_n(250_000, 990).unwrap();
        done.nanos.record_n(9_000_000, 10).unwrap();
        let line = figures(Workload::Readrandom, &done, Duration::from_millis(500));
        assert_eq!(
            line,
            "readrandom       :    500.000 micros/op       2000 ops/sec      10.0 MB/s (900 of 1000 found)\n                   \
             p50 250.1  p99 250.1  p99.9 9003.0  max 9003.0"
        );
        let nothing = Done::new();
        assert!(figures(Workload::Readseq, &nothing, Duration::ZERO).contains(" 0.000 micros/op"));
    }
}
