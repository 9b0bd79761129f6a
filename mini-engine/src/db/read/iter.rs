//! Ordered reads that yield owned keys and values: [`Iter`], two cursors that move towards each other.

use std::sync::Arc;
use std::time::SystemTime;

use super::cursor::Cursor;
use super::scan::Scan;
use crate::error::{Error, Result};
use crate::types::{KeyPrefix, OwnedBounds, Slice};

/// The entries of a range in key order, from both ends: it yields `Result<(key, value)>`.
///
/// The iterator holds memtables and files like a [`Cursor`], until it reaches its end. From then on it holds nothing and yields nothing, and
/// [`seek`](Iter::seek) does not move it. A [`Cursor`] can still be moved at its end.
///
/// The two ends never cross: an entry is yielded once. After an error, which is yielded, the iterator is at its end.
///
/// ```
/// # fn main() -> mini_engine::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// let db = mini_engine::Db::open(dir.path())?;
/// for key in ["a", "b", "c"] {
///     db.insert(key, "")?;
/// }
/// let mut iter = db.range("a"..="c");
/// assert_eq!(&*iter.next_back().unwrap()?.0, b"c");
/// iter.seek("b");
/// assert_eq!(&*iter.next().unwrap()?.0, b"b");
/// assert!(iter.next().is_none());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Iter {
    /// `None` once the end was reached.
    walk: Option<Walk>,
}

/// An iterator that has not reached its end.
#[derive(Debug)]
struct Walk {
    front: End,
    /// Created by the first step of the back end: most scans move in one direction.
    back: Option<End>,
    /// The target of the last seek of the front end: until the front has yielded an entry, the back yields none below the target.
    sought: Option<Slice>,
    error: Option<Error>,
    scratch: Vec<u8>,
}

/// The result of a step: a key and its value, or the end.
type Stepped = Result<Option<(Slice, Slice)>>;

#[derive(Debug)]
struct End {
    cursor: Cursor,
    state: EndState,
}

/// The position of one end's cursor.
#[derive(Debug, PartialEq, Eq)]
enum EndState {
    /// No position yet.
    Start,
    /// On the entry to yield next.
    Next,
    /// On the entry that was yielded last.
    Yielded,
}

/// Values up to this length are copied together with a key that is not held in place.
const COPIED_VALUE: usize = 512;

impl End {
    fn new(cursor: Cursor) -> End {
        End { cursor, state: EndState::Start }
    }

    /// The current entry. Makes at most one allocation, unless key and value are both long and from a memtable.
    fn entry(&self, scratch: &mut Vec<u8>) -> (Slice, Slice) {
        self.cursor.short_entry().unwrap_or_else(|| self.other_entry(scratch))
    }

    /// The same for an entry that is not a short one of a batch.
    fn other_entry(&self, scratch: &mut Vec<u8>) -> (Slice, Slice) {
        let (key, value) = (self.cursor.key(), self.cursor.value());
        if Slice::is_inline(key.len()) || value.len() > COPIED_VALUE {
            return (Slice::from(key), self.cursor.value_slice());
        }
        scratch.clear();
        scratch.extend_from_slice(key);
        scratch.extend_from_slice(value);
        Slice::from(&**scratch).split_at(key.len())
    }
}

impl Iter {
    /// The entries of `scan` whose stored keys are in `range`, all in the keyspace of `prefix`. If `scan` is an error, the iterator yields only that.
    pub(crate) fn new(scan: Result<Arc<Scan>>, prefix: KeyPrefix, range: OwnedBounds) -> Iter {
        let front = End::new(Cursor::new(scan, prefix, range));
        let walk = Walk { front, back: None, sought: None, error: None, scratch: Vec::new() };
        Iter { walk: Some(walk) }
    }

    /// Moves the front end, forwards or backwards, to the first entry of the range whose key is at or after `key`: `next` yields that entry, unless
    /// the back end has already yielded it. The back end keeps its position, and stops at `key`. If the move fails, the next call of `next` or
    /// `next_back` yields the error. An iterator that has yielded `None` stays at its end.
    pub fn seek(&mut self, key: impl AsRef<[u8]>) {
        if let Some(walk) = &mut self.walk {
            walk.seek(key.as_ref());
        }
    }

