//! The command line: what the commands are, which one was asked for, and how its outcome leaves the process.
//!
//! One command a file. A command returns an `Exit` or a `Failure`; only this file prints failures and picks exit codes, so
//! that no command can invent its own.

mod aside;
mod bench;
mod bytes;
mod checkpoint;
mod compact;
mod completions;
mod count;
mod database;
mod delete;
mod dump;
mod failure;
mod get;
mod import;
mod keys;
mod levels;
mod number;
mod output;
mod progress;
mod put;
mod quarantine;
mod record;
mod repair;
mod scan;
#[cfg(feature = "server")]
mod serve;
mod size;
mod source;
mod stats;
mod verify;

use std::io::{self, IsTerminal};
use std::process::ExitCode;

use clap::{ArgAction, CommandFactory, FromArgMatches, Parser, Subcommand};
use tracing::level_filters::LevelFilter;

use failure::Failure;

/// How a command that did not fail ended.
enum Exit {
    Done,
    /// The key that was asked for is not there; nothing was printed.
    NotFound,
    /// What could be read was handled; something was damaged, and stderr says what.
    Incomplete,
}

/// A durable, sorted key-value store in a directory.
///
/// Keys and values are bytes. Keys sort bytewise.
#[derive(Parser)]
#[command(name = "mini-engine", version, after_help = EXAMPLES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    /// Trace what the engine does to stderr; twice for more, three times for everything
    #[arg(short, long, global = true, action = ArgAction::Count)]
    verbose: u8,
}

const EXAMPLES: &str = "\
Examples:
  find / -xdev -type f -printf '%p\\t%s %T@\\n' | mini-engine import files.db -
  mini-engine scan files.db --prefix /usr/share --limit 5
  mini-engine get files.db /etc/hostname

get, scan, count, stats, verify and dump change nothing: they work on a read-only or full
file system, and beside each other, but not beside a command that writes.

A key or value that begins with a dash comes after two dashes: mini-engine get DB -- -key

Exit codes: 0 done, 1 key not found, 2 wrong use (bad arguments, not a database, a format
newer than this program), 3 corruption, 4 I/O (a database locked by another process too),
130 an import ended by ^C, 143 by SIGTERM";

#[derive(Subcommand)]
enum Command {
    Import(import::ImportArgs),
    Get(get::GetArgs),
    Put(put::PutArgs),
    Delete(delete::DeleteArgs),
    Scan(scan::ScanArgs),
    Count(count::CountArgs),
    Stats(stats::StatsArgs),
    Compact(compact::CompactArgs),
    Verify(verify::VerifyArgs),
    Repair(repair::RepairArgs),
    Checkpoint(checkpoint::CheckpointArgs),
    Quarantine(quarantine::QuarantineArgs),
    Aside(aside::AsideArgs),
    Dump(dump::DumpArgs),
    #[cfg(feature = "server")]
    Serve(serve::ServeArgs),
    Bench(bench::BenchArgs),
    Completions(completions::CompletionsArgs),
}

impl Command {
    fn run(&self) -> Result<Exit, Failure> {
        match self {
            Self::Import(args) => import::run(args),
            Self::Get(args) => get::run(args),
            Self::Put(args) => put::run(args),
            Self::Delete(args) => delete::run(args),
            Self::Scan(args) => scan::run(args),
            Self::Count(args) => count::run(args),
            Self::Stats(args) => stats::run(args),
            Self::Compact(args) => compact::run(args),
            Self::Verify(args) => verify::run(args),
            Self::Repair(args) => repair::run(args),
            Self::Checkpoint(args) => checkpoint::run(args),
            Self::Quarantine(args) => quarantine::run(args),
            Self::Aside(args) => aside::run(args),
            Self::Dump(args) => dump::run(args),
            #[cfg(feature = "server")]
            Self::Serve(args) => serve::run(args),
            Self::Bench(args) => bench::run(args),
            Self::Completions(args) => completions::run::<Arguments>(args),
        }
    }
}

/// Runs the command that the process's arguments name, and says how it ended.
pub(crate) fn run() -> ExitCode {
    let arguments = match parse_arguments() {
        Ok(arguments) => arguments,
        Err(request) => {
            // Help and version come this way too. If their output cannot be written, there is no way to say so.
            request.print().ok();
            return ExitCode::from(if request.use_stderr() { failure::WRONG_USE } else { 0 });
        }
    };
    trace_to_stderr(arguments.verbose);
    match arguments.command.run() {
        Ok(Exit::Done) | Err(Failure::ClosedPipe) => ExitCode::SUCCESS,
        Ok(Exit::NotFound) => ExitCode::from(failure::NOT_FOUND),
        Ok(Exit::Incomplete) => ExitCode::from(failure::CORRUPTION),
        Err(failure) => {
            output::say(format_args!("mini-engine: {failure}"));
            // `dump` looks at one file, wherever that is.
            if let Some(next) = failure.next_command().filter(|_| !matches!(arguments.command, Command::Dump(_))) {
                output::say(format_args!("{next}"));
            }
            ExitCode::from(failure.exit_code())
        }
    }
}

/// What was typed. A negative number is a key, or refused by the option that it belongs to, and no unknown option.
fn parse_arguments() -> Result<Arguments, clap::Error> {
    let allow = |arg: clap::Arg| {
        let takes_value = arg.get_action().takes_values();
        arg.allow_negative_numbers(takes_value)
    };
    let command = Arguments::command().mut_subcommands(|command| command.mut_args(allow));
    Arguments::from_arg_matches(&command.try_get_matches()?)
}

fn trace_to_stderr(verbose: u8) {
    let level = match verbose {
        0 => return,
        1 => LevelFilter::INFO,
        2 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    trace(level);
}

/// Traces what has at least this level, unless tracing has begun.
fn trace(level: LevelFilter) {
    let subscriber = tracing_subscriber::fmt().with_max_level(level).with_writer(io::stderr);
    subscriber.with_ansi(io::stderr().is_terminal()).try_init().ok();
}
