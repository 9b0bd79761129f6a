//! `compact`: merges a range of keys into one run.

use std::ffi::OsString;

use clap::Args;
use indicatif::BinaryBytes;

use super::Exit;
use super::bytes::HexArgs;
use super::database::{DatabaseArgs, OpenFor};
use super::failure::Failure;
use super::output::Output;

/// Merge the whole database, or a range of its keys, so that nothing obsolete takes space
///
/// Overwritten values and deleted keys are left out, and each key is found in one place. That
/// reads and writes all of the range once or twice; it is safe to interrupt.
#[derive(Args)]
#[command(
    verbatim_doc_comment,
    after_help = "\
Examples:
  mini-engine compact files.db
  mini-engine compact files.db --from /usr --to /usr0"
)]
pub(crate) struct CompactArgs {
    #[command(flatten)]
    database: DatabaseArgs,
    /// Only keys from this one on, itself included
    #[arg(long, value_name = "KEY")]
    from: Option<OsString>,
    /// Only keys before this one
    #[arg(long, value_name = "KEY")]
    to: Option<OsString>,
    #[command(flatten)]
    hex: HexArgs,
}

pub(crate) fn run(args: &CompactArgs) -> Result<Exit, Failure> {
    let keys = args.hex.range(args.from.as_ref(), args.to.as_ref())?;
    let db = args.database.open(OpenFor::Writing)?;
    let bytes = || BinaryBytes(db.metrics().levels.iter().map(|level| level.bytes).sum());
    db.flush()?;
    let before = bytes();
    db.compact_range(keys)?;
    let after = bytes();
    db.close()?;
    let mut output = Output::new();
    output.write(|out| writeln!(out, "{before} in tables before, {after} now"))?;
    output.finish()?;
    Ok(Exit::Done)
}
