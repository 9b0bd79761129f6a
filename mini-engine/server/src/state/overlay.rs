//! The uncommitted changes of several commands to the databases: values, and removed ranges. The changes since a mark can be undone, so a command
//! that fails changes nothing, whatever it has written before it failed.

use std::collections::BTreeMap;
use std::ops::{Bound, RangeBounds};
use std::time::SystemTime;

use mini_engine::{Keyspace as Stored, KeyspaceBatch, Result, Slice, WriteBatch};

use super::databases::Database;

pub(crate) type Entry = Result<(Slice, Slice)>;
pub(crate) type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// The direction in which a range is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Forward,
    Backward,
}

/// A value that an earlier command has written, or that was read for the commands of a pipeline.
pub(super) struct Held {
    pub(super) value: Slice,
    /// The expiry time, if any; the outer `None` means that it was not read.
    pub(super) expiry: Option<Option<SystemTime>>,
}

/// The values of the keys of a pipeline, each of whose commands names one key.
pub(super) struct KnownValues {
    /// For each command, the index of its key.
    places: Vec<usize>,
    keys: Vec<KnownValue>,
    /// The command that is carried out.
    current: usize,
    /// The number of writes so far.
    writes: usize,
}

#[derive(Default)]
struct KnownValue {
    /// The value; the outer `None` means that it was not read.
    value: Option<Option<Held>>,
    /// The last command that has written the value.
    writer: Option<usize>,
}

impl KnownValues {
    /// Searches together for the keys that commands read, until the values found have `soft_limit` bytes. The arguments are the key of each command,
    /// and whether the command reads it.
    pub(super) fn read<'a>(
        stored: &Stored,
        commands: impl ExactSizeIterator<Item = (&'a [u8], bool)>,
        soft_limit: usize,
    ) -> Result<Self> {
        let mut places = Vec::with_capacity(commands.len());
        // Each key once, with its last bytes, in which keys mostly differ, and whether it is read.
        let mut keys: Vec<(u32, &[u8], bool)> = Vec::with_capacity(commands.len());
        for (key, is_read) in commands {
            let end = key.last_chunk().map_or(0, |end| u32::from_ne_bytes(*end));
            let place = keys.iter().position(|other| other.0 == end && other.1 == key);
            places.push(place.unwrap_or(keys.len()));
            match place {
                Some(place) => keys[place].2 |= is_read,
                None => keys.push((end, key, is_read)),
            }
        }
        let expiry = (!stored.has_expiring_entries()).then_some(None);
        let read = keys.iter().filter_map(|(_, key, is_read)| is_read.then_some(key));
        let mut found = stored.get_many_up_to(soft_limit, read)?.into_iter();
        let known = keys.iter().map(|(_, _, is_read)| {
            let value = is_read.then(|| found.next().flatten()).flatten();
            KnownValue { value: value.map(|value| value.map(|value| Held { value, expiry })), writer: None }
        });
        Ok(Self { keys: known.collect(), places, current: 0, writes: 0 })
    }

    /// Turns to the command with this index.
    pub(super) fn turn_to(&mut self, command: usize) {
        self.current = command;
    }

    /// The value of the command's key, if it was read or written.
    pub(super) fn get(&self) -> Option<Option<&Held>> {
        self.keys[self.places[self.current]].value.as_ref().map(Option::as_ref)
    }

    pub(super) fn set(&mut self, value: Option<Held>) {
        self.keys[self.places[self.current]] = KnownValue { value: Some(value), writer: Some(self.current) };
        self.writes += 1;
    }

    pub(super) fn writes(&self) -> usize {
        self.writes
    }

    /// Adds the last write of each key to `batch`. The arguments are the keys of the commands so far.
    pub(super) fn add_to<'a>(
        &self,
        stored: &Stored,
        batch: &mut WriteBatch,
        keys: impl Iterator<Item = &'a [u8]>,
    ) -> Result<()> {
        if self.writes == 0 {
            return Ok(());
        }
        let mut batch = batch.keyspace(stored);
        for (command, key) in keys.enumerate() {
            let known = &self.keys[self.places[command]];
            if let (true, Some(value)) = (known.writer == Some(command), &known.value) {
                add_value(&mut batch, key, value.as_ref())?;
            }
        }
        Ok(())
    }
}

/// The changes of the commands to one database.
#[derive(Default)]
pub(super) struct Overlay {
    /// The values that the commands have written; `None` means that the key is absent.
    values: BTreeMap<Vec<u8>, Option<Held>>,
    /// The ranges that the commands have removed. Within them, `values` has the later writes, and `None` for each earlier write.
    removed: Vec<Bounds>,
}

