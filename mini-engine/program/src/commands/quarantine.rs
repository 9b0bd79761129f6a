//! `quarantine`: lists the quarantined tables, and drops them.

use clap::Args;
use mini_engine::QuarantinedTable;

use crate::database::{DatabaseArgs, OpenFor};
use crate::failure::{Exit, Failure, refuse_node, shown};
use crate::node_directory;
use crate::output::{self, Output};
use crate::size::counted;

/// List the tables that were found damaged, or give them up for good
///
/// A table found damaged or missing by a command with --quarantine, this one or one that writes, is
/// set aside, and reads of keys in its range fail. `repair` first: it reads all that is sound in such
/// tables, dropped ones too as long as their files are there. A table that is dropped is given up as a
/// whole: reads show what is left, which may be older values and keys that were removed. Prints one
/// table a line: number, file, first and last key, entries in its file.
#[derive(Args)]
#[command(after_help = "\
Examples:
  mini-engine quarantine files.db --quarantine
  mini-engine quarantine files.db
  mini-engine repair files.db saved.db
  mini-engine quarantine files.db --drop 12 --lose-entries")]
pub(crate) struct QuarantineArgs {
    #[command(flatten)]
    database: DatabaseArgs,
    /// Give up this table with all of its entries. Without --lose-entries it says how many these are, and changes nothing
    #[arg(long, value_name = "NUMBER")]
    drop: Vec<u64>,
    /// Accept that all entries of the tables to be dropped are lost
    #[arg(long, requires = "drop")]
    lose_entries: bool,
}

pub(crate) fn run(args: &QuarantineArgs) -> Result<Exit, Failure> {
    // First of all: the refusal of a loss would advise to repair.
    refuse_node(&args.database.path, node_directory::IF_DAMAGED)?;
    if !args.drop.is_empty() && !args.lose_entries {
        return Err(refuse_drop(args));
    }
    let db = args.database.open(OpenFor::Writing)?;
    for &number in &args.drop {
        let dropped = db.drop_quarantined(number)?;
        let entries = counted(dropped.entries, "entry", "entries");
        let file = dropped.file.display();
        output::say(format_args!(
            "dropped table {number} with {entries}; `repair` still reads what is sound in {file}"
        ));
    }
    let mut output = Output::new();
    for QuarantinedTable { number, file, smallest, largest, entries, .. } in db.quarantined() {
        let (file, smallest, largest) = (file.display(), smallest.escape_ascii(), largest.escape_ascii());
        output.write(|out| writeln!(out, "{number}\t{file}\t{smallest}\t{largest}\t{entries}"))?;
    }
    db.close()?;
    output.finish()?;
    Ok(Exit::Done)
}

/// The refusal, with the possible loss and the advice to repair first.
fn refuse_drop(args: &QuarantineArgs) -> Failure {
    let db = match args.database.open(OpenFor::Reading) {
        Ok(db) => db,
        Err(failure) => return failure,
    };
    let quarantined = db.quarantined();
    let mut said = String::from("nothing was dropped");
    for number in &args.drop {
        match quarantined.iter().find(|table| table.number == *number) {
            Some(QuarantinedTable { smallest, largest, entries, .. }) => {
                let entries = counted(*entries, "entry", "entries");
                let (smallest, largest) = (smallest.escape_ascii(), largest.escape_ascii());
                said += &format!("\ntable {number}: {entries} of keys \"{smallest}\" to \"{largest}\" would be lost");
            }
            None => return Failure::Usage(format!("table {number} is not quarantined")),
        }
    }
    let db = shown(&args.database.path);
    Failure::Usage(format!(
        "{said}\nfirst: `mini-engine repair {db} NEW` makes a new database with all of them that can be read\n\
         then, if they shall be lost here: the same command with --lose-entries"
    ))
}
