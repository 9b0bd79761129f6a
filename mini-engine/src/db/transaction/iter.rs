//! [`TransactionIter`]: the entries of a range as a transaction sees them, from both ends.
//!
//! The iterator merges committed entries with the transaction's own writes. If the transaction has written or removed a key, only its own entry
//! counts. Each step uses the transaction's writes at that time.

use std::cell::RefCell;
use std::ops::Bound;
use std::time::SystemTime;

use super::pending::Pending;
use super::reads::RangeSlot;
use crate::db::read::Iter;
use crate::error::Result;
use crate::iter::Direction;
use crate::types::{KeyPrefix, OwnedBounds, Slice, millis};

/// After stepping over this many entries of its own transaction, an iterator records that range as passed.
const MANY_PASSED: u64 = 16;

type Entry = (Slice, Slice);
/// An entry and the time at which it expires, if known; the expiry of the transaction's own entries is not checked.
type Expiring = (Slice, Slice, Option<SystemTime>);

/// The entries of a range in key order, from both ends, as a [`Transaction`](crate::Transaction) sees them: yields `Result<(key, value)>`.
///
/// The part of the range that it has passed counts as read: up to the key that it has yielded last, or, once it has yielded `None`, the whole range.
/// It shows writes that the transaction does meanwhile, unless it has passed their keys. The two ends never cross. After an error, which is yielded,
/// the iterator is at its end.
#[derive(Debug)]
pub struct TransactionIter<'a> {
    pending: &'a RefCell<Pending>,
    /// The keys are stored keys, as everywhere in this file: only the caller gets keys without their prefix.
    committed: Iter,
    prefix: KeyPrefix,
    bounds: OwnedBounds,
    /// The bounds of `committed`.
    scanned: OwnedBounds,
    /// The keys between those that the two ends have yielded last.
    rest: OwnedBounds,
    front: End,
    back: End,
    is_over: bool,
}

#[derive(Debug, Default)]
struct End {
    /// The next committed entry, if it was taken from the iterator and not yielded yet.
    next: Option<Expiring>,
    /// The range that was read from this end.
    slot: RangeSlot,
}

impl<'a> TransactionIter<'a> {
    pub(super) fn new(
        pending: &'a RefCell<Pending>,
        (committed, scanned): (Iter, OwnedBounds),
        prefix: KeyPrefix,
        bounds: OwnedBounds,
    ) -> TransactionIter<'a> {
        let (rest, front, back) = (bounds.clone(), End::default(), End::default());
        let is_over = is_inverted(&bounds);
        TransactionIter { pending, committed, prefix, bounds, scanned, rest, front, back, is_over }
    }

    fn step(&mut self, direction: Direction) -> Option<Result<Entry>> {
        if self.is_over {
            return None;
        }
        let entry = self.next_entry(direction).and_then(|entry| {
            self.note(direction, entry.as_ref())?;
            Ok(entry.map(|(key, value, _)| (key, value)))
        });
        self.is_over = !matches!(entry, Ok(Some(_)));
        let without_prefix = |(key, value): Entry| {
            let before = self.prefix.len_in(&key);
            (key.split_at(before).1, value)
        };
        entry.map(|entry| entry.map(without_prefix)).transpose()
    }

    fn next_entry(&mut self, direction: Direction) -> Result<Option<Expiring>> {
        let pending = self.pending.borrow();
        let own = if is_inverted(&self.rest) { None } else { pending.writes.at_end(&self.rest, direction) };
        let is_before_own = |key: &Slice| {
            own.as_ref().is_none_or(|(own, _)| match direction {
                Direction::Forward => key < own,
                Direction::Backward => key > own,
            })
        };
        let mut passed = 0;
        let mut committed = None;
        while let Some(next) = self.next_committed(direction)?.take_if(|(key, ..)| is_before_own(key)) {
            if pending.writes.get(&next.0).is_none() {
                committed = Some(next);
                break;
            }
            passed += 1;
        }
        drop(pending);
        if passed >= MANY_PASSED && self.front.slot.is_none() && self.back.slot.is_none() {
            let next = match direction {
                Direction::Forward => &self.front.next,
                Direction::Backward => &self.back.next,
            };
            let key = committed.as_ref().or(next.as_ref()).map(|(key, ..)| &**key);
            self.pending.borrow_mut().note_written(&self.scanned, direction, key, passed);
        }
        Ok(committed.or_else(|| own.map(|(key, value)| (key, value, None))))
    }

    /// The slot for the next committed entry in this direction. If no entry is left, it is the one that the other end has taken.
    fn next_committed(&mut self, direction: Direction) -> Result<&mut Option<Expiring>> {
        let (end, other) = match direction {
            Direction::Forward => (&mut self.front, &mut self.back),
            Direction::Backward => (&mut self.back, &mut self.front),
        };
        if end.next.is_none() {
            let next = match direction {
                Direction::Forward => self.committed.next_with_expiry(),
                Direction::Backward => self.committed.next_back_with_expiry(),
            };
            end.next = next.transpose()?.or_else(|| other.next.take());
        }
        Ok(&mut end.next)
    }

    /// Records that the range was read up to `entry`, or as a whole.
    fn note(&mut self, direction: Direction, entry: Option<&Expiring>) -> Result<()> {
        let (mut read, mut pending) = (self.bounds.clone(), self.pending.borrow_mut());
        if let Some((key, _, at)) = entry {
            pending.reads.note_expiry(key, at.map(millis));
            let (upto, rest) = match direction {
                Direction::Forward => (&mut read.1, &mut self.rest.0),
                Direction::Backward => (&mut read.0, &mut self.rest.1),
            };
            *upto = Bound::Included(key.clone());
            *rest = Bound::Excluded(key.clone());
        }
        let end = match direction {
            Direction::Forward => &mut self.front,
            Direction::Backward => &mut self.back,
        };
        pending.note_range(&mut end.slot, read)
    }
}

/// Whether there can be no key within the bounds because they are in the wrong order.
fn is_inverted(bounds: &OwnedBounds) -> bool {
    match bounds {
        (Bound::Included(lower), Bound::Included(upper)) => lower > upper,
        (Bound::Included(lower) | Bound::Excluded(lower), Bound::Included(upper) | Bound::Excluded(upper)) => {
            lower >= upper
        }
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
    }
}

impl Iterator for TransactionIter<'_> {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step(Direction::Forward)
    }
}

impl std::iter::FusedIterator for TransactionIter<'_> {}

impl DoubleEndedIterator for TransactionIter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.step(Direction::Backward)
    }
}
