//! [`Writes`]: the writes of a transaction before its commit, and their rollback to a savepoint.
//!
//! An operation on a key replaces earlier ones on that key. The removal of a range also replaces the earlier operations on keys in the range. So no
//! range removes the effect of an operation on a key in this list, and a batch with all ranges before the keys has the same effect.
//!
//! From the first savepoint on, an undo log keeps the operations that later ones replace. Its records count as memory of the transaction.

use std::collections::BTreeMap;
use std::ops::Bound;

use crate::error::{Error, Result};
use crate::iter::Direction;
use crate::types::{KeyBounds, Millis, OwnedBounds, Slice, WriteBatch, check_ranges, is_before_end, is_same_keyspace};

/// An upper estimate of the memory of an operation without its bytes.
const OP_BYTES: usize = 128;

/// A value, and the instant at which it expires, if it does.
pub(super) type Expiring<V> = (V, Option<Millis>);

#[derive(Debug, Default)]
pub(super) struct Writes {
    /// The value of each written key; `None` if it was removed.
    keys: BTreeMap<Slice, Option<Expiring<Slice>>>,
    /// The removed ranges in order, each as its first key and its end as returned by [`start_and_end`](crate::types::start_and_end). Each lies within
    /// one keyspace, and between two of one keyspace there is at least one key.
    ranges: Vec<(Slice, Slice)>,
    bytes: usize,
    /// The savepoints to which the transaction can still return, oldest first.
    savepoints: Vec<(SavepointId, Position)>,
    /// The changes since the oldest savepoint.
    undo_log: Vec<Undo>,
}

/// A number that no other savepoint of the process has.
pub(super) type SavepointId = u64;

/// The state of the writes at a savepoint: the length of the undo log, and the memory.
#[derive(Debug, Clone, Copy)]
struct Position {
    undo_len: usize,
    bytes: usize,
}

/// The reverse of a change.
#[derive(Debug)]
enum Undo {
    /// Gives the key this operation back, or none.
    Key(Slice, Option<Option<Expiring<Slice>>>),
    /// Puts these ranges in the place of the range at this index.
    Range(usize, Vec<(Slice, Slice)>),
}

/// The memory of an operation, in bytes.
fn bytes_of(first: &[u8], second: Option<&[u8]>) -> usize {
    OP_BYTES + first.len() + second.map_or(0, <[u8]>::len)
}

