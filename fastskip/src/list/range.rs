//! The nodes within bounds, from both ends.

use core::cmp::Ordering;
use core::ops::Bound;

use super::List;
use super::position::Position;
use super::schema::{NodeRef, Schema};
use crate::bounds::KeyBounds;
use crate::node::Target;

/// Sorts before every version of its key.
const NEWEST: u64 = u64::MAX;
/// Sorts behind, or is, the last version of its key.
const OLDEST: u64 = 0;

/// The nodes within bounds that neither end has taken yet. Both ends are started when they are first looked at.
#[derive(Debug, Clone)]
pub(crate) struct RangeIter {
    lower: Bound<Box<[u8]>>,
    upper: Bound<Box<[u8]>>,
    front: Option<Position>,
    back: Option<Position>,
    spent: bool,
}

impl RangeIter {
    /// Everything within `bounds`; nothing if they are inverted.
    pub(crate) fn new(bounds: impl KeyBounds) -> Self {
        let (lower, upper) = bounds.into_bounds();
        Self { lower, upper, front: None, back: None, spent: false }
    }

    /// Every key.
    pub(crate) fn all() -> Self {
        Self::new(..)
    }

    /// The keys that begin with `prefix`.
    pub(crate) fn prefix(prefix: &[u8]) -> Self {
        let mut next = prefix.to_vec();
        while next.pop_if(|last| *last == u8::MAX).is_some() {}
        let upper = match next.last_mut() {
            Some(last) => {
                *last += 1;
                Bound::Excluded(next)
            }
            None => Bound::Unbounded,
        };
        Self::new((Bound::Included(prefix.to_vec()), upper))
    }

    /// The first node left.
    pub(crate) fn front<'a, S: Schema>(&mut self, list: &'a List<S>) -> Option<NodeRef<'a, S>> {
        if self.spent {
            return None;
        }
        let lower = &self.lower;
        let front = self.front.get_or_insert_with(|| Self::start(list, lower));
        let node = front.node(list).filter(|node| is_below(node.key(), &self.upper));
        self.spent = node.is_none() || self.have_crossed(list);
        node.filter(|_| !self.spent)
    }

    /// The last node left.
    pub(crate) fn back<'a, S: Schema>(&mut self, list: &'a List<S>) -> Option<NodeRef<'a, S>> {
        if self.spent {
            return None;
        }
        let upper = &self.upper;
        let back = self.back.get_or_insert_with(|| Self::end(list, upper));
        let node = back.node(list).filter(|node| is_above(node.key(), &self.lower));
        self.spent = node.is_none() || self.have_crossed(list);
        node.filter(|_| !self.spent)
    }

    /// Whether the front is past the back. They need not meet on one node: what the back has fetched may lack a node that was
    /// inserted meanwhile and that the front stands on.
    fn have_crossed<S: Schema>(&self, list: &List<S>) -> bool {
        let (Some(front), Some(back)) = (&self.front, &self.back) else { return false };
        let (Some(first), Some(last)) = (front.node(list), back.node(list)) else { return true };
        let order = first.key().cmp(last.key()).then_with(|| last.version().cmp(&first.version()));
        order == Ordering::Greater
    }

    /// Takes the first node, which `front` returned.
    pub(crate) fn pop_front<S: Schema>(&mut self, list: &List<S>) {
        let Some(front) = &mut self.front else { return };
        // Where the ends meet, one of them takes the last node.
        if self.back.as_ref().is_some_and(|back| back.is_at(front)) {
            self.spent = true;
        }
        front.next(list);
    }

    /// Takes the last node, which `back` returned.
    pub(crate) fn pop_back<S: Schema>(&mut self, list: &List<S>) {
        let Some(back) = &mut self.back else { return };
        if self.front.as_ref().is_some_and(|front| front.is_at(back)) {
            self.spent = true;
        }
        back.prev(list);
    }

    fn start<S: Schema>(list: &List<S>, lower: &Bound<Box<[u8]>>) -> Position {
        let mut position = Position::new();
        match lower {
            Bound::Unbounded => position.seek_to_first(list),
            Bound::Included(key) => position.seek(list, Target { key, version: NEWEST }),
            Bound::Excluded(key) => {
                position.seek(list, Target { key, version: OLDEST });
                if position.node(list).is_some_and(|node| node.key() == &**key) {
                    position.next(list);
                }
            }
        }
        position
    }

    fn end<S: Schema>(list: &List<S>, upper: &Bound<Box<[u8]>>) -> Position {
        let mut position = Position::new();
        match upper {
            Bound::Unbounded => position.seek_to_last(list),
            Bound::Included(key) => position.seek_for_prev(list, Target { key, version: OLDEST }),
            Bound::Excluded(key) => position.seek_before(list, Target { key, version: NEWEST }),
        }
        position
    }
}

fn is_below(key: &[u8], upper: &Bound<Box<[u8]>>) -> bool {
    match upper {
        Bound::Unbounded => true,
        Bound::Included(last) => key <= &**last,
        Bound::Excluded(end) => key < &**end,
    }
}

fn is_above(key: &[u8], lower: &Bound<Box<[u8]>>) -> bool {
    match lower {
        Bound::Unbounded => true,
        Bound::Included(first) => key >= &**first,
        Bound::Excluded(before) => key > &**before,
    }
}
