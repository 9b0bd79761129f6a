//! [`Writes`]: the writes of a transaction before its commit.
//!
//! An operation on a key replaces earlier ones on that key. The removal of a range also replaces the earlier operations on keys in the range. So no
//! range removes the effect of an operation on a key in this list, and a batch with all ranges before the keys has the same effect.

use std::collections::BTreeMap;
use std::ops::Bound;

use crate::error::Result;
use crate::iter::Direction;
use crate::types::{KeyBounds, Millis, OwnedBounds, Slice, WriteBatch, check_ranges, is_before_end};

/// An upper estimate of the memory of an operation without its bytes.
const OP_BYTES: usize = 128;

/// A value, and the instant at which it expires, if it does.
pub(super) type Expiring<V> = (V, Option<Millis>);

#[derive(Debug, Default)]
pub(super) struct Writes {
    /// The value of each written key; `None` if it was removed.
    keys: BTreeMap<Slice, Option<Expiring<Slice>>>,
    /// The removed ranges in order, each as its first key and its end as returned by [`start_and_end`](crate::types::start_and_end). Between two of
    /// them there is at least one key.
    ranges: Vec<(Slice, Slice)>,
    bytes: usize,
}

/// The memory of an operation, in bytes.
pub(super) fn bytes_of(first: &[u8], second: Option<&[u8]>) -> usize {
    OP_BYTES + first.len() + second.map_or(0, <[u8]>::len)
}

impl Writes {
    /// The memory of these writes, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
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
        self.bytes += bytes_of(key, value.map(|(value, _)| value));
        let value = value.map(|(value, at)| (Slice::from(value), at));
        if let Some(before) = self.keys.insert(Slice::from(key), value) {
            self.bytes -= bytes_of(key, before.as_ref().map(|(value, _)| &**value));
        }
    }

    /// Removes the keys from `start` up to `end`, exclusive.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) if the number of ranges exceeds that of a batch.
    pub(super) fn remove_range(&mut self, mut start: Slice, mut end: Slice) -> Result<()> {
        // The ranges that overlap the new one, or touch it.
        let from = self.ranges.partition_point(|(_, other)| !other.is_empty() && *other < start);
        let upto = self.ranges.partition_point(|(other, _)| is_before_end(other, &end) || *other == end);
        check_ranges(self.ranges.len() - (upto - from) + 1)?;
        let before_end = if end.is_empty() { Bound::Unbounded } else { Bound::Excluded(end.clone()) };
        let covered: Vec<Slice> =
            self.keys.range((Bound::Included(start.clone()), before_end)).map(|(key, _)| key.clone()).collect();
        for key in covered {
            let value = self.keys.remove(&key).flatten();
            self.bytes -= bytes_of(&key, value.as_ref().map(|(value, _)| &**value));
        }
        for (other_start, other_end) in self.ranges.drain(from..upto) {
            self.bytes -= bytes_of(&other_start, Some(&other_end));
            start = start.min(other_start);
            end = if is_before_end(&other_end, &end) && !other_end.is_empty() { end } else { other_end };
        }
        self.bytes += bytes_of(&start, Some(&end));
        self.ranges.insert(from, (start, end));
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
