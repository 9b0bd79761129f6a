//! The keys that a command sees: the database, and in a transaction also the writes of its earlier commands.
//!
//! Writes are collected in one batch, which `Context::commit` passes to the engine: after a crash, all of it is there or none. A single command
//! never reads its own writes. For several commands, of a transaction or a pipeline, an overlay holds the values of the batch, and reads ask it
//! first.
//!
//! Only one thread executes commands, so the values read here do not change before the commit.

use std::collections::BTreeMap;
use std::ops::{Bound, RangeBounds};

use mini_engine::{Db, Result, Slice, WriteBatch};

pub(crate) type Entry = Result<(Slice, Slice)>;
type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// The order of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Forward,
    Backward,
}

pub(crate) struct Keyspace<'a> {
    db: &'a Db,
    batch: WriteBatch,
    /// Keys and values in the batch.
    bytes: usize,
    /// The values that several commands have written, and those that were read for them: `None` for an absent key.
    overlay: Option<BTreeMap<Vec<u8>, Option<Slice>>>,
}

impl<'a> Keyspace<'a> {
    /// A keyspace for one command.
    pub(crate) fn of_command(db: &'a Db) -> Self {
        Self { db, batch: WriteBatch::new(), bytes: 0, overlay: None }
    }

    /// A keyspace for several commands, where each sees the writes of the earlier ones.
    pub(crate) fn of_several(db: &'a Db) -> Self {
        Self { overlay: Some(BTreeMap::new()), ..Self::of_command(db) }
    }

    /// The number of inserted bytes of keys and values.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn is_of_several(&self) -> bool {
        self.overlay.is_some()
    }

    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Slice>> {
        match self.overlay.as_ref().and_then(|overlay| overlay.get(key)) {
            Some(written) => Ok(written.clone()),
            None => self.db.get(key),
        }
    }

    pub(crate) fn contains(&self, key: &[u8]) -> Result<bool> {
        match self.overlay.as_ref().and_then(|overlay| overlay.get(key)) {
            Some(written) => Ok(written.is_some()),
            None => self.db.contains_key(key),
        }
    }

    /// A keyspace for several commands that read `keys`. The keys are searched for together until the values have `soft_limit` bytes; `get` then
    /// finds them here.
    pub(crate) fn of_several_reading(db: &'a Db, keys: &[&[u8]], soft_limit: usize) -> Result<Self> {
        let values = keys.iter().map(|key| key.to_vec()).zip(db.get_many_up_to(soft_limit, keys)?);
        let overlay = values.filter_map(|(key, value)| Some((key, value?))).collect();
        Ok(Self { overlay: Some(overlay), ..Self::of_command(db) })
    }

    /// The values of `keys`, searched for together. The outer `None` means that the values found reached `soft_limit` bytes before this one was
    /// known.
    pub(crate) fn get_many(&self, keys: &[&[u8]], soft_limit: usize) -> Result<Vec<Option<Option<Slice>>>> {
        if self.overlay.is_none() {
            return self.db.get_many_up_to(soft_limit, keys);
        }
        let (mut answers, mut bytes) = (vec![None; keys.len()], 0);
        for (answer, key) in answers.iter_mut().zip(keys) {
            let value = self.get(key)?;
            bytes += value.as_ref().map_or(0, |value| value.len());
            *answer = Some(value);
            if bytes >= soft_limit {
                break;
            }
        }
        Ok(answers)
    }

    /// The number of operations in the batch.
    pub(crate) fn writes(&self) -> usize {
        self.batch.len()
    }

    pub(crate) fn insert(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.batch.insert(key, value)?;
        self.bytes += key.len() + value.len();
        if let Some(overlay) = &mut self.overlay {
            overlay.insert(key.to_vec(), Some(Slice::from(value)));
        }
        Ok(())
    }

    pub(crate) fn remove(&mut self, key: &[u8]) -> Result<()> {
        self.batch.remove(key)?;
        if let Some(overlay) = &mut self.overlay {
            overlay.insert(key.to_vec(), None);
        }
        Ok(())
    }

    /// The entries within `bounds`, in key order or backwards.
    pub(crate) fn range(&self, bounds: Bounds, direction: Direction) -> Box<dyn Iterator<Item = Entry> + '_> {
        // The maps of the standard library panic at inverted bounds.
        if is_inverted(&bounds) {
            return Box::new(std::iter::empty());
        }
        let Some(overlay) = self.overlay.as_ref().filter(|overlay| !overlay.is_empty()) else {
            return self.stored(bounds, direction);
        };
        let stored = self.db.range(bounds.clone());
        let written = overlay.range(bounds).map(|(key, value)| (key.as_slice(), value));
        match direction {
            Direction::Forward => Box::new(merged(stored, written, direction)),
            Direction::Backward => Box::new(merged(stored.rev(), written.rev(), direction)),
        }
    }

    /// Like `range` for one command, but showing the present moment however late the entries are read.
    pub(crate) fn stored(&self, bounds: Bounds, direction: Direction) -> Box<dyn Iterator<Item = Entry>> {
        let stored = self.db.range(bounds);
        match direction {
            Direction::Forward => Box::new(stored),
            Direction::Backward => Box::new(stored.rev()),
        }
    }

    /// Removes all keys: one operation, however many there are.
    pub(crate) fn clear(&mut self) -> Result<()> {
        self.batch.remove_range(..)
    }

    /// The writes, for the engine.
    pub(crate) fn into_batch(self) -> WriteBatch {
        self.batch
    }
}

fn is_inverted(bounds: &Bounds) -> bool {
    let (Bound::Included(start) | Bound::Excluded(start)) = &bounds.0 else {
        return false;
    };
    let (Bound::Included(end) | Bound::Excluded(end)) = &bounds.1 else {
        return false;
    };
    start > end || (start == end && !bounds.contains(start))
}

/// Merges the stored and the written entries, each in `direction`, into one sequence. A written key hides the stored one.
fn merged<'a>(
    stored: impl Iterator<Item = Entry> + 'a,
    written: impl Iterator<Item = (&'a [u8], &'a Option<Slice>)> + 'a,
    direction: Direction,
) -> impl Iterator<Item = Entry> + 'a {
    let (mut stored, mut written) = (stored.peekable(), written.peekable());
    std::iter::from_fn(move || {
        loop {
            let ordering = match (stored.peek(), written.peek()) {
                (Some(Ok((key, _))), Some((other, _))) => match direction {
                    Direction::Forward => (**key).cmp(other),
                    Direction::Backward => (**other).cmp(key),
                },
                (Some(_), _) => std::cmp::Ordering::Less,
                (None, _) => std::cmp::Ordering::Greater,
            };
            if ordering.is_lt() {
                return stored.next();
            }
            if ordering.is_eq() {
                stored.next();
            }
            let (key, value) = written.next()?;
            if let Some(value) = value {
                return Some(Ok((Slice::from(key), value.clone())));
            }
        }
    })
}
