//! `keyspaces`: lists the keyspaces.

use clap::Args;

use crate::database::{DatabaseArgs, OpenFor};
use crate::failure::{Exit, Failure};
use crate::output::Output;

/// Print the names of the keyspaces, one a line
///
/// The default keyspace, which every database has, has no name and is left out. `stats` shows how large they are.
#[derive(Args)]
#[command(after_help = "\
Examples:
  mini-engine keyspaces shop.db
  mini-engine count shop.db --keyspace users")]
pub(crate) struct KeyspacesArgs {
    #[command(flatten)]
    database: DatabaseArgs,
}

pub(crate) fn run(args: &KeyspacesArgs) -> Result<Exit, Failure> {
    let db = args.database.open(OpenFor::Reading)?;
    let mut output = Output::new();
    for name in db.keyspaces() {
        output.write(|out| writeln!(out, "{name}"))?;
    }
    output.finish()?;
    Ok(Exit::Done)
}
