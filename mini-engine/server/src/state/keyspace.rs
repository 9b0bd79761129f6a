//! The keys that a command sees: those of the selected database, and in a transaction also the writes of earlier commands.
//!
//! Writes are collected in one batch, which `Context::commit` passes to the engine: after a crash, either all of the batch is there or none. A single
//! command never reads its own writes. For several commands of a transaction or a proposal, an overlay for each database holds their changes, and
//! reads search the overlay first. Each command of a pipeline names one key; if some of them read, the values of these keys are searched for together,
//! and the batch has the last write of each key.
//!
//! A command of a transaction or a proposal begins with a mark; if the command fails, its writes are undone. Their final batch is built from the
//! overlays; until then the batch holds the writes since the last mark, to check them.
//!
//! Only one thread executes commands, so the values read here do not change before the commit.

use std::cell::{Cell, OnceCell};
use std::time::SystemTime;

use mini_engine::{Error, Keyspace as Stored, MAX_BATCH_RANGES, Result, Slice, WriteBatch};

use super::databases::Database;
use super::overlay::{Held, KnownValues, Overlay, Overlays};

pub(crate) use super::overlay::{Bounds, Direction, Entry};

pub(crate) struct Keyspace {
    database: Database,
    batch: WriteBatch,
    /// The bytes of inserted keys and values, and the number of removed ranges, since `begin`.
    bytes: usize,
    ranges: usize,
    /// The changes of the commands of a transaction or a proposal.
    overlays: Option<Overlays>,
    /// The values for the commands of a pipeline.
    known: Option<KnownValues>,
    /// The instant at which the commands are carried out. It is the time of the database's clock when a command first needs it, or a given instant,
    /// so that every node of a cluster has the same result.
    now: OnceCell<SystemTime>,
    /// The numbers of key lookups: those that found the key, and those that did not.
    hits: Cell<u64>,
    misses: Cell<u64>,
}

/// A point up to which writes can be undone.
#[derive(Clone, Copy)]
pub(crate) struct Mark {
    changes: usize,
    bytes: usize,
    ranges: usize,
}

impl Keyspace {
    /// A keyspace for a single command.
    pub(crate) fn of_command(database: Database) -> Self {
        let (batch, now, hits, misses) = (WriteBatch::new(), OnceCell::new(), Cell::new(0), Cell::new(0));
        Self { database, batch, bytes: 0, ranges: 0, overlays: None, known: None, now, hits, misses }
    }

    /// A keyspace for the commands of a transaction, each of which sees the writes of the earlier ones.
    pub(crate) fn of_several(database: Database) -> Self {
        Self { overlays: Some(Overlays::default()), ..Self::of_command(database) }
    }

    /// A keyspace for the commands of a pipeline: the arguments are the key of each command, and whether the command reads it. The keys that are read
    /// are searched for together until the values have `soft_limit` bytes. Each command must begin with [`turn_to`](Self::turn_to).
    pub(crate) fn of_pipeline<'a>(
        database: Database,
        commands: impl ExactSizeIterator<Item = (&'a [u8], bool)>,
        soft_limit: usize,
    ) -> Result<Self> {
        let known = Some(KnownValues::read(&database.stored, commands, soft_limit)?);
        Ok(Self { known, ..Self::of_command(database) })
    }

    /// Turns to the command of the pipeline with this index.
    pub(crate) fn turn_to(&mut self, command: usize) {
        self.known.iter_mut().for_each(|known| known.turn_to(command));
    }

    /// A keyspace for several commands that are carried out at a given instant.
    pub(crate) fn at(database: Database, instant: SystemTime) -> Self {
        Self { now: instant.into(), ..Self::of_several(database) }
    }

