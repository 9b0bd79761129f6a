//! `put`: stores one key durably.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::SystemTime;

use clap::Args;
use mini_engine::{Durability, MAX_VALUE_LEN, WriteBatch};

use crate::bytes::HexArgs;
use crate::database::{DatabaseArgs, OpenFor};
use crate::expiry::ExpiryArgs;
use crate::failure::{Exit, Failure};
use crate::keyspace::KeyspaceArgs;
use crate::source::Source;

/// Store a key, replacing its value if it has one
///
/// Creates the database, and the keyspace, if there is none. When this returns, the key survives
/// power loss. A key that is to expire is absent from then on, as if it were deleted; a later put
/// without a time makes it stay.
#[derive(Args)]
#[command(after_help = "\
Examples:
  mini-engine put notes.db milk '2 litres'
  mini-engine put notes.db --hex 00ff 0a
  mini-engine put notes.db lock mine --expire-in 30s
  mini-engine put pictures.db cat --input cat.png
  mini-engine put shop.db --keyspace users 7 Ada")]
pub(crate) struct PutArgs {
    #[command(flatten)]
    database: DatabaseArgs,
    #[command(flatten)]
    keyspace: KeyspaceArgs,
    /// The key
    key: OsString,
    /// The value
    #[arg(required_unless_present = "input")]
    value: Option<OsString>,
    /// Take the value from FILE, as it is; - is stdin
    #[arg(long, value_name = "FILE", conflicts_with = "value")]
    input: Option<PathBuf>,
    #[command(flatten)]
    expiry: ExpiryArgs,
    #[command(flatten)]
    hex: HexArgs,
}

impl PutArgs {
    fn value(&self) -> Result<Vec<u8>, Failure> {
        match (&self.input, &self.value) {
            (Some(path), _) => Source::open(path)?.read_value(MAX_VALUE_LEN as u64),
            (None, Some(value)) => self.hex.parse("value", value),
            (None, None) => Err(Failure::Usage("expected a value, or --input FILE".into())),
        }
    }
}

pub(crate) fn run(args: &PutArgs) -> Result<Exit, Failure> {
    let (key, value) = (args.hex.parse("key", &args.key)?, args.value()?);
    let mut batch = WriteBatch::new();
    // Checks the time and the lengths before a database is made.
    batch.insert_with_expiry(&key, &value, args.expiry.time(SystemTime::now()).map_err(Failure::Usage)?)?;
    let db = args.database.open(OpenFor::Creating)?;
    batch.clear();
    let keyspace = args.keyspace.created(&db)?;
    match args.expiry.time(db.now()).map_err(Failure::Usage)? {
        Some(at) => batch.keyspace(&keyspace).insert_with_expiry(&key, &value, at)?,
        None => batch.keyspace(&keyspace).insert(&key, &value)?,
    }
    db.write(batch, Durability::Synced)?;
    db.close()?;
    Ok(Exit::Done)
}
