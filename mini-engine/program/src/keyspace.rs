//! The keyspace of a command, as an argument.

use clap::Args;
use mini_engine::{Db, Error, Keyspace, MAX_KEYSPACE_NAME_LEN};

/// The argument that chooses a keyspace.
#[derive(Args)]
pub(crate) struct KeyspaceArgs {
    /// In the keyspace NAME instead of the default one
    #[arg(long = "keyspace", value_name = "NAME", value_parser = parse_name)]
    pub(crate) name: Option<String>,
}

/// Checks the name here, so that no database is made for an invalid keyspace.
pub(crate) fn parse_name(name: &str) -> Result<String, String> {
    match (1..=MAX_KEYSPACE_NAME_LEN).contains(&name.len()) {
        true => Ok(name.to_owned()),
        false => Err(format!("expected 1 to {MAX_KEYSPACE_NAME_LEN} bytes, found {}", name.len())),
    }
}

impl KeyspaceArgs {
    /// The keyspace, which must exist, so that a mistyped name does not make one.
    pub(crate) fn existing(&self, db: &Db) -> Result<Keyspace, Error> {
        match &self.name {
            Some(name) if !db.keyspaces().contains(name) => Err(Error::NoKeyspace { name: name.clone() }),
            _ => self.created(db),
        }
    }

    /// The keyspace; makes it if it does not exist.
    pub(crate) fn created(&self, db: &Db) -> Result<Keyspace, Error> {
        self.name.as_ref().map_or_else(|| Ok(Keyspace::clone(db)), |name| db.keyspace(name))
    }
}
