//! `count`: prints how many keys there are.

use std::ffi::OsString;

use clap::Args;

use super::Exit;
use super::bytes::HexArgs;
use super::database::{DatabaseArgs, OpenFor};
use super::failure::Failure;
use super::output::Output;

/// Print the number of keys
///
/// Counts by reading: the time grows with the number of keys.
#[derive(Args)]
#[command(
    verbatim_doc_comment,
    after_help = "\
Examples:
  mini-engine count files.db
  mini-engine count files.db --prefix /usr/share/"
)]
pub(crate) struct CountArgs {
    #[command(flatten)]
    database: DatabaseArgs,
    /// Only keys that begin with this
    #[arg(long, value_name = "KEY")]
    prefix: Option<OsString>,
    #[command(flatten)]
    hex: HexArgs,
}

pub(crate) fn run(args: &CountArgs) -> Result<Exit, Failure> {
    let prefix = match &args.prefix {
        Some(prefix) => args.hex.parse("--prefix", prefix)?,
        None => Vec::new(),
    };
    let db = args.database.open(OpenFor::Reading)?;
    let mut keys = 0u64;
    let mut cursor = db.cursor();
    cursor.seek(&prefix)?;
    while cursor.valid() && cursor.key().starts_with(&prefix) {
        keys += 1;
        cursor.advance()?;
    }
    let mut output = Output::new();
    output.write(|out| writeln!(out, "{keys}"))?;
    output.finish()?;
    Ok(Exit::Done)
}
