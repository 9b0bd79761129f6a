//! [`MergeIter`]: the sorted union of several entry iterators.
//!
//! The iterator is a binary heap of the children that are positioned on an entry; the top child has the next entry in the current direction. In
//! forward direction every child is at its first entry at or after the current one, in backward direction at its last entry at or before it. A change
//! of direction seeks every other child to its position, which stays correct if a child (a memtable) has grown meanwhile. Entries with equal key and
//! seqno are returned in the order of the children.
//!
//! The heap keeps the first 8 bytes of each child's key as a number: most comparisons use only these, and do not access the child. A merge of one
//! child makes no comparisons.

use std::cmp::Ordering;

use super::{Batch, Direction, EntryIter, Next, Wanted};
use crate::codec::head;
use crate::error::Result;
use crate::types::{Kind, MAX_SEQNO, SeqNo, Slice, entry_order};

/// The position of a valid child in the order.
#[derive(Clone, Copy)]
struct HeapItem {
    /// The first bytes of the child's key. Not updated in a heap of one child, and not by a batch in forward direction: its keys precede those of all
    /// other children, so the older bytes lead to the same order.
    head: u64,
    child: usize,
}

/// The sorted union of several iterators.
pub(crate) struct MergeIter<I> {
    children: Vec<I>,
    /// The valid children, the next one in `direction` first; empty when this iterator is invalid.
    heap: Vec<HeapItem>,
    direction: Direction,
    repeats: bool,
}

impl<I: EntryIter> MergeIter<I> {
    pub(crate) fn new(children: Vec<I>) -> Self {
        let heap = Vec::with_capacity(children.len());
        Self { heap, children, direction: Direction::Forward, repeats: false }
    }

    #[inline]
    fn top(&self) -> &I {
        // Callers must use only a valid iterator, whose heap is not empty.
        &self.children[self.heap[0].child]
    }

    /// Whether `a` comes before `b` in the current direction.
    #[inline]
    fn before(&self, a: HeapItem, b: HeapItem) -> bool {
        let order = a.head.cmp(&b.head).then_with(|| {
            let (x, y) = (&self.children[a.child], &self.children[b.child]);
            entry_order((x.key(), x.seqno()), (y.key(), y.seqno())).then(a.child.cmp(&b.child))
        });
        match self.direction {
            Direction::Forward => order == Ordering::Less,
            Direction::Backward => order == Ordering::Greater,
        }
    }

    fn sift_down(&mut self, mut at: usize) {
        loop {
            let mut first = at;
            for child in [2 * at + 1, 2 * at + 2] {
                if child < self.heap.len() && self.before(self.heap[child], self.heap[first]) {
                    first = child;
                }
            }
            if first == at {
                return;
            }
            self.heap.swap(at, first);
            at = first;
        }
    }

    /// Positions all children with `place`, then orders the valid ones.
    fn rebuild(&mut self, direction: Direction, mut place: impl FnMut(usize, &mut I) -> Result<()>) -> Result<()> {
        self.heap.clear();
        self.direction = direction;
        for (index, child) in self.children.iter_mut().enumerate() {
            if let Err(error) = place(index, child) {
                self.heap.clear();
                return Err(error);
            }
            if child.valid() {
                self.heap.push(HeapItem { head: head(child.key()), child: index });
            }
        }
        for at in (0..self.heap.len() / 2).rev() {
            self.sift_down(at);
        }
        Ok(())
    }

    /// The input that has the current entry; the iterator must be valid.
    pub(crate) fn child(&self) -> usize {
        self.heap[0].child
    }

    /// In forward direction, skips the entries of the current entry's input before `place`; an empty `place` is after all keys. Afterwards `repeats`
    /// of the next entry is unknown.
    pub(crate) fn skip_to(&mut self, place: &[u8]) -> Result<()> {
        if place.is_empty() { self.leave_out_rest() } else { self.advance(|child| child.seek(place, MAX_SEQNO)) }
    }

