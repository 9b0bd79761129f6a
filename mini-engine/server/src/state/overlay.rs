//! What several commands have made of the databases so far, before it is committed: values, and ranges that were removed. The changes since a mark
//! can be taken back: so a command that fails leaves nothing behind, whatever it has written before it failed.

use std::collections::BTreeMap;
use std::ops::{Bound, RangeBounds};
use std::time::SystemTime;

use mini_engine::{Keyspace as Stored, Result, Slice, WriteBatch};

use super::databases::Database;

pub(crate) type Entry = Result<(Slice, Slice)>;
pub(crate) type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// The order of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Forward,
    Backward,
}

/// A value in the overlay.
pub(super) struct Held {
    pub(super) value: Slice,
    /// When it expires, if ever; the outer `None` if it was not asked for.
    pub(super) expiry: Option<Option<SystemTime>>,
}

/// What commands have made of one database.
#[derive(Default)]
pub(super) struct Overlay {
    /// The values that the commands have written, and those that were read for them: `None` for an absent key.
    values: BTreeMap<Vec<u8>, Option<Held>>,
    /// The ranges that they have removed. The values have what was written there afterwards, and `None` for what was written before.
    removed: Vec<Bounds>,
}

/// A change that can be taken back.
enum Change {
    /// The key, and its entry in `values` before the change.
    Value(Vec<u8>, Option<Option<Held>>),
    /// The values that a removed range has replaced by `None`.
    Range(Vec<(Vec<u8>, Option<Held>)>),
}

/// What commands have made of the databases.
#[derive(Default)]
pub(super) struct Overlays {
    /// By their numbers.
    databases: BTreeMap<usize, (Stored, Overlay)>,
    /// What was there before each change, and the number of its database; `None` before the first mark.
    changes: Option<Vec<(usize, Change)>>,
}

impl Overlays {
    /// What was read of `database`, and nothing written.
    pub(super) fn of_read(database: &Database, values: impl Iterator<Item = (Vec<u8>, Option<Held>)>) -> Self {
        let overlay = Overlay { values: values.collect(), removed: Vec::new() };
        Self { databases: [(database.number, (database.stored.clone(), overlay))].into(), changes: None }
    }

    /// What was made of a database, if anything was.
    pub(super) fn of(&self, number: usize) -> Option<&Overlay> {
        self.databases.get(&number).map(|(_, overlay)| overlay)
    }

    fn of_mut(&mut self, database: &Database) -> &mut Overlay {
        let new = || (database.stored.clone(), Overlay::default());
        &mut self.databases.entry(database.number).or_insert_with(new).1
    }

    pub(super) fn set(&mut self, database: &Database, key: &[u8], value: Option<Held>) {
        let before = self.of_mut(database).values.insert(key.to_vec(), value);
        if let Some(changes) = &mut self.changes {
            changes.push((database.number, Change::Value(key.to_vec(), before)));
        }
    }

    pub(super) fn remove_range(&mut self, database: &Database, bounds: Bounds) {
        let hidden = self.of_mut(database).remove_range(bounds);
        if let Some(changes) = &mut self.changes {
            changes.push((database.number, Change::Range(hidden)));
        }
    }

    /// The present point. From now on changes can be taken back.
    pub(super) fn mark(&mut self) -> usize {
        self.changes.get_or_insert_default().len()
    }

    /// Whether there was a mark. Then every value was written, and none only read.
    pub(super) fn is_marked(&self) -> bool {
        self.changes.is_some()
    }

    /// Takes back the changes since a mark.
    pub(super) fn undo(&mut self, mark: usize) {
        let changes = self.changes.iter_mut().flat_map(|changes| changes.drain(mark..).rev());
        for (number, change) in changes {
            if let Some((_, overlay)) = self.databases.get_mut(&number) {
                overlay.undo(change);
            }
        }
    }

    /// Changes so far can no longer be taken back, and earlier marks do not count.
    pub(super) fn forget(&mut self) {
        self.changes.iter_mut().for_each(Vec::clear);
    }

    /// The number of removed ranges.
    pub(super) fn ranges(&self) -> usize {
        self.databases.values().map(|(_, overlay)| overlay.removed.len()).sum()
    }

    /// Adds to `batch` what makes the databases equal to this.
    pub(super) fn add_to(&self, batch: &mut WriteBatch) -> Result<()> {
        self.databases.values().try_for_each(|(stored, overlay)| overlay.add_to(stored, batch))
    }
}

impl Overlay {
    /// The state of `key` after the commands so far, if they have changed or read it.
    pub(super) fn get(&self, key: &[u8]) -> Option<Option<&Held>> {
        self.values.get(key).map(Option::as_ref).or_else(|| self.is_removed(key).then_some(None))
    }

    /// Whether the commands have written `key` itself.
    pub(super) fn has(&self, key: &[u8]) -> bool {
        self.values.contains_key(key)
    }

    fn is_removed(&self, key: &[u8]) -> bool {
        let is_in = |(start, end): &Bounds| {
            RangeBounds::<[u8]>::contains(&(start.as_ref().map(Vec::as_slice), end.as_ref().map(Vec::as_slice)), key)
        };
        self.removed.iter().any(is_in)
    }

    /// Removes what is within `bounds`. Returns the values that were there.
    fn remove_range(&mut self, bounds: Bounds) -> Vec<(Vec<u8>, Option<Held>)> {
        let mut hidden = Vec::new();
        for (key, value) in &mut self.values {
            if value.is_some() && bounds.contains(key) {
                hidden.push((key.clone(), value.take()));
            }
        }
        self.removed.push(bounds);
        hidden
    }

    fn undo(&mut self, change: Change) {
        match change {
            Change::Value(key, Some(before)) => drop(self.values.insert(key, before)),
            Change::Value(key, None) => drop(self.values.remove(&key)),
            Change::Range(hidden) => {
                self.removed.pop();
                self.values.extend(hidden);
            }
        }
    }

    fn add_to(&self, stored: &Stored, batch: &mut WriteBatch) -> Result<()> {
        let mut batch = batch.keyspace(stored);
        self.removed.iter().try_for_each(|bounds| batch.remove_range(bounds.clone()))?;
        for (key, value) in &self.values {
            match value {
                Some(Held { value, expiry }) => batch.insert_with_expiry(key, value, expiry.flatten())?,
                None => batch.remove(key)?,
            }
        }
        Ok(())
    }

    /// The entries within `bounds`, of which the database has `stored`.
    pub(super) fn range<'a>(
        &'a self,
        stored: impl DoubleEndedIterator<Item = Entry> + 'a,
        bounds: Bounds,
        direction: Direction,
    ) -> Box<dyn Iterator<Item = Entry> + 'a> {
        // The maps of the standard library panic at inverted bounds.
        if is_inverted(&bounds) {
            return Box::new(std::iter::empty());
        }
        let stored = stored.filter(|entry| entry.as_ref().map_or(true, |(key, _)| !self.is_removed(key)));
        let written = self.values.range(bounds).map(|(key, value)| (key.as_slice(), value));
        match direction {
            Direction::Forward => Box::new(merged(stored, written, direction)),
            Direction::Backward => Box::new(merged(stored.rev(), written.rev(), direction)),
        }
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
    written: impl Iterator<Item = (&'a [u8], &'a Option<Held>)> + 'a,
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
            if let Some(held) = value {
                return Some(Ok((Slice::from(key), held.value.clone())));
            }
        }
    })
}
