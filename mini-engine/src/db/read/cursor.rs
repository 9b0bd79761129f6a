//! Ordered reads that lend keys and values: [`Cursor`], over the keys within [`ScanBounds`].
//!
//! A cursor reads one pinned view at one sequence number, whatever is written, flushed or compacted meanwhile, and whatever becomes of the
//! snapshot that it was made from. It may outlive every handle; the directory stays locked until it is gone.

use std::ops::Bound;
use std::sync::Arc;

use super::pinned::Pinned;
use super::quarantine::check_range;
use crate::db::core::Source;
use crate::error::{Error, Result};
use crate::iter::{MergeIter, VisibleIter};
use crate::types::{KeyBounds, Slice, after_prefix};

/// The keys that a scan may show.
#[derive(Debug, Clone)]
pub(crate) struct ScanBounds {
    lower: Bound<Slice>,
    upper: Bound<Slice>,
}

impl ScanBounds {
    pub(crate) fn all() -> ScanBounds {
        ScanBounds { lower: Bound::Unbounded, upper: Bound::Unbounded }
    }

    pub(crate) fn of(bounds: &impl KeyBounds) -> ScanBounds {
        ScanBounds { lower: bounds.start().map(Slice::from), upper: bounds.end().map(Slice::from) }
    }

    pub(crate) fn into_bounds(self) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
        (self.lower.map(|key| key.to_vec()), self.upper.map(|key| key.to_vec()))
    }

    /// From the prefix itself to the first key that does not start with it.
    pub(crate) fn prefix(prefix: &[u8]) -> ScanBounds {
        let upper = after_prefix(prefix).map_or(Bound::Unbounded, |end| Bound::Excluded(Slice::from(end)));
        ScanBounds { lower: Bound::Included(Slice::from(prefix)), upper }
    }
}

/// A position in the sorted entries of one moment. Lends key and value, so that a scan allocates nothing for an entry.
///
/// It keeps the memtables and the files of the tables as they were when it was made, also those that compactions have replaced since:
/// they take memory and space as long as it lives. For a scan that takes long, better use a [`Snapshot`](crate::Snapshot), and of
/// it now and then a new cursor.
///
/// A new cursor is at no entry: seek first. After an error it is at no entry either, and may seek again.
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
    /// Made by the first seek. Before `source`, so that the open tables go before the lock on the directory does.
    entries: Option<Entries>,
    range: ScanBounds,
    /// Whether there are tables that no move must pass.
    is_guarded: bool,
    source: Result<Arc<Pinned>>,
}

impl Cursor {
    /// A cursor over the part of `source` in `range`. If there is no source every seek returns its error.
    pub(crate) fn new(source: Result<Arc<Pinned>>, range: ScanBounds) -> Cursor {
        let is_guarded = source.as_ref().is_ok_and(|pinned| pinned.is_guarded());
        Cursor { entries: None, range, is_guarded, source }
    }

    /// A new cursor over the same entries.
    pub(super) fn another(&self) -> Cursor {
        Cursor::new(self.source.clone(), self.range.clone())
    }

    /// Whether the cursor is at an entry.
    pub fn valid(&self) -> bool {
        self.entries.as_ref().is_some_and(VisibleIter::valid)
    }

    /// The key of the current entry; empty if there is none.
    pub fn key(&self) -> &[u8] {
        self.entries.as_ref().filter(|entries| entries.valid()).map_or(&[], VisibleIter::key)
    }

    /// The value of the current entry; empty if there is none.
    pub fn value(&self) -> &[u8] {
        self.entries.as_ref().filter(|entries| entries.valid()).map_or(&[], VisibleIter::value)
    }

    /// Goes to the first entry. O(sources * log n).
    ///
    /// # Errors
    /// What reading tables can fail with: [`Error::Io`], [`Error::Corruption`]; [`Error::Closed`] if the database was
    /// closed when the cursor was made. The same holds for every other move.
    pub fn seek_to_first(&mut self) -> Result<()> {
        self.go(Direction::Forward, &Start::Bound, VisibleIter::seek_to_first)
    }

    /// Goes to the last entry. O(sources * log n). Errors as of [`Cursor::seek_to_first`].
    pub fn seek_to_last(&mut self) -> Result<()> {
        self.go(Direction::Backward, &Start::Bound, VisibleIter::seek_to_last)
    }

    /// Goes to the first entry whose key is at or after `key`. O(sources * log n). Errors as of
    /// [`Cursor::seek_to_first`].
    pub fn seek(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        let key = key.as_ref();
        self.go(Direction::Forward, &Start::Key(key), |entries| entries.seek(key))
    }

    /// Goes to the last entry whose key is at or before `key`. O(sources * log n). Errors as of
    /// [`Cursor::seek_to_first`].
    pub fn seek_for_prev(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        let key = key.as_ref();
        self.go(Direction::Backward, &Start::Key(key), |entries| entries.seek_for_prev(key))
    }

