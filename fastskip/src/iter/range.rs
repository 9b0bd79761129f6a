//! Iteration over what a view shows within bounds, from both ends: [`Ends`], and [`Range`] over a borrowed table.

use core::cmp::Ordering;
use core::ops::{Bound, RangeBounds};

use super::cursor::{End, NEWEST, OLDEST, Walk};
use super::view::View;
use crate::bounds::KeyBounds;
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
    front: Option<Walk>,
    back: Option<Walk>,
}

impl Ends {
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
        Self { lower, upper, front: None, back: None }
    }

    /// What lies between two places.
    pub(crate) fn between<K: AsRef<[u8]>>(bounds: &impl RangeBounds<(K, u64)>) -> Self {
        let place = |bound: Bound<&(K, u64)>| bound.map(|(key, version)| (Box::from(key.as_ref()), *version));
        Self { lower: place(bounds.start_bound()), upper: place(bounds.end_bound()), front: None, back: None }
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
    #[inline]
    pub(crate) fn next<'a, V: View<'a>>(&mut self, list: &'a List<V::Schema>, view: V) -> Option<V::Item> {
        let front = self.front.get_or_insert_with(|| start(list, view, &self.lower));
        let item = front.next(Some(list), view);
        let node = front.node(list)?;
        let taken = self.back.as_ref().and_then(|back| back.node(list));
        let is_left = is_above(&self.upper, node) && taken.is_none_or(|taken| is_before(view, node, taken));
        item.filter(|_| is_left)
    }

    /// Takes the last entry.
    #[inline]
    pub(crate) fn next_back<'a, V: View<'a>>(&mut self, list: &'a List<V::Schema>, view: V) -> Option<V::Item> {
        let back = self.back.get_or_insert_with(|| end(list, view, &self.upper));
        let item = back.prev(Some(list), view);
        let node = back.node(list)?;
        let taken = self.front.as_ref().and_then(|front| front.node(list));
        let is_left = is_below(&self.lower, node) && taken.is_none_or(|taken| is_before(view, taken, node));
        item.filter(|_| is_left)
    }

    /// Steps and searches of both ends.
    #[cfg(test)]
    fn moves(&self) -> usize {
        [&self.front, &self.back].into_iter().flatten().map(Walk::moves).sum()
    }
}

/// Whether one node is before another. At a version a key is shown once, whichever of its nodes the ends have seen.
fn is_before<'a, V: View<'a>>(view: V, a: NodeRef<'a, V::Schema>, b: NodeRef<'a, V::Schema>) -> bool {
    match a.key().cmp(b.key()) {
        Ordering::Equal => view.at().is_none() && a.version() > b.version(),
        order => order == Ordering::Less,
    }
}

/// Before the first node within the bound.
fn start<'a, V: View<'a>>(list: &'a List<V::Schema>, view: V, lower: &Bound<KeyVersion>) -> Walk {
    let (mut walk, list) = (Walk::new(), Some(list));
    match lower {
        Bound::Unbounded => walk.first(list, view),
        Bound::Included((key, version)) => walk.seek(list, view, Target { key, version: *version }, End::Included),
        Bound::Excluded((key, version)) => walk.seek(list, view, Target { key, version: *version }, End::Excluded),
    };
    walk
}

/// Behind the last node within the bound.
fn end<'a, V: View<'a>>(list: &'a List<V::Schema>, view: V, upper: &Bound<KeyVersion>) -> Walk {
    let (mut walk, list) = (Walk::new(), Some(list));
    match upper {
        Bound::Unbounded => walk.last(list, view),
        Bound::Included((key, version)) => walk.seek_back(list, view, Target { key, version: *version }, End::Included),
        Bound::Excluded((key, version)) => walk.seek_back(list, view, Target { key, version: *version }, End::Excluded),
    };
    walk
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
    #[inline]
    pub(crate) fn next(&mut self) -> Option<V::Item> {
        let list = self.list.or_else(|| self.begin())?;
        let item = self.ends.next(list, self.view);
        if item.is_none() {
            self.list = None;
        }
        item
    }

    /// Takes what comes last.
    #[inline]
    pub(crate) fn next_back(&mut self) -> Option<V::Item> {
        let list = self.list.or_else(|| self.begin())?;
        let item = self.ends.next_back(list, self.view);
        if item.is_none() {
            self.list = None;
        }
        item
    }

    #[cold]
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
fn order<S: Schema>(node: NodeRef<'_, S>, (key, version): &KeyVersion) -> Ordering {
    node.key().cmp(key).then_with(|| version.cmp(&node.version()))
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

            #[inline]
            fn next(&mut self) -> Option<$item<'a>> {
                self.0.next()
            }
        }

        impl DoubleEndedIterator for $name<'_> {
            #[inline]
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
