//! The databases that clients select by number. Database 0 is the engine's default keyspace; every other database is the keyspace whose name is its
//! number. A database is created when a command first needs it, by another thread, because the creation waits for the disk.

use mini_engine::{Db, Keyspace, Result};

/// A database with its number.
#[derive(Clone, Debug)]
pub(crate) struct Database {
    pub(crate) number: usize,
    pub(crate) stored: Keyspace,
}

impl Database {
    /// Database 0, which is selected for every new client.
    pub(crate) fn first(db: &Db) -> Self {
        Self { number: 0, stored: Keyspace::clone(db) }
    }

    /// Database `number`; it is created if it does not exist.
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

    /// The existing databases whose number is below `end`.
    pub(crate) fn all(db: &Db, end: usize) -> Result<Vec<Self>> {
        let numbers = db.keyspaces().into_iter().filter_map(|name| {
            // Other keyspaces, such as "07", are not databases.
            let number: usize = name.parse().ok()?;
            (number > 0 && number < end && number.to_string() == name).then_some(number)
        });
        let mut numbers: Vec<usize> = numbers.chain([0]).collect();
        numbers.sort_unstable();
        numbers.into_iter().map(|number| Self::create(db, number)).collect()
    }
}