    /// Goes to the next entry. From the last one, or without one, it leaves all entries. Errors as of [`Cursor::seek_to_first`].
    pub fn advance(&mut self) -> Result<()> {
        self.go(Direction::Forward, &Start::Here, VisibleIter::next)
    }

    /// Goes to the previous entry. From the first one, or without one, it leaves all entries. Errors as of
    /// [`Cursor::seek_to_first`].
    pub fn retreat(&mut self) -> Result<()> {
        self.go(Direction::Backward, &Start::Here, VisibleIter::prev)
    }

    /// The value of the current entry, shared with the cached block it is in where that is possible.
    pub(crate) fn value_slice(&self) -> Slice {
        self.entries.as_ref().map_or_else(|| Slice::from(&[][..]), VisibleIter::value_slice)
    }

    /// Makes a move.
    #[inline]
    fn go(
        &mut self,
        direction: Direction,
        start_at: &Start<'_>,
        step: impl FnOnce(&mut Entries) -> Result<()>,
    ) -> Result<()> {
        if self.is_guarded { self.go_guarded(direction, start_at, step) } else { step(self.entries()?) }
    }

    /// Makes a move, which fails if it passes over keys that a quarantined table may hold.
    #[cold]
    fn go_guarded(
        &mut self,
        direction: Direction,
        start_at: &Start<'_>,
        step: impl FnOnce(&mut Entries) -> Result<()>,
    ) -> Result<()> {
        let start = match (start_at, direction) {
            (Start::Here, _) if !self.valid() => return step(self.entries()?),
            (Start::Here, _) => Bound::Excluded(Slice::from(self.key())),
            (Start::Key(key), _) => Bound::Included(Slice::from(*key)),
            (Start::Bound, Direction::Forward) => self.range.lower.clone(),
            (Start::Bound, Direction::Backward) => self.range.upper.clone(),
        };
        let moved = step(self.entries()?).and_then(|()| self.check_passed(direction, &start));
        if moved.is_err() {
            self.entries = None;
        }
        moved
    }

    /// Fails if a quarantined table may hold a key of the range from `start` to where the cursor stands.
    fn check_passed(&self, direction: Direction, start: &Bound<Slice>) -> Result<()> {
        let pinned = self.source.as_ref().map_err(Error::clone)?;
        let ScanBounds { lower, upper } = &self.range;
        let end = match (self.valid(), direction) {
            (true, _) => Bound::Included(Slice::from(self.key())),
            (false, Direction::Forward) => upper.clone(),
            (false, Direction::Backward) => lower.clone(),
        };
        let (from, to) = match direction {
            Direction::Forward => (start, &end),
            Direction::Backward => (&end, start),
        };
        let ranges = [(slice(from), slice(to)), (slice(lower), slice(upper))];
        check_range(pinned.point(), ranges)
    }

    #[inline]
    fn entries(&mut self) -> Result<&mut Entries> {
        match &mut self.entries {
            Some(entries) => Ok(entries),
            none => {
                let pinned = self.source.as_ref().map_err(Error::clone)?;
                Ok(none.insert(open(pinned, &self.range)))
            }
        }
    }
}

#[cold]
fn open(pinned: &Pinned, range: &ScanBounds) -> Entries {
    let ScanBounds { lower, upper } = range;
    let (sources, hidden) = pinned.view.sources(slice(lower), slice(upper), pinned.seqno);
    let entries = VisibleIter::new(MergeIter::new(sources), pinned.seqno, lower.clone(), upper.clone());
    entries.hiding(hidden)
}

type Entries = VisibleIter<Source>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Forward,
    Backward,
}

/// Where a move begins.
#[derive(Debug)]
enum Start<'a> {
    /// At the end of the range that the move comes from.
    Bound,
    Key(&'a [u8]),
    /// Where the cursor stands.
    Here,
}

fn slice(bound: &Bound<Slice>) -> Bound<&[u8]> {
    bound.as_ref().map(|key| &**key)
}

impl std::fmt::Debug for Cursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cursor").field("source", &self.source).field("range", &self.range).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_ends_where_the_next_one_starts() {
        // Catches a prefix of 0xff bytes, whose successor is shorter, or none at all.
        let upper = |prefix: &[u8]| ScanBounds::prefix(prefix).upper;
        assert_eq!(upper(b"ab"), Bound::Excluded(Slice::from(&b"ac"[..])));
        assert_eq!(upper(b"a\xff\xff"), Bound::Excluded(Slice::from(&b"b"[..])));
        assert_eq!(upper(b"\xff\xff"), Bound::Unbounded);
        assert_eq!(upper(b""), Bound::Unbounded);
    }
}
