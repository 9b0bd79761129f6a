//! The keys that WATCH names. EXEC is carried out only if they are as they were.

use mini_engine::{Db, Error, Result, Transaction};

use super::databases::Database;

/// Watched keys, from the first WATCH on: what a transaction has read, which notices every write and every expiry since it began.
#[derive(Debug)]
pub(crate) struct Watched(Transaction);

impl Watched {
    pub(crate) fn new(db: &Db) -> Self {
        Self(db.transaction())
    }

    /// # Errors
    /// Those of reading a key, and [`Error::Full`] if they are too many.
    pub(crate) fn add(&mut self, database: &Database, key: &[u8]) -> Result<()> {
        self.0.keyspace(&database.stored).contains_key(key).map(drop)
    }

    pub(crate) fn is_unchanged(&self) -> Result<bool> {
        match self.0.check() {
            Err(Error::Conflict { .. }) => Ok(false),
            checked => checked.map(|()| true),
        }
    }
}
