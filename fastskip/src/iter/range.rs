//! Iteration over what a view shows within bounds, from both ends: [`Ends`], and [`Range`] over a borrowed table.

use core::cmp::Ordering;
use core::ops::{Bound, RangeBounds};

use super::cursor::{End, NEWEST, OLDEST, Walk};
use super::view::View;
use crate::bounds::KeyBounds;
use crate::key;
use crate::list::{LazyList, List};
use crate::node::Target;
use crate::nodes::{NodeRef, Schema};

/// A place in the order of a list: a key and a version.
pub(crate) type KeyVersion = (Box<[u8]>, u64);

/// The shown entries within bounds that neither end has taken yet. An end is at the entry that it took last, and moves when it is asked for more;
/// so it sees entries that were inserted before that.
#[derive(Debug, Clone)]
pub(crate) struct Ends {
    lower: Bound<KeyVersion>,
    upper: Bound<KeyVersion>,
    front: Walk,
    back: Walk,
}

impl Ends {
    const fn of(lower: Bound<KeyVersion>, upper: Bound<KeyVersion>) -> Self {
        Self { lower, upper, front: Walk::unplaced(), back: Walk::unplaced() }
    }

    /// The keys within `bounds`; nothing if they are inverted.
    pub(crate) fn new(bounds: impl KeyBounds) -> Self {
        let (lower, upper) = bounds.into_bounds();
        let lower = match lower {
            Bound::Excluded(key) => Bound::Excluded((key, OLDEST)),
            lower => lower.map(|key| (key, NEWEST)),
        };
        let upper = match upper {
            Bound::Excluded(key) => Bound::Excluded((key, NEWEST)),
            upper => upper.map(|key| (key, OLDEST)),
        };
        Self::of(lower, upper)
    }

    /// What lies between two places.
    pub(crate) fn between<K: AsRef<[u8]>>(bounds: &impl RangeBounds<(K, u64)>) -> Self {
        let place = |bound: Bound<&(K, u64)>| bound.map(|(key, version)| (Box::from(key.as_ref()), *version));
        Self::of(place(bounds.start_bound()), place(bounds.end_bound()))
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

    /// Takes the first entry.
    #[inline(always)]
    pub(crate) fn next<'a, V: View<'a>>(&mut self, list: &'a List<V::Schema>, view: V) -> Option<V::Item> {
        if !self.front.is_under_way() {
            self.place_front(list, view);
        }
        let item = self.front.next(Some(list), view)?;
        let is_last = matches!(self.upper, Bound::Unbounded) && self.back.is_unplaced();
        (is_last || self.is_front_left(list, view)).then_some(item)
    }

    /// Takes the last entry.
    #[inline(always)]
    pub(crate) fn next_back<'a, V: View<'a>>(&mut self, list: &'a List<V::Schema>, view: V) -> Option<V::Item> {
        if !self.back.is_under_way() {
            self.place_back(list, view);
        }
        let item = self.back.prev(Some(list), view)?;
        let is_first = matches!(self.lower, Bound::Unbounded) && self.front.is_unplaced();
        (is_first || self.is_back_left(list, view)).then_some(item)
    }

    /// Places the front before the first node within the bound, before its first step.
    #[cold]
    #[inline(never)]
    fn place_front<'a, V: View<'a>>(&mut self, list: &'a List<V::Schema>, view: V) {
        if self.front.is_unplaced() {
            self.front = Walk::new();
            place(&self.lower, |target, end| _ = self.front.seek(Some(list), view, target, end));
        }
    }

    /// Places the back behind the last node within the bound, before its first step.
    #[cold]
    #[inline(never)]
    fn place_back<'a, V: View<'a>>(&mut self, list: &'a List<V::Schema>, view: V) {
        if self.back.is_unplaced() {
            self.back = Walk::behind();
            place(&self.upper, |target, end| _ = self.back.seek_back(Some(list), view, target, end));
        }
    }

    /// Whether what the front has come to is within the bound, and was not taken by the back.
    #[inline(never)]
    fn is_front_left<'a, V: View<'a>>(&self, list: &'a List<V::Schema>, view: V) -> bool {
        let taken = self.back.node(list);
        let is_left = |node| is_above(&self.upper, node) && taken.is_none_or(|taken| is_before(view, node, taken));
        self.front.node(list).is_some_and(is_left)
    }

    /// The same for the back.
    #[inline(never)]
    fn is_back_left<'a, V: View<'a>>(&self, list: &'a List<V::Schema>, view: V) -> bool {
        let taken = self.front.node(list);
        let is_left = |node| is_below(&self.lower, node) && taken.is_none_or(|taken| is_before(view, taken, node));
        self.back.node(list).is_some_and(is_left)
    }

    /// Steps and searches of both ends.
    #[cfg(test)]
    fn moves(&self) -> usize {
        self.front.moves() + self.back.moves()
    }
}

/// Whether one node is before another. At a version a key is shown once, whichever of its nodes the ends have seen.
fn is_before<'a, V: View<'a>>(view: V, a: NodeRef<'a, V::Schema>, b: NodeRef<'a, V::Schema>) -> bool {
    match key::order(a.key(), b.key()) {
        Ordering::Equal => view.at().is_none() && a.version() > b.version(),
        order => order == Ordering::Less,
    }
}

/// Seeks a bound, if there is one.
fn place(bound: &Bound<KeyVersion>, seek: impl FnOnce(Target<'_>, End)) {
    match bound {
        Bound::Unbounded => {}
        Bound::Included((key, version)) => seek(Target { key, version: *version }, End::Included),
        Bound::Excluded((key, version)) => seek(Target { key, version: *version }, End::Excluded),
    }
}

/// Two ends, and the table that they borrow.
#[derive(Debug, Clone)]
pub(crate) struct Range<'a, V: View<'a>> {
    /// The table, until the first step: by then it may be made.
    table: Option<&'a LazyList<V::Schema>>,
    /// From the first step on, as long as anything is left.
    list: Option<&'a List<V::Schema>>,
    view: V,
    ends: Ends,
}

impl<'a, V: View<'a>> Range<'a, V> {
    pub(crate) fn new(table: &'a LazyList<V::Schema>, view: V, ends: Ends) -> Self {
        Self { table: Some(table), list: None, view, ends }
    }

    /// Takes what comes first.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> Option<V::Item> {
        let list = self.list.or_else(|| self.begin())?;
        let item = self.ends.next(list, self.view);
        if item.is_none() {
            self.list = None;
        }
        item
    }