    /// The same in backward direction: skips the entries at `place` or after it.
    pub(crate) fn skip_before(&mut self, place: &[u8]) -> Result<()> {
        if place.is_empty() { self.leave_out_rest() } else { self.advance(|child| child.seek_before(place)) }
    }

    /// Removes the current input from the heap until the next seek or turn positions all children again.
    fn leave_out_rest(&mut self) -> Result<()> {
        self.heap.swap_remove(0);
        self.sift_down(0);
        Ok(())
    }

    /// Moves the top child in `direction`; all children must already have that direction.
    fn advance(&mut self, step: impl FnOnce(&mut I) -> Result<()>) -> Result<()> {
        let (is_alone, is_tied) = (self.heap.len() == 1, self.is_tied(1) || self.is_tied(2));
        let top = &mut self.heap[0];
        let (at, child) = (top.child, &mut self.children[top.child]);
        let moved = step(child);
        if moved.is_err() {
            self.heap.clear();
            return moved;
        }
        let (valid, repeats) = (child.valid(), child.repeats());
        if valid && is_alone {
            self.repeats = repeats;
            return Ok(());
        }
        self.place_top();
        // If another child is first now, it was second before.
        let is_same = self.heap.first().is_some_and(|top| top.child == at);
        self.repeats = if is_same { repeats } else { is_tied };
        Ok(())
    }

    /// Lets the first of several children fill `batch` with keys that precede those of all others, or move to its next entry. If another child is first
    /// then, lets that one fill the batch from its current entry on.
    fn next_batch_among(&mut self, batch: &mut Batch, wanted: &Wanted<'_>) -> Result<Next> {
        let (top, is_tied) = (self.heap[0].child, self.is_tied(1) || self.is_tied(2));
        let next = match self.top_and_second() {
            Some((top, second)) => top.next_batch(batch, &wanted.short_of(Direction::Forward, second.key())),
            None => self.children[top].next_batch(batch, &Wanted::NONE),
        };
        let next = next.inspect_err(|_| self.heap.clear())?;
        if matches!(next, Next::Batch) {
            self.repeats = false;
            return Ok(next);
        }
        self.place_top();
        Ok(match next {
            Next::Entry { repeats, .. } if self.heap[0].child == top => {
                self.repeats = repeats;
                next
            }
            // If another child is first now, it was second before.
            _ => {
                self.repeats = is_tied && self.valid();
                if !self.repeats && self.fill(Direction::Forward, batch, wanted) {
                    Next::Batch
                } else {
                    Next::entry_of(self)
                }
            }
        })
    }

    /// The first child and the one that comes after it.
    fn top_and_second(&mut self) -> Option<(&mut I, &I)> {
        let (top, second) = (self.heap.first()?.child, self.second()?);
        let [top, second] = self.children.get_disjoint_mut([top, second]).ok()?;
        Some((top, second))
    }

    /// The child that comes after the top one.
    fn second(&self) -> Option<usize> {
        match self.heap[..] {
            [] | [_] => None,
            [_, a] => Some(a.child),
            [_, a, b, ..] => Some(if self.before(b, a) { b.child } else { a.child }),
        }
    }

    /// Restores the order of the heap after the top child has moved.
    fn place_top(&mut self) {
        if self.heap.len() > 1 || !self.top().valid() {
            let top = &mut self.heap[0];
            let child = &self.children[top.child];
            if child.valid() {
                top.head = head(child.key());
            } else {
                self.heap.swap_remove(0);
            }
            self.sift_down(0);
        }
    }

    /// Whether the child at this position in the heap has the same key as the first one.
    #[inline]
    fn is_tied(&self, place: usize) -> bool {
        let (Some(top), Some(other)) = (self.heap.first(), self.heap.get(place)) else { return false };
        top.head == other.head && self.children[top.child].key() == self.children[other.child].key()
    }

