//! `compact`: compacts a range of keys into one run.

use std::ops::Bound;

use clap::Args;
use indicatif::BinaryBytes;

use crate::bytes::HexArgs;
use crate::database::{DatabaseArgs, OpenFor};
use crate::failure::{Exit, Failure};
use crate::keys::RangeArgs;
use crate::keyspace::KeyspaceArgs;
use crate::output::Output;
use crate::progress;

/// Compact the whole database, a keyspace, or a range of keys, so that nothing obsolete takes space
///
/// Overwritten values and deleted keys are left out, and each key is found in one place. That
/// reads and writes all of the range once or twice; it is safe to interrupt.
#[derive(Args)]
#[command(after_help = "\
Examples:
  mini-engine compact files.db
  mini-engine compact files.db --from /usr --to /usr0
  mini-engine compact shop.db --keyspace users")]
pub(crate) struct CompactArgs {
    #[command(flatten)]
    database: DatabaseArgs,
    #[command(flatten)]
    keyspace: KeyspaceArgs,
    #[command(flatten)]
    keys: RangeArgs,
    #[command(flatten)]
    hex: HexArgs,
}

pub(crate) fn run(args: &CompactArgs) -> Result<Exit, Failure> {
    let keys = args.keys.parse(&args.hex)?;
    let db = args.database.open(OpenFor::Writing)?;
    let is_all = args.keyspace.name.is_none() && matches!(keys, (Bound::Unbounded, Bound::Unbounded));
    let keyspace = args.keyspace.existing(&db)?;
    let compact = || if is_all { db.compact() } else { keyspace.compact_range(keys) };
    let bytes = || BinaryBytes(db.metrics().levels.iter().map(|level| level.bytes).sum());
    db.flush()?;
    let before = bytes();
    let read = || db.metrics().compaction_bytes_read;
    let read_before = read();
    progress::watch(&progress::of_bytes(None), || read() - read_before, compact)?;
    let after = bytes();
    db.close()?;
    let mut output = Output::new();
    output.write(|out| writeln!(out, "{before} in tables before, {after} now"))?;
    output.finish()?;
    Ok(Exit::Done)
}
