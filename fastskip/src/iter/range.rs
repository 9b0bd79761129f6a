//! Iteration over what a reader sees within bounds, from both ends.

use core::cmp::Ordering;
use core::fmt;
use core::iter::FusedIterator;
use core::ops::{Bound, RangeBounds};

use super::owned::OwnedItem;
use super::source::{Handle, Shown, Source};
use super::walk::{End, NEWEST, OLDEST, Place, Walk};
use crate::bounds::KeyBounds;
use crate::key;
use crate::list::List;
use crate::node::Target;
use crate::nodes::{NodeRef, Schema};
use crate::sync::Arc;

/// A place in the order of a list: a key and a version.
type KeyVersion = (Box<[u8]>, u64);

/// The shown entries within bounds that neither end has taken yet. An end is at the entry that it took last, and moves when the next one is taken;
/// so it sees entries that were inserted before that.
#[derive(Debug, Clone)]
pub(crate) struct Ends {
    lower: Bound<KeyVersion>,
    upper: Bound<KeyVersion>,
    front: Walk,
    back: Walk,
}

impl Ends {
    fn within(lower: Bound<KeyVersion>, upper: Bound<KeyVersion>) -> Self {
        Self { lower, upper, front: Walk::new(Place::Unplaced), back: Walk::new(Place::Unplaced) }
    }

    /// The keys within `bounds`; nothing if they are inverted.
    pub(crate) fn new(bounds: impl KeyBounds) -> Self {
        let lower = match bounds.start() {
            Bound::Excluded(key) => Bound::Excluded((key.into(), OLDEST)),
            lower => lower.map(|key| (key.into(), NEWEST)),
        };
        let upper = match bounds.end() {
            Bound::Excluded(key) => Bound::Excluded((key.into(), NEWEST)),
            upper => upper.map(|key| (key.into(), OLDEST)),
        };
        Self::within(lower, upper)
    }

    /// What lies between two places.
    pub(crate) fn between<K: AsRef<[u8]>>(bounds: &impl RangeBounds<(K, u64)>) -> Self {
        let place = |bound: Bound<&(K, u64)>| bound.map(|(key, version)| (Box::from(key.as_ref()), *version));
        Self::within(place(bounds.start_bound()), place(bounds.end_bound()))
    }

    /// The keys that begin with `prefix`.
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

    /// Takes the first entry. After `None` there is none left.
    #[inline(always)]
    fn next<'a, T: Source>(&mut self, shown: Option<Shown<'a, T>>) -> Option<T::Item<'a>> {
        let Some(shown) = shown.filter(|shown| self.front.place == Place::Taken || self.place_front(*shown)) else {
            return self.finish();
        };
        let item = self.front.next(Some(shown));
        let is_last = matches!(self.upper, Bound::Unbounded) && self.back.place == Place::Unplaced;
        if item.is_some() && (is_last || self.is_front_left(shown.list, shown.version())) {
            item
        } else {
            self.finish()
        }
    }

    /// Takes the last entry. After `None` there is none left.
    #[inline(always)]
    fn next_back<'a, T: Source>(&mut self, shown: Option<Shown<'a, T>>) -> Option<T::Item<'a>> {
        let Some(shown) = shown.filter(|shown| self.back.place == Place::Taken || self.place_back(*shown)) else {
            return self.finish();
        };
        let item = self.back.prev(Some(shown));
        let is_first = matches!(self.lower, Bound::Unbounded) && self.front.place == Place::Unplaced;
        if item.is_some() && (is_first || self.is_back_left(shown.list, shown.version())) {
            item
        } else {
            self.finish()
        }
    }

    /// Places the front before the first node within the bound, before its first step. False if nothing is left.
    #[cold]
    #[inline(never)]
    fn place_front<T: Source>(&mut self, shown: Shown<'_, T>) -> bool {
        if self.front.place == Place::Unplaced {
            self.front.place = Place::Before;
            seek(&self.lower, |target, end| _ = self.front.seek(Some(shown), target, end));
        }
        self.front.place != Place::Finished
    }

    /// Places the back behind the last node within the bound, before its first step. False if nothing is left.
    #[cold]
    #[inline(never)]
    fn place_back<T: Source>(&mut self, shown: Shown<'_, T>) -> bool {
        if self.back.place == Place::Unplaced {
            self.back.place = Place::After;
            seek(&self.upper, |target, end| _ = self.back.seek_back(Some(shown), target, end));
        }
        self.back.place != Place::Finished
    }

    #[cold]
    fn finish<I>(&mut self) -> Option<I> {
        (self.front.place, self.back.place) = (Place::Finished, Place::Finished);
        None
    }

    /// Whether the entry to which the front has come is within the bound, and was not taken by the back.
    #[inline(never)]
    fn is_front_left<S: Schema>(&self, list: &List<S>, version: Option<u64>) -> bool {
        let taken = self.back.node(list);
        self.front.node(list).is_some_and(|node| {
            let is_below = match &self.upper {
                Bound::Unbounded => true,
                Bound::Included(last) => order(node, last).is_le(),
                Bound::Excluded(end) => order(node, end).is_lt(),
            };
            is_below && taken.is_none_or(|taken| is_before(version, node, taken))
        })
    }

    /// The same for the back.
    #[inline(never)]
    fn is_back_left<S: Schema>(&self, list: &List<S>, version: Option<u64>) -> bool {
        let taken = self.front.node(list);
        self.back.node(list).is_some_and(|node| {
            let is_above = match &self.lower {
                Bound::Unbounded => true,
                Bound::Included(first) => order(node, first).is_ge(),
                Bound::Excluded(before) => order(node, before).is_gt(),
            };
            is_above && taken.is_none_or(|taken| is_before(version, taken, node))
        })
    }
}

