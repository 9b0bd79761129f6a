//! Positions in a list that move both ways, and the stretch between two of them.

use core::cmp::Ordering;
use core::ops::Bound;

use super::stretch::{Reach, Stretch};
use crate::bounds::KeyBounds;
use crate::list::List;
use crate::list::schema::{NodeRef, Schema};
use crate::node::{NodeId, Predecessor, Target};
use crate::tuning::{LONG_WALK, STEADY_WALK};

/// Sorts before every version of its key.
const NEWEST: u64 = u64::MAX;
/// Sorts behind, or is, the last version of its key.
const OLDEST: u64 = 0;

/// A position: on a node, or nowhere. Belongs to the list it was first moved in.
#[derive(Debug, Clone)]
pub(crate) struct Position {
    at: Option<NodeId>,
    /// Steps since the walk began, as far as [`LONG_WALK`].
    steps: u32,
    /// Nodes right before `at`, if it goes back; right behind it, if it goes on by [`advance`](Self::advance).
    stretch: Stretch,
}

impl Position {
    pub(crate) fn new() -> Self {
        Self { at: None, steps: 0, stretch: Stretch::default() }
    }

    /// The node it is on.
    #[inline]
    pub(crate) fn node<'a, S: Schema>(&self, list: &'a List<S>) -> Option<NodeRef<'a, S>> {
        self.at.map(|at| list.node(at))
    }

    fn jump(&mut self, to: Option<NodeId>) {
        self.stretch.clear();
        (self.at, self.steps) = (to, 0);
    }

    /// How far to look ahead.
    fn reach(&self) -> Reach {
        match self.steps {
            ..STEADY_WALK => Reach::Near,
            STEADY_WALK..LONG_WALK => Reach::Mid,
            LONG_WALK.. => Reach::Far,
        }
    }

    fn step_back(&mut self) {
        self.at = self.stretch.pop_back();
        self.steps = (self.steps + 1).min(LONG_WALK);
    }

    pub(crate) fn seek_to_first<S: Schema>(&mut self, list: &List<S>) {
        self.jump(list.after(Predecessor::HEAD));
    }

    pub(crate) fn seek_to_last<S: Schema>(&mut self, list: &List<S>) {
        self.jump(None);
        list.last(Reach::Near, &mut self.stretch);
        self.step_back();
    }

    /// To the first node not before `target`.
    pub(crate) fn seek<S: Schema>(&mut self, list: &List<S>, target: Target<'_>) {
        self.jump(list.lower_bound(target).first);
    }

    /// To the last node not behind `target`.
    pub(crate) fn seek_for_prev<S: Schema>(&mut self, list: &List<S>, target: Target<'_>) {
        let found = list.lower_bound(target).with_key().filter(|id| list.node(*id).version() == target.version);
        match found {
            Some(_) => self.jump(found),
            None => self.seek_before(list, target),
        }
    }

    /// To the last node before `target`.
    pub(crate) fn seek_before<S: Schema>(&mut self, list: &List<S>, target: Target<'_>) {
        self.jump(None);
        list.before(target, Reach::Near, &mut self.stretch);
        self.step_back();
    }

    /// One node on; from nowhere to nowhere.
    pub(crate) fn next<S: Schema>(&mut self, list: &List<S>) {
        if let Some(at) = self.at {
            self.jump(list.after(at));
        }
    }

    /// One node back; from nowhere to nowhere. Amortised O(1) in a list at rest.
    pub(crate) fn prev<S: Schema>(&mut self, list: &List<S>) {
        let Some(node) = self.node(list) else { return };
        if self.stretch.is_empty() {
            let target = Target { key: node.key(), version: node.version() };
            list.before(target, self.reach(), &mut self.stretch);
        }
        self.step_back();
    }

    /// One node on, in a walk that only goes on. After some steps it fetches what comes next in advance: nodes linked from
    /// then on may be passed over.
    #[inline]
    pub(crate) fn advance<S: Schema>(&mut self, list: &List<S>) {
        self.at = self.stretch.pop_front().or_else(|| self.fetch(list));
        self.steps = (self.steps + 1).min(LONG_WALK);
    }

    /// The next node, where none is left of the stretch.
    fn fetch<S: Schema>(&mut self, list: &List<S>) -> Option<NodeId> {
        let at = self.at?;
        match self.reach() {
            Reach::Near => list.after(at),
            reach => {
                list.ahead(at, reach, &mut self.stretch);
                self.stretch.pop_front()
            }
        }
    }
}

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

    /// Whether the front is past the back. They need not meet on one node: the back's buffered stretch may lack a node
    /// that was inserted meanwhile and that the front stands on.
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
        if self.back.as_ref().is_some_and(|back| back.at == front.at) {
            self.spent = true;
        }
        front.advance(list);
    }

    /// Takes the last node, which `back` returned.
    pub(crate) fn pop_back<S: Schema>(&mut self, list: &List<S>) {
        let Some(back) = &mut self.back else { return };
        if self.front.as_ref().is_some_and(|front| front.at == back.at) {
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
