//! The cursor over a table.

use core::fmt;
use core::iter::FusedIterator;

use super::source::{Handle, Source};
use super::walk::{End, Place, Walk};
use crate::node::Target;
use crate::sync::Arc;

/// The cursor of both types of table. It moves in both directions and can seek to any position: [`MemtableCursor`](crate::MemtableCursor) and
/// [`OwnedCursor`](crate::OwnedCursor) over the versions of a memtable, [`Cursor`](crate::Cursor) and [`OwnedListCursor`](crate::OwnedListCursor)
/// over the entries of a list.
///
/// A seek places the cursor on an entry; the first step in the direction of the seek returns this entry without moving. So a loop over `next` reads
/// on from a `seek` or `seek_exclusive`, and a loop over [`prev`](Self::prev) reads back from a `seek_for_prev` or `seek_before`. A new cursor is on
/// the first entry, like a cursor after [`seek_to_first`](Self::seek_to_first). A cursor that has moved past an end stays there: `next` then moves
/// from before the first entry to it, and `prev` moves from behind the last entry to it. Every step sees all entries that were stored before the
/// step.
///
/// `H` is `&T`, which borrows the table, or `Arc<T>`, which keeps it alive.
pub struct TableCursor<H, T: Source> {
    pub(crate) table: H,
    pub(crate) at: T::Point,
    walk: Walk,
}

impl<H: Handle<T>, T: Source> TableCursor<H, T> {
    /// Creates a cursor on the first entry that is visible at a point.
    pub(crate) fn new(table: H, at: T::Point) -> Self {
        let mut cursor = Self::unplaced(table, at);
        cursor.seek_to_first();
        cursor
    }

    /// Creates a cursor before the first entry; the caller then seeks.
    pub(crate) fn unplaced(table: H, at: T::Point) -> Self {
        Self { table, at, walk: Walk::new(Place::Before) }
    }

    /// Makes a step, and lends the entry that the cursor reaches.
    #[inline(always)]
    fn step(
        &mut self,
        step: impl for<'t> FnOnce(&mut Walk, &'t T, T::Point) -> Option<T::Item<'t>>,
    ) -> Option<H::Item<'_>> {
        let Self { table, at, walk } = self;
        table.lend(|table| step(walk, table, *at))
    }

    /// The entry that the cursor is on.
    pub(crate) fn item(&self) -> Option<H::Item<'_>> {
        self.table.lend(|table| self.walk.item(table, self.at))
    }

    /// The entry of the table that the cursor is on.
    pub(crate) fn item_of<'t>(&self, table: &'t T) -> Option<T::Item<'t>> {
        self.walk.item(table, self.at)
    }

    /// Moves to the first entry at or behind a position, or strictly behind it.
    pub(crate) fn seek_from(&mut self, target: Target<'_>, end: End) -> bool {
        self.step(|walk, table, at| walk.seek(table, at, target, end)).is_some()
    }

    /// Moves to the last entry at or before a position, or strictly before it.
    pub(crate) fn seek_back_from(&mut self, target: Target<'_>, end: End) -> bool {
        self.step(|walk, table, at| walk.seek_back(table, at, target, end)).is_some()
    }
}

/// There is no method `last`: `Iterator::last` would hide it.
impl<H: Handle<T>, T: Source> TableCursor<H, T> {
    /// Whether the cursor is on an entry. O(1).
    #[must_use]
    pub fn valid(&self) -> bool {
        matches!(self.walk.place, Place::Found(_) | Place::Taken)
    }

    /// Moves to the first entry, which the next call of `next` returns. O(1), not counting entries that are hidden.
    pub fn seek_to_first(&mut self) -> bool {
        self.step(Walk::first).is_some()
    }

    /// Moves to the last entry, which the next call of [`prev`](Self::prev) returns. Expected O(log n), not counting entries that are hidden.
    pub fn seek_to_last(&mut self) -> bool {
        self.step(Walk::last).is_some()
    }

    /// Moves to the previous entry and returns it; after a backward seek, returns the entry found. From behind the last entry, moves to the last one.
    /// Amortised O(1), not counting entries that are hidden.
    pub fn prev(&mut self) -> Option<H::Item<'_>> {
        self.step(Walk::prev)
    }

    /// Moves to the next key and returns its first entry, which is its newest version; after a forward seek, returns the first entry of the key
    /// found. O(1) if the current key has few versions, expected O(log n) if it has many or was found by a seek.
    pub fn next_key(&mut self) -> Option<H::Item<'_>> {
        self.step(Walk::next_key)
    }

    /// Moves to the previous key and returns its first entry, which is its newest version; after a backward seek, returns the first entry of the key
    /// found. From behind the last entry, moves to the last key. Amortised O(1) if that key has few versions, expected O(log n) if it has many.
    pub fn prev_key(&mut self) -> Option<H::Item<'_>> {
        self.step(Walk::prev_key)
    }
}

/// Returns the next entry, counted from the cursor's position. Returns `None` behind the last entry, and in all calls after that. O(1), not counting
/// entries that are hidden.
impl<'a, T: Source> Iterator for TableCursor<&'a T, T> {
    type Item = T::Item<'a>;

    #[inline]
    fn next(&mut self) -> Option<T::Item<'a>> {
        self.walk.next(self.table, self.at)
    }
}

impl<T: Source> FusedIterator for TableCursor<&T, T> {}

/// This cursor is no [`Iterator`], because it lends each entry only until it moves.
impl<T: Source> TableCursor<Arc<T>, T> {
    /// Moves to the next entry and returns it; after a forward seek, returns the entry found. From before the first entry, moves to the first one.
    /// O(1), not counting entries that are hidden.
    #[expect(clippy::should_implement_trait, reason = "a lending cursor: what it lends cannot outlive the next step")]
    #[inline]
    pub fn next(&mut self) -> Option<T::Item<'_>> {
        self.walk.next(&*self.table, self.at)
    }
}

// Not derived, because a derived impl would require `T: Clone`.
impl<H: Clone, T: Source> Clone for TableCursor<H, T> {
    fn clone(&self) -> Self {
        Self { table: self.table.clone(), at: self.at, walk: self.walk.clone() }
    }
}

impl<H: Handle<T>, T: Source> fmt::Debug for TableCursor<H, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableCursor").field("entry", &self.item()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl<H, T: Source> TableCursor<H, T> {
        pub(crate) fn moves(&self) -> usize {
            self.walk.moves()
        }
    }
}
