//! [`LogStore`]: the log of one group, as openraft writes it.
//!
//! Every change is one batch, so it exists as a whole or not at all after a crash:
//!
//! | call | batch | durable |
//! |---|---|---|
//! | `append` | entries | when the callback is called |
//! | `save_vote` | the vote | when it returns |
//! | `save_committed` | the log id | with the next sync |
//! | `truncate_after` | removes the range of entries | when it returns: openraft may install a snapshot next, which the removed entries contradict |
//! | `purge` | the log id | with the next sync; entries are removed later still |

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::fmt;
use std::io::{Error, ErrorKind, Result};

use mini_engine::WriteBatch;
use openraft::async_runtime::OneshotSender;
use openraft::entry::RaftEntry;
use openraft::storage::{IOFlushed, LogState, RaftLogStorage};
use openraft::type_config::TypeConfigExt;
use openraft::type_config::alias::{LogIdOf, VoteOf};
use openraft::vote::RaftVote;
use openraft::{LogIdOptionExt, OptionalSend, RaftTypeConfig};

use super::keys::{Keys, Record};
use super::logs::{Logs, REMOVED_TOGETHER, open_already};
use super::reader::LogReader;
use super::sizes::Sizes;
use crate::codec::encode;
use crate::contradiction::{contradiction, follows, shown};
use crate::write::write;

/// The number of entries from which an open estimates the sizes of all.
const ESTIMATED_PARTS: u64 = 64;

/// The log, the vote and the committed log id of a Raft group. Made by [`Logs::group`].
///
/// | | |
/// |---|---|
/// | a vote | is durable when `save_vote` returns |
/// | entries | can be read when `append` returns, and are durable when its callback is called, on a thread of [`Logs`]; all waiting appends and votes share one sync |
/// | the committed log id | survives a killed process at once, and a power cut with the next sync |
/// | a truncation, a purge | takes effect as a whole or not at all after any crash; later appended entries survive only with it |
///
/// A call that contradicts the vote or the committed entries is refused with [`InvalidData`](ErrorKind::InvalidData), and changes nothing.
///
/// After a failed write or sync every call returns an error until the database is opened again.
pub struct LogStore<C: RaftTypeConfig> {
    logs: Logs,
    reader: LogReader<C>,
    /// The id of the last entry; without entries, that of the last purged one.
    last: Option<LogIdOf<C>>,
    purged: Option<LogIdOf<C>>,
}

impl Logs {
    /// The log of group `number`, which is empty at first. The other groups have other numbers; an application with one group can give it any.
    ///
    /// Reads at most about 64 entries, whatever the length of the log.
    ///
    /// # Errors
    /// [`AlreadyExists`](ErrorKind::AlreadyExists) while the group has another [`LogStore`]; [`InvalidData`](ErrorKind::InvalidData) if what is
    /// stored is not the log of a `C`; the errors of a read.
    pub fn group<C: RaftTypeConfig>(&self, number: u32) -> Result<LogStore<C>> {
        if !self.take(number) {
            return Err(open_already(number));
        }
        LogStore::open(self.clone(), number).inspect_err(|_| self.release(number))
    }
}

impl<C: RaftTypeConfig> LogStore<C> {
    fn open(logs: Logs, group: u32) -> Result<Self> {
        let reader = LogReader::<C>::new(logs.db().clone(), Keys { group }, 0);
        let purged: Option<LogIdOf<C>> = reader.record(Record::Purged)?;
        // Purged entries may still be stored.
        let mut stored = logs.db().range(reader.keys().entries(purged.next_index()..=u64::MAX));
        let first = stored.next().transpose()?.and_then(|(key, _)| Keys::index(&key));
        if let (Some(purged), Some(first)) = (&purged, first)
            && first != purged.index + 1
        {
            let hole = format!("the log of group {group} is purged up to {purged} and begins at {first}");
            return Err(Error::new(ErrorKind::InvalidData, hole));
        }
        reader.set_first(first.unwrap_or(purged.next_index()));
        let last = match first {
            None => None,
            Some(first) => {
                let last = stored.next_back().transpose()?.and_then(|(key, _)| Keys::index(&key)).unwrap_or(first);
                reader.entries(last..=last).next().transpose()?.map(|(_, entry)| entry.log_id())
            }
        };
        let last = last.or_else(|| purged.clone());
        let committed: Option<LogIdOf<C>> = reader.record(Record::Committed)?;
        {
            let mut settled = reader.settled();
            settled.vote = reader.record(Record::Vote)?;
            committed.iter().chain(&purged).for_each(|log_id| settled.commit(log_id));
        }
        let purged_bytes = if last.is_some() { REMOVED_TOGETHER } else { 0 };
        *reader.sizes() = Sizes::of_open(Self::estimate(&reader, last.next_index())?, purged_bytes);
        Ok(Self { logs, reader, last, purged })
    }

