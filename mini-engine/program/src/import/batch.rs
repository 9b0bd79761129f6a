//! The records that are stored together: all of them or none.

use mini_engine::{Db, Durability, Error, Keyspace, WriteBatch};

use crate::database::{DatabaseArgs, OpenFor};
use crate::failure::Failure;
use crate::keyspace::KeyspaceArgs;
use crate::record::Record;

/// The number of bytes at which a batch is full. It bounds the memory that an import needs.
const MOST_BYTES: usize = 1 << 20;

/// Records read and not yet stored, and the database for them.
pub(crate) struct Batch<'a> {
    database: &'a DatabaseArgs,
    keyspace: &'a KeyspaceArgs,
    open: Option<(Db, Keyspace)>,
    /// The keyspace that the last record named.
    named: Option<(String, Keyspace)>,
    records: WriteBatch,
    /// Bytes of their keys and values.
    bytes: usize,
    most_bytes: usize,
}

impl<'a> Batch<'a> {
    pub(crate) fn new(database: &'a DatabaseArgs, keyspace: &'a KeyspaceArgs) -> Self {
        // A batch of more than half a memtable would get a table of its own.
        let most_bytes = database.memtable_bytes.map_or(MOST_BYTES, |bytes| MOST_BYTES.min(bytes / 4));
        Self { database, keyspace, open: None, named: None, records: WriteBatch::new(), bytes: 0, most_bytes }
    }

    /// Opens the database and the keyspace, or makes them, unless that was done already.
    pub(crate) fn open(&mut self) -> Result<&Keyspace, Failure> {
        let (_, keyspace) = match &mut self.open {
            Some(open) => open,
            none => {
                let db = self.database.open(OpenFor::Creating)?;
                let keyspace = self.keyspace.created(&db)?;
                none.insert((db, keyspace))
            }
        };
        Ok(keyspace)
    }

    /// The keyspace that the record names, or that of the arguments; makes it if it does not exist.
    fn keyspace_of(&mut self, record: &Record<'_>) -> Result<Keyspace, Failure> {
        let default = self.open()?.clone();
        let (Some(name), Some((db, _))) = (&record.keyspace, &self.open) else { return Ok(default) };
        match &self.named {
            Some((last, keyspace)) if last == name => Ok(keyspace.clone()),
            _ => Ok(self.named.insert((name.clone(), db.keyspace(name)?)).1.clone()),
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Adds a record, or returns the reason why that is impossible.
    pub(crate) fn add(&mut self, record: &Record<'_>) -> Result<Result<(), String>, Failure> {
        // Checks the lengths before a database is made.
        if !self.is_open()
            && let Err(error) = WriteBatch::new().insert(&record.key, &record.value)
        {
            return Ok(Err(error.to_string()));
        }
        let keyspace = self.keyspace_of(record)?;
        let mut records = self.records.keyspace(&keyspace);
        let added = match record.expiry {
            Some(at) => records.insert_with_expiry(&record.key, &record.value, at),
            None => records.insert(&record.key, &record.value),
        };
        if let Err(error) = added {
            return Ok(Err(error.to_string()));
        }
        self.bytes += record.key.len() + record.value.len();
        Ok(Ok(()))
    }

    pub(crate) fn is_full(&self) -> bool {
        self.bytes >= self.most_bytes
    }

    /// Writes the records and clears the batch; returns the number of records.
    pub(crate) fn store(&mut self, durability: Durability) -> Result<u64, Error> {
        let records = std::mem::take(&mut self.records);
        self.bytes = 0;
        let Some((db, _)) = self.open.as_ref().filter(|_| !records.is_empty()) else { return Ok(0) };
        let count = records.len() as u64;
        db.write(records, durability)?;
        Ok(count)
    }

    /// Closes the database, if it was opened. All stored records are durable, unless this fails.
    pub(crate) fn close(self) -> Result<(), Error> {
        self.open.map_or(Ok(()), |(db, _)| db.close())
    }
}
