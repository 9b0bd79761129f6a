//! Ordered reads that lend keys and values: [`Cursor`].
//!
//! A cursor reads one pinned view at one sequence number, whatever is written, flushed or compacted meanwhile, even if the snapshot that created it
//! is dropped. It may outlive every handle; the directory stays locked until the cursor is dropped.

use std::ops::{Bound, RangeInclusive};
use std::sync::Arc;
use std::time::SystemTime;

use super::quarantine::check_range;
use super::scan::Scan;
use crate::db::core::Source;
use crate::error::{Error, Result};
use crate::iter::{Batch, Direction, MergeIter, VisibleIter};
use crate::types::{KeyBounds, KeyPrefix, OwnedBounds, Slice, place_after, system_time};

/// After this many consecutive keys without a value, a scan searches the dead ranges for more: at first the lower number, at most the upper.
const PAUSES: RangeInclusive<u32> = 16..=1024;

/// A position in the sorted entries of one moment. It lends key and value, so that a scan allocates no memory for an entry.
///
/// The cursor holds the memtables and table files of the moment when it was created, including those that compactions have replaced since: they take
/// memory and space as long as the cursor exists. For a long scan, use a [`Snapshot`](crate::Snapshot), and create a new cursor from it now and then.
///
/// A new cursor has no position: seek first. After an error it has no position either, and may seek again.
///
/// ```
/// # fn main() -> mini_engine::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// let db = mini_engine::Db::open(dir.path())?;
/// db.insert("a", "1")?;
/// db.insert("b", "2")?;
/// let mut cursor = db.cursor();
/// cursor.seek_to_first()?;
/// while cursor.valid() {
///     println!("{:?} = {:?}", cursor.key(), cursor.value());
///     cursor.advance()?;
/// }
/// # Ok(())
/// # }
/// ```
pub struct Cursor {
    /// Created by the first seek. Declared before `scan`, so that the open tables are dropped before the lock on the directory.
    entries: Option<Entries>,
    /// The prefix of the keyspace.
    prefix: KeyPrefix,
    /// The range of stored keys.
    range: OwnedBounds,
    /// Whether there are quarantined tables, which no move may step over.
    is_guarded: bool,
    /// Whether the cursor merges several runs.
    merges_runs: bool,
    scan: Result<Arc<Scan>>,
}

impl Cursor {
    /// A cursor over the entries of `scan` whose stored keys are in `range`, all in the keyspace of `prefix`. If `scan` is an error, every seek
    /// returns it.
    pub(crate) fn new(scan: Result<Arc<Scan>>, prefix: KeyPrefix, range: OwnedBounds) -> Cursor {
        let is_guarded = scan.as_ref().is_ok_and(|scan| scan.is_guarded());
        Cursor { entries: None, prefix, range, is_guarded, merges_runs: false, scan }
    }

    /// A new cursor over the same entries.
    pub(super) fn another(&self) -> Cursor {
        Cursor::new(self.scan.clone(), self.prefix, self.range.clone())
    }

    /// Whether the cursor is at an entry.
    #[inline]
    pub fn valid(&self) -> bool {
        self.entries.as_ref().is_some_and(VisibleIter::valid)
    }

    /// The key of the current entry; empty if there is none.
    #[inline]
    pub fn key(&self) -> &[u8] {
        self.prefix.strip(self.stored_key())
    }

    #[inline]
    fn stored_key(&self) -> &[u8] {
        self.entries.as_ref().map_or(&[], VisibleIter::key)
    }

    /// The value of the current entry; empty if there is none.
    #[inline]
    pub fn value(&self) -> &[u8] {
        self.entries.as_ref().map_or(&[], VisibleIter::value)
    }

    /// The time at which the current entry expires; `None` if it does not, or if there is no entry.
    pub fn expiry(&self) -> Option<SystemTime> {
        self.entries.as_ref().and_then(VisibleIter::expiry).map(system_time)
    }

    /// Moves to the first entry. O(sources * log n).
    ///
    /// # Errors
    /// The errors of reading tables: [`Error::Io`], [`Error::Corruption`]; [`Error::Closed`] if the database was
    /// closed when the cursor was made. The same holds for every other move.
    pub fn seek_to_first(&mut self) -> Result<()> {
        self.go(Direction::Forward, &Start::Bound, VisibleIter::seek_to_first)
    }

