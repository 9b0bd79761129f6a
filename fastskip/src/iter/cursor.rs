//! The cursor over a table.

use alloc::boxed::Box;
use core::fmt;
use core::iter::FusedIterator;

use super::range::{Edge, edges, is_within, seek_edge};
use super::source::{TableHandle, TableSource};
use super::walk::{End, Place, Walk};
use crate::bounds::KeyBounds;
use crate::node::Target;
use crate::sync::Arc;

/// The cursor of both types of table. It moves in both directions and can seek to any position: [`MemtableCursor`](crate::MemtableCursor) and
/// [`OwnedMemtableCursor`](crate::OwnedMemtableCursor) over the versions of a memtable, [`Cursor`](crate::Cursor) and [`OwnedCursor`](crate::OwnedCursor)
/// over the entries of a list.
///
/// A seek places the cursor on an entry; the first step in the direction of the seek returns this entry without moving. So a loop over `next` reads
/// on from a `seek` or `seek_after`, and a loop over [`prev`](Self::prev) reads back from a `seek_for_prev` or `seek_before`. A new cursor is on
/// the first entry, like a cursor after [`seek_to_first`](Self::seek_to_first). A cursor that has moved past an end stays there: `next` then moves
/// from before the first entry to it, and `prev` moves from behind the last entry to it. Every step sees all entries that were stored before the
/// step. [`within`](Self::within) restricts a cursor to a range of keys.
///
/// `H` is `&T`, which borrows the table, or `Arc<T>`, which keeps it alive.
pub struct TableCursor<H, T: TableSource> {
    pub(crate) table: H,
    pub(crate) at: T::Point,
    walk: Walk,
    /// The lower and the upper bound, if there are any. Then the place of the walk is never [`Place::Taken`] between two calls; so steps without
    /// bounds need not look at them.
    bounds: Option<Box<[Edge; 2]>>,
}

impl<H: TableHandle<T>, T: TableSource> TableCursor<H, T> {
    /// Creates a cursor on the first entry that is visible at a point.
    pub(crate) fn new(table: H, at: T::Point) -> Self {
        let mut cursor = Self::unplaced(table, at);
        cursor.seek_to_first();
        cursor
    }

    /// Creates a cursor before the first entry; the caller then seeks.
    pub(crate) fn unplaced(table: H, at: T::Point) -> Self {
        Self { table, at, walk: Walk::new(Place::Before), bounds: None }
    }

    /// Makes a step, with `BACK` backward, and lends the entry that the cursor reaches.
    #[inline(always)]
    fn step<const BACK: bool>(
        &mut self,
        step: impl for<'t> FnOnce(&mut Walk, &'t T, T::Point) -> Option<T::Item<'t>>,
    ) -> Option<H::Item<'_>> {
        let Self { table, at, walk, bounds } = self;
        let bounds = if walk.place == Place::Taken { None } else { bounds.as_deref() };
        table.lend(|table| match bounds {
            Some(bounds) => step_within::<T, BACK>(bounds, walk, (table, *at), step),
            None => step(walk, table, *at),
        })
    }

    /// Moves to the first entry or, with `BACK`, to the last one. If there is none, the cursor is then at `otherwise`.
    fn seek_to_end<const BACK: bool>(&mut self, otherwise: Place) -> bool {
        let start = if BACK { Place::After } else { Place::Before };
        self.walk.place = start;
        let is_found = self
            .step::<BACK>(|walk, table, at| match walk.place {
                // A bound has moved it.
                place if place != start => walk.item(table, at),
                _ if BACK => walk.last(table, at),
                _ => walk.first(table, at),
            })
            .is_some();
        if !is_found {
            self.walk.place = otherwise;
        }
        is_found
    }

    /// Whether a target is before the lower bound or, with `BACK`, behind the upper one.
    fn is_outside<const BACK: bool>(&self, target: Target<'_>) -> bool {
        self.bounds.as_deref().is_some_and(|[lower, upper]| match BACK {
            true => !is_within::<T, false>(upper, target.key, || target.version),
            false => !is_within::<T, true>(lower, target.key, || target.version),
        })
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
        if self.is_outside::<false>(target) {
            return self.seek_to_end::<false>(Place::After);
        }
        self.walk.place = Place::Unplaced;
        self.step::<false>(|walk, table, at| walk.seek(table, at, target, end)).is_some()
    }

    /// Moves to the last entry at or before a position, or strictly before it.
    pub(crate) fn seek_back_from(&mut self, target: Target<'_>, end: End) -> bool {
        if self.is_outside::<true>(target) {
            return self.seek_to_end::<true>(Place::Before);
        }
        self.walk.place = Place::Unplaced;
        self.step::<true>(|walk, table, at| walk.seek_back(table, at, target, end)).is_some()
    }
}

/// Makes a step of a cursor with bounds. A step inward from an end begins at the bound there; a step that leaves the bounds ends at an end.
#[inline(never)]
fn step_within<'t, T: TableSource, const BACK: bool>(
    [lower, upper]: &[Edge; 2],
    walk: &mut Walk,
    (table, at): (&'t T, T::Point),
    step: impl FnOnce(&mut Walk, &'t T, T::Point) -> Option<T::Item<'t>>,
) -> Option<T::Item<'t>> {
    match walk.place {
        Place::TakenWithin => walk.place = Place::Taken,
        Place::Before if !BACK => seek_edge::<T, false>(lower, walk, table, at),
        Place::After if BACK => seek_edge::<T, true>(upper, walk, table, at),
        _ => {}
    }
    let item = step(walk, table, at)?;
    let node = walk.node(table.list()?)?;
    let is_inside = match BACK {
        true => is_within::<T, true>(lower, node.key(), || node.version()),
        false => is_within::<T, false>(upper, node.key(), || node.version()),
    };
    if !is_inside {
        *walk = Walk::new(if BACK { Place::Before } else { Place::After });
        return None;
    }
    if walk.place == Place::Taken {
        walk.place = Place::TakenWithin;
    }
    Some(item)
}

