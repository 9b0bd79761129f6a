//! The keys that WATCH names. EXEC is carried out only if they are as they were.

use mini_engine::{Db, Error, Result, Transaction};

use super::databases::Database;

/// Watched keys, from the first WATCH on.
#[derive(Debug)]
pub(crate) struct Watched {
    /// Reads the keys, and so notices every write since it began.
    transaction: Transaction,
    /// The keys that were there: their expiry is no write.
    present: Vec<(Database, Vec<u8>)>,
}

impl Watched {
    pub(crate) fn new(db: &Db) -> Self {
        Self { transaction: db.transaction(), present: Vec::new() }
    }

    /// # Errors
    /// Those of reading a key, and [`Error::Full`] if they are too many.
    pub(crate) fn add(&mut self, database: &Database, key: &[u8]) -> Result<()> {
        if self.transaction.keyspace(&database.stored).contains_key(key)? {
            self.present.push((database.clone(), key.to_vec()));
        }
        Ok(())
    }

    pub(crate) fn is_unchanged(&self) -> Result<bool> {
        match self.transaction.check() {
            Err(Error::Conflict { .. }) => return Ok(false),
            checked => checked?,
        }
        for (database, key) in &self.present {
            if !database.stored.contains_key(key)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Bytes of memory, without the transaction's.
    pub(crate) fn size(&self) -> usize {
        let keys = self.present.iter().map(|(_, key)| key.capacity()).sum::<usize>();
        keys + self.present.capacity() * size_of::<(Database, Vec<u8>)>()
    }
}
