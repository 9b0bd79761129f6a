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
        // A control character would make two lines of a name, or reach the terminal.
        let shown = name
            .chars()
            .map(|letter| if letter.is_control() { letter.escape_debug().to_string() } else { letter.to_string() });
        let shown: String = shown.collect();
        output.write(|out| writeln!(out, "{shown}"))?;
    }
    output.finish()?;
    Ok(Exit::Done)
}