    /// Adds the writes of a pipeline to the batch: the last one of each key. The arguments are the keys of the commands so far.
    pub(crate) fn end_pipeline<'a>(&mut self, keys: impl Iterator<Item = &'a [u8]>) -> Result<()> {
        let Some(known) = &self.known else { return Ok(()) };
        known.add_to(&self.database.stored, &mut self.batch, keys)
    }

    /// The instant at which the commands are carried out.
    pub(crate) fn now(&self) -> SystemTime {
        *self.now.get_or_init(|| self.stored().now())
    }

    /// The number of the current database.
    pub(crate) fn number(&self) -> usize {
        self.database.number
    }

    /// Changes the current database. Returns the previous one.
    pub(crate) fn select(&mut self, database: Database) -> Database {
        std::mem::replace(&mut self.database, database)
    }

    /// Calls `run` with another current database, if one is given.
    pub(crate) fn in_database<T>(&mut self, other: Option<Database>, run: impl FnOnce(&mut Self) -> T) -> T {
        let own = other.map(|other| self.select(other));
        let result = run(self);
        own.map(|own| self.select(own));
        result
    }

    /// The number of inserted bytes of keys and values.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn is_of_several(&self) -> bool {
        self.overlays.is_some()
    }

    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Slice>> {
        let found = match self.written(key) {
            Some(written) => written.map(|held| held.value.clone()),
            None => self.stored().get(key)?,
        };
        self.count(found.is_some());
        Ok(found)
    }

    /// The value of `key` and its expiry time, if any.
    pub(crate) fn get_with_expiry(&self, key: &[u8]) -> Result<Option<(Slice, Option<SystemTime>)>> {
        let found = match self.written(key) {
            Some(None) => None,
            Some(Some(Held { value, expiry: Some(expiry) })) => Some((value.clone(), *expiry)),
            Some(Some(Held { expiry: None, .. })) | None => self.stored().get_with_expiry(key)?,
        };
        self.count(found.is_some());
        Ok(found)
    }

    pub(crate) fn contains(&self, key: &[u8]) -> Result<bool> {
        let is_found = match self.written(key) {
            Some(written) => written.is_some(),
            None => self.stored().contains_key(key)?,
        };
        self.count(is_found);
        Ok(is_found)
    }

    /// Whether the value of `key` is `value`.
    pub(crate) fn has_value(&self, key: &[u8], value: &[u8]) -> Result<bool> {
        Ok(self.get(key)?.is_some_and(|found| &*found == value))
    }

    /// The values of `keys`, found by one search. The outer `None` means that the values found had `soft_limit` bytes before this key was read.
    pub(crate) fn get_many(&self, keys: &[&[u8]], soft_limit: usize) -> Result<Vec<Option<Option<Slice>>>> {
        if self.overlay().is_none() {
            let answers = self.stored().get_many_up_to(soft_limit, keys)?;
            answers.iter().flatten().for_each(|value| self.count(value.is_some()));
            return Ok(answers);
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

    fn stored(&self) -> &Stored {
        &self.database.stored
    }

    fn written(&self, key: &[u8]) -> Option<Option<&Held>> {
        match &self.known {
            Some(known) => known.get(),
            None => self.overlay()?.get(key),
        }
    }

    fn overlay(&self) -> Option<&Overlay> {
        self.overlays.as_ref()?.of(self.database.number)
    }

    fn count(&self, is_hit: bool) {
        let counter = if is_hit { &self.hits } else { &self.misses };
        counter.set(counter.get() + 1);
    }

    /// The numbers of key lookups: those that found the key, and those that did not.
    pub(crate) fn lookups(&self) -> [u64; 2] {
        [self.hits.get(), self.misses.get()]
    }

    /// The number of writes so far, for a pipeline.
    pub(crate) fn writes(&self) -> usize {
        self.known.as_ref().map_or(self.batch.len(), KnownValues::writes)
    }

    /// Sets `key` to `value`, without an expiry time.
    pub(crate) fn insert(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.insert_until(key, value, None)
    }

    /// Sets `key` to `value`, with an expiry time if `expiry` is given. The key becomes absent if that time has passed already.
    pub(crate) fn insert_until(&mut self, key: &[u8], value: &[u8], expiry: Option<SystemTime>) -> Result<()> {
        #[cfg(test)]
        planted::check()?;
        if self.known.is_none() {
            self.batch.keyspace(&self.database.stored).insert_with_expiry(key, value, expiry)?;
        }
        self.bytes += key.len() + value.len();
        if self.overlays.is_some() || self.known.is_some() {
            let is_there = expiry.is_none_or(|at| at > self.now());
            self.show_later(key, is_there.then(|| Held { value: Slice::from(value), expiry: Some(expiry) }));
        }
        Ok(())
    }

    /// Shows a written value, or `None` for a removed key, to later commands.
    fn show_later(&mut self, key: &[u8], held: Option<Held>) {
        match (&mut self.known, &mut self.overlays) {
            (Some(known), _) => known.set(held),
            (None, Some(overlays)) => overlays.set(&self.database, key, held),
            (None, None) => {}
        }
    }

    pub(crate) fn remove(&mut self, key: &[u8]) -> Result<()> {
        #[cfg(test)]
        planted::check()?;
        if self.known.is_none() {
            self.batch.keyspace(&self.database.stored).remove(key)?;
        }
        self.show_later(key, None);
        Ok(())
    }

    /// Removes all keys within `bounds`, in one operation, however many keys there are.
    pub(crate) fn remove_range(&mut self, bounds: Bounds) -> Result<()> {
        #[cfg(test)]
        planted::check()?;
        let before = self.batch.len();
        self.batch.keyspace(&self.database.stored).remove_range(bounds.clone())?;
        if self.batch.len() == before {
            // Inverted bounds contain no key.
            return Ok(());
        }
        // The final batch has the ranges of all commands.
        if self.ranges == MAX_BATCH_RANGES as usize {
            let what = format!("too many ranges: a transaction can remove at most {MAX_BATCH_RANGES}");
            return Err(Error::InvalidArgument(what));
        }
        self.ranges += 1;
        if let Some(overlays) = &mut self.overlays {
            overlays.remove_range(&self.database, bounds);
        }
        Ok(())
    }

    /// The entries within `bounds`, in key order or backwards.
    pub(crate) fn range(&self, bounds: Bounds, direction: Direction) -> Box<dyn Iterator<Item = Entry> + '_> {
        match self.overlay() {
            Some(overlay) => overlay.range(self.stored().range(bounds.clone()), bounds, direction),
            None => self.entries(bounds, direction),
        }
    }

    /// Like `range` for one command, but shows the present moment even if the entries are read later.
    pub(crate) fn entries(&self, bounds: Bounds, direction: Direction) -> Box<dyn Iterator<Item = Entry> + Send> {
        let stored = self.stored().range(bounds);
        match direction {
            Direction::Forward => Box::new(stored),
            Direction::Backward => Box::new(stored.rev()),
        }
    }

    /// Begins the next write of a proposal. The changes of earlier writes can no longer be undone.
    pub(crate) fn begin(&mut self) -> Mark {
        self.overlays.iter_mut().for_each(Overlays::forget);
        (self.bytes, self.ranges) = (0, 0);
        self.mark()
    }

    /// The point before the next of several commands.
    pub(crate) fn mark(&mut self) -> Mark {
        self.batch.clear();
        let changes = self.overlays.as_ref().map_or(0, Overlays::mark);
        Mark { changes, bytes: self.bytes, ranges: self.ranges }
    }

    /// Runs one of several commands. If it fails, its writes are undone.
    pub(crate) fn attempt<T, E>(
        &mut self,
        run: impl FnOnce(&mut Self) -> std::result::Result<T, E>,
    ) -> std::result::Result<T, E> {
        let mark = self.mark();
        let outcome = run(self);
        if outcome.is_err() {
            self.undo(mark);
        }
        outcome
    }

    /// Undoes the writes of several commands since `mark`.
    pub(crate) fn undo(&mut self, mark: Mark) {
        self.overlays.iter_mut().for_each(|overlays| overlays.undo(mark.changes));
        (self.bytes, self.ranges) = (mark.bytes, mark.ranges);
    }

    /// The number of ranges that were removed since `begin`.
    pub(crate) fn ranges(&self) -> usize {
        self.ranges
    }

    /// The number of ranges that the proposal has removed so far.
    pub(crate) fn ranges_of_all(&self) -> usize {
        self.overlays.as_ref().map_or(0, Overlays::ranges)
    }

    /// Whether one of several commands has written this key of a database, even if the write was replaced later.
    pub(crate) fn has_written(&self, number: usize, key: &[u8]) -> bool {
        self.overlays.as_ref().and_then(|overlays| overlays.of(number)).is_some_and(|overlay| overlay.has(key))
    }

    /// Adds all writes of a proposal to `batch`.
    pub(crate) fn add_to(&self, batch: &mut WriteBatch) -> Result<()> {
        self.overlays.as_ref().map_or(Ok(()), |overlays| overlays.add_to(batch))
    }

    /// Takes the collected writes, as a batch for the engine.
    pub(crate) fn take_batch(&mut self) -> Result<WriteBatch> {
        let mut batch = std::mem::take(&mut self.batch);
        // Otherwise the writes of a pipeline that was not ended would be acknowledged, and lost.
        assert!(!batch.is_empty() || self.known.as_ref().is_none_or(|known| known.writes() == 0));
        if let Some(overlays) = &self.overlays {
            batch.clear();
            overlays.add_to(&mut batch)?;
        }
        Ok(batch)
    }
}

/// Failures for tests.
#[cfg(test)]
pub(crate) mod planted {
    use std::cell::Cell;

    use super::{Error, Result};

    thread_local! {
        /// The number of further writes of this thread that succeed before one fails.
        static LEFT: Cell<usize> = const { Cell::new(usize::MAX) };
    }

    /// Makes one write of this thread fail, after `writes` others; `usize::MAX` means that none fails.
    pub(crate) fn fail_after(writes: usize) {
        LEFT.set(writes);
    }

    pub(super) fn check() -> Result<()> {
        match LEFT.get() {
            usize::MAX => Ok(()),
            0 => {
                LEFT.set(usize::MAX);
                Err(Error::InvalidArgument("planted".into()))
            }
            left => {
                LEFT.set(left - 1);
                Ok(())
            }
        }
    }
}
