//! The records that are stored together: all of them or none.

use mini_engine::{Error, MAX_BATCH_RANGES, WriteBatch};

use super::writer::Writer;
use crate::program::record::{self, Format};

/// A batch with this many bytes is full, which bounds the memory that an import needs.
const MOST_BYTES: usize = 1 << 20;

/// Records read and not yet stored.
pub(crate) struct Batch {
    records: WriteBatch,
    /// Bytes of their keys and values.
    bytes: usize,
    /// How many of them remove a range.
    ranges: u32,
    most_bytes: usize,
}

impl Batch {
    /// A batch for memtables of the given size: one that fills half a memtable would be treated as a table of its own.
    pub(crate) fn new(memtable_bytes: Option<usize>) -> Self {
        let most_bytes = memtable_bytes.map_or(MOST_BYTES, |bytes| MOST_BYTES.min(bytes / 4));
        Self { records: WriteBatch::new(), bytes: 0, ranges: 0, most_bytes }
    }

    /// Adds the record that a line holds, or says why it holds none.
    pub(crate) fn add(&mut self, line: &[u8], format: Format) -> Result<(), String> {
        let record = record::parse(line, format)?;
        let added = match (&record.value, record.end.as_deref()) {
            (Some(value), _) => self.records.insert(&record.key, value),
            (None, Some([])) => self.records.remove_range(&*record.key..),
            (None, Some(end)) => self.records.remove_range(&*record.key..end),
            (None, None) => self.records.remove(&record.key),
        };
        added.map_err(|error| error.to_string())?;
        self.ranges += u32::from(record.end.is_some());
        self.bytes += record.key.len() + record.value.map_or(0, |value| value.len());
        Ok(())
    }

    pub(crate) fn is_full(&self) -> bool {
        self.bytes >= self.most_bytes || self.ranges >= MAX_BATCH_RANGES
    }

    /// Writes the records and forgets them; returns how many there were.
    pub(crate) fn store(&mut self, writer: &Writer) -> Result<u64, Error> {
        let records = self.records.len() as u64;
        if records > 0 {
            writer.write(std::mem::take(&mut self.records))?;
        }
        (self.bytes, self.ranges) = (0, 0);
        Ok(records)
    }
}