    /// Moves to the last entry. O(sources * log n). Errors are those of [`Cursor::seek_to_first`].
    pub fn seek_to_last(&mut self) -> Result<()> {
        self.go(Direction::Backward, &Start::Bound, VisibleIter::seek_to_last)
    }

    /// Moves to the first entry whose key is at or after `key`. O(sources * log n). Errors are those of [`Cursor::seek_to_first`].
    pub fn seek(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        let prefix = self.prefix;
        prefix
            .with_stored(key.as_ref(), |key| self.go(Direction::Forward, &Start::Key(key), |entries| entries.seek(key)))
    }

    /// Moves to the last entry whose key is at or before `key`. O(sources * log n). Errors are those of [`Cursor::seek_to_first`].
    pub fn seek_for_prev(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        let prefix = self.prefix;
        prefix.with_stored(key.as_ref(), |key| {
            self.go(Direction::Backward, &Start::Key(key), |entries| entries.seek_for_prev(key))
        })
    }

    /// Moves to the next entry. From the last entry, or without a position, the cursor becomes invalid. Errors are those of
    /// [`Cursor::seek_to_first`].
    #[inline]
    pub fn advance(&mut self) -> Result<()> {
        if self.next_in_batch().is_some() {
            Ok(())
        } else {
            self.go(Direction::Forward, &Start::Here, VisibleIter::next)
        }
    }

    /// Moves to the previous entry. From the first entry, or without a position, the cursor becomes invalid. Errors are those of
    /// [`Cursor::seek_to_first`].
    #[inline]
    pub fn retreat(&mut self) -> Result<()> {
        if self.prev_in_batch().is_some() {
            Ok(())
        } else {
            self.go(Direction::Backward, &Start::Here, VisibleIter::prev)
        }
    }

    /// Moves to the next entry, if that is in the batch that was read, which is returned. Otherwise does nothing.
    #[inline(always)]
    pub(super) fn next_in_batch(&mut self) -> Option<&Batch> {
        self.entries.as_mut().filter(|_| !self.is_guarded)?.next_in_batch()
    }

    /// The same in backward direction.
    #[inline(always)]
    pub(super) fn prev_in_batch(&mut self) -> Option<&Batch> {
        self.entries.as_mut().filter(|_| !self.is_guarded)?.prev_in_batch()
    }

    /// The current entry, if it is in a batch and short enough for [`Batch::short_entry`].
    pub(super) fn short_entry(&self) -> Option<(Slice, Slice)> {
        self.entries.as_ref()?.batch()?.short_entry(&self.prefix)
    }

    /// The prefix of the keyspace.
    pub(super) fn prefix(&self) -> KeyPrefix {
        self.prefix
    }

    /// The value of the current entry, shared with its cached block if possible.
    pub(crate) fn value_slice(&self) -> Slice {
        self.entries.as_ref().map_or_else(Slice::default, VisibleIter::value_slice)
    }

    fn go(
        &mut self,
        direction: Direction,
        start_at: &Start<'_>,
        step: impl FnOnce(&mut Entries) -> Result<()>,
    ) -> Result<()> {
        if self.is_guarded {
            return self.go_guarded(direction, start_at, step);
        }
        if !matches!(start_at, Start::Here) {
            self.entries()?;
            if let (true, Ok(scan)) = (self.merges_runs, &self.scan) {
                scan.count_merge();
            }
        }
        let entries = self.entries()?;
        step(entries)?;
        if entries.paused_at().is_some() { self.pass_dead(direction) } else { Ok(()) }
    }

