//! `scan`: prints the records of a range of keys in order.

use std::time::SystemTime;

use clap::Args;
use mini_engine::{Result as EngineResult, Slice};

use super::repair::MOST_LOG_BYTES;
use crate::bytes::HexArgs;
use crate::database::{DatabaseArgs, OpenFor};
use crate::failure::{Exit, Failure};
use crate::keys::{Keys, KeysArgs};
use crate::keyspace::KeyspaceArgs;
use crate::number;
use crate::output::{self, Output};
use crate::record::{self, Fields, Format};

/// Print records in the order of their keys, as lines of key, TAB, value
///
/// What is printed is one consistent moment of the database. A key that holds a TAB, or a key or
/// value that holds a newline, makes lines that cannot be told apart: ask for --hex or --json
/// then; `import` reads both back.
#[derive(Args)]
#[command(after_help = "\
Examples:
  mini-engine scan files.db --prefix /usr/share --limit 5
  mini-engine scan files.db --from /a --to /b --keys-only
  mini-engine scan files.db --reverse --limit 1 --values-only
  mini-engine scan sessions.db --keys-only --expiry
  mini-engine scan damaged.db --skip-damaged --json > saved.jsonl
  mini-engine scan files.db --json | mini-engine import copy.db - --json
  mini-engine scan shop.db --keyspace users --limit 5")]
pub(crate) struct ScanArgs {
    #[command(flatten)]
    database: DatabaseArgs,
    #[command(flatten)]
    keyspace: KeyspaceArgs,
    #[command(flatten)]
    keys: KeysArgs,
    /// Begin at the last key and go backwards
    #[arg(long)]
    reverse: bool,
    /// Print at most this many records
    #[arg(long, value_name = "N", default_value_t = u64::MAX, hide_default_value = true, value_parser = number::parse::<0>)]
    limit: u64,
    /// Leave the values out
    #[arg(long)]
    keys_only: bool,
    /// Leave the keys out
    #[arg(long, conflicts_with = "keys_only")]
    values_only: bool,
    /// Add when each record expires, in milliseconds since 1970, as the last column, or -
    #[arg(long)]
    expiry: bool,
    /// Print only the number of records
    #[arg(long, conflicts_with_all = ["keys_only", "values_only", "expiry", "json"])]
    count: bool,
    /// Print a JSON object a line: {"key":"..","value":".."}; bytes that are no text stand as
    /// hexadecimal digits under key_hex or value_hex. Records that expire also have expires_at, in
    /// milliseconds since 1970
    #[arg(long)]
    json: bool,
    /// Go on behind damage: what is in damaged blocks is left out, and so are older values of the same keys.
    /// Which keys that may be goes to stderr, and the exit code is 3 then. Works without CURRENT and manifest too
    #[arg(long, conflicts_with_all = ["reverse", "quarantine"])]
    skip_damaged: bool,
    #[command(flatten)]
    hex: HexArgs,
}

pub(crate) fn run(args: &ScanArgs) -> Result<Exit, Failure> {
    let keys = args.keys.parse(&args.hex)?;
    if args.skip_damaged {
        return scan_around_damage(args, keys);
    }
    let db = args.database.open(OpenFor::Reading)?;
    let mut records = keys.records(&args.keyspace.existing(&db)?);
    let mut output = Output::new();
    let next = || if args.reverse { records.next_back_with_expiry() } else { records.next_with_expiry() };
    print(args, next, &mut output)?;
    output.finish()?;
    Ok(Exit::Done)
}

fn scan_around_damage(args: &ScanArgs, keys: Keys) -> Result<Exit, Failure> {
    let builder = args.database.builder().replay_memory_bytes(MOST_LOG_BYTES);
    let salvage = args.database.when_free(|| builder.clone().salvage())?.leave_older_out(true);
    let salvage = match &args.keyspace.name {
        Some(name) => salvage.keyspace(name)?,
        None => salvage,
    };
    let mut records = match keys {
        Keys::Prefix(prefix) => salvage.prefix(prefix),
        Keys::Range(range) => salvage.range(range),
    }?;
    let mut output = Output::new();
    print(args, || records.next_with_expiry(), &mut output)?;
    output.finish()?;
    let report = records.report();
    if !report.is_complete() || !report.damage.is_empty() {
        output::say(format_args!("{report}"));
    }
    if report.is_complete() { Ok(Exit::Done) } else { Ok(Exit::Incomplete) }
}

fn print(
    args: &ScanArgs,
    mut next: impl FnMut() -> Option<EngineResult<(Slice, Slice, Option<SystemTime>)>>,
    output: &mut Output,
) -> Result<(), Failure> {
    let format = Format::new(args.json, args.hex.hex);
    let mut left = args.limit;
    while left > 0
        && let Some(record) = next()
    {
        left -= 1;
        let (key, value, expiry) = record?;
        if !args.count {
            let fields = Fields {
                keyspace: None,
                key: (!args.values_only).then_some(&key),
                value: (!args.keys_only).then_some(&value),
                expiry: (args.expiry || args.json && !args.keys_only).then_some(expiry),
            };
            output.write(|out| record::print(out, format, &fields))?;
        }
    }
    if args.count {
        output.write(|out| writeln!(out, "{}", args.limit - left))?;
    }
    Ok(())
}
