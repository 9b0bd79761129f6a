//! The program `memtable-bench`: measures fastskip's tables beside their peers.
//!
//! Round by round, every subject runs in a process of its own: the published fastskip 0.1.1 can corrupt the one it runs in,
//! and no subject inherits another's heap. Only ratios of one run are a claim; absolute times are context.
#![forbid(unsafe_code)]

mod failure;
mod goals;
mod host;
mod keys;
mod memtable;
mod numbers;
mod origin;
mod output;
mod process;
mod progress;
mod random;
mod report;
mod resident;
mod rounds;
mod scaling;
mod statistics;
mod warm;
mod zipf;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Measures fastskip's tables beside their peers.
#[derive(Parser)]
#[command(name = "memtable-bench", version, after_help = EXIT_CODES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const EXIT_CODES: &str = "\
Exit codes: 0 done, 1 a subject failed (fastskip-published apart: it is known to) or I/O, 2 wrong use";

#[derive(Subcommand)]
enum Command {
    Memtable(memtable::MemtableArgs),
    Scaling(scaling::ScalingArgs),
    Report(report::ReportArgs),
    #[command(hide = true, name = memtable::ROUND)]
    MemtableRound(memtable::RoundArgs),
}

fn main() -> ExitCode {
    // Ends the process by itself for what clap refuses (code 2), for help and for the version (code 0).
    let outcome = match Arguments::parse().command {
        Command::Memtable(args) => memtable::run(&args),
        Command::Scaling(args) => scaling::run(&args),
        Command::Report(args) => report::run(&args),
        Command::MemtableRound(args) => memtable::run_round(&args),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("memtable-bench: {failure}");
            ExitCode::from(failure.exit_code())
        }
    }
}
