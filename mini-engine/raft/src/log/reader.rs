//! [`LogReader`]: reads entries and the vote, concurrently with writes.

use std::fmt;
use std::io::{Error, ErrorKind, Result};
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::{Stream, stream};
use mini_engine::{Db, Iter};
use openraft::type_config::alias::VoteOf;
use openraft::{OptionalSend, RaftLogReader, RaftTypeConfig};
use serde::de::DeserializeOwned;

use super::keys::{Keys, Record};
use crate::codec::decode;

/// Bytes of encoded entries after which [`RaftLogReader::limited_get_log_entries`] ends: enough to fill a message, and few enough that reads for
/// several lagging followers take little memory.
const READ_TOGETHER: usize = 1 << 20;

/// Reads a group's log for openraft's tasks. Sees every entry as soon as its append has returned.
pub struct LogReader<C> {
    db: Db,
    keys: Keys,
    /// The index of the first entry that is not purged. Shared with the store.
    first: Arc<AtomicU64>,
    of: PhantomData<fn() -> C>,
}

impl<C> LogReader<C> {
    pub(super) fn new(db: Db, keys: Keys, first: u64) -> Self {
        Self { db, keys, first: Arc::new(AtomicU64::new(first)), of: PhantomData }
    }

    pub(super) fn first(&self) -> u64 {
        // ORDERING: Acquire; pairs with Release in `set_first`. Weaker: a reader that misses removed entries could see the old value, and take the
        // gap for a hole.
        self.first.load(Ordering::Acquire)
    }

    pub(super) fn set_first(&self, first: u64) {
        self.first.store(first, Ordering::Release);
    }

    pub(super) fn db(&self) -> &Db {
        &self.db
    }

    pub(super) fn keys(&self) -> Keys {
        self.keys
    }

    /// The value of a record, if there is one.
    pub(super) fn record<T: DeserializeOwned>(&self, record: Record) -> Result<Option<T>> {
        let stored = self.db.get(self.keys.record(record))?;
        let what = || format!("record {record:?} of group {}", self.keys.group);
        stored.map(|bytes| decode(&bytes, what())).transpose()
    }
}

impl<C> Clone for LogReader<C> {
    fn clone(&self) -> Self {
        Self { db: self.db.clone(), keys: self.keys, first: Arc::clone(&self.first), of: PhantomData }
    }
}

impl<C> fmt::Debug for LogReader<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogReader")
            .field("group", &self.keys.group)
            .field("first", &self.first())
            .finish_non_exhaustive()
    }
}

impl<C: RaftTypeConfig> LogReader<C> {
    /// The present entries in `range`, with the lengths of their encodings.
    pub(super) fn entries(&self, range: impl RangeBounds<u64>) -> Entries<C> {
        let start = match range.start_bound() {
            Bound::Included(&start) => start,
            Bound::Excluded(&start) => start.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let from = start.max(self.first());
        let end = range.end_bound().map(|&end| self.keys.entry(end));
        let end = match end {
            Bound::Unbounded => Bound::Included(self.keys.entry(u64::MAX)),
            bounded => bounded,
        };
        let stored = self.db.range((Bound::Included(self.keys.entry(from)), end));
        Entries { stored, next: from, reader: self.clone() }
    }
}

/// The entries in a range, in order. A missing entry between two others, or an unpurged one missing at the beginning, is an error.
pub(super) struct Entries<C> {
    stored: Iter,
    /// The index that comes next.
    next: u64,
    reader: LogReader<C>,
}

impl<C: RaftTypeConfig> Entries<C> {
    fn decoded(&mut self, key: &[u8], value: &[u8]) -> Result<(usize, C::Entry)> {
        let group = self.reader.keys.group;
        let unexpected =
            || Error::new(ErrorKind::InvalidData, format!("group {group} has the key {}", key.escape_ascii()));
        let index = Keys::index(key).ok_or_else(unexpected)?;
        // A purge may have happened after the first index was read and before the entry was.
        if index != self.next && index > self.reader.first() {
            let hole = format!("the log of group {group} has a hole: expected entry {}, found {index}", self.next);
            return Err(Error::new(ErrorKind::InvalidData, hole));
        }
        self.next = index.saturating_add(1);
        Ok((value.len(), decode(value, format_args!("log entry {index} of group {group}"))?))
    }
}

impl<C: RaftTypeConfig> Iterator for Entries<C> {
    type Item = Result<(usize, C::Entry)>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(match self.stored.next()? {
            Ok((key, value)) => self.decoded(&key, &value),
            Err(error) => Err(error.into()),
        })
    }
}

impl<C: RaftTypeConfig> RaftLogReader<C> for LogReader<C> {
    async fn try_get_log_entries<R>(&mut self, range: R) -> Result<Vec<C::Entry>>
    where
        R: RangeBounds<u64> + Clone + fmt::Debug + OptionalSend,
    {
        self.entries(range).map(|entry| Ok(entry?.1)).collect()
    }

    /// Reads each entry when the stream is polled, so a long range takes no more memory.
    async fn entries_stream<R>(&mut self, range: R) -> impl Stream<Item = Result<C::Entry>> + OptionalSend
    where
        R: RangeBounds<u64> + Clone + fmt::Debug + OptionalSend,
    {
        stream::iter(self.entries(range).map(|entry| Ok(entry?.1)))
    }

    async fn limited_get_log_entries(&mut self, start: u64, end: u64) -> Result<Vec<C::Entry>> {
        let (mut found, mut bytes) = (Vec::new(), 0);
        for entry in self.entries(start..end) {
            let (len, entry) = entry?;
            found.push(entry);
            bytes += len;
            if bytes >= READ_TOGETHER {
                break;
            }
        }
        Ok(found)
    }

    async fn read_vote(&mut self) -> Result<Option<VoteOf<C>>> {
        self.record(Record::Vote)
    }
}
