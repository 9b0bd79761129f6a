//! `bench`: times what the engine does most, under the names that LevelDB's `db_bench` has made common.
//!
//! What is read is checked, within the time: a wrong answer is an error and no figure.

mod bench_dir;
mod data;
mod workload;

use std::io::IsTerminal;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};

use super::Exit;
use super::failure::Failure;
use super::output::Output;
use bench_dir::BenchDir;
use data::Data;
use workload::{Done, Workload};

/// Time reads and writes, and print what an operation took
///
/// Keys are 16 digits, values half random. NAMES run one after the other on one database: reads
/// find what an earlier name, or an earlier run on the same --db, has written. Everything read is
/// checked. Writes are buffered unless --synced; flushes and merges go on beside what is timed.
///
///   fillseq           write --num keys in order
///   fillrandom        write --num random ones of --num keys
///   overwrite         the same over what is there
///   readrandom        get --num random keys
///   readmissing       get --num keys that are not there
///   readseq           read the first --num entries in order
///   readreverse       read the last --num entries backwards
///   seekrandom        seek to --num random keys
///   readwhilewriting  readrandom, beside a thread that overwrites
#[derive(Args)]
#[command(
    verbatim_doc_comment,
    after_help = "\
Examples:
  mini-engine bench fillseq readrandom readseq
  mini-engine bench fillrandom readwhilewriting --num 1000000 --value-size 400
  mini-engine bench fillrandom --db bench.db --synced --num 10000 && mini-engine stats bench.db"
)]
pub(crate) struct BenchArgs {
    /// What to time, in this order
    #[arg(required = true, value_name = "NAME", hide_possible_values = true)]
    names: Vec<Workload>,
    /// Directory of a database to use and keep [default: a new one, removed at the end]
    #[arg(long, value_name = "DIR")]
    db: Option<PathBuf>,
    /// Keys, and operations of each name
    #[arg(long, value_name = "N", default_value = "100000")]
    num: NonZeroU64,
    /// Bytes of a value
    #[arg(long, value_name = "N", default_value = "100", value_parser = clap::value_parser!(u32).range(0..=1 << 24))]
    value_size: u32,
    /// Writes in a batch
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    batch: u32,
    /// Sync each batch
    #[arg(long)]
    synced: bool,
    /// Draws other keys
    #[arg(long, value_name = "N", default_value = "1")]
    seed: u64,
    /// Bytes that a memtable holds before it is written out as a table [default: 64 MiB]
    #[arg(long, value_name = "N")]
    memtable_bytes: Option<usize>,
}

pub(crate) fn run(args: &BenchArgs) -> Result<Exit, Failure> {
    let dir = BenchDir::new(args.db.as_deref())?;
    let db = dir.open(args.memtable_bytes)?;
    let data = Data::new(args.num.get(), args.value_size as usize);
    let mut output = Output::new();
    output.write(|out| writeln!(out, "{}", heading(args)))?;
    for name in &args.names {
        let bar = progress(*name, args.num.get());
        let begun = Instant::now();
        let done = name.run(&workload::Run { db: &db, data: &data, args, bar: &bar, path: dir.path() });
        let time = begun.elapsed();
        bar.finish_and_clear();
        let line = figures(*name, &done?, time);
        output.write(|out| writeln!(out, "{line}"))?;
        // Each figure is told when it is there.
        output.flush()?;
    }
    db.close()?;
    output.finish()?;
    Ok(Exit::Done)
}

fn heading(args: &BenchArgs) -> String {
    let durability = if args.synced { "synced" } else { "buffered" };
    format!(
        "{} keys of {} bytes, values of {} bytes, {} in a batch, {durability}; seed {}",
        args.num,
        data::KEY_LEN,
        args.value_size,
        args.batch,
        args.seed
    )
}

/// One line: microseconds an operation, operations a second, megabytes (10^6 bytes) of keys and values a second.
fn figures(name: Workload, done: &Done, time: Duration) -> String {
    let seconds = time.as_secs_f64().max(f64::MIN_POSITIVE);
    let operations = done.operations as f64;
    let micros = if done.operations == 0 { 0.0 } else { seconds * 1e6 / operations };
    let named = name.to_possible_value().map_or(String::new(), |value| value.get_name().to_owned());
    let mut line = format!(
        "{named:<16} : {micros:>10.3} micros/op {:>10.0} ops/sec {:>9.1} MB/s",
        operations / seconds,
        done.bytes as f64 / 1e6 / seconds
    );
    if let Some(found) = done.found {
        line += &format!(" ({found} of {} found)", done.operations);
    }
    line
}

fn progress(name: Workload, operations: u64) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(operations);
    let named = name.to_possible_value().map_or(String::new(), |value| value.get_name().to_owned());
    match ProgressStyle::with_template(PROGRESS) {
        Ok(style) => bar.with_style(style).with_message(named),
        // Indicatif's plain bar: a picture is no reason to stop. A test sees that it is never needed.
        Err(_) => bar,
    }
}

const PROGRESS: &str = "{msg:16} {wide_bar} {human_pos}/{human_len} {per_sec}, {eta} left";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_time_by_operation_and_bytes_by_time() {
        // Catches a rate turned upside down, and a division by nothing.
        let done = Done { operations: 1000, bytes: 5_000_000, found: Some(900) };
        let line = figures(Workload::Readrandom, &done, Duration::from_millis(500));
        assert_eq!(
            line,
            "readrandom       :    500.000 micros/op       2000 ops/sec      10.0 MB/s (900 of 1000 found)"
        );
        let nothing = Done { operations: 0, bytes: 0, found: None };
        assert!(figures(Workload::Readseq, &nothing, Duration::ZERO).contains(" 0.000 micros/op"));
    }

    #[test]
    fn the_template_can_be_read() {
        // Catches a typing error in it, which would leave a bar without rate and time.
        assert!(ProgressStyle::with_template(PROGRESS).is_ok());
    }
}