    /// Takes what comes last.
    #[inline(always)]
    pub(crate) fn next_back(&mut self) -> Option<V::Item> {
        let list = self.list.or_else(|| self.begin())?;
        let item = self.ends.next_back(list, self.view);
        if item.is_none() {
            self.list = None;
        }
        item
    }

    #[cold]
    #[inline(never)]
    fn begin(&mut self) -> Option<&'a List<V::Schema>> {
        self.list = self.table.take()?.made();
        self.list
    }

    /// Steps and searches of both ends.
    #[cfg(test)]
    pub(crate) fn moves(&self) -> usize {
        self.ends.moves()
    }
}

/// Where `node` is, seen from a place.
fn order<S: Schema>(node: NodeRef<'_, S>, (at_key, version): &KeyVersion) -> Ordering {
    key::order(node.key(), at_key).then_with(|| version.cmp(&node.version()))
}

fn is_above<S: Schema>(upper: &Bound<KeyVersion>, node: NodeRef<'_, S>) -> bool {
    match upper {
        Bound::Unbounded => true,
        Bound::Included(last) => order(node, last).is_le(),
        Bound::Excluded(end) => order(node, end).is_lt(),
    }
}

fn is_below<S: Schema>(lower: &Bound<KeyVersion>, node: NodeRef<'_, S>) -> bool {
    match lower {
        Bound::Unbounded => true,
        Bound::Included(first) => order(node, first).is_ge(),
        Bound::Excluded(before) => order(node, before).is_gt(),
    }
}

/// Implements the iterator traits for a type whose only field is a [`Range`].
macro_rules! impl_range_iterator {
    ($name:ident, $item:ident) => {
        impl<'a> Iterator for $name<'a> {
            type Item = $item<'a>;

            // Where a loop calls this, and the item stays in registers, the processor sees more entries ahead: a third of a scan's time.
            #[inline(always)]
            fn next(&mut self) -> Option<$item<'a>> {
                self.0.next()
            }
        }

        impl DoubleEndedIterator for $name<'_> {
            #[inline(always)]
            fn next_back(&mut self) -> Option<Self::Item> {
                self.0.next_back()
            }
        }

        impl core::iter::FusedIterator for $name<'_> {}

        impl core::fmt::Debug for $name<'_> {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }
    };
}

pub(crate) use impl_range_iterator;
