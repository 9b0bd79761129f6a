//! Searches a list: one target at a time, or many at once.

use super::finger::{Finger, Look, Stop};
use super::splice::{Splice, Step};
use crate::list::List;
use crate::list::schema::Schema;
use crate::node::{Link, MAX_HEIGHT, Node, NodeId, Predecessor, Target};
use crate::sync::Ordering;
use crate::tuning::{LANES, LARGE_WORDS};

/// One of several searches in flight. It stops wherever it would miss the cache, and asks for the line instead.
struct Lane<'a, 'k, S> {
    index: usize,
    finger: Finger<'a, 'k, S>,
    /// A link whose node's key is on its way.
    tie: Option<(Link, NodeId)>,
}

impl<S: Schema> Lane<'_, '_, S> {
    /// Goes on to the next line that may not be in cache, or to the end of the search.
    #[inline(always)]
    fn advance(&mut self, note: &mut impl FnMut(usize, usize, Step)) -> Option<SeekResult> {
        let finger = &mut self.finger;
        let mut stop = match self.tie.take() {
            None => None,
            Some((link, next)) => match finger.settle(link, next) {
                None => {
                    finger.prefetch_tower();
                    return None;
                }
                stop => stop,
            },
        };
        loop {
            let here = match stop.take() {
                Some(stop) => stop,
                None => match finger.look() {
                    Look::Past(link) => Stop { link, found: false },
                    Look::Moved => {
                        finger.prefetch_tower();
                        return None;
                    }
                    Look::Tie(link, next) => {
                        finger.prefetch_key(next);
                        self.tie = Some((link, next));
                        return None;
                    }
                },
            };
            note(self.index, finger.level(), Step::of(finger, here.link));
            if here.found || !finger.descend() {
                return Some(SeekResult::of(finger, here));
            }
        }
    }
}

/// What a search found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SeekResult {
    /// The first node not before the target.
    pub(crate) first: Option<NodeId>,
    /// Whether that is exactly the target.
    pub(crate) found: bool,
    /// Whether it has the target's key.
    pub(crate) has_key: bool,
}

impl SeekResult {
    /// The first node not before the target, if it has the target's key.
    #[inline]
    pub(crate) fn with_key(self) -> Option<NodeId> {
        self.first.filter(|_| self.has_key)
    }

    /// `Err` is the node that is exactly the target.
    #[inline]
    pub(super) fn absent(self) -> Result<(), NodeId> {
        self.first.filter(|_| self.found).map_or(Ok(()), Err)
    }

    fn of<S: Schema>(finger: &Finger<'_, '_, S>, stop: Stop) -> Self {
        Self { first: stop.link.to, found: stop.found, has_key: finger.has_key(stop.link.to) }
    }
}

impl<S: Schema> List<S> {
    pub(super) fn levels(&self) -> usize {
        // Relaxed: a stale hint begins a search lower, which is slower and not wrong.
        self.levels.load(Ordering::Relaxed) as usize
    }

    /// The level where a search for a place begins: one above those in use, so that it may come into use.
    pub(in crate::list) fn top(&self) -> usize {
        self.levels().min(MAX_HEIGHT - 1)
    }

    /// Searches `target` from `top` down, and tells `note` where each walk along a level ended.
    #[inline(always)]
    fn descend(&self, target: Target<'_>, top: usize, mut note: impl FnMut(usize, Step)) -> SeekResult {
        let mut finger = Finger::<S>::new(self.storage(), target, top);
        loop {
            let stop = finger.walk();
            note(finger.level(), Step::of(&finger, stop.link));
            if stop.found || !finger.descend() {
                return SeekResult::of(&finger, stop);
            }
        }
    }

    /// The first node not before `target`, and how it compares.
    #[inline]
    pub(crate) fn lower_bound(&self, target: Target<'_>) -> SeekResult {
        self.descend(target, self.levels() - 1, |_, _| ())
    }

    /// Where `target` belongs at every level in use and the one above. `Err` is the node that already stands there.
    #[inline]
    pub(super) fn search(&self, target: Target<'_>, splice: &mut Splice) -> Result<(), NodeId> {
        splice.top = self.top();
        self.descend(target, splice.top, |level, step| splice.steps[level] = step).absent()
    }

    /// Searches `targets` at once, so that their cache misses overlap; `note` gets an index into them, a level, and where the
    /// walk along it ended, and `landed` an index and what was found. No order is kept.
    pub(super) fn descend_many<'k>(
        &self,
        targets: impl Iterator<Item = Target<'k>>,
        top: usize,
        mut note: impl FnMut(usize, usize, Step),
        mut landed: impl FnMut(usize, SeekResult),
    ) {
        let start = |(index, target)| Lane { index, finger: Finger::new(self.storage(), target, top), tie: None };
        let mut waiting = targets.enumerate().map(start);
        let mut lanes: Vec<Lane<'_, 'k, S>> = waiting.by_ref().take(LANES).collect();
        let mut turn = 0;
        while let Some(lane) = lanes.get_mut(turn) {
            let found = lane.advance(&mut note);
            if let Some(found) = found {
                landed(lane.index, found);
                match waiting.next() {
                    Some(next) => *lane = next,
                    None => drop(lanes.swap_remove(turn)),
                }
            } else {
                turn += 1;
            }
            if turn >= lanes.len() {
                turn = 0;
            }
        }
    }

    /// [`lower_bound`](Self::lower_bound) of each target, told to `landed` with its index, in any order.
    pub(crate) fn lower_bounds(&self, targets: &[Target<'_>], mut landed: impl FnMut(usize, SeekResult)) {
        if self.is_large() {
            self.descend_many(targets.iter().copied(), self.levels() - 1, |_, _, _| (), landed);
        } else {
            targets.iter().enumerate().for_each(|(index, &target)| landed(index, self.lower_bound(target)));
        }
    }

    /// Whether searches miss the cache so often that doing many at once pays.
    pub(in crate::list) fn is_large(&self) -> bool {
        self.arena.handed_out() >= LARGE_WORDS
    }

    /// The node behind `at` in order.
    #[inline]
    pub(crate) fn after(&self, at: impl Into<Predecessor>) -> Option<NodeId> {
        // SAFETY: the head, or a linked node; every node is linked at level 0.
        unsafe { Node::new(self.storage(), at).next(0) }.to
    }
}
