//! The records that are stored together: all of them or none.

use mini_engine::{Db, Durability, Error, Keyspace, WriteBatch};

use crate::record::{self, Format};

/// A batch with this many bytes is full, which bounds the memory that an import needs.
const MOST_BYTES: usize = 1 << 20;

/// Records read and not yet stored.
pub(crate) struct Batch {
    keyspace: Keyspace,
    records: WriteBatch,
    /// Bytes of their keys and values.
    bytes: usize,
    most_bytes: usize,
}

impl Batch {
    /// A batch for memtables of the given size: one that fills half a memtable would get a table of its own.
    pub(crate) fn new(keyspace: Keyspace, memtable_bytes: Option<usize>) -> Self {
        let most_bytes = memtable_bytes.map_or(MOST_BYTES, |bytes| MOST_BYTES.min(bytes / 4));
        Self { keyspace, records: WriteBatch::new(), bytes: 0, most_bytes }
    }

    /// Adds the record of a line, or returns the reason why there is none.
    pub(crate) fn add(&mut self, line: &[u8], format: Format) -> Result<(), String> {
        let record = record::parse(line, format)?;
        let mut records = self.records.keyspace(&self.keyspace);
        let added = match record.expiry {
            Some(at) => records.insert_with_expiry(&record.key, &record.value, at),
            None => records.insert(&record.key, &record.value),
        };
        added.map_err(|error| error.to_string())?;
        self.bytes += record.key.len() + record.value.len();
        Ok(())
    }

    pub(crate) fn is_full(&self) -> bool {
        self.bytes >= self.most_bytes
    }

    /// Writes the records and forgets them; returns how many there were.
    pub(crate) fn store(&mut self, db: &Db, durability: Durability) -> Result<u64, Error> {
        let records = self.records.len() as u64;
        if records > 0 {
            db.write(std::mem::take(&mut self.records), durability)?;
        }
        self.bytes = 0;
        Ok(records)
    }
}
