//! The keyspace of a command, as an argument.

use clap::Args;
use mini_engine::{Db, Error, Keyspace};

/// The argument that chooses a keyspace.
#[derive(Args)]
pub(crate) struct KeyspaceArgs {
    /// In the keyspace NAME instead of the default one
    #[arg(long = "keyspace", value_name = "NAME")]
    pub(crate) name: Option<String>,
}

impl KeyspaceArgs {
    /// The keyspace, which must be there: so a mistyped name makes none.
    pub(crate) fn existing(&self, db: &Db) -> Result<Keyspace, Error> {
        match &self.name {
            Some(name) if !db.keyspaces().contains(name) => Err(Error::NoKeyspace { name: name.clone() }),
            _ => self.created(db),
        }
    }

    /// The keyspace, which is made if there is none.
    pub(crate) fn created(&self, db: &Db) -> Result<Keyspace, Error> {
        self.name.as_ref().map_or_else(|| Ok(Keyspace::clone(db)), |name| db.keyspace(name))
    }
}
