//! `get`: prints the values of keys.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use mini_engine::Slice;

use crate::bytes::HexArgs;
use crate::database::{DatabaseArgs, OpenFor};
use crate::failure::{Exit, Failure};
use crate::keyspace::KeyspaceArgs;
use crate::output::Output;
use crate::record::{self, Fields, Format};

/// Print the value of a key and a newline, or several keys with their values
///
/// Exits with 1, printing and writing nothing, when the key is not there. Of several keys those that are there
/// are printed, in the given order, as lines of key, TAB, value, all of one moment; the exit code is 1 if one is not there.
#[derive(Args)]
#[command(after_help = "\
Examples:
  mini-engine get files.db /etc/hostname
  mini-engine get files.db /etc/hostname /etc/hosts
  mini-engine get files.db --hex 2f657463
  mini-engine get shop.db --keyspace users 7
  mini-engine get pictures.db cat --output cat.png")]
pub(crate) struct GetArgs {
    #[command(flatten)]
    database: DatabaseArgs,
    #[command(flatten)]
    keyspace: KeyspaceArgs,
    /// The key, or several
    #[arg(required = true, value_name = "KEY")]
    keys: Vec<OsString>,
    /// Print the value alone, without a newline
    #[arg(long, conflicts_with = "hex")]
    raw: bool,
    /// Write the value to FILE, alone and as it is, instead of printing it; - is stdout
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    hex: HexArgs,
}

pub(crate) fn run(args: &GetArgs) -> Result<Exit, Failure> {
    let keys = args.keys.iter().map(|key| args.hex.parse("key", key)).collect::<Result<Vec<_>, _>>()?;
    if keys.len() > 1 && (args.raw || args.output.is_some()) {
        return Err(Failure::Usage("--raw and --output are for one key".into()));
    }
    let db = args.database.open(OpenFor::Reading)?;
    let mut values = args.keyspace.existing(&db)?.get_many(&keys)?;
    if keys.len() > 1 {
        return print_all(args, &keys, &values);
    }
    let Some(value) = values.pop().flatten() else {
        return Ok(Exit::NotFound);
    };
    let is_file = |path: &&PathBuf| path.as_os_str() != "-";
    if let Some(path) = args.output.as_ref().filter(is_file) {
        let failure = |source| Failure::Io { action: "write", place: path.display().to_string(), source };
        std::fs::write(path, &value).map_err(failure)?;
        return Ok(Exit::Done);
    }
    let mut output = Output::new();
    output.write(|out| {
        if args.raw || args.output.is_some() {
            return out.write_all(&value);
        }
        args.hex.print(out, &value)?;
        out.write_all(b"\n")
    })?;
    output.finish()?;
    Ok(Exit::Done)
}

/// Prints the keys that have a value, with their values.
fn print_all(args: &GetArgs, keys: &[Vec<u8>], values: &[Option<Slice>]) -> Result<Exit, Failure> {
    let mut output = Output::new();
    for (key, value) in keys.iter().zip(values) {
        if let Some(value) = value {
            let fields = Fields { key: Some(key), value: Some(value), ..Fields::default() };
            output.write(|out| record::print(out, Format::new(false, args.hex.hex), &fields))?;
        }
    }
    output.finish()?;
    Ok(if values.contains(&None) { Exit::NotFound } else { Exit::Done })
}
