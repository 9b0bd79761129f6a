//! `verify`: reads and checks the whole database.

use clap::Args;
use indicatif::BinaryBytes;

use crate::database::{DatabaseArgs, OpenFor};
use crate::failure::{Exit, Failure};
use crate::output::Output;
use crate::progress;
use crate::size::counted;

/// Read the whole database, check all of it, and print what was checked
///
/// Opening checks the manifest and the logs; then every block of every table is read and checked,
/// with the order of the keys, the index, the filter and the counts. All that is wrong in the tables goes
/// to stderr, each damaged block with its file and offset, and the exit code is 3. Entries are all versions
/// that the tables hold, obsolete ones too, and tombstones; `count` counts the keys. It is 3 as well if a log or the manifest ends in
/// bytes that a crash may have left, since damage to the last writes looks the same; a command that
/// writes cuts them off and keeps them aside. Nothing is changed.
#[derive(Args)]
#[command(after_help = "\
Examples:
  mini-engine verify files.db && echo sound")]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    database: DatabaseArgs,
}

pub(crate) fn run(args: &VerifyArgs) -> Result<Exit, Failure> {
    let db = args.database.open(OpenFor::Reading)?;
    let metrics = db.metrics();
    let bar = progress::of_bytes(Some(metrics.levels.iter().map(|level| level.bytes).sum()));
    // An open with --quarantine has already read all tables once, so its bytes are subtracted.
    let before = metrics.verify_bytes_read;
    let report = progress::watch(&bar, || db.metrics().verify_bytes_read - before, || db.verify())?;
    let tables = counted(report.tables as u64, "table", "tables");
    let entries = counted(report.entries, "entry", "entries");
    let tombstones = counted(report.tombstones, "tombstone", "tombstones");
    let recovery = db.recovery();
    // Both findings were reported when the database was opened. A torn tail may come from a crash, but may also be damage.
    let is_cut_short = recovery.torn.is_some() || recovery.manifest_tail_dropped;
    let found = match report.problems.len() as u64 {
        0 if is_cut_short => "an end that a crash left, or that may be damage".into(),
        0 => "no damage".into(),
        problems => counted(problems, "problem", "problems"),
    };
    let bytes = BinaryBytes(report.bytes);
    let mut output = Output::new();
    let logs = match recovery.logs_replayed as u64 {
        0 => String::new(),
        logs => {
            let operations = counted(recovery.operations_replayed, "operation", "operations");
            format!(", {} with {operations}", counted(logs, "log", "logs"))
        }
    };
    output.write(|out| {
        writeln!(
            out,
            "checked the manifest{logs} and {tables} with {entries} in {bytes}, obsolete versions and {tombstones} among them: {found}"
        )
    })?;
    output.finish()?;
    match report.is_sound() {
        true if is_cut_short => Ok(Exit::Incomplete),
        true => Ok(Exit::Done),
        false => Err(Failure::Damage(report.problems)),
    }
}
