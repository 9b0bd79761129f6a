//! `ttl`: prints the time until a key expires.

use std::ffi::OsString;

use clap::Args;

use crate::bytes::HexArgs;
use crate::database::{DatabaseArgs, OpenFor};
use crate::failure::{Exit, Failure};
use crate::keyspace::KeyspaceArgs;
use crate::output::Output;

/// Print the seconds until a key expires, rounded up; -1 if it does not expire
///
/// Exits with 1, printing nothing, when the key is not there. `put` sets the time. Seconds count from the database's
/// clock, which never goes back.
#[derive(Args)]
#[command(after_help = "\
Examples:
  mini-engine put notes.db lock mine --expire-in 30s && mini-engine ttl notes.db lock
  mini-engine scan notes.db --keys-only --expiry")]
pub(crate) struct TtlArgs {
    #[command(flatten)]
    database: DatabaseArgs,
    #[command(flatten)]
    keyspace: KeyspaceArgs,
    /// The key
    key: OsString,
    #[command(flatten)]
    hex: HexArgs,
}

pub(crate) fn run(args: &TtlArgs) -> Result<Exit, Failure> {
    let key = args.hex.parse("key", &args.key)?;
    let db = args.database.open(OpenFor::Reading)?;
    let Some((_, expiry)) = args.keyspace.existing(&db)?.get_with_expiry(&key)? else {
        return Ok(Exit::NotFound);
    };
    let left = expiry.map(|at| at.duration_since(db.now()).unwrap_or_default().as_millis().div_ceil(1000));
    let mut output = Output::new();
    output.write(|out| match left {
        Some(seconds) => writeln!(out, "{seconds}"),
        None => writeln!(out, "-1"),
    })?;
    output.finish()?;
    Ok(Exit::Done)
}
