//! Iteration from both ends over the entries within bounds that a reader sees.

use alloc::boxed::Box;
use core::cmp::Ordering;
use core::fmt;
use core::iter::FusedIterator;
use core::ops::{Bound, RangeBounds};

use super::owned::OwnedItem;
use super::source::{TableHandle, TableSource};
use super::walk::{End, NEWEST, OLDEST, Place, Walk};
use crate::bounds::KeyBounds;
use crate::key;
use crate::node::{Schema, Target};
use crate::sync::Arc;

/// A place in the order of a list, a key and a version, at which a range begins or ends.
pub(super) type Edge = Bound<(Box<[u8]>, u64)>;

/// The edges of the keys within `bounds`.
pub(super) fn edges(bounds: impl KeyBounds) -> [Edge; 2] {
    let place = |bound: Bound<&[u8]>, [included, excluded]: [u64; 2]| match bound {
        Bound::Excluded(key) => Bound::Excluded((key.into(), excluded)),
        bound => bound.map(|key| (key.into(), included)),
    };
    [place(bounds.start_bound(), [NEWEST, OLDEST]), place(bounds.end_bound(), [OLDEST, NEWEST])]
}

/// Moves to the first entry behind an edge or, with `BACK`, to the last entry before it. Does nothing if there is no edge.
pub(super) fn seek_edge<T: TableSource, const BACK: bool>(edge: &Edge, walk: &mut Walk, table: &T, at: T::Point) {
    let (place, end) = match edge {
        Bound::Unbounded => return,
        Bound::Included(place) => (place, End::Included),
        Bound::Excluded(place) => (place, End::Excluded),
    };
    let target = Target { key: &place.0, version: place.1 };
    _ = if BACK { walk.seek_back(table, at, target, end) } else { walk.seek(table, at, target, end) };
}

/// Whether the place of `key` and `version` is before an edge or, with `BACK`, behind it.
#[inline(always)]
pub(super) fn is_within<T: TableSource, const BACK: bool>(edge: &Edge, key: &[u8], version: impl Fn() -> u64) -> bool {
    let order = |(edge_key, edge_version): &(Box<[u8]>, u64)| {
        let order =
            key::order::<<T::Schema as Schema>::Order>(key, edge_key).then_with(|| edge_version.cmp(&version()));
        if BACK { order.reverse() } else { order }
    };
    match edge {
        Bound::Unbounded => true,
        Bound::Included(last) => order(last).is_le(),
        Bound::Excluded(end) => order(end).is_lt(),
    }
}

/// The visible entries within bounds that neither end has returned yet. An end stays at the entry that it returned last, and moves only when the next
/// one is requested; so it sees entries that were inserted before that request.
#[derive(Debug, Clone)]
pub(crate) struct Ends {
    front: OneEnd,
    back: OneEnd,
}

/// One end, and the bound at which it begins.
#[derive(Debug, Clone)]
struct OneEnd {
    bound: Edge,
    walk: Walk,
}

impl Ends {
    fn within(edges: [Edge; 2]) -> Self {
        let [front, back] = edges.map(|bound| OneEnd { bound, walk: Walk::new(Place::Unplaced) });
        Self { front, back }
    }

    /// Iterates over the keys within `bounds`; over nothing if the bounds are inverted.
    pub(crate) fn new(bounds: impl KeyBounds) -> Self {
        Self::within(edges(bounds))
    }

    /// Iterates over the entries between two places.
    pub(crate) fn between<K: AsRef<[u8]>>(bounds: &impl RangeBounds<(K, u64)>) -> Self {
        let place = |bound: Bound<&(K, u64)>| bound.map(|(key, version)| (Box::from(key.as_ref()), *version));
        Self::within([place(bounds.start_bound()), place(bounds.end_bound())])
    }

    /// Iterates over the keys that begin with `prefix`.
    pub(crate) fn prefix(prefix: &[u8]) -> Self {
        let mut next = prefix.to_vec();
        while next.last() == Some(&u8::MAX) {
            next.pop();
        }
        let upper = match next.last_mut() {
            Some(last) => {
                *last += 1;
                Bound::Excluded(next)
            }
            None => Bound::Unbounded,
        };
        Self::new((Bound::Included(prefix.to_vec()), upper))
    }

    /// The end that moves, and the other one.
    #[inline(always)]
    fn this_and_other<const BACK: bool>(&self) -> (&OneEnd, &OneEnd) {
        if BACK { (&self.back, &self.front) } else { (&self.front, &self.back) }
    }

