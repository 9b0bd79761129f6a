//! [`Pending`]: the reads and writes of a transaction so far, in bounded memory. All keys are stored keys.
//!
//! A transaction that pops many entries from one end would each time step over all entries that it has popped before. So it keeps the ranges at the
//! ends in which it has found only committed entries that it has written or removed itself. It reads at one sequence number, and its writes stay: so
//! such a range remains valid.

use std::ops::Bound;

use super::reads::{RangeSlot, Reads};
use super::writes::{Expiring, SavepointId, Writes};
use crate::db::core::{DeadRanges, Moment};
use crate::error::{Error, Result};
use crate::iter::Direction;
use crate::types::{OwnedBounds, Slice, WriteBatch, place_after, start_and_end};

/// The value does not matter, because a transaction reads at one moment only.
const NOW: Moment = (0, 0);

#[derive(Debug)]
pub(super) struct Pending {
    pub(super) reads: Reads,
    pub(super) writes: Writes,
    /// Ranges in which the transaction has written each committed entry.
    written: DeadRanges,
    max_bytes: usize,
}

impl Pending {
    pub(super) fn new(max_bytes: usize) -> Pending {
        Pending { reads: Reads::default(), writes: Writes::default(), written: DeadRanges::default(), max_bytes }
    }

    /// The part of `bounds` without such ranges at its ends; it has all committed entries that the transaction has not written.
    pub(super) fn without_written_ends(&mut self, bounds: &OwnedBounds) -> OwnedBounds {
        let Some((start, end)) = start_and_end(bounds) else { return bounds.clone() };
        let lower = self.written.skip(&start.into(), NOW, Direction::Forward).map(Bound::Included);
        let upper = self.written.skip(&end.into(), NOW, Direction::Backward).map(Bound::Excluded);
        (lower.unwrap_or_else(|| bounds.0.clone()), upper.unwrap_or_else(|| bounds.1.clone()))
    }

    /// Records that the transaction has written all committed entries within `bounds`, about `count`, in this direction up to `key`, exclusive;
    /// without a key, all of them.
    pub(super) fn note_written(&mut self, bounds: &OwnedBounds, direction: Direction, key: Option<&[u8]>, count: u64) {
        let Some((start, end)) = start_and_end(bounds) else { return };
        let (start, end) = match (direction, key) {
            (Direction::Forward, Some(key)) => (start.into(), Slice::from(key)),
            (Direction::Backward, Some(key)) => (Slice::from(place_after(key)), end.into()),
            (_, None) => (start.into(), end.into()),
        };
        self.written.note((&start, &end), count, NOW, 0);
    }

    /// Records that `key` was read.
    pub(super) fn note_key(&mut self, key: &[u8]) -> Result<()> {
        self.check_room(self.reads.bytes_for_key(key))?;
        self.reads.add_key(key);
        Ok(())
    }

    /// Records that `range` was read, and replaces the range in `slot`.
    pub(super) fn note_range(&mut self, slot: &mut RangeSlot, range: OwnedBounds) -> Result<()> {
        self.reads.set_range(slot, range);
        self.check_room(0)
    }

    /// Sets `key` to `value`, or removes it.
    pub(super) fn set(&mut self, key: &[u8], value: Option<Expiring<&[u8]>>) -> Result<()> {
        self.check_room(self.writes.bytes_for(key, value.map(|(value, _)| value)))?;
        self.writes.set(key, value);
        Ok(())
    }

    /// Removes the keys from `start` up to `end`, exclusive.
    pub(super) fn remove_range(&mut self, start: Slice, end: Slice) -> Result<()> {
        self.check_room(self.writes.bytes_for(&start, Some(&end)))?;
        self.writes.remove_range(start, end)
    }

    /// Undoes the writes since a savepoint, and keeps the reads: their results may have decided what is written next.
    pub(super) fn roll_back_to(&mut self, savepoint: SavepointId) -> Result<()> {
        self.writes.roll_back_to(savepoint)?;
        self.written = DeadRanges::default();
        Ok(())
    }

    /// Returns the writes as a batch, and the reads.
    pub(super) fn finish(self) -> Result<(WriteBatch, Reads)> {
        let mut batch = self.writes.into_batch()?;
        self.reads.keyspaces().for_each(|keyspace| batch.note_keyspace(&keyspace));
        Ok((batch, self.reads))
    }

    /// Fails if `more` bytes would exceed the limit.
    fn check_room(&self, more: usize) -> Result<()> {
        let (bytes, max) = (self.reads.bytes() + self.writes.bytes() + more, self.max_bytes);
        match bytes <= max {
            true => Ok(()),
            false => Err(Error::Full(format!(
                "the reads and writes of a transaction may take {max} bytes (max_transaction_bytes), and would take {bytes}"
            ))),
        }
    }
}