    /// The sizes of parts of the log, each with the last index of the part: one entry of a part is read, and the others count as if they had its size.
    fn estimate(reader: &LogReader<C>, end: u64) -> Result<VecDeque<(u64, usize)>> {
        let part = end.saturating_sub(reader.first()).div_ceil(ESTIMATED_PARTS).max(1);
        let sized = |start: u64| {
            let next = start.saturating_add(part).min(end);
            let read = reader.entries(start..=start).next().transpose()?;
            Ok((next - 1, read.map_or(0, |(bytes, _)| bytes).saturating_mul((next - start) as usize)))
        };
        (reader.first()..end).step_by(part as usize).map(sized).collect()
    }

    /// Tells the log which entry the state machine has applied last: [`RaftStateMachine::applied_state`](openraft::storage::RaftStateMachine). A power
    /// cut may lose the record that this entry is committed. Call this before the log is given to a node.
    ///
    /// # Errors
    /// [`InvalidData`](ErrorKind::InvalidData) if the log has another entry in its place, so log and state are not of one time; the errors of a read.
    pub fn settle(&mut self, applied: Option<LogIdOf<C>>) -> Result<()> {
        let Some(applied) = applied else { return Ok(()) };
        let stored = self.reader.entries(applied.index..=applied.index).next().transpose()?;
        match stored.map(|(_, entry)| entry.log_id()).filter(|stored| *stored != applied) {
            Some(stored) => Err(contradiction("the log's entry", stored, "applied", applied)),
            None => {
                self.reader.settled().commit(&applied);
                Ok(())
            }
        }
    }

    /// The committed entry that an entry `new` contradicts, if there is one.
    fn contradicted(&self, new: &Option<LogIdOf<C>>) -> Option<LogIdOf<C>> {
        let committed = self.reader.settled().committed.clone()?;
        (!new.as_ref().is_some_and(|new| follows(new, &committed))).then_some(committed)
    }

    /// Waits until all earlier writes are durable.
    async fn synced(&self) -> Result<()> {
        let (sender, receiver) = C::oneshot();
        self.logs.when_synced(move |synced| drop(sender.send(synced)));
        receiver.await.map_err(|error| Error::other(format!("the thread that syncs has ended: {error}")))?
    }

    async fn write(&self, batch: WriteBatch) -> Result<()> {
        write::<C>(self.reader.db(), batch).await
    }
}

impl<C: RaftTypeConfig> Drop for LogStore<C> {
    fn drop(&mut self) {
        self.logs.release(self.reader.keys().group);
    }
}

impl<C: RaftTypeConfig> fmt::Debug for LogStore<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("LogStore");
        shown.field("group", &self.reader.keys().group).field("purged", &self.purged).field("last", &self.last);
        shown.finish_non_exhaustive()
    }
}

impl<C: RaftTypeConfig> RaftLogStorage<C> for LogStore<C> {
    type LogReader = LogReader<C>;

    async fn get_log_state(&mut self) -> Result<LogState<C>> {
        Ok(LogState { last_purged_log_id: self.purged.clone(), last_log_id: self.last.clone() })
    }

    async fn get_log_reader(&mut self) -> LogReader<C> {
        self.reader.clone()
    }