/// A change that can be undone.
enum Change {
    /// The key, and the earlier entry of the key in `values`.
    Value(Vec<u8>, Option<Option<Held>>),
    /// The values that were replaced by `None` when a range was removed.
    Range(Vec<(Vec<u8>, Option<Held>)>),
}

/// The changes of the commands to all databases.
#[derive(Default)]
pub(super) struct Overlays {
    /// The databases and their changes, by number.
    databases: BTreeMap<usize, (Stored, Overlay)>,
    /// The state before each change, with the number of the database.
    changes: Vec<(usize, Change)>,
}

impl Overlays {
    /// The changes to a database, if there are any.
    pub(super) fn of(&self, number: usize) -> Option<&Overlay> {
        self.databases.get(&number).map(|(_, overlay)| overlay)
    }

    fn of_mut(&mut self, database: &Database) -> &mut Overlay {
        let new = || (database.stored.clone(), Overlay::default());
        &mut self.databases.entry(database.number).or_insert_with(new).1
    }

    pub(super) fn set(&mut self, database: &Database, key: &[u8], value: Option<Held>) {
        let before = self.of_mut(database).values.insert(key.to_vec(), value);
        self.changes.push((database.number, Change::Value(key.to_vec(), before)));
    }

    pub(super) fn remove_range(&mut self, database: &Database, bounds: Bounds) {
        let hidden = self.of_mut(database).remove_range(bounds);
        self.changes.push((database.number, Change::Range(hidden)));
    }

    /// The present point, up to which later changes can be undone.
    pub(super) fn mark(&self) -> usize {
        self.changes.len()
    }

    /// Undoes the changes since a mark.
    pub(super) fn undo(&mut self, mark: usize) {
        for (number, change) in self.changes.drain(mark..).rev() {
            if let Some((_, overlay)) = self.databases.get_mut(&number) {
                overlay.undo(change);
            }
        }
    }

    /// The changes so far can no longer be undone, and earlier marks are invalid.
    pub(super) fn forget(&mut self) {
        self.changes.clear();
    }

    /// The number of removed ranges.
    pub(super) fn ranges(&self) -> usize {
        self.databases.values().map(|(_, overlay)| overlay.removed.len()).sum()
    }

    /// Adds the operations to `batch` that apply these changes to the databases.
    pub(super) fn add_to(&self, batch: &mut WriteBatch) -> Result<()> {
        self.databases.values().try_for_each(|(stored, overlay)| overlay.add_to(stored, batch))
    }
}

impl Overlay {
    /// The state of `key` after the commands so far, if they have changed the key.
    pub(super) fn get(&self, key: &[u8]) -> Option<Option<&Held>> {
        self.values.get(key).map(Option::as_ref).or_else(|| self.is_removed(key).then_some(None))
    }

    /// Whether the commands have written `key` itself, and not only a range around it.
    pub(super) fn has(&self, key: &[u8]) -> bool {
        self.values.contains_key(key)
    }

    fn is_removed(&self, key: &[u8]) -> bool {
        let is_in = |(start, end): &Bounds| {
            RangeBounds::<[u8]>::contains(&(start.as_ref().map(Vec::as_slice), end.as_ref().map(Vec::as_slice)), key)
        };
        self.removed.iter().any(is_in)
    }

    /// Removes the keys within `bounds`. Returns the values that the overlay had there.
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
        self.values.iter().try_for_each(|(key, value)| add_value(&mut batch, key, value.as_ref()))
    }

    /// The entries within `bounds`, where `stored` are the entries of the database.
    pub(super) fn range<'a>(
        &'a self,
        stored: impl DoubleEndedIterator<Item = Entry> + 'a,
        bounds: Bounds,
        direction: Direction,
    ) -> Box<dyn Iterator<Item = Entry> + 'a> {
        // The maps of the standard library panic if the bounds are inverted.
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

/// Adds the operation to `batch` that gives `key` this value, or removes it.
fn add_value(batch: &mut KeyspaceBatch<'_>, key: &[u8], value: Option<&Held>) -> Result<()> {
    match value {
        Some(Held { value, expiry }) => batch.insert_with_expiry(key, value, expiry.flatten()),
        None => batch.remove(key),
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

/// Merges the stored and the written entries, both sorted in `direction`, into one sequence. A written key hides the stored one.
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
