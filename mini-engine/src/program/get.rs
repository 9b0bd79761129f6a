//! `get`: prints the value of one key.

use std::ffi::OsString;

use clap::Args;

use super::Exit;
use super::bytes::HexArgs;
use super::database::{DatabaseArgs, OpenFor};
use super::failure::Failure;
use super::output::Output;

/// Print the value of a key and a newline
///
/// Exits with 1, printing nothing, when the key is not there.
#[derive(Args)]
#[command(
    verbatim_doc_comment,
    after_help = "\
Examples:
  mini-engine get files.db /etc/hostname
  mini-engine get files.db --hex 2f657463"
)]
pub(crate) struct GetArgs {
    #[command(flatten)]
    database: DatabaseArgs,
    /// The key
    key: OsString,
    #[command(flatten)]
    hex: HexArgs,
}

pub(crate) fn run(args: &GetArgs) -> Result<Exit, Failure> {
    let key = args.hex.parse("key", &args.key)?;
    let db = args.database.open(OpenFor::Reading)?;
    let Some(value) = db.get(&key)? else {
        return Ok(Exit::NotFound);
    };
    let mut output = Output::new();
    output.write(|out| {
        args.hex.print(out, &value)?;
        out.write_all(b"\n")
    })?;
    output.finish()?;
    Ok(Exit::Done)
}
