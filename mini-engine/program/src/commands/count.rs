//! `count`: prints the number of keys.

use clap::Args;

use crate::bytes::HexArgs;
use crate::database::{DatabaseArgs, OpenFor};
use crate::failure::{Exit, Failure};
use crate::keys::KeysArgs;
use crate::keyspace::KeyspaceArgs;
use crate::output::Output;

/// Print the number of keys
///
/// Counts by reading: the time grows with the number of keys.
#[derive(Args)]
#[command(after_help = "\
Examples:
  mini-engine count files.db
  mini-engine count files.db --prefix /usr/share/
  mini-engine count files.db --from /usr --to /var
  mini-engine count shop.db --keyspace users")]
pub(crate) struct CountArgs {
    #[command(flatten)]
    database: DatabaseArgs,
    #[command(flatten)]
    keyspace: KeyspaceArgs,
    #[command(flatten)]
    keys: KeysArgs,
    #[command(flatten)]
    hex: HexArgs,
}

pub(crate) fn run(args: &CountArgs) -> Result<Exit, Failure> {
    let keys = args.keys.parse(&args.hex)?;
    let db = args.database.open(OpenFor::Reading)?;
    let mut count = 0u64;
    for record in keys.records(&args.keyspace.existing(&db)?) {
        record?;
        count += 1;
    }
    let mut output = Output::new();
    output.write(|out| writeln!(out, "{count}"))?;
    output.finish()?;
    Ok(Exit::Done)
}
