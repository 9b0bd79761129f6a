//! `get`: prints the value of one key.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use crate::bytes::HexArgs;
use crate::database::{DatabaseArgs, OpenFor};
use crate::failure::{Exit, Failure};
use crate::keyspace::KeyspaceArgs;
use crate::output::Output;

/// Print the value of a key and a newline
///
/// Exits with 1, printing and writing nothing, when the key is not there.
#[derive(Args)]
#[command(
    verbatim_doc_comment,
    after_help = "\
Examples:
  mini-engine get files.db /etc/hostname
  mini-engine get files.db --hex 2f657463
  mini-engine get shop.db --keyspace users 7
  mini-engine get pictures.db cat --output cat.png"
)]
pub(crate) struct GetArgs {
    #[command(flatten)]
    database: DatabaseArgs,
    #[command(flatten)]
    keyspace: KeyspaceArgs,
    /// The key
    key: OsString,
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
    let key = args.hex.parse("key", &args.key)?;
    let db = args.database.open(OpenFor::Reading)?;
    let Some(value) = args.keyspace.existing(&db)?.get(&key)? else {
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
