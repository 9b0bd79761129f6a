//! [`Range`]: the entries that a view shows within bounds, from both ends.

use core::cmp::Ordering;
use core::ops::Bound;

use super::cursor::{End, NEWEST, OLDEST, Walk};
use super::view::View;
use crate::bounds::KeyBounds;
use crate::node::Target;
use crate::nodes::{NodeRef, Schema};

/// A place in the order of a list: a key and a version.
pub(crate) type KeyVersion = (Box<[u8]>, u64);

/// The shown entries within bounds that neither end has taken yet. An end is at the entry that it took last, and moves when it is asked for more;
/// so it sees entries that were inserted before that.
#[derive(Debug, Clone)]
pub(crate) struct Range<V> {
    view: V,
    lower: Bound<KeyVersion>,
    upper: Bound<KeyVersion>,
    front: Option<Walk>,
    back: Option<Walk>,
    spent: bool,
}

impl<'a, V: View<'a>> Range<V> {
    /// The keys within `bounds`; nothing if they are inverted.
    pub(crate) fn new(view: V, bounds: impl KeyBounds) -> Self {
        let (lower, upper) = bounds.into_bounds();
        let lower = match lower {
            Bound::Excluded(key) => Bound::Excluded((key, OLDEST)),
            lower => lower.map(|key| (key, NEWEST)),
        };
        let upper = match upper {
            Bound::Excluded(key) => Bound::Excluded((key, NEWEST)),
            upper => upper.map(|key| (key, OLDEST)),
        };
        Self::between(view, lower, upper)
    }

    /// The entries between two places.
    pub(crate) fn between(view: V, lower: Bound<KeyVersion>, upper: Bound<KeyVersion>) -> Self {
        Self { view, lower, upper, front: None, back: None, spent: false }
    }

    /// The keys that begin with `prefix`.
    pub(crate) fn prefix(view: V, prefix: &[u8]) -> Self {
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
        Self::new(view, (Bound::Included(prefix.to_vec()), upper))
    }

    /// Takes the first entry.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<V::Item> {
        if self.spent {
            return None;
        }
        let (view, lower) = (self.view, &self.lower);
        let front = self.front.get_or_insert_with(|| start(view, lower));
        let item = front.next(view);
        let node = front.node(view.list());
        let taken = self.back.as_ref().and_then(|back| back.node(view.list()));
        let is_left = |node| is_above(&self.upper, node) && taken.is_none_or(|taken| self.is_before(node, taken));
        self.spent = !node.is_some_and(is_left);
        item.filter(|_| !self.spent)
    }

    /// Takes the last entry.
    #[inline]
    pub(crate) fn next_back(&mut self) -> Option<V::Item> {
        if self.spent {
            return None;
        }
        let (view, upper) = (self.view, &self.upper);
        let back = self.back.get_or_insert_with(|| end(view, upper));
        let item = back.prev(view);
        let node = back.node(view.list());
        let taken = self.front.as_ref().and_then(|front| front.node(view.list()));
        let is_left = |node| is_below(&self.lower, node) && taken.is_none_or(|taken| self.is_before(taken, node));
        self.spent = !node.is_some_and(is_left);
        item.filter(|_| !self.spent)
    }

    /// Whether one node is before another. At a version each key is shown only once, whichever of its nodes the ends have seen.
    fn is_before(&self, a: NodeRef<'a, V::Schema>, b: NodeRef<'a, V::Schema>) -> bool {
        match a.key().cmp(b.key()) {
            Ordering::Equal => self.view.at().is_none() && a.version() > b.version(),
            order => order == Ordering::Less,
        }
    }

    /// Steps and searches of both ends.
    #[cfg(test)]
    pub(crate) fn moves(&self) -> usize {
        [&self.front, &self.back].into_iter().flatten().map(Walk::moves).sum()
    }
}

/// Before the first node within the bound.
fn start<'a, V: View<'a>>(view: V, lower: &Bound<KeyVersion>) -> Walk {
    let mut walk = Walk::new();
    match lower {
        Bound::Unbounded => walk.first(view),
        Bound::Included((key, version)) => walk.seek(view, Target { key, version: *version }, End::Included),
        Bound::Excluded((key, version)) => walk.seek(view, Target { key, version: *version }, End::Excluded),
    };
    walk
}

/// Behind the last node within the bound.
fn end<'a, V: View<'a>>(view: V, upper: &Bound<KeyVersion>) -> Walk {
    let mut walk = Walk::new();
    match upper {
        Bound::Unbounded => walk.last(view),
        Bound::Included((key, version)) => walk.seek_back(view, Target { key, version: *version }, End::Included),
        Bound::Excluded((key, version)) => walk.seek_back(view, Target { key, version: *version }, End::Excluded),
    };
    walk
}

/// The order of `node` relative to a place.
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