impl Writes {
    pub(super) fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.ranges.is_empty()
    }

    /// The memory of these writes, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The memory, in bytes, that another operation with these byte strings may take.
    pub(super) fn bytes_for(&self, first: &[u8], second: Option<&[u8]>) -> usize {
        bytes_of(first, second) + if self.savepoints.is_empty() { 0 } else { OP_BYTES }
    }

    /// Begins a savepoint. O(1).
    pub(super) fn add_savepoint(&mut self, id: SavepointId) {
        self.bytes += size_of::<(SavepointId, Position)>();
        self.savepoints.push((id, Position { undo_len: self.undo_log.len(), bytes: self.bytes }));
    }

    /// Undoes the operations since savepoint `id`, which remains, and ends the savepoints since then. O(log s) for s savepoints, and O(log m) for each
    /// undone operation among m.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if there is no such savepoint; then nothing changes.
    pub(super) fn roll_back_to(&mut self, id: SavepointId) -> Result<()> {
        let at = self.savepoint_at(id)?;
        self.savepoints.truncate(at + 1);
        let Position { undo_len, bytes } = self.savepoints[at].1;
        for undo in self.undo_log.drain(undo_len..).rev() {
            match undo {
                Undo::Key(key, Some(before)) => _ = self.keys.insert(key, before),
                Undo::Key(key, None) => _ = self.keys.remove(&key),
                Undo::Range(at, before) => drop(self.ranges.splice(at..at + 1, before)),
            }
        }
        self.bytes = bytes;
        Ok(())
    }

    /// Ends savepoint `id` and those since then; the writes stay. Without savepoints, nothing is kept of replaced operations.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if there is no such savepoint; then nothing changes.
    pub(super) fn release(&mut self, id: SavepointId) -> Result<()> {
        let at = self.savepoint_at(id)?;
        self.savepoints.truncate(at);
        if at == 0 {
            self.undo_log.clear();
            let keys = self.keys.iter().map(|(key, value)| bytes_of(key, value.as_ref().map(|(value, _)| &**value)));
            self.bytes = keys.chain(self.ranges.iter().map(|(start, end)| bytes_of(start, Some(end)))).sum();
        }
        Ok(())
    }

    fn savepoint_at(&self, id: SavepointId) -> Result<usize> {
        // Later ones have greater numbers.
        self.savepoints.binary_search_by_key(&id, |(id, _)| *id).map_err(|_| {
            let text = "the savepoint is of another transaction, or has ended by a rollback or a release";
            Error::InvalidArgument(text.to_owned())
        })
    }

    /// Keeps or forgets the operation on `key` that a later one has replaced. Its bytes stay counted if it is kept.
    fn replaced(&mut self, key: Slice, before: Option<Option<Expiring<Slice>>>) {
        if !self.savepoints.is_empty() {
            self.undo_log.push(Undo::Key(key, before));
        } else if let Some(before) = before {
            self.bytes -= bytes_of(&key, before.as_ref().map(|(value, _)| &**value));
        }
    }

    /// The value that the transaction has given to `key`; `Some(None)` if the transaction has removed the key, `None` if it has not written it.
    pub(super) fn get(&self, key: &[u8]) -> Option<Option<&Slice>> {
        let is_removed = || {
            let from = self.ranges.partition_point(|(start, _)| **start <= *key);
            from > 0 && is_before_end(key, &self.ranges[from - 1].1)
        };
        let written = self.keys.get(key).map(|value| value.as_ref().map(|(value, _)| value));
        written.or_else(|| is_removed().then_some(None))
    }

    /// The first or the last key within `bounds` to which the transaction has given a value, and that value.
    pub(super) fn at_end(&self, bounds: &OwnedBounds, direction: Direction) -> Option<(Slice, Slice)> {
        let (lower, upper) = (bounds.start(), bounds.end());
        let mut within =
            self.keys.range::<[u8], _>((lower, upper)).filter_map(|(key, value)| Some((key, &value.as_ref()?.0)));
        let found = match direction {
            Direction::Forward => within.next(),
            Direction::Backward => within.next_back(),
        };
        found.map(|(key, value)| (key.clone(), value.clone()))
    }

    /// Sets `key` to `value`, or removes it.
    pub(super) fn set(&mut self, key: &[u8], value: Option<Expiring<&[u8]>>) {
        self.bytes += self.bytes_for(key, value.map(|(value, _)| value));
        let (key, value) = (Slice::from(key), value.map(|(value, at)| (Slice::from(value), at)));
        let before = self.keys.insert(key.clone(), value);
        self.replaced(key, before);
    }

    /// Removes the keys from `start` up to `end`, exclusive.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) if the number of ranges exceeds that of a batch.
    pub(super) fn remove_range(&mut self, mut start: Slice, mut end: Slice) -> Result<()> {
        // The ranges that overlap the new one, or touch it. Those of the next keyspaces may touch it too, but when a keyspace is dropped, compactions
        // drop the range tombstones that begin there.
        let is_before = |other: &Slice| *other < start && !is_same_keyspace(other, &start);
        let is_behind = |other: &Slice| *other > start && !is_same_keyspace(other, &start);
        let from = self
            .ranges
            .partition_point(|(other, other_end)| is_before(other) || !other_end.is_empty() && *other_end < start);
        let upto = self
            .ranges
            .partition_point(|(other, _)| !is_behind(other) && (is_before_end(other, &end) || *other == end));
        check_ranges(self.ranges.len() - (upto - from) + 1)?;
        let before_end = if end.is_empty() { Bound::Unbounded } else { Bound::Excluded(end.clone()) };
        let covered: Vec<Slice> =
            self.keys.range((Bound::Included(start.clone()), before_end)).map(|(key, _)| key.clone()).collect();
        for key in covered {
            let before = self.keys.remove(&key);
            self.replaced(key, before);
        }
        let joined: Vec<_> = self.ranges.drain(from..upto).collect();
        for (other_start, other_end) in &joined {
            start = start.min(other_start.clone());
            end = if is_before_end(other_end, &end) && !other_end.is_empty() { end } else { other_end.clone() };
        }
        self.bytes += self.bytes_for(&start, Some(&end));
        self.ranges.insert(from, (start, end));
        if self.savepoints.is_empty() {
            self.bytes -= joined.iter().map(|(start, end)| bytes_of(start, Some(end))).sum::<usize>();
        } else {
            self.undo_log.push(Undo::Range(from, joined));
        }
        Ok(())
    }

    /// The batch with all of these writes.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) if it exceeds the length of a batch.
    pub(super) fn into_batch(self) -> Result<WriteBatch> {
        let mut batch = WriteBatch::new();
        for (start, end) in self.ranges {
            batch.remove_between(&start, &end)?;
        }
        for (key, value) in self.keys {
            match value {
                Some((value, at)) => batch.insert_stored(&key, &value, at)?,
                None => batch.remove_stored(&key)?,
            }
        }
        Ok(batch)
    }
}