    /// Changes the direction and moves to the next entry in the new direction.
    #[cold]
    fn turn(&mut self, direction: Direction) -> Result<()> {
        let current = self.heap[0].child;
        let (key, seqno) = (self.key().to_vec(), self.seqno());
        self.rebuild(direction, |index, child| {
            // Among equal entries those of earlier children come first. So in forward direction an equal entry of a later child still follows, and in
            // backward direction one of an earlier child.
            let still_to_come = match direction {
                Direction::Forward => index > current,
                Direction::Backward => index < current,
            };
            if index != current {
                match direction {
                    Direction::Forward => child.seek(&key, seqno)?,
                    Direction::Backward => child.seek_for_prev(&key, seqno)?,
                }
            }
            let equal = child.valid() && child.seqno() == seqno && child.key() == key;
            match direction {
                Direction::Forward if equal && !still_to_come => child.next(),
                Direction::Backward if equal && !still_to_come => child.prev(),
                Direction::Forward | Direction::Backward => Ok(()),
            }
        })?;
        self.repeats = self.valid() && self.key() == key;
        Ok(())
    }

    fn go(&mut self, direction: Direction) -> Result<()> {
        if self.heap.is_empty() {
            Ok(())
        } else if self.direction == direction {
            match direction {
                Direction::Forward => self.advance(I::next),
                Direction::Backward => self.advance(I::prev),
            }
        } else {
            self.turn(direction)
        }
    }
}

impl<I: EntryIter> EntryIter for MergeIter<I> {
    fn valid(&self) -> bool {
        !self.heap.is_empty()
    }

    fn key(&self) -> &[u8] {
        self.top().key()
    }

    fn seqno(&self) -> SeqNo {
        self.top().seqno()
    }

    fn kind(&self) -> Kind {
        self.top().kind()
    }

    fn value(&self) -> &[u8] {
        self.top().value()
    }

    fn value_slice(&self) -> Slice {
        self.top().value_slice()
    }

    #[inline]
    fn repeats(&self) -> bool {
        self.repeats
    }

    #[inline]
    fn next_batch(&mut self, batch: &mut Batch, wanted: &Wanted<'_>) -> Result<Next> {
        match &self.heap[..] {
            [] => Ok(Next::End),
            _ if self.direction != Direction::Forward => self.next().map(|()| Next::entry_of(self)),
            [top] => {
                let next = self.children[top.child].next_batch(batch, wanted);
                self.repeats = matches!(next, Ok(Next::Entry { repeats: true, .. }));
                if !matches!(next, Ok(Next::Batch | Next::Entry { .. })) {
                    self.heap.clear();
                }
                next
            }
            _ => self.next_batch_among(batch, wanted),
        }
    }

    fn fill(&mut self, direction: Direction, batch: &mut Batch, wanted: &Wanted<'_>) -> bool {
        let is_filled = match self.heap[..] {
            _ if self.direction != direction => false,
            [] => false,
            [top] => self.children[top.child].fill(direction, batch, wanted),
            _ => self
                .top_and_second()
                .is_some_and(|(top, second)| top.fill(direction, batch, &wanted.short_of(direction, second.key()))),
        };
        if is_filled {
            self.repeats = false;
            // In forward direction the child is at an entry of the batch, so it is still first.
            if direction == Direction::Backward {
                self.place_top();
            }
        }
        is_filled
    }

    fn seek_to_first(&mut self) -> Result<()> {
        self.rebuild(Direction::Forward, |_, child| child.seek_to_first())
    }

    fn seek_to_last(&mut self) -> Result<()> {
        self.rebuild(Direction::Backward, |_, child| child.seek_to_last())
    }

    fn seek(&mut self, key: &[u8], seqno: SeqNo) -> Result<()> {
        self.rebuild(Direction::Forward, |_, child| child.seek(key, seqno))
    }

    fn seek_for_prev(&mut self, key: &[u8], seqno: SeqNo) -> Result<()> {
        self.rebuild(Direction::Backward, |_, child| child.seek_for_prev(key, seqno))
    }

    fn next(&mut self) -> Result<()> {
        self.go(Direction::Forward)
    }

    fn prev(&mut self) -> Result<()> {
        self.go(Direction::Backward)
    }
}
