//! The databases that clients select by number. Database 0 is the engine's default keyspace, and each other one is the keyspace of its number's name.
//! It is created when a command first needs it, by another thread, because that waits for the disk.

use mini_engine::{Db, Keyspace, Result};

/// A database with its number.
#[derive(Clone, Debug)]
pub(crate) struct Database {
    pub(crate) number: usize,
    pub(crate) stored: Keyspace,
}

impl Database {
    /// Database 0, which every client begins with.
    pub(crate) fn first(db: &Db) -> Self {
        Self { number: 0, stored: Keyspace::clone(db) }
    }

    /// Database `number`, which is created if it does not exist.
    pub(crate) fn create(db: &Db, number: usize) -> Result<Self> {
        match number {
            0 => Ok(Self::first(db)),
            _ => Ok(Self { number, stored: db.keyspace(&number.to_string())? }),
        }
    }

    /// Database `number`; `None` if it does not exist.
    pub(crate) fn open(db: &Db, number: usize) -> Result<Option<Self>> {
        let exists = number == 0 || db.keyspaces().contains(&number.to_string());
        exists.then(|| Self::create(db, number)).transpose()
    }

    /// The databases below `end` that exist.
    pub(crate) fn all(db: &Db, end: usize) -> Result<Vec<Self>> {
        let numbers = db.keyspaces().into_iter().filter_map(|name| {
            // Other keyspaces, such as "07", are no databases.
            let number: usize = name.parse().ok()?;
            (number > 0 && number < end && number.to_string() == name).then_some(number)
        });
        let mut numbers: Vec<usize> = numbers.chain([0]).collect();
        numbers.sort_unstable();
        numbers.into_iter().map(|number| Self::create(db, number)).collect()
    }
}