    async fn save_vote(&mut self, vote: &VoteOf<C>) -> Result<()> {
        if let Some(old) = self.reader.settled().vote.clone()
            && !RaftVote::partial_cmp(vote, &old).is_some_and(Ordering::is_ge)
        {
            return Err(contradiction("the vote", vote, "given", old));
        }
        let mut batch = WriteBatch::new();
        batch.insert(self.reader.keys().record(Record::Vote), encode(vote)?)?;
        self.write(batch).await?;
        self.reader.settled().vote = Some(vote.clone());
        self.synced().await
    }

    async fn save_committed(&mut self, committed: Option<LogIdOf<C>>) -> Result<()> {
        if let Some(old) = self.contradicted(&committed) {
            return Err(contradiction("the committed entry", shown(&committed), "committed", old));
        }
        let Some(committed) = committed else { return Ok(()) };
        let mut batch = WriteBatch::new();
        batch.insert(self.reader.keys().record(Record::Committed), encode(&committed)?)?;
        self.write(batch).await?;
        self.reader.settled().commit(&committed);
        Ok(())
    }

    async fn read_committed(&mut self) -> Result<Option<LogIdOf<C>>> {
        self.reader.record(Record::Committed)
    }

    /// # Errors
    /// [`ErrorKind::InvalidInput`] if the entries do not continue the log: then no entry is appended, and the callback is dropped.
    async fn append<I>(&mut self, entries: I, callback: IOFlushed<C>) -> Result<()>
    where
        I: IntoIterator<Item = C::Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let (mut batch, mut last) = (WriteBatch::new(), self.last.clone());
        let mut first = None;
        for entry in entries {
            let index = entry.index();
            if last.as_ref().is_some_and(|last| last.index + 1 != index) {
                let hole = format!("cannot append entry {index}: expected entry {}", last.next_index());
                return Err(Error::new(ErrorKind::InvalidInput, hole));
            }
            if let Some(last) = last.filter(|last| !follows(&entry.log_id(), last)) {
                return Err(contradiction("the entry", entry.log_id(), "appended", last));
            }
            batch.insert(self.reader.keys().entry(index), encode(&entry)?)?;
            first.get_or_insert(index);
            last = Some(entry.log_id());
        }
        let bytes = batch.encoded_len();
        self.write(batch).await?;
        if let (Some(first), Some(last)) = (first, &last) {
            if self.last.is_none() {
                // An empty log may begin at any index.
                self.reader.set_first(first);
            }
            self.reader.sizes().append(last.index, bytes);
        }
        self.last = last;
        self.logs.when_synced(move |synced| callback.io_completed(synced));
        Ok(())
    }

    async fn truncate_after(&mut self, last_log_id: Option<LogIdOf<C>>) -> Result<()> {
        let first = self.reader.first();
        let from = last_log_id.next_index().max(first);
        let Some(last) = self.last.index().filter(|&last| last >= from) else { return Ok(()) };
        let kept = if from == first { self.purged.clone() } else { last_log_id };
        if let Some(old) = self.contradicted(&kept) {
            return Err(contradiction("a truncation after", shown(&kept), "committed", old));
        }
        let mut batch = WriteBatch::new();
        batch.remove_range(self.reader.keys().entries(from..=last))?;
        self.write(batch).await?;
        self.reader.sizes().truncate(from.saturating_sub(1));
        self.last = kept;
        self.synced().await
    }

    async fn purge(&mut self, log_id: LogIdOf<C>) -> Result<()> {
        if Some(log_id.index) <= self.purged.index() {
            return Ok(());
        }
        let index = log_id.index;
        if let Some(old) = self.contradicted(&Some(log_id.clone())).filter(|old| old.index <= index) {
            return Err(contradiction("a purge up to", log_id, "committed", old));
        }
        let mut batch = WriteBatch::new();
        batch.insert(self.reader.keys().record(Record::Purged), encode(&log_id)?)?;
        self.write(batch).await?;
        self.reader.set_first(index.saturating_add(1));
        if self.last.index() <= Some(index) {
            self.last = Some(log_id.clone());
        }
        self.reader.settled().commit(&log_id);
        self.purged = Some(log_id);
        let mut sizes = self.reader.sizes();
        sizes.purge(index);
        if sizes.take_purged(REMOVED_TOGETHER) {
            self.logs.remove_purged(self.reader.keys().group, index);
        }
        Ok(())
    }
}
