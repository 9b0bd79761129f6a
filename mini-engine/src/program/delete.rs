//! `delete`: removes one key durably.

use std::ffi::OsString;

use clap::Args;
use mini_engine::{Durability, WriteBatch};

use super::Exit;
use super::bytes::HexArgs;
use super::database::{DatabaseArgs, OpenFor};
use super::failure::Failure;

/// Remove a key
///
/// A key that is not there is removed just as well: the exit code is 0. When this returns, the
/// removal survives power loss.
#[derive(Args)]
#[command(
    verbatim_doc_comment,
    after_help = "\
Examples:
  mini-engine delete notes.db milk
  mini-engine delete notes.db --hex 00ff"
)]
pub(crate) struct DeleteArgs {
    #[command(flatten)]
    database: DatabaseArgs,
    /// The key
    key: OsString,
    #[command(flatten)]
    hex: HexArgs,
}

pub(crate) fn run(args: &DeleteArgs) -> Result<Exit, Failure> {
    let mut batch = WriteBatch::new();
    batch.remove(args.hex.parse("key", &args.key)?)?;
    let db = args.database.open(OpenFor::Writing)?;
    db.write(batch, Durability::Synced)?;
    db.close()?;
    Ok(Exit::Done)
}
