//! The program `mini-engine`: a database directory for people and shell scripts.
//!
//! Each command has its file in `commands`. A command returns an `Exit` or a `Failure`; only this file prints failures and chooses exit
//! codes.
#![forbid(unsafe_code)]

mod bench;
mod bytes;
mod commands;
mod completions;
mod database;
mod expiry;
mod failure;
mod import;
mod keys;
mod keyspace;
mod levels;
#[cfg_attr(not(feature = "cluster"), path = "node/without_clusters.rs")]
mod node;
mod node_directory;
mod number;
mod output;
mod password;
mod progress;
mod record;
mod shell;
mod size;
mod source;
mod trace;

use std::process::ExitCode;

use clap::builder::NonEmptyStringValueParser;
use clap::{ArgAction, CommandFactory, FromArgMatches, Parser, Subcommand};

use commands::Command;
use failure::{Exit, Failure};

/// A durable, sorted key-value store in a directory.
///
/// Keys and values are bytes. Keys sort bytewise.
#[derive(Parser)]
#[command(name = "mini-engine", version, after_help = EXAMPLES)]
struct Arguments {
    #[command(subcommand)]
    asked: Asked,
    /// Trace what the engine does to stderr; twice for more, three times for everything
    #[arg(short, long, global = true, action = ArgAction::Count)]
    verbose: u8,
}

const EXAMPLES: &str = "\
Examples:
  find / -xdev -type f -printf '%p\\t%s %T@\\n' | mini-engine import files.db -
  mini-engine scan files.db --prefix /usr/share --limit 5
  mini-engine get files.db /etc/hostname

get, ttl, scan, export, keyspaces, count, stats, verify and dump change nothing: they work on a read-only or full \
file system, and beside each other and a command that writes.

A key or value that begins with a dash comes after two dashes: mini-engine get DB -- -key

Exit codes: 0 done, 1 key not found, 2 wrong use (bad arguments, not a database, a format \
newer than this program), 3 corruption, 4 I/O (a database locked by another process too), \
5 an import that left lines out which are no records, 130 one ended by ^C, 143 by SIGTERM";

#[derive(Subcommand)]
#[expect(clippy::large_enum_variant, reason = "there is one")]
enum Asked {
    #[command(flatten)]
    Command(Command),
    Shell(shell::ShellArgs),
    Completions(completions::CompletionsArgs),
}

/// Runs the command that the process's arguments name, and returns its exit code.
fn main() -> ExitCode {
    let arguments = match parse_arguments() {
        Ok(arguments) => arguments,
        Err(request) => {
            // Help and version come here too. If their output cannot be written, no message could be written either.
            request.print().ok();
            return ExitCode::from(if request.use_stderr() { failure::WRONG_USE } else { 0 });
        }
    };
    trace::by_verbosity(arguments.verbose);
    let outcome = match &arguments.asked {
        Asked::Command(command) => command.run(),
        Asked::Shell(args) => shell::run(args, refined(Arguments::command())),
        Asked::Completions(args) => completions::run(args, refined(Arguments::command())),
    };
    match outcome {
        Ok(Exit::Done) | Err(Failure::ClosedPipe) => ExitCode::SUCCESS,
        Ok(Exit::NotFound) => ExitCode::from(failure::NOT_FOUND),
        Ok(Exit::Incomplete) => ExitCode::from(failure::CORRUPTION),
        Ok(Exit::With(code)) => ExitCode::from(code),
        Ok(Exit::Rejected) => ExitCode::from(failure::REJECTED),
        Err(failure) => {
            output::say(format_args!("mini-engine: {failure}"));
            // Advice about the database does not fit `dump`, which reads a single file anywhere.
            if let Some(next) =
                failure.next_command().filter(|_| !matches!(arguments.asked, Asked::Command(Command::Dump(_))))
            {
                output::say(format_args!("{next}"));
            }
            ExitCode::from(failure.exit_code())
        }
    }
}

/// The parsed arguments.
fn parse_arguments() -> Result<Arguments, clap::Error> {
    Arguments::from_arg_matches(&refined(Arguments::command()).try_get_matches()?)
}

/// The commands for which the size of a memtable matters; the others accept it, but do not show it.
const FILL_MEMTABLES: [&str; 3] = ["import", "serve", "bench"];

/// The command, with three changes. An option is shown only where it matters. A negative number is a key, or is refused by its option, but is not an unknown option. An empty address is
/// refused with its argument's name, like an empty path, since a later message could not name the argument.
fn refined(command: clap::Command) -> clap::Command {
    let fills_memtables = FILL_MEMTABLES.contains(&command.get_name());
    let refine = |arg: clap::Arg| {
        let is_hidden = arg.is_hide_set() || (arg.get_id() == "memtable_bytes" && !fills_memtables);
        let takes_value = arg.get_action().takes_values();
        let is_address = arg.get_value_names().is_some_and(|names| names.iter().any(|name| *name == "ADDR"));
        let arg = arg.allow_negative_numbers(takes_value).hide(is_hidden);
        if is_address { arg.value_parser(NonEmptyStringValueParser::new()) } else { arg }
    };
    command.mut_args(refine).mut_subcommands(refined)
}
