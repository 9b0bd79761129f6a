//! `delete`: removes one key, or all keys of a range, durably.

use std::ffi::OsString;
use std::ops::Bound;

use clap::Args;
use mini_engine::{Durability, WriteBatch};

use crate::bytes::HexArgs;
use crate::database::{DatabaseArgs, OpenFor};
use crate::failure::{Exit, Failure};
use crate::keys::{Keys, KeysArgs};
use crate::keyspace::KeyspaceArgs;
use crate::output::say;

/// Remove a key, all keys of a range, or a keyspace
///
/// A key that is not there is removed just as well: the exit code is 0. When this returns, the
/// removal survives power loss.
///
/// A range is removed at once, however many keys it holds. The space is free when its tables are
/// compacted: by and by, or by `compact`. Nothing is asked before; `count` tells how many keys there are.
#[derive(Args)]
#[command(after_help = "\
Examples:
  mini-engine delete notes.db milk
  mini-engine delete files.db --prefix /tmp/
  mini-engine delete files.db --from /usr --to /usr0
  mini-engine delete notes.db --hex 00ff
  mini-engine delete shop.db --keyspace users --prefix old/
  mini-engine delete shop.db --keyspace users --drop")]
pub(crate) struct DeleteArgs {
    #[command(flatten)]
    database: DatabaseArgs,
    #[command(flatten)]
    keyspace: KeyspaceArgs,
    /// The key
    #[arg(required_unless_present_any = ["prefix", "from", "to", "drop"], conflicts_with_all = ["prefix", "from", "to"])]
    key: Option<OsString>,
    /// Drop the whole keyspace, with its name
    #[arg(long, requires = "name", conflicts_with_all = ["key", "prefix", "from", "to"])]
    drop: bool,
    #[command(flatten)]
    keys: KeysArgs,
    #[command(flatten)]
    hex: HexArgs,
}

pub(crate) fn run(args: &DeleteArgs) -> Result<Exit, Failure> {
    if let Some(name) = args.keyspace.name.as_ref().filter(|_| args.drop) {
        let db = args.database.open(OpenFor::Writing)?;
        db.drop_keyspace(name)?;
        db.close()?;
        return Ok(Exit::Done);
    }
    let key = args.key.as_ref().map(|key| args.hex.parse("key", key)).transpose()?;
    let range = if key.is_none() { Some(args.keys.parse(&args.hex)?) } else { None };
    let db = args.database.open(OpenFor::Writing)?;
    let (keyspace, mut batch) = (args.keyspace.existing(&db)?, WriteBatch::new());
    let mut removals = batch.keyspace(&keyspace);
    match (&key, &range) {
        (Some(key), _) => removals.remove(key)?,
        (None, Some(Keys::Prefix(prefix))) => removals.remove_prefix(prefix)?,
        (None, Some(Keys::Range(range))) => removals.remove_range(range.clone())?,
        (None, None) => {}
    }
    let is_empty = batch.is_empty();
    db.write(batch, Durability::Synced)?;
    db.close()?;
    match range {
        Some(_) if is_empty => say(format_args!("removed nothing: the range ends before it begins")),
        Some(keys) => say(format_args!("removed all keys {}", described(&keys, &args.hex))),
        None => {}
    }
    Ok(Exit::Done)
}

/// A description of these keys for messages.
fn described(keys: &Keys, hex: &HexArgs) -> String {
    let shown = |key: &[u8]| {
        let mut shown = Vec::new();
        // Writing to a vector cannot fail.
        hex.print(&mut shown, key).ok();
        String::from_utf8_lossy(&shown).into_owned()
    };
    match keys {
        Keys::Prefix(prefix) => format!("that begin with {}", shown(prefix)),
        Keys::Range((from, to)) => {
            let from = match from {
                Bound::Included(from) | Bound::Excluded(from) => format!("from {}", shown(from)),
                Bound::Unbounded => "from the first".to_owned(),
            };
            match to {
                Bound::Included(to) | Bound::Excluded(to) => format!("{from} to before {}", shown(to)),
                Bound::Unbounded => format!("{from} to the last"),
            }
        }
    }
}