    /// Returns the first remaining entry, or with `BACK` the last one. After `None` no entry is left.
    #[inline(always)]
    fn take<'a, T: TableSource, const BACK: bool>(&mut self, table: &'a T, at: T::Point) -> Option<T::Item<'a>> {
        if self.this_and_other::<BACK>().0.walk.place != Place::Taken && !self.place::<T, BACK>(table, at) {
            return None;
        }
        let item = if BACK { self.back.walk.prev(table, at) } else { self.front.walk.next(table, at) };
        if let Some(item) = item {
            let (_, other) = self.this_and_other::<BACK>();
            let is_unbounded = matches!(other.bound, Bound::Unbounded) && other.walk.place == Place::Unplaced;
            if is_unbounded || self.is_left::<T, BACK>(table, at) {
                return Some(item);
            }
        }
        self.finish();
        None
    }

    /// Places an end at its bound before its first step. Returns false if no entry is left.
    #[cold]
    #[inline(never)]
    fn place<T: TableSource, const BACK: bool>(&mut self, table: &T, at: T::Point) -> bool {
        let OneEnd { bound, walk } = if BACK { &mut self.back } else { &mut self.front };
        if walk.place == Place::Unplaced {
            walk.place = if BACK { Place::After } else { Place::Before };
            seek_edge::<T, BACK>(bound, walk, table, at);
        }
        walk.place != Place::Finished
    }

    #[cold]
    fn finish(&mut self) {
        (self.front.walk.place, self.back.walk.place) = (Place::Finished, Place::Finished);
    }

    /// Whether the entry that an end has reached is within the other end's bound and was not returned by the other end.
    #[inline(never)]
    fn is_left<T: TableSource, const BACK: bool>(&self, table: &T, at: T::Point) -> bool {
        let Some(list) = table.list() else { return false };
        let (this, other) = self.this_and_other::<BACK>();
        let Some(node) = this.walk.node(list) else { return false };
        is_within::<T, BACK>(&other.bound, node.key(), || node.version())
            && other.walk.node(list).is_none_or(|taken| {
                let (first, last) = if BACK { (taken, node) } else { (node, taken) };
                match key::order::<<T::Schema as Schema>::Order>(first.key(), last.key()) {
                    // At a version, each key is shown once, whichever of its nodes the two ends have reached.
                    Ordering::Equal => T::version(at).is_none() && first.version() > last.version(),
                    order => order == Ordering::Less,
                }
            })
    }
}

/// The double-ended iterator of both types of table: [`Versions`](crate::Versions) and [`OwnedVersions`](crate::OwnedVersions) of a memtable,
/// [`Entries`](crate::Entries) and [`OwnedEntries`](crate::OwnedEntries) of a list.
///
/// It returns every visible entry that was stored before the iterator was created, and returns none twice. An entry that was stored before a step is
/// returned too, if it is visible and lies ahead of the entry that this end has returned last. Starting at either end costs O(log n); a forward step
/// is O(1) and a backward step amortised O(1), not counting entries that are hidden.
///
/// `H` is `&T`, which borrows the table, or `Arc<T>`, which keeps it alive.
pub struct TableIter<H, T: TableSource> {
    table: H,
    at: T::Point,
    ends: Ends,
}

impl<H: TableHandle<T>, T: TableSource> TableIter<H, T> {
    pub(crate) fn new(table: H, at: T::Point, ends: Ends) -> Self {
        Self { table, at, ends }
    }
}

impl<'a, T: TableSource> Iterator for TableIter<&'a T, T> {
    type Item = T::Item<'a>;

    // Inlined: in a loop the item then stays in registers and the processor looks further ahead, which saves a third of a scan's time.
    #[inline(always)]
    fn next(&mut self) -> Option<T::Item<'a>> {
        self.ends.take::<T, false>(self.table, self.at)
    }
}

impl<T: TableSource> DoubleEndedIterator for TableIter<&T, T> {
    #[inline(always)]
    fn next_back(&mut self) -> Option<Self::Item> {
        self.ends.take::<T, true>(self.table, self.at)
    }
}

impl<T: TableSource> Iterator for TableIter<Arc<T>, T> {
    type Item = OwnedItem<T>;

    #[inline(always)]
    fn next(&mut self) -> Option<OwnedItem<T>> {
        OwnedItem::attach(&self.table, |table| self.ends.take::<T, false>(table, self.at))
    }
}

impl<T: TableSource> DoubleEndedIterator for TableIter<Arc<T>, T> {
    #[inline(always)]
    fn next_back(&mut self) -> Option<OwnedItem<T>> {
        OwnedItem::attach(&self.table, |table| self.ends.take::<T, true>(table, self.at))
    }
}

impl<T: TableSource> FusedIterator for TableIter<&T, T> {}
impl<T: TableSource> FusedIterator for TableIter<Arc<T>, T> {}

/// Steps that lend an entry.
impl<T: TableSource> TableIter<Arc<T>, T> {
    /// Like `next`, but lends the entry only until the next step. So it changes no reference count, which saves two atomic operations.
    #[inline]
    pub fn next_ref(&mut self) -> Option<T::Item<'_>> {
        self.ends.take::<T, false>(&*self.table, self.at)
    }

    /// Like `next_back`, but lends the entry, as [`next_ref`](Self::next_ref) does.
    #[inline]
    pub fn next_back_ref(&mut self) -> Option<T::Item<'_>> {
        self.ends.take::<T, true>(&*self.table, self.at)
    }
}

// Not derived, because a derived impl would require `T: Clone`.
impl<H: Clone, T: TableSource> Clone for TableIter<H, T> {
    fn clone(&self) -> Self {
        Self { table: self.table.clone(), at: self.at, ends: self.ends.clone() }
    }
}

impl<H, T: TableSource> fmt::Debug for TableIter<H, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableIter").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl<H, T: TableSource> TableIter<H, T> {
        /// The number of steps and searches of both ends.
        pub(crate) fn moves(&self) -> usize {
            self.ends.front.walk.moves() + self.ends.back.walk.moves()
        }
    }
}
