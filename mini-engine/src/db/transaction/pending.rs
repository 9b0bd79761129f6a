//! [`Pending`]: what a transaction has read and written so far, in bounded memory. All keys are stored keys.
//!
//! A transaction that takes many entries from an end would pass all that it has taken before, each time. So it keeps the ranges at the ends of which
//! it has found only committed entries that it has written or removed itself. It reads at one number, and what it has written stays written: such a
//! range stays one.

use std::ops::Bound;

use super::reads::{RangeSlot, Reads};
use super::writes::{Expiring, Writes, bytes_of};
use crate::db::core::{DeadRanges, Moment};
use crate::error::{Error, Result};
use crate::iter::Direction;
use crate::types::{OwnedBounds, Slice, WriteBatch, place_after, start_and_end};

/// The only moment at which it reads.
const NOW: Moment = (0, 0);

#[derive(Debug)]
pub(super) struct Pending {
    pub(super) reads: Reads,
    pub(super) writes: Writes,
    /// Ranges in which each committed entry was written by the transaction.
    written: DeadRanges,
    max_bytes: usize,
}

impl Pending {
    pub(super) fn new(max_bytes: usize) -> Pending {
        Pending { reads: Reads::default(), writes: Writes::default(), written: DeadRanges::default(), max_bytes }
    }

    /// A part of `bounds` with all its committed entries that the transaction has not written.
    pub(super) fn without_written_ends(&mut self, bounds: &OwnedBounds) -> OwnedBounds {
        let Some((start, end)) = start_and_end(bounds) else { return bounds.clone() };
        let lower = self.written.skip(&start.into(), NOW, Direction::Forward).map(Bound::Included);
        let upper = self.written.skip(&end.into(), NOW, Direction::Backward).map(Bound::Excluded);
        (lower.unwrap_or_else(|| bounds.0.clone()), upper.unwrap_or_else(|| bounds.1.clone()))
    }

    /// Notes that the transaction has written all committed entries within `bounds`, about `count`, in this direction as far as `key`, which is not
    /// included; without a key, all of them.
    pub(super) fn note_written(&mut self, bounds: &OwnedBounds, direction: Direction, key: Option<&[u8]>, count: u64) {
        let Some((start, end)) = start_and_end(bounds) else { return };
        let (start, end) = match (direction, key) {
            (Direction::Forward, Some(key)) => (start.into(), Slice::from(key)),
            (Direction::Backward, Some(key)) => (Slice::from(place_after(key)), end.into()),
            (_, None) => (start.into(), end.into()),
        };
        self.written.note((&start, &end), count, NOW, 0);
    }

    /// Notes that `key` was read.
    pub(super) fn note_key(&mut self, key: &[u8]) -> Result<()> {
        self.check_room(self.reads.bytes_for_key(key))?;
        self.reads.add_key(key);
        Ok(())
    }

    /// Notes that `range` was read, instead of the one in `slot`.
    pub(super) fn note_range(&mut self, slot: &mut RangeSlot, range: OwnedBounds) -> Result<()> {
        self.reads.set_range(slot, range);
        self.check_room(0)
    }

    /// Sets `key` to `value`, or removes it.
    pub(super) fn set(&mut self, key: &[u8], value: Option<Expiring<&[u8]>>) -> Result<()> {
        self.check_room(bytes_of(key, value.map(|(value, _)| value)))?;
        self.writes.set(key, value);
        Ok(())
    }

    /// Removes the keys from `start` on and before `end`.
    pub(super) fn remove_range(&mut self, start: Slice, end: Slice) -> Result<()> {
        self.check_room(bytes_of(&start, Some(&end)))?;
        self.writes.remove_range(start, end)
    }

    /// The writes as a batch, and the reads.
    pub(super) fn finish(self) -> Result<(WriteBatch, Reads)> {
        let mut batch = self.writes.into_batch()?;
        self.reads.keyspaces().for_each(|keyspace| batch.note_keyspace(&keyspace));
        Ok((batch, self.reads))
    }

    /// Fails if `more` bytes would be too many.
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