    /// Like `next`, with the time at which the entry expires, if it does.
    pub fn next_with_expiry(&mut self) -> Option<Result<(Slice, Slice, Option<SystemTime>)>> {
        let entry = self.next()?;
        let expiry = self.walk.as_ref().and_then(|walk| walk.front.cursor.expiry());
        Some(entry.map(|(key, value)| (key, value, expiry)))
    }

    /// The same for `next_back`.
    pub fn next_back_with_expiry(&mut self) -> Option<Result<(Slice, Slice, Option<SystemTime>)>> {
        let entry = self.next_back()?;
        let expiry = self.walk.as_ref().and_then(|walk| walk.back.as_ref()?.cursor.expiry());
        Some(entry.map(|(key, value)| (key, value, expiry)))
    }

    /// Yields the result of `step`; the iterator ends after an error and at the end.
    fn yield_from(&mut self, step: fn(&mut Walk) -> Stepped) -> Option<Result<(Slice, Slice)>> {
        let walk = self.walk.as_mut()?;
        let entry = match walk.error.take() {
            Some(error) => Some(Err(error)),
            None => step(walk).transpose(),
        };
        if !matches!(entry, Some(Ok(_))) {
            self.walk = None;
        }
        entry
    }
}

impl Walk {
    fn seek(&mut self, key: &[u8]) {
        self.sought = Some(Slice::from(key));
        self.front.state = EndState::Next;
        self.error = self.front.cursor.seek(key).err();
    }

    fn step_front(&mut self) -> Stepped {
        let cursor = &mut self.front.cursor;
        match self.front.state {
            EndState::Start => cursor.seek_to_first()?,
            EndState::Next => {}
            EndState::Yielded => cursor.advance()?,
        }
        self.front.state = EndState::Yielded;
        // The back end is at the last key that it has yielded.
        let is_met = self.back.as_ref().is_some_and(|back| cursor.key() >= back.cursor.key());
        if !cursor.valid() || is_met {
            return Ok(None);
        }
        Ok(Some(self.front.entry(&mut self.scratch)))
    }

    fn step_back(&mut self) -> Stepped {
        let back = self.back.get_or_insert_with(|| End::new(self.front.cursor.another()));
        let cursor = &mut back.cursor;
        match back.state {
            EndState::Start => cursor.seek_to_last()?,
            EndState::Next | EndState::Yielded => cursor.retreat()?,
        }
        let above_floor = match (&self.front.state, &self.sought) {
            (EndState::Yielded, _) => cursor.key() > self.front.cursor.key(),
            (EndState::Next, Some(sought)) => *cursor.key() >= **sought,
            (EndState::Start | EndState::Next, _) => true,
        };
        back.state = EndState::Yielded;
        if !cursor.valid() || !above_floor {
            return Ok(None);
        }
        Ok(Some(back.entry(&mut self.scratch)))
    }
}

impl Iterator for Iter {
    type Item = Result<(Slice, Slice)>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        // With no other end and no seek target, nothing can limit such a step.
        if let Some(Walk { front: front @ End { state: EndState::Yielded, .. }, back: None, scratch, .. }) =
            &mut self.walk
        {
            let prefix = front.cursor.prefix();
            if let Some(batch) = front.cursor.next_in_batch() {
                return match batch.short_entry(&prefix) {
                    Some(entry) => Some(Ok(entry)),
                    None => Some(Ok(front.other_entry(scratch))),
                };
            }
        }
        self.yield_from(Walk::step_front)
    }
}

impl std::iter::FusedIterator for Iter {}

impl DoubleEndedIterator for Iter {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        if let Some(Walk { front: End { state: EndState::Start, .. }, back: Some(back), scratch, .. }) = &mut self.walk
        {
            let prefix = back.cursor.prefix();
            if let Some(batch) = back.cursor.prev_in_batch() {
                return match batch.short_entry(&prefix) {
                    Some(entry) => Some(Ok(entry)),
                    None => Some(Ok(back.other_entry(scratch))),
                };
            }
        }
        self.yield_from(Walk::step_back)
    }
}
