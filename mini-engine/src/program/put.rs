//! `put`: stores one key durably.

use std::ffi::OsString;

use clap::Args;
use mini_engine::{Durability, WriteBatch};

use super::Exit;
use super::bytes::HexArgs;
use super::database::{DatabaseArgs, OpenFor};
use super::failure::Failure;

/// Store a key, replacing its value if it has one
///
/// Creates the database if there is none. When this returns, the key survives power loss.
#[derive(Args)]
#[command(
    verbatim_doc_comment,
    after_help = "\
Examples:
  mini-engine put notes.db milk '2 litres'
  mini-engine put notes.db --hex 00ff 0a"
)]
pub(crate) struct PutArgs {
    #[command(flatten)]
    database: DatabaseArgs,
    /// The key
    key: OsString,
    /// The value
    value: OsString,
    #[command(flatten)]
    hex: HexArgs,
}

pub(crate) fn run(args: &PutArgs) -> Result<Exit, Failure> {
    let mut batch = WriteBatch::new();
    batch.insert(args.hex.parse("key", &args.key)?, args.hex.parse("value", &args.value)?)?;
    let db = args.database.open(OpenFor::Creating)?;
    db.write(batch, Durability::Synced)?;
    db.close()?;
    Ok(Exit::Done)
}