/// Whether one node is before another. At a version a key is shown once, whichever of its nodes the ends have seen.
fn is_before<S: Schema>(version: Option<u64>, a: NodeRef<'_, S>, b: NodeRef<'_, S>) -> bool {
    match key::order(a.key(), b.key()) {
        Ordering::Equal => version.is_none() && a.version() > b.version(),
        order => order == Ordering::Less,
    }
}

/// Seeks a bound, if there is one.
fn seek(bound: &Bound<KeyVersion>, seek: impl FnOnce(Target<'_>, End)) {
    match bound {
        Bound::Unbounded => {}
        Bound::Included((key, version)) => seek(Target { key, version: *version }, End::Included),
        Bound::Excluded((key, version)) => seek(Target { key, version: *version }, End::Excluded),
    }
}

/// Where `node` is, seen from a place.
fn order<S: Schema>(node: NodeRef<'_, S>, (key, version): &KeyVersion) -> Ordering {
    key::order(node.key(), key).then_with(|| version.cmp(&node.version()))
}

/// The double-ended iterator of both types of table: [`Versions`](crate::Versions) and [`OwnedVersions`](crate::OwnedVersions) of a memtable,
/// [`Iter`](crate::Iter) and [`OwnedEntries`](crate::OwnedEntries) of a list.
///
/// It never misses an entry that was stored before the iterator was created, and never yields one twice. An entry that was stored before a step is
/// yielded if it lies ahead of what that end has yielded last, unless the reader does not see it. O(log n) to begin at either end; a step forward is
/// O(1) and a step back amortised O(1), not counting entries that are hidden.
///
/// `H` is `&T`, which borrows the table, or `Arc<T>`, which keeps it alive.
pub struct TableRange<H, T: Source> {
    table: H,
    at: T::Point,
    ends: Ends,
}

impl<H: Handle<T>, T: Source> TableRange<H, T> {
    pub(crate) fn new(table: H, at: T::Point, ends: Ends) -> Self {
        Self { table, at, ends }
    }

    /// Steps and searches of both ends.
    #[cfg(test)]
    pub(crate) fn moves(&self) -> usize {
        self.ends.front.moves() + self.ends.back.moves()
    }
}

impl<'a, T: Source> Iterator for TableRange<&'a T, T> {
    type Item = T::Item<'a>;

    // Where a loop calls this, and the item stays in registers, the processor sees more entries ahead: a third of a scan's time.
    #[inline(always)]
    fn next(&mut self) -> Option<T::Item<'a>> {
        self.ends.next(Shown::new(self.table, self.at))
    }
}

impl<T: Source> DoubleEndedIterator for TableRange<&T, T> {
    #[inline(always)]
    fn next_back(&mut self) -> Option<Self::Item> {
        self.ends.next_back(Shown::new(self.table, self.at))
    }
}

impl<T: Source> Iterator for TableRange<Arc<T>, T> {
    type Item = OwnedItem<T>;

    #[inline]
    fn next(&mut self) -> Option<OwnedItem<T>> {
        OwnedItem::attach(&self.table, |table| self.ends.next(Shown::new(table, self.at)))
    }
}

impl<T: Source> DoubleEndedIterator for TableRange<Arc<T>, T> {
    #[inline]
    fn next_back(&mut self) -> Option<OwnedItem<T>> {
        OwnedItem::attach(&self.table, |table| self.ends.next_back(Shown::new(table, self.at)))
    }
}

impl<T: Source> FusedIterator for TableRange<&T, T> {}
impl<T: Source> FusedIterator for TableRange<Arc<T>, T> {}

/// Steps that lend.
impl<T: Source> TableRange<Arc<T>, T> {
    /// The same as `next`, but lends what it takes until the next step, and so counts no reference: two atomic operations
    /// less.
    #[inline]
    pub fn next_ref(&mut self) -> Option<T::Item<'_>> {
        self.ends.next(Shown::new(&*self.table, self.at))
    }

    /// The same as `next_back`, but lends what it takes, as [`next_ref`](Self::next_ref) does.
    #[inline]
    pub fn next_back_ref(&mut self) -> Option<T::Item<'_>> {
        self.ends.next_back(Shown::new(&*self.table, self.at))
    }
}

// Not derived, because a derived impl would require `T: Clone`.
impl<H: Clone, T: Source> Clone for TableRange<H, T> {
    fn clone(&self) -> Self {
        Self { table: self.table.clone(), at: self.at, ends: self.ends.clone() }
    }
}

impl<H, T: Source> fmt::Debug for TableRange<H, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableRange").finish_non_exhaustive()
    }
}
