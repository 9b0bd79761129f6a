//! `repair`: makes a new database from everything that can be read in a damaged one.

use std::fs;
use std::ops::Bound;
use std::path::{Path, PathBuf};

use clap::Args;
use mini_engine::{Db, LostKeys, SalvageReport, incomplete_directory};
use serde_json::{Map, Value, json};

use super::checkpoint::check_parent;
use crate::failure::{Exit, Failure, refuse_node};
use crate::output::{self, Output};
use crate::{bytes, node_directory, progress};

/// Make a new database of all that can be read of a damaged one
///
/// For a database that does not open, or that has lost a part: CURRENT, a manifest, tables or logs may
/// be damaged or gone. Everything that can still be read is written to NEW; DB is not changed. Of each
/// key the newest version that is left is kept. Prints what was kept and, on stderr, what was lost, what was
/// left out and what cannot be known. The exit code is 0 if nothing was lost, and 3 if something was
/// or no manifest can tell; NEW is whole and can be used in either case. NEW is there only with the whole:
/// until then it is NEW.incomplete, and what an interrupted repair has left there the next one removes. What
/// the logs hold is kept in memory meanwhile. Keyspaces whose names are lost are called recovered-1, ..
/// in NEW, by their numbers. A database of a cluster's node is refused, and a node does not start with NEW:
/// it has the file REPAIRED.
#[derive(Args)]
#[command(after_help = "\
Examples:
  mini-engine repair files.db saved.db && mini-engine verify saved.db
  mini-engine repair files.db saved.db --json > report.json")]
pub(crate) struct RepairArgs {
    /// Directory of the damaged database
    #[arg(value_name = "DB")]
    path: PathBuf,
    /// Directory of the new database, which must not exist
    #[arg(value_name = "NEW")]
    new: PathBuf,
    /// Leave out keys of which only an older version may be left, since a damaged table may have had a newer one
    #[arg(long)]
    leave_older_out: bool,
    /// Print the report as a JSON object
    #[arg(long)]
    json: bool,
}

/// The greatest limit that the option accepts, so that repair keeps all writes in the logs.
pub(super) const MOST_LOG_BYTES: u64 = 1 << 50;

pub(crate) fn run(args: &RepairArgs) -> Result<Exit, Failure> {
    refuse_node(&args.path, node_directory::IF_DAMAGED)?;
    check_parent("repair", &args.new)?;
    let builder = Db::builder(&args.path).replay_memory_bytes(MOST_LOG_BYTES);
    let salvage = builder.salvage()?.leave_older_out(args.leave_older_out);
    // The final size is not known before everything is read.
    let bar = progress::of_bytes(None).with_message(" written");
    let incomplete = incomplete_directory(&args.new);
    let report = progress::watch(&bar, || bytes_in(&incomplete), || salvage.write_to(&args.new))?;
    let mut output = Output::new();
    let text = report.to_string();
    let (kept, rest) = text.split_once('\n').unwrap_or((&text, ""));
    match args.json {
        true => output.write(|out| writeln!(out, "{}", as_json(&report)))?,
        false => output.write(|out| writeln!(out, "{}: {kept}", args.new.display()))?,
    }
    output.finish()?;
    if !args.json && !rest.is_empty() {
        output::say(format_args!("{rest}"));
    }
    if report.is_complete() { Ok(Exit::Done) } else { Ok(Exit::Incomplete) }
}

/// Bytes of the files in `directory` so far.
fn bytes_in(directory: &Path) -> u64 {
    let files = fs::read_dir(directory).into_iter().flatten().flatten();
    files.filter_map(|file| Some(file.metadata().ok()?.len())).sum()
}

fn as_json(report: &SalvageReport) -> Value {
    let texts = |items: Vec<String>| Value::from(items);
    json!({
        "manifest": report.manifest.as_ref().map(|path| path.display().to_string()),
        "is_complete": report.is_complete(),
        "keys": report.keys,
        "tables": report.tables,
        "logs": report.logs,
        "batches": report.batches,
        "batches_behind_damage": report.batches_behind_damage,
        "older_keys": report.older_keys,
        "older_keys_left_out": report.older_keys_left_out,
        "damage": texts(report.damage.iter().map(ToString::to_string).collect()),
        "lost_keys": report.lost_keys.iter().map(lost_keys).collect::<Vec<_>>(),
        "lost_writes": report.lost_writes.iter().map(|lost| json!({
            "log": lost.log.display().to_string(),
            "bytes": [lost.bytes.start, lost.bytes.end],
            "seqnos": lost.seqnos.as_ref().map(|seqnos| [seqnos.start, seqnos.end]),
            "may_be_torn": lost.may_be_torn,
        })).collect::<Vec<_>>(),
        "left_out": report.left_out.iter().map(|left| json!({
            "file": left.file.display().to_string(),
            "why": left.why,
            "holds_batches": left.holds_batches,
        })).collect::<Vec<_>>(),
        "renamed_keyspaces": report.renamed_keyspaces,
        "unknown": texts(report.unknown()),
    })
}

fn lost_keys(lost: &LostKeys) -> Value {
    let mut object = Map::new();
    object.insert("file".into(), lost.file.display().to_string().into());
    object.insert("bytes".into(), json!([lost.bytes.start, lost.bytes.end]));
    for (name, bound) in [("from", &lost.from), ("to", &lost.to)] {
        let (key, is_included) = match bound {
            Bound::Included(key) => (key, true),
            Bound::Excluded(key) => (key, false),
            Bound::Unbounded => continue,
        };
        match str::from_utf8(key) {
            Ok(text) => object.insert(name.into(), text.into()),
            Err(_) => object.insert(format!("{name}_hex"), bytes::hex(key).into()),
        };
        object.insert(format!("{name}_is_included"), is_included.into());
    }
    object.insert("cause".into(), lost.cause.to_string().into());
    Value::Object(object)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_the_bytes_of_all_files_so_far() {
        // Catches a bar that does not move, and one that fails before the directory exists.
        let dir = tempfile::tempdir().expect("a temporary directory");
        for (name, len) in [("a", 10), ("b", 32)] {
            fs::write(dir.path().join(name), vec![0; len]).expect("written");
        }
        assert_eq!((bytes_in(dir.path()), bytes_in(&dir.path().join("none"))), (42, 0));
    }
}
