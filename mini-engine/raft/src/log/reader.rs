//! [`LogReader`]: reads entries and the vote, concurrently with writes.

use std::cmp::Ordering;
use std::fmt;
use std::io::{Error, ErrorKind, Result};
use std::ops::{Bound, RangeBounds};
use std::sync::atomic::{self, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::{Stream, stream};
use mini_engine::{Db, Iter};
use openraft::entry::RaftEntry;
use openraft::type_config::alias::{LogIdOf, VoteOf};
use openraft::vote::RaftVote;
use openraft::{OptionalSend, RaftLogReader, RaftTypeConfig};
use serde::de::DeserializeOwned;

use super::keys::{Keys, Record};
use super::sizes::Sizes;
use crate::codec::decode;
use crate::contradiction::contradiction;

/// Bytes of encoded entries after which [`RaftLogReader::limited_get_log_entries`] ends: enough to fill a message, and few enough that reads for
/// several lagging followers take little memory.
const READ_TOGETHER: usize = 1 << 20;

/// Reads a group's log for openraft's tasks. Sees every entry as soon as its append has returned.
pub struct LogReader<C: RaftTypeConfig> {
    db: Db,
    keys: Keys,
    /// The index of the first entry that is not purged. Shared with the store.
    first: Arc<AtomicU64>,
    settled: Arc<Mutex<Settled<C>>>,
    /// Shared with the store.
    sizes: Arc<Mutex<Sizes>>,
}

/// What no later call may contradict. Shared with the store.
#[derive(Clone, Debug)]
pub(super) struct Settled<C: RaftTypeConfig> {
    /// The last vote.
    pub(super) vote: Option<VoteOf<C>>,
    /// The last entry that is known to be committed: saved as such, purged, or applied.
    pub(super) committed: Option<LogIdOf<C>>,
}

impl<C: RaftTypeConfig> Settled<C> {
    /// Notes that an entry is committed.
    pub(super) fn commit(&mut self, log_id: &LogIdOf<C>) {
        if self.committed.as_ref().is_none_or(|committed| committed.index < log_id.index) {
            self.committed = Some(log_id.clone());
        }
    }
}

impl<C: RaftTypeConfig> LogReader<C> {
    pub(super) fn new(db: Db, keys: Keys, first: u64) -> Self {
        let settled = Settled { vote: None, committed: None };
        let (first, settled) = (Arc::new(AtomicU64::new(first)), Arc::new(Mutex::new(settled)));
        Self { db, keys, first, settled, sizes: Arc::default() }
    }

    pub(super) fn first(&self) -> u64 {
        // ORDERING: Acquire; pairs with Release in `set_first`. Weaker: a reader that misses removed entries could see the old value, and take the
        // gap for a hole.
        self.first.load(atomic::Ordering::Acquire)
    }

    pub(super) fn set_first(&self, first: u64) {
        self.first.store(first, atomic::Ordering::Release);
    }

    pub(super) fn settled(&self) -> MutexGuard<'_, Settled<C>> {
        // Each change is one assignment, so a panic leaves the data consistent.
        self.settled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn sizes(&self) -> MutexGuard<'_, Sizes> {
        // Numbers alone; a panic leaves at worst a wrong sum.
        self.sizes.lock().unwrap_or_else(PoisonError::into_inner)
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

impl<C: RaftTypeConfig> Clone for LogReader<C> {
    fn clone(&self) -> Self {
        Self {
            db: self.db.clone(),
            keys: self.keys,
            first: Arc::clone(&self.first),
            settled: Arc::clone(&self.settled),
            sizes: Arc::clone(&self.sizes),
        }
    }
}

impl<C: RaftTypeConfig> fmt::Debug for LogReader<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogReader")
            .field("group", &self.keys.group)
            .field("first", &self.first())
            .finish_non_exhaustive()
    }
}

impl<C: RaftTypeConfig> LogReader<C> {
    /// Checks the log ids in a leader's message: of the previous entry, the entries, or the snapshot, in this order. Call this before the message is passed
    /// to [`openraft::Raft`], which takes every id up to the last committed index for that of its own entry, without a comparison.
    ///
    /// Reads at most one entry, and mostly none.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidData`] if the message contradicts a committed entry: then a node has lost entries that it had acknowledged, and this node must
    /// not continue. The errors of a read.
    pub fn check(&self, vote: &VoteOf<C>, log_ids: impl IntoIterator<Item = LogIdOf<C>>) -> Result<()> {
        let Settled { vote: own_vote, committed } = self.settled().clone();
        let Some(committed) = committed else { return Ok(()) };
        // openraft refuses the messages of a deposed leader. They may contradict what was committed since.
        if own_vote.is_some_and(|own| RaftVote::partial_cmp(vote, &own).is_none_or(Ordering::is_lt)) {
            return Ok(());
        }
        // Logs that agree at an index agree before it, too.
        let last = log_ids.into_iter().take_while(|log_id| log_id.index <= committed.index).last();
        let Some(found) = last.filter(|last| *last != committed) else { return Ok(()) };
        let stored = match found.index == committed.index {
            true => Some(committed),
            false if found.index < self.first() => None,
            false => self.entries(found.index..=found.index).next().transpose()?.map(|(_, entry)| entry.log_id()),
        };
        match stored.filter(|stored| *stored != found) {
            None => Ok(()),
            Some(stored) => Err(contradiction("a leader's entry", found, "committed", stored)),
        }
    }

    /// About how many bytes the entries from `index` on have: what a purge of the entries before it leaves. Entries of an earlier process are estimated.
    pub fn bytes_from(&self, index: u64) -> u64 {
        self.sizes().from(index) as u64
    }

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
pub(super) struct Entries<C: RaftTypeConfig> {
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
