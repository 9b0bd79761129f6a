//! `export`: prints all keyspaces as one file.

use clap::Args;
use mini_engine::Snapshot;

use crate::database::{DatabaseArgs, OpenFor};
use crate::failure::{Exit, Failure};
use crate::output::Output;
use crate::record::{self, Fields, Format};

/// Print the records of all keyspaces, which `import --json` reads back
///
/// Prints a JSON object a line: the records of the default keyspace as `scan --json` does, and then those of the other
/// keyspaces, with "keyspace":"NAME" in front. Every byte survives, and so does the time at which a record expires.
/// All lines show one moment of the database. A keyspace without records has no line, and the options of keyspaces are
/// left out; `checkpoint` copies everything.
#[derive(Args)]
#[command(after_help = "\
Examples:
  mini-engine export shop.db > shop.jsonl
  mini-engine export shop.db | gzip > shop.jsonl.gz
  mini-engine export shop.db | mini-engine import copy.db - --json")]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    database: DatabaseArgs,
}

pub(crate) fn run(args: &ExportArgs) -> Result<Exit, Failure> {
    let db = args.database.open(OpenFor::Reading)?;
    let names = db.keyspaces();
    let snapshot = db.snapshot();
    let mut output = Output::new();
    print(&snapshot, None, &mut output)?;
    for name in &names {
        print(&snapshot.keyspace(&db.keyspace(name)?), Some(name), &mut output)?;
    }
    output.finish()?;
    Ok(Exit::Done)
}

fn print(snapshot: &Snapshot, keyspace: Option<&str>, output: &mut Output) -> Result<(), Failure> {
    let mut records = snapshot.iter();
    while let Some(record) = records.next_with_expiry() {
        let (key, value, expiry) = record?;
        let fields = Fields { keyspace, key: Some(&key), value: Some(&value), expiry: Some(expiry) };
        output.write(|out| record::print(out, Format::Json, &fields))?;
    }
    Ok(())
}
