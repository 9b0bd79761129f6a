//! The keys that WATCH has named. EXEC is carried out only if they are unchanged.
//!
//! The engine's transactions detect every write, even by a program that shares its database with the server, and every expiry. For them, the removal
//! of a range is a write of every key in it, but FLUSHALL must concern only existing keys, as in Redis. So the keys that were absent have separate
//! transactions, which are replaced when the server removes ranges: `before_removal` checks whether they have detected anything, and `after_removal`
//! begins new ones.

use std::collections::BTreeMap;

use mini_engine::{Db, Error, Keyspace, Result, Transaction};

use super::databases::Database;

/// An upper estimate of the memory that a watched key takes in addition to its bytes, including its transaction.
const KEY_BYTES: usize = 512;

#[derive(Debug, Default)]
pub(crate) struct Watched {
    /// The keys with the numbers of their databases; the value is the keyspace of a key that was absent.
    keys: BTreeMap<(usize, Vec<u8>), Option<Keyspace>>,
    /// The transactions of the keys that were present; each has read the keys of one WATCH.
    present: Vec<Transaction>,
    absent: Vec<Transaction>,
    is_changed: bool,
    bytes: usize,
}

impl Watched {
    /// Adds a key in its present state, unless it is watched already.
    ///
    /// # Errors
    /// Returns errors of reading the keys; [`Error::Full`] if they take more than `most` bytes. Even then the earlier keys are watched.
    pub(crate) fn add<'a>(
        &mut self,
        (db, database): (&Db, &Database),
        keys: impl Iterator<Item = &'a [u8]>,
        most: usize,
    ) -> Result<()> {
        let [present, absent] = [db.transaction(), db.transaction()];
        let mut count = [0, 0];
        let added = keys.map(|key| (database.number, key.to_vec())).try_for_each(|name| {
            if self.keys.contains_key(&name) {
                return Ok(());
            }
            self.bytes += KEY_BYTES + name.1.len();
            if self.bytes > most {
                return Err(Error::Full(format!("watched keys take at most {most} bytes")));
            }
            let is_present = absent.keyspace(&database.stored).contains_key(&name.1)?
                && present.keyspace(&database.stored).contains_key(&name.1)?;
            count[usize::from(is_present)] += 1;
            self.keys.insert(name, (!is_present).then(|| database.stored.clone()));
            Ok(())
        });
        self.absent.extend((count[0] > 0).then_some(absent));
        self.present.extend((count[1] > 0).then_some(present));
        added
    }

    pub(crate) fn is_unchanged(&self) -> Result<bool> {
        Ok(!self.is_changed && are_unchanged(&self.present)? && are_unchanged(&self.absent)?)
    }

    /// Must be called before the server removes ranges. A key that cannot be read counts as changed.
    pub(crate) fn before_removal(&mut self) {
        self.is_changed |= !are_unchanged(&self.absent).unwrap_or(false);
    }

    /// Must be called after the server has removed ranges; `is_written` selects the keys that the same batch has written.
    pub(crate) fn after_removal(&mut self, db: &Db, is_written: impl Fn(usize, &[u8]) -> bool) {
        let transaction = db.transaction();
        let mut absent = self.keys.iter().filter_map(|(name, stored)| Some((name, stored.as_ref()?))).peekable();
        if absent.peek().is_none() {
            return;
        }
        let is_absent = |((number, key), stored): (&(usize, Vec<u8>), &Keyspace)| {
            let found = transaction.keyspace(stored).contains_key(key);
            found.is_ok_and(|is_there| !is_there) && !is_written(*number, key)
        };
        self.is_changed |= !absent.all(is_absent);
        self.absent = vec![transaction];
    }
}

fn are_unchanged(transactions: &[Transaction]) -> Result<bool> {
    for transaction in transactions {
        match transaction.check() {
            Err(Error::Conflict { .. }) => return Ok(false),
            checked => checked?,
        }
    }
    Ok(true)
}
