//! The program `memtable-bench`: measures fastskip's tables and the engine beside their peers.
//!
//! Every round of a subject runs in a process of its own: the published fastskip 0.1.1 can corrupt its own process, and no
//! subject may inherit another's heap. Only ratios within one run are a result; absolute times are context.
//!
//! ```text
//! spec             the basic terms: subjects, workloads, shapes, and the cells that combine them
//! plan, presets    arguments, and the cells that they request
//! measure, ipc     run a process for each round of a subject in a cell
//! round            runs in that process: the workloads on one of `subjects`, and the checks of the results
//! results          the file of a run, medians and ratios, and the tables in which people read them
//! goals            the goals with which a run is compared
//! transactions     commits a second of engines with transactions; a separate benchmark
//! report           the page with plots, and the table of the README
//! ```
#![deny(unsafe_code)]

mod allocator;
mod error;
mod goals;
mod ipc;
mod machine;
mod measure;
mod plan;
mod presets;
mod report;
mod results;
mod round;
mod spec;
mod subjects;
mod text;
mod transactions;

use std::process::ExitCode;

use clap::Parser;

use crate::plan::Plan;

const EXIT_CODES: &str = "\
Exit codes: 0 done, 1 a subject failed (except fastskip-published, which is known to) or I/O, 2 wrong use";

/// Measures fastskip's tables and the engine beside their peers.
#[derive(Parser)]
#[command(name = "memtable-bench", version, after_help = EXIT_CODES)]
enum Command {
    Memtable(Box<plan::MemtableArgs>),
    Engine(Box<plan::EngineArgs>),
    Transactions(transactions::TransactionArgs),
    Report(report::ReportArgs),
    #[command(hide = true, name = ipc::ROUND)]
    MemtableRound {
        request: String,
    },
}

fn main() -> ExitCode {
    // Ends the process itself when clap refuses the arguments (code 2), and for help and version (code 0).
    let memory = machine::memory_available();
    let outcome = match Command::parse() {
        Command::Memtable(args) => Plan::of_tables(&args, memory).and_then(|plan| measure::run(&plan)),
        Command::Engine(args) => Plan::of_engines(&args, memory).and_then(|plan| measure::run(&plan)),
        Command::Transactions(args) => transactions::run(&args),
        Command::Report(args) => report::run(&args),
        Command::MemtableRound { request } => {
            ipc::answer(&request).map_err(error::Error::subject).and_then(|answer| text::print(&(answer + "\n")))
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("memtable-bench: {error}");
            ExitCode::from(error.exit_code)
        }
    }
}
