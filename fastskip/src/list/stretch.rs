//! Runs of consecutive nodes, fetched ahead of an iterator.
//!
//! A list that was filled in random order has its neighbours anywhere in memory: walking it costs a cache miss for each
//! node, one after the other. So a long walk is cut into stretches, whose first nodes a higher level links, and all of
//! them are walked at once. Going back works the same way: nodes link only forward, so the stretches before a place are
//! walked towards it, and taken from their end.

use super::List;
use crate::node::{HEAD, NIL, Node};
use crate::search::{Finger, Schema, Target};
use crate::tuning::{FAR, MID, NEAR, Shape};

/// Nodes in order, to be taken from either end.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stretch {
    nodes: Vec<u32>,
    taken: usize,
    /// Where stretches are collected before they are joined.
    lanes: Vec<Vec<u32>>,
}

/// How many nodes to fetch: the longer a walk has been, the longer it is likely to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// A few.
    Near,
    /// Many.
    Mid,
    /// As many as pay.
    Far,
}

impl Reach {
    /// Where stretches begin, and how many of them are walked at once.
    fn shape(self) -> Shape {
        match self {
            Self::Near => NEAR,
            Self::Mid => MID,
            Self::Far => FAR,
        }
    }
}

impl Stretch {
    pub(crate) fn clear(&mut self) {
        self.nodes.clear();
        self.taken = 0;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.nodes.len() == self.taken
    }

    /// The first node left, taken off.
    #[inline]
    pub(crate) fn pop_front(&mut self) -> Option<u32> {
        let first = self.nodes.get(self.taken).copied();
        self.taken += usize::from(first.is_some());
        first
    }

    /// The last node left, taken off.
    #[inline]
    pub(crate) fn pop_back(&mut self) -> Option<u32> {
        if self.is_empty() { None } else { self.nodes.pop() }
    }
}

impl<S: Schema> List<S> {
    /// Nodes right behind the node `from`.
    pub(crate) fn ahead(&self, from: u32, reach: Reach, stretch: &mut Stretch) {
        let Shape { level, lanes, .. } = reach.shape();
        let mut starts = vec![from];
        let mut next = self.next_on(level, from);
        while next != NIL && starts.len() < lanes {
            starts.push(next);
            next = self.next(next, level);
        }
        self.walk(&starts, next, NIL, stretch);
        stretch.taken = 1;
    }

    /// The first node on `level` that is behind the node `from`, or NIL.
    fn next_on(&self, level: usize, from: u32) -> u32 {
        let node = self.node(from);
        let top = self.levels() - 1;
        if level > top {
            return NIL;
        }
        let target = Target { key: node.key(), version: node.version() };
        let mut finger = Finger::<S>::new(self.storage(), target, top);
        loop {
            let next = finger.walk().link.to;
            if next == from {
                return self.next(from, level);
            }
            if finger.level() == level || !finger.descend() {
                return next;
            }
        }
    }

    /// The nodes right before `target`. Expected O(log n), and O(1) for each of them.
    pub(crate) fn before(&self, target: Target<'_>, reach: Reach, stretch: &mut Stretch) {
        let shape = reach.shape();
        let mut finger = Finger::<S>::new(self.storage(), target, self.levels() - 1);
        let (mut from, mut start) = (HEAD, HEAD);
        loop {
            finger.walk();
            if finger.level() == shape.outer {
                from = finger.node();
            }
            if finger.level() == shape.level {
                start = finger.node();
            }
            if !finger.descend() {
                return self.up_to(from, start, finger.node(), shape, stretch);
            }
        }
    }

    /// The last nodes of the list.
    pub(crate) fn last(&self, reach: Reach, stretch: &mut Stretch) {
        let shape = reach.shape();
        let (mut from, mut start, mut at) = (HEAD, HEAD, HEAD);
        for level in (0..self.levels()).rev() {
            loop {
                let next = self.next(at, level);
                if next == NIL {
                    break;
                }
                at = next;
            }
            if level == shape.outer {
                from = at;
            }
            if level == shape.level {
                start = at;
            }
        }
        self.up_to(from, start, at, shape, stretch);
    }

    /// The nodes up to `last`. On the shape's level, `from` comes first, and `start` is the last one not behind `last`.
    fn up_to(&self, from: u32, start: u32, last: u32, shape: Shape, stretch: &mut Stretch) {
        let mut starts = vec![from];
        let mut at = from;
        while at != start {
            at = self.next(at, shape.level);
            starts.push(at);
        }
        let starts = &starts[starts.len().saturating_sub(shape.lanes)..];
        self.walk(starts, NIL, last, stretch);
        // The head is no node.
        stretch.taken = usize::from(starts[0] == HEAD);
    }

    /// The first of `starts` and all nodes behind it, up to `last`, or else up to the one before `until`.
    fn walk(&self, starts: &[u32], until: u32, last: u32, stretch: &mut Stretch) {
        let ends = starts.iter().copied().skip(1).chain([until]);
        stretch.lanes.resize_with(starts.len().max(stretch.lanes.len()), Vec::new);
        let mut lanes: Vec<_> = starts.iter().zip(ends).zip(&mut stretch.lanes).collect();
        for ((start, _), nodes) in &mut lanes {
            nodes.clear();
            nodes.push(**start);
        }
        let mut turn = 0;
        while !lanes.is_empty() {
            let ((_, until), nodes) = &mut lanes[turn];
            let next = nodes.last().map_or(NIL, |&at| if at == last { NIL } else { self.after(at) });
            if next == *until || next == NIL {
                lanes.swap_remove(turn);
            } else {
                self.prefetch(next);
                nodes.push(next);
                turn += 1;
            }
            if turn >= lanes.len() {
                turn = 0;
            }
        }
        stretch.clear();
        stretch.lanes[..starts.len()].iter().for_each(|nodes| stretch.nodes.extend(nodes));
    }

    /// Asks for what an iterator reads of the node `off`: its link, its key, and the beginning of its value.
    fn prefetch(&self, off: u32) {
        self.storage().prefetch(off);
        // The last nodes of the widest range have no line behind theirs; it is only a hint.
        self.storage().prefetch(off.saturating_add(8));
    }

    fn next(&self, off: u32, level: usize) -> u32 {
        // SAFETY: the head, or reached at this level or above (I2).
        unsafe { Node { storage: self.storage(), off }.next(level) }.to
    }
}