/// There is no method `last`: `Iterator::last` would hide it.
impl<H: TableHandle<T>, T: TableSource> TableCursor<H, T> {
    /// Restricts the cursor to the keys within `bounds`, instead of any earlier bounds, and moves it to the first entry there. Expected O(log n), not
    /// counting entries that are hidden. The bounds are copied.
    ///
    /// The cursor then behaves as if the table had no other entries. So a seek to a position before the lower bound finds the first entry within the
    /// bounds, a backward seek to a position behind the upper bound finds the last one, and a step past a bound leads to an end. If the bounds are
    /// empty or inverted, the cursor is never on an entry. `..` removes the bounds.
    ///
    /// ```
    /// # let memtable = fastskip::Memtable::new();
    /// for (key, seqno) in [("a", 1), ("b", 2), ("c", 3), ("d", 4)] {
    ///     memtable.put(key.as_bytes(), seqno, b"")?;
    /// }
    /// let mut cursor = memtable.owned_cursor().within("b".."d");
    /// assert!(cursor.seek(b"a", u64::MAX));
    /// assert_eq!(cursor.version().map(|version| version.key), Some(&b"b"[..]));
    /// assert!(!cursor.seek(b"d", u64::MAX));
    /// assert_eq!(cursor.prev().map(|version| version.key), Some(&b"c"[..]));
    /// assert!(cursor.seek_for_prev(b"z", 0));
    /// assert_eq!(cursor.version().map(|version| version.key), Some(&b"c"[..]));
    /// # Ok::<(), fastskip::InsertError>(())
    /// ```
    #[must_use]
    pub fn within(mut self, bounds: impl KeyBounds) -> Self {
        self.set_bounds(bounds);
        self
    }

    /// The same as [`within`](Self::within), for a cursor that stays where it is stored.
    pub fn set_bounds(&mut self, bounds: impl KeyBounds) {
        self.bounds = Some(Box::new(edges(bounds))).filter(|edges| **edges != [Edge::Unbounded, Edge::Unbounded]);
        self.seek_to_first();
    }

    /// Whether the cursor is on an entry. O(1).
    #[must_use]
    pub fn valid(&self) -> bool {
        matches!(self.walk.place, Place::Found(_) | Place::Taken | Place::TakenWithin)
    }

    /// Moves to the first entry, which the next call of `next` returns. O(1), or expected O(log n) with a lower bound; not counting entries that are
    /// hidden.
    pub fn seek_to_first(&mut self) -> bool {
        self.seek_to_end::<false>(Place::Before)
    }

    /// Moves to the last entry, which the next call of [`prev`](Self::prev) returns. Expected O(log n), not counting entries that are hidden.
    pub fn seek_to_last(&mut self) -> bool {
        self.seek_to_end::<true>(Place::After)
    }

    /// Moves to the previous entry and returns it; after a backward seek, returns the entry found. From behind the last entry, moves to the last one.
    /// Amortised O(1), not counting entries that are hidden.
    pub fn prev(&mut self) -> Option<H::Item<'_>> {
        self.step::<true>(Walk::prev)
    }

    /// Moves to the next key and returns its first entry, which is its newest version; after a forward seek, returns the first entry of the key
    /// found. O(1) if the current key has few versions, expected O(log n) if it has many or was found by a seek.
    pub fn next_key(&mut self) -> Option<H::Item<'_>> {
        self.step::<false>(Walk::next_key)
    }

    /// Moves to the previous key and returns its first entry, which is its newest version; after a backward seek, returns the first entry of the key
    /// found. From behind the last entry, moves to the last key. Amortised O(1) if that key has few versions, expected O(log n) if it has many.
    pub fn prev_key(&mut self) -> Option<H::Item<'_>> {
        self.step::<true>(Walk::prev_key)
    }
}

/// Returns the next entry, counted from the cursor's position. Returns `None` behind the last entry, and in all calls after that. O(1), not counting
/// entries that are hidden.
impl<'a, T: TableSource> Iterator for TableCursor<&'a T, T> {
    type Item = T::Item<'a>;

    #[inline]
    fn next(&mut self) -> Option<T::Item<'a>> {
        self.step::<false>(Walk::next)
    }
}

impl<T: TableSource> FusedIterator for TableCursor<&T, T> {}

/// This cursor is no [`Iterator`], because it lends each entry only until it moves.
impl<T: TableSource> TableCursor<Arc<T>, T> {
    /// Moves to the next entry and returns it; after a forward seek, returns the entry found. From before the first entry, moves to the first one.
    /// O(1), not counting entries that are hidden.
    #[expect(clippy::should_implement_trait, reason = "a lending cursor: what it lends cannot outlive the next step")]
    #[inline]
    pub fn next(&mut self) -> Option<T::Item<'_>> {
        self.step::<false>(Walk::next)
    }
}

// Not derived, because a derived impl would require `T: Clone`.
impl<H: Clone, T: TableSource> Clone for TableCursor<H, T> {
    fn clone(&self) -> Self {
        Self { table: self.table.clone(), at: self.at, walk: self.walk.clone(), bounds: self.bounds.clone() }
    }
}

impl<H: TableHandle<T>, T: TableSource> fmt::Debug for TableCursor<H, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableCursor").field("entry", &self.item()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl<H, T: TableSource> TableCursor<H, T> {
        pub(crate) fn moves(&self) -> usize {
            self.walk.moves()
        }
    }
}
