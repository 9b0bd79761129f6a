//! Runs of consecutive nodes, fetched ahead of an iterator.
//!
//! A list that was filled in random order has its neighbours anywhere in memory: walking it costs a cache miss for each
//! node, one after the other. So a long walk is cut into stretches, whose first nodes a higher level links, and all of
//! them are walked at once. Going back works the same way: nodes link only forward, so the stretches before a place are
//! walked towards it, and taken from their end.

use super::finger::Finger;
use crate::list::List;
use crate::list::schema::Schema;
use crate::node::{Node, NodeId, Predecessor, Target};
use crate::tuning::{FAR, MID, NEAR, Shape};

/// Nodes in order, to be taken from either end.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stretch {
    nodes: Vec<Predecessor>,
    taken: usize,
    /// Where stretches are collected before they are joined.
    lanes: Vec<Vec<Predecessor>>,
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
    pub(crate) fn pop_front(&mut self) -> Option<NodeId> {
        let first = self.nodes.get(self.taken)?.node();
        self.taken += 1;
        first
    }

    /// The last node left, taken off.
    #[inline]
    pub(crate) fn pop_back(&mut self) -> Option<NodeId> {
        if self.is_empty() { None } else { self.nodes.pop()?.node() }
    }
}

impl<S: Schema> List<S> {
    /// Nodes right behind the node `from`.
    pub(crate) fn ahead(&self, from: NodeId, reach: Reach, stretch: &mut Stretch) {
        let Shape { level, lanes, .. } = reach.shape();
        let mut starts = vec![from.into()];
        let mut next = self.next_on(level, from);
        while let Some(node) = next.filter(|_| starts.len() < lanes) {
            starts.push(node.into());
            next = self.next(node, level);
        }
        self.walk(&starts, next, None, stretch);
        stretch.taken = 1;
    }

    /// The first node on `level` that is behind the node `from`.
    fn next_on(&self, level: usize, from: NodeId) -> Option<NodeId> {
        let node = self.node(from);
        let top = self.levels() - 1;
        if level > top {
            return None;
        }
        let target = Target { key: node.key(), version: node.version() };
        let mut finger = Finger::<S>::new(self.storage(), target, top);
        loop {
            let next = finger.walk().link.to;
            if next == Some(from) {
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
        let (mut from, mut start) = (Predecessor::HEAD, Predecessor::HEAD);
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
        let [mut from, mut start, mut at] = [Predecessor::HEAD; 3];
        for level in (0..self.levels()).rev() {
            while let Some(next) = self.next(at, level) {
                at = next.into();
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
    fn up_to(&self, from: Predecessor, start: Predecessor, last: Predecessor, shape: Shape, stretch: &mut Stretch) {
        let mut starts = vec![from];
        let mut at = from;
        while at != start {
            let Some(next) = self.next(at, shape.level) else { break };
            at = next.into();
            starts.push(at);
        }
        let starts = &starts[starts.len().saturating_sub(shape.lanes)..];
        self.walk(starts, None, Some(last), stretch);
        // The head is no node.
        stretch.taken = usize::from(starts[0] == Predecessor::HEAD);
    }

    /// The first of `starts` and all nodes behind it, up to `last`, or else up to the one before `until`.
    fn walk(&self, starts: &[Predecessor], until: Option<NodeId>, last: Option<Predecessor>, stretch: &mut Stretch) {
        let ends = starts.iter().skip(1).map(|start| start.node()).chain([until]);
        stretch.lanes.resize_with(starts.len().max(stretch.lanes.len()), Vec::new);
        let mut lanes: Vec<_> = starts.iter().zip(ends).zip(&mut stretch.lanes).collect();
        for ((start, _), nodes) in &mut lanes {
            nodes.clear();
            nodes.push(**start);
        }
        let mut turn = 0;
        while !lanes.is_empty() {
            let ((_, until), nodes) = &mut lanes[turn];
            let at = nodes.last().copied().filter(|at| Some(*at) != last);
            let next = at.and_then(|at| self.after(at)).filter(|next| Some(*next) != *until);
            if let Some(next) = next {
                Node::new(self.storage(), next).prefetch_entry();
                nodes.push(next.into());
                turn += 1;
            } else {
                lanes.swap_remove(turn);
            }
            if turn >= lanes.len() {
                turn = 0;
            }
        }
        stretch.clear();
        stretch.lanes[..starts.len()].iter().for_each(|nodes| stretch.nodes.extend(nodes));
    }

    fn next(&self, at: impl Into<Predecessor>, level: usize) -> Option<NodeId> {
        // SAFETY: the head, or reached at this level or above (I2).
        unsafe { Node::new(self.storage(), at).next(level) }.to
    }
}
