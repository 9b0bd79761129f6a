//! Measures fastskip's tables and the engine beside their peers, and alone.
//!
//! The program is what `cargo bench` (criterion) cannot do. Every round of a subject runs in a process of its own: the published fastskip 0.1.1 can
//! corrupt its own process, and no subject may inherit another's heap. Only ratios within one run are a result; absolute times are context.
//! [`criterion`] has the same workloads for the benches of this workspace's crates.
//!
//! ```text
//! spec              the basic terms: subjects, workloads, shapes
//! round, machine    the workloads on one of `subjects`, the checks of their results, accounts of memory and disk
//! matrix            the cells that arguments or presets request
//! run, criterion    a process for each round of a subject in a cell; or a cell by criterion
//! results           the file of a run, and medians
//! goals, sheet      the checks of `goals.json`, and the tables in which people read results
//! report, plots     the page with plots
//! ```
#![deny(unsafe_code)]

mod allocator;
mod criterion;
mod goals;
mod machine;
mod matrix;
mod plots;
mod report;
mod results;
mod round;
mod run;
mod sheet;
mod spec;
mod subjects;

use std::process::ExitCode;

use clap::Parser;

pub use criterion::criterion;
pub use machine::anonymous;

const EXIT_CODES: &str = "\
Exit codes: 0 done, 1 a subject failed (except fastskip-published, which is known to), 2 wrong use or I/O";

/// Measures fastskip's tables and the engine beside their peers.
#[derive(Parser)]
#[command(name = "memtable-bench", version, after_help = EXIT_CODES)]
enum Command {
    Run(Box<run::RunArgs>),
    Report(report::ReportArgs),
    #[command(hide = true)]
    Round {
        request: String,
    },
}

/// The program.
pub fn main() -> ExitCode {
    // Ends the process itself when clap refuses the arguments (code 2), and for help and version (code 0).
    let outcome = match Command::parse() {
        Command::Run(args) => run::run(&args),
        Command::Report(args) => report::run(&args).map_err(|why| (2, why)),
        Command::Round { request } => run::round(&request).map_err(|why| (1, why)),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err((code, why)) => {
            eprintln!("memtable-bench: {why}");
            ExitCode::from(code)
        }
    }
}
