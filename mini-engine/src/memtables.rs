//! The memtables of a database: one that takes writes, and the frozen ones that wait for their flush.
//!
//! A memtable and a log belong together: log `n` holds exactly the writes of the memtable bound to `n`. Both get a
//! write in one step under the write lock, and both end together when the memtable is frozen. So a log is obsolete
//! exactly when its memtable is in a table, and the oldest log that replay needs is that of the oldest memtable.

use fastskip::{Lookup, Memtable, Op, OwnedCursor};

use crate::error::{Error, Result};
use crate::iter::EntryIter;
use crate::types::{BatchOp, Kind, SeqNo, Slice};

/// What a memtable takes for its head and for the first chunk of its arena, whatever its size.
const BASE_BYTES: usize = 1 << 20;
/// More than a node costs beside its key and value: header, tower, padding.
const NODE_BYTES: usize = 96;

/// A memtable and the number of the log that holds the same writes.
#[derive(Clone)]
pub(crate) struct LoggedMemtable {
    pub(crate) table: Memtable,
    pub(crate) log: u64,
}

impl LoggedMemtable {
    /// An empty memtable for writes of about `bytes` of memory.
    ///
    /// # Errors
    /// [`Error::Full`] if its address range cannot be reserved.
    pub(crate) fn new(log: u64, bytes: usize) -> Result<LoggedMemtable> {
        // One shard: writes come one at a time, under the write lock.
        // The write that makes a memtable full may be half as large as the memtable, by the same estimate.
        let limit = bytes.saturating_add(bytes / 2).saturating_add(BASE_BYTES);
        let table = Memtable::builder().shards(1).max_memory_bytes(limit).try_build();
        let table =
            table.map_err(|error| Error::Full(format!("no address range for a memtable of {limit} bytes: {error}")))?;
        Ok(LoggedMemtable { table, log })
    }

    /// The newest version of `key` that is not newer than `seqno`: a value, of which `take` takes what it needs, a
    /// tombstone (`Some(None)`), or nothing.
    pub(crate) fn get<T>(&self, key: &[u8], seqno: SeqNo, take: impl FnOnce(&[u8]) -> T) -> Option<Option<T>> {
        found(self.table.get(key, seqno), take)
    }

    /// As `get` for each of `keys`, with copies of the values. Their searches go on side by side.
    pub(crate) fn get_many(&self, keys: &[&[u8]], seqno: SeqNo) -> impl Iterator<Item = Option<Option<Slice>>> {
        self.table.get_many(keys, seqno).into_iter().map(|lookup| found(lookup, |value| Slice::from(value)))
    }

    /// An iterator over all versions, which keeps the memtable alive.
    pub(crate) fn iter(&self) -> MemtableIter {
        MemtableIter { cursor: self.table.owned_cursor() }
    }
}

impl std::fmt::Debug for LoggedMemtable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoggedMemtable").field("log", &self.log).field("entries", &self.table.len()).finish()
    }
}

fn found<T>(lookup: Lookup<'_>, take: impl FnOnce(&[u8]) -> T) -> Option<Option<T>> {
    match lookup {
        Lookup::Value(value) => Some(Some(take(value))),
        Lookup::Tombstone => Some(None),
        Lookup::Absent => None,
    }
}

/// An upper estimate of the memory that `operations` with `payload` bytes of keys and values take in a memtable.
pub(crate) fn memory_for(operations: usize, payload: usize) -> usize {
    payload.saturating_add(operations.saturating_mul(NODE_BYTES))
}

/// An operation of a batch as the memtable takes it.
pub(crate) fn op(op: BatchOp<'_>) -> Op<'_> {
    match op {
        BatchOp::Insert { key, value } => Op::Put { key, value },
        BatchOp::Remove { key } => Op::Delete { key },
    }
}

/// A memtable's cursor as one sorted sequence. It reads memory only, so that no step of it fails.
pub(crate) struct MemtableIter {
    cursor: OwnedCursor,
}

impl EntryIter for MemtableIter {
    fn valid(&self) -> bool {
        self.cursor.valid()
    }

    fn key(&self) -> &[u8] {
        self.cursor.key()
    }

    fn seqno(&self) -> SeqNo {
        self.cursor.seqno()
    }

    fn kind(&self) -> Kind {
        match self.cursor.kind() {
            fastskip::Kind::Tombstone => Kind::Tombstone,
            fastskip::Kind::Value => Kind::Value,
        }
    }

    fn value(&self) -> &[u8] {
        self.cursor.value()
    }

    fn seek_to_first(&mut self) -> Result<()> {
        self.cursor.seek_to_first();
        Ok(())
    }

    fn seek_to_last(&mut self) -> Result<()> {
        self.cursor.seek_to_last();
        Ok(())
    }

    fn seek(&mut self, key: &[u8], seqno: SeqNo) -> Result<()> {
        self.cursor.seek(key, seqno);
        Ok(())
    }

    fn seek_for_prev(&mut self, key: &[u8], seqno: SeqNo) -> Result<()> {
        self.cursor.seek_for_prev(key, seqno);
        Ok(())
    }

    fn next(&mut self) -> Result<()> {
        self.cursor.next();
        Ok(())
    }

    fn prev(&mut self) -> Result<()> {
        self.cursor.prev();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memtable() -> LoggedMemtable {
        let memtable = LoggedMemtable::new(1, 1 << 16).unwrap();
        memtable.table.put(b"b", 1, b"old").unwrap();
        memtable.table.put(b"b", 3, b"new").unwrap();
        memtable.table.delete(b"a", 2).unwrap();
        memtable
    }

    #[test]
    fn a_tombstone_is_told_from_an_absent_key() {
        // Catches a removed key looked for in older tables, where its old value still is.
        let memtable = memtable();
        assert_eq!(memtable.get(b"a", 9, <[u8]>::to_vec), Some(None));
        assert_eq!(memtable.get(b"a", 1, <[u8]>::to_vec), None);
        assert_eq!(memtable.get(b"b", 2, <[u8]>::to_vec).unwrap().as_deref(), Some(&b"old"[..]));
        assert_eq!(memtable.get(b"b", 9, <[u8]>::to_vec).unwrap().as_deref(), Some(&b"new"[..]));
        assert_eq!(memtable.get(b"c", 9, <[u8]>::to_vec), None);
    }

    #[test]
    fn the_iterator_yields_all_versions_in_entry_order_both_ways_and_outlives_its_memtable() {
        // Catches an adapter that mixes up a direction or a seek, and a cursor into freed memory.
        let mut iter = memtable().iter();
        let mut seen = Vec::new();
        iter.seek_to_first().unwrap();
        while iter.valid() {
            seen.push((iter.key().to_vec(), iter.seqno(), iter.kind()));
            iter.next().unwrap();
        }
        let expected =
            [(b"a".to_vec(), 2, Kind::Tombstone), (b"b".to_vec(), 3, Kind::Value), (b"b".to_vec(), 1, Kind::Value)];
        assert_eq!(seen, expected);
        iter.seek_to_last().unwrap();
        for (key, seqno, _) in expected.iter().rev() {
            assert_eq!((iter.key(), iter.seqno()), (&key[..], *seqno));
            iter.prev().unwrap();
        }
        assert!(!iter.valid());
        iter.seek(b"b", 2).unwrap();
        assert_eq!((iter.seqno(), iter.value()), (1, &b"old"[..]));
        iter.seek_for_prev(b"b", 2).unwrap();
        assert_eq!((iter.seqno(), iter.value()), (3, &b"new"[..]));
    }
}