    /// Continues a move that has stepped over keys without a value, of which more may follow (`core/dead_ranges.rs`).
    #[cold]
    fn pass_dead(&mut self, direction: Direction) -> Result<()> {
        let (Some(entries), Ok(scan)) = (&mut self.entries, &self.scan) else { return Ok(()) };
        let mut pause = *PAUSES.start();
        // The position from which on keys were stepped over, and the number of these keys.
        let mut passed: Option<(Slice, u64)> = None;
        while let Some(key) = entries.paused_at() {
            let here = match direction {
                Direction::Forward => Slice::from(key),
                Direction::Backward => Slice::from(place_after(key)),
            };
            scan.core.store.counters.dead_keys_passed.add(u64::from(pause));
            let is_noted = passed.as_mut().is_none_or(|(from, keys)| {
                *keys += u64::from(pause);
                let range = match direction {
                    Direction::Forward => (&*from, &here),
                    Direction::Backward => (&here, &*from),
                };
                scan.note_dead(range, *keys)
            });
            let known = scan.skip_dead(&here, direction);
            if is_noted || known.is_some() {
                passed = Some((known.clone().unwrap_or(here), 0));
            }
            pause = if known.is_some() { *PAUSES.start() } else { (2 * pause).min(*PAUSES.end()) };
            entries.resume(direction, known.as_deref(), pause)?;
        }
        Ok(())
    }

    /// Makes a move, which fails if it steps over keys that a quarantined table may hold.
    #[cold]
    fn go_guarded(
        &mut self,
        direction: Direction,
        start_at: &Start<'_>,
        step: impl FnOnce(&mut Entries) -> Result<()>,
    ) -> Result<()> {
        let start = match (start_at, direction) {
            (Start::Here, _) if !self.valid() => return step(self.entries()?),
            (Start::Here, _) => Bound::Excluded(Slice::from(self.stored_key())),
            (Start::Key(key), _) => Bound::Included(Slice::from(*key)),
            (Start::Bound, Direction::Forward) => self.range.0.clone(),
            (Start::Bound, Direction::Backward) => self.range.1.clone(),
        };
        let moved = step(self.entries()?).and_then(|()| self.check_passed(direction, start));
        if moved.is_err() {
            self.entries = None;
        }
        moved
    }

    /// Fails if a quarantined table may hold a key of the range from `start` to the cursor's position.
    fn check_passed(&self, direction: Direction, start: Bound<Slice>) -> Result<()> {
        let scan = self.scan.as_ref().map_err(Error::clone)?;
        let (lower, upper) = &self.range;
        let end = match (self.valid(), direction) {
            (true, _) => Bound::Included(Slice::from(self.stored_key())),
            (false, Direction::Forward) => upper.clone(),
            (false, Direction::Backward) => lower.clone(),
        };
        let passed = match direction {
            Direction::Forward => (start, end),
            Direction::Backward => (end, start),
        };
        check_range(scan, [&passed, &self.range])
    }

    #[inline]
    fn entries(&mut self) -> Result<&mut Entries> {
        match &mut self.entries {
            Some(entries) => Ok(entries),
            none => {
                let scan = self.scan.as_ref().map_err(Error::clone)?;
                let (entries, runs) = open(scan, &self.range);
                self.merges_runs = runs > 1;
                Ok(none.insert(entries))
            }
        }
    }
}

/// The entries, and the number of runs that they come from.
#[cold]
fn open(scan: &Scan, range: &OwnedBounds) -> (Entries, usize) {
    let (sources, hidden) = scan.view.sources(range.start(), range.end(), scan.seqno);
    let runs = sources.iter().filter(|source| matches!(source, Source::Run(_))).count();
    let (lower, mut upper) = range.clone();
    // A keyspace is created before the first write of its keys.
    if KeyPrefix::is_default_end(&upper) && !scan.core.store.keyspaces().is_used() {
        // A bound would cost a comparison for each step.
        upper = Bound::Unbounded;
    }
    let entries = VisibleIter::new(MergeIter::new(sources), scan.seqno, lower, upper);
    let pause = if scan.is_guarded() { u32::MAX } else { *PAUSES.start() };
    (entries.hiding(hidden).at(scan.instant).pausing_after(pause), runs)
}

type Entries = VisibleIter<Source>;

/// The starting point of a move.
#[derive(Debug)]
enum Start<'a> {
    /// The end of the range: the move goes forward to the first entry, or backward to the last.
    Bound,
    Key(&'a [u8]),
    /// The cursor's position.
    Here,
}

impl std::fmt::Debug for Cursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cursor").field("scan", &self.scan).field("range", &self.range).finish_non_exhaustive()
    }
}
