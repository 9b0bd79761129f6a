//! `quarantine`: lists the tables that were given up for now, and gives them up for good.

use clap::Args;

use super::Exit;
use super::database::{DatabaseArgs, OpenFor};
use super::failure::Failure;
use super::output::Output;

/// List the tables that were found damaged, or give them up for good
///
/// A table found damaged or missing by a command with --quarantine, this one or one that writes, is
/// set aside, and reads of keys in its range fail until it is dropped: then they show what is left,
/// which may be older values and keys that were removed. Prints one table a line: number, file, first and last key.
#[derive(Args)]
#[command(
    verbatim_doc_comment,
    after_help = "\
Examples:
  mini-engine quarantine files.db --quarantine
  mini-engine quarantine files.db
  mini-engine quarantine files.db --drop 12"
)]
pub(crate) struct QuarantineArgs {
    #[command(flatten)]
    database: DatabaseArgs,
    /// Give up this table: its writes are gone
    #[arg(long, value_name = "NUMBER")]
    drop: Vec<u64>,
}

pub(crate) fn run(args: &QuarantineArgs) -> Result<Exit, Failure> {
    let db = args.database.open(OpenFor::Writing)?;
    for &number in &args.drop {
        db.drop_quarantined(number)?;
    }
    let mut output = Output::new();
    for table in db.quarantined() {
        let (smallest, largest) = (table.smallest.escape_ascii(), table.largest.escape_ascii());
        output.write(|out| writeln!(out, "{}\t{}\t{smallest}\t{largest}", table.number, table.file.display()))?;
    }
    db.close()?;
    output.finish()?;
    Ok(Exit::Done)
}
