//! The core of cursors and ranges: a position that stops only at nodes that are visible to a reader.
//!
//! At a version, a forward walk shows the first node of a key that is not too new, and skips the key's older nodes. A backward walk meets the nodes
//! of a key from old to new, so it shows the last one that is not too new. A key may have any number of hidden nodes: after [`HIDDEN_WALK`] of them
//! in a row, the walk moves on by a search.

use super::position::Position;
use super::source::TableSource;
use crate::list::List;
use crate::node::{NodeRef, Schema, Target};
use crate::tuning::HIDDEN_WALK;

/// The version that sorts before every version of a key.
pub(super) const NEWEST: u64 = u64::MAX;
/// The version that sorts at or after the last version of a key.
pub(super) const OLDEST: u64 = 0;

/// The end of the list towards which a step leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Towards {
    First,
    Last,
}

/// The place of a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// On no node: the end of a range before its first step.
    Unplaced,
    /// Before the first shown node: a step forward leads to it.
    Before,
    /// On a node that a search found. A step in this direction returns the node and does not move.
    Found(Towards),
    /// On the node that the last step returned.
    Taken,
    /// The same, in a cursor with bounds: its next step has to look at them.
    TakenWithin,
    /// After the last shown node: a step back leads to it.
    After,
    /// On no node, permanently: the range has no more entries.
    Finished,
}

/// Whether a search may end at its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// It may end there.
    Included,
    /// It must go past its target.
    Excluded,
}

/// A walk over a table as a reader sees it at a point; all calls must pass the same point. Each method that moves returns the entry that is reached.
#[derive(Debug, Clone)]
pub(super) struct Walk {
    position: Position,
    pub(super) place: Place,
}

impl Walk {
    pub(super) const fn new(place: Place) -> Self {
        Self { position: Position::new(), place }
    }

    /// The node that the walk is on.
    #[inline]
    pub(super) fn node<'a, S: Schema>(&self, list: &'a List<S>) -> Option<NodeRef<'a, S>> {
        self.position.node(list)
    }

    /// The entry that the walk is on.
    #[inline]
    pub(super) fn item<'a, T: TableSource>(&self, table: &'a T, at: T::Point) -> Option<T::Item<'a>> {
        table.show(self.node(table.list()?)?, at)
    }

    /// Moves to an end of the list, because no node is visible. A node that becomes visible later lies on the way back from there.
    fn end_up<I>(&mut self, place: Place) -> Option<I> {
        self.place = place;
        None
    }

    pub(super) fn first<'a, T: TableSource>(&mut self, table: &'a T, at: T::Point) -> Option<T::Item<'a>> {
        let Some(list) = table.list() else { return self.end_up(Place::Before) };
        self.position.seek_to_first(list);
        self.settle_on(table, at, Place::Found(Towards::Last)).or_else(|| self.end_up(Place::Before))
    }

    pub(super) fn last<'a, T: TableSource>(&mut self, table: &'a T, at: T::Point) -> Option<T::Item<'a>> {
        let Some(list) = table.list() else { return self.end_up(Place::After) };
        self.position.seek_to_last(list);
        self.settle_back(table, at, T::version(at), Place::Found(Towards::First)).or_else(|| self.end_up(Place::After))
    }

    /// Moves to the first visible node at or behind `target`.
    pub(super) fn seek<'a, T: TableSource>(
        &mut self,
        table: &'a T,
        at: T::Point,
        target: Target<'_>,
        end: End,
    ) -> Option<T::Item<'a>> {
        let Some(list) = table.list() else { return self.end_up(Place::After) };
        let found = Place::Found(Towards::Last);
        self.position.seek(list, Target { version: T::version(at).unwrap_or(target.version), ..target });
        let item = self.settle_on(table, at, found);
        // The visible node of the target's key may be newer than the target, or the target itself.
        let is_before = |version| version > target.version || version == target.version && end == End::Excluded;
        match self.node(list) {
            Some(node) if is_before(node.version()) && node.has_key(target.key) => {
                match T::version(at) {
                    Some(_) => self.skip_key(list),
                    None => _ = self.position.next(list),
                }
                self.settle_on(table, at, found)
            }
            _ => item,
        }
    }

    /// Moves to the last visible node at or before `target`.
    pub(super) fn seek_back<'a, T: TableSource>(
        &mut self,
        table: &'a T,
        at: T::Point,
        target: Target<'_>,
        end: End,
    ) -> Option<T::Item<'a>> {
        let Some(list) = table.list() else { return self.end_up(Place::Before) };
        let found = Place::Found(Towards::First);
        let is_behind = |version| version < target.version || version == target.version && end == End::Excluded;
        if end == End::Included || T::version(at).is_some() && target.version < NEWEST {
            // The visible node of the target's key may be the target, or newer.
            self.position.seek(list, Target { version: T::version(at).unwrap_or(target.version), ..target });
            let node = self.node(list).filter(|node| !is_behind(node.version()) && node.has_key(target.key));
            if let Some(item) = node.and_then(|node| table.show(node, at)) {
                self.place = found;
                return Some(item);
            }
        }
        let version = if T::version(at).is_some() { NEWEST } else { target.version };
        self.position.seek_before(list, Target { version, ..target });
        self.settle_back(table, at, T::version(at), found)
    }

    /// Moves to the next visible node, or returns the one that a forward search found.
    #[inline(always)]
    pub(super) fn next<'a, T: TableSource>(&mut self, table: &'a T, at: T::Point) -> Option<T::Item<'a>> {
        let (Place::Taken, Some(list)) = (self.place, table.list()) else {
            return self.begin(table, at, Towards::Last);
        };
        let from = self.node(list);
        let link = self.position.next(list);
        if T::version(at).is_some() && link.partial.may_be_same_key() {
            self.skip_rest::<_, false>(list, from);
            return self.settle_on(table, at, Place::Taken);
        }
        let Some(node) = link.to else { return self.end_up(Place::After) };
        let item = table.show(list.node(node), at);
        if item.is_none() {
            return self.settle_on(table, at, Place::Taken);
        }
        item
    }

    /// Moves to the previous visible node, or returns the one that a backward search found. Amortised O(1) in a list at rest.
    #[inline(always)]
    pub(super) fn prev<'a, T: TableSource>(&mut self, table: &'a T, at: T::Point) -> Option<T::Item<'a>> {
        let (Place::Taken, Some(list)) = (self.place, table.list()) else {
            return self.begin(table, at, Towards::First);
        };
        match T::version(at) {
            Some(_) => self.skip_key_back(list),
            None => _ = self.position.prev(list),
        }
        let Some(node) = self.node(list) else { return self.end_up(Place::Before) };
        match (table.show(node, at), T::version(at)) {
            (None, version) => self.settle_back(table, at, version, Place::Taken),
            (Some(item), Some(version)) => self.back_to_newest((table, list), at, item, version),
            (item, None) => item,
        }
    }

    /// Like [`next`](Self::next), but moves to the first visible node of the next key, or of the key that a forward search found.
    pub(super) fn next_key<'a, T: TableSource>(&mut self, table: &'a T, at: T::Point) -> Option<T::Item<'a>> {
        match (self.place, table.list()) {
            (Place::Taken | Place::Found(Towards::First), Some(list)) => {
                self.skip_key(list);
                self.settle_on(table, at, Place::Taken)
            }
            (Place::Found(Towards::Last), Some(_)) => {
                // If each key is shown once, the search has found the key's first node.
                let newest = if T::version(at).is_none() { newest::<T>(at) } else { None };
                self.settle_back(table, at, newest, Place::Taken)
            }
            _ => self.begin(table, at, Towards::Last),
        }
    }

    /// Like [`prev`](Self::prev), but moves to the first visible node of the previous key, or of the key that a backward search found.
    pub(super) fn prev_key<'a, T: TableSource>(&mut self, table: &'a T, at: T::Point) -> Option<T::Item<'a>> {
        let Some(list) = table.list() else { return self.end_up(Place::Before) };
        match self.place {
            Place::Taken | Place::Found(Towards::Last) => self.skip_key_back(list),
            Place::After => self.position.seek_to_last(list),
            _ => {}
        }
        self.settle_back(table, at, newest::<T>(at), Place::Taken)
    }

    /// Takes a step from any place except [`Place::Taken`]: to the first or last node, or to the node that a search has found.
    #[inline(never)]
    fn begin<'a, T: TableSource>(&mut self, table: &'a T, at: T::Point, towards: Towards) -> Option<T::Item<'a>> {
        let item = match (self.place, towards) {
            (Place::Before, Towards::Last) => self.first(table, at),
            (Place::After, Towards::First) => self.last(table, at),
            (Place::Found(found), _) if found != towards => {
                self.place = Place::Taken;
                return match towards {
                    Towards::First => self.prev(table, at),
                    Towards::Last => self.next(table, at),
                };
            }
            _ => self.item(table, at),
        };
        self.place = match towards {
            _ if item.is_some() => Place::Taken,
            Towards::First => Place::Before,
            Towards::Last => Place::After,
        };
        item
    }

    /// Moves from the first node of a key that may be visible to the first one that is visible.
    #[inline(never)]
    fn settle_on<'a, T: TableSource>(&mut self, table: &'a T, at: T::Point, place: Place) -> Option<T::Item<'a>> {
        let list = table.list()?;
        while let Some(node) = self.node(list) {
            if let Some(item) = table.show(node, at) {
                self.place = place;
                return Some(item);
            }
            match T::version(at) {
                Some(version) => self.skip_newer(list, Target { key: node.key(), version }),
                None => _ = self.position.next(list),
            }
        }
        self.end_up(Place::After)
    }

    /// Moves from the last node of a key (or from any node if `version` is `None`) back to the first one that is visible.
    #[inline(never)]
    fn settle_back<'a, T: TableSource>(
        &mut self,
        table: &'a T,
        at: T::Point,
        version: Option<u64>,
        place: Place,
    ) -> Option<T::Item<'a>> {
        let list = table.list()?;
        while let Some(node) = self.node(list) {
            if let Some(item) = table.show(node, at) {
                self.place = place;
                return match version {
                    Some(version) => self.back_to_newest((table, list), at, item, version),
                    None => Some(item),
                };
            }
            match version {
                Some(_) => self.skip_key_back(list),
                None => _ = self.position.prev(list),
            }
        }
        self.end_up(Place::Before)
    }
}

/// The version up to which a step by key searches for the newest visible version; `None` if a key has no versions.
fn newest<T: TableSource>(at: T::Point) -> Option<u64> {
    T::version(at).or(T::Schema::HAS_VERSIONS.then_some(NEWEST))
}

/// Skips the nodes of one key: step by step, or by a search if there are many.
impl Walk {
    /// Moves from a node of the target's key past the nodes newer than the target.
    fn skip_newer<S: Schema>(&mut self, list: &List<S>, target: Target<'_>) {
        for step in 1_u32.. {
            self.position.next(list);
            if self.node(list).is_none_or(|node| node.version() <= target.version || !node.has_key(target.key)) {
                return;
            }
            if step == HIDDEN_WALK && self.position.skip::<_, false>(list, || list.index.lower_bound(target).first) {
                return;
            }
        }
    }

    /// Moves to the first node of the next key.
    #[inline(always)]
    fn skip_key<S: Schema>(&mut self, list: &List<S>) {
        let from = self.node(list);
        if self.position.next(list).partial.may_be_same_key() {
            self.skip_rest::<_, false>(list, from);
        }
    }

    /// Moves to the last node of the previous key.
    #[inline(always)]
    fn skip_key_back<S: Schema>(&mut self, list: &List<S>) {
        let from = self.node(list);
        if self.position.prev(list) {
            self.skip_rest::<_, true>(list, from);
        }
    }

    /// Moves from a node that may have the key of `from`, the node before it on this walk, to the first node in this direction with another key.
    #[inline(never)]
    fn skip_rest<S: Schema, const BACK: bool>(&mut self, list: &List<S>, from: Option<NodeRef<'_, S>>) {
        let Some(key) = from.map(NodeRef::key) else { return };
        let has_key = |walk: &Self| walk.node(list).is_some_and(|node| node.has_key(key));
        // The caller has already made one step. In the loom models the limit is one.
        let mut steps = 1;
        while has_key(self) {
            if steps == HIDDEN_WALK && self.skip_by_search::<_, BACK>(list, key) {
                return;
            }
            steps = steps.saturating_add(1);
            let may_be_same_key = match BACK {
                true => self.position.prev(list),
                false => self.position.next(list).partial.may_be_same_key(),
            };
            if !may_be_same_key {
                return;
            }
        }
    }

    /// Searches for the first node, in this direction, that has another key. Returns false if the order misleads searches.
    fn skip_by_search<S: Schema, const BACK: bool>(&mut self, list: &List<S>, key: &[u8]) -> bool {
        if BACK {
            let target = Target { key, version: NEWEST };
            return self.position.skip::<_, true>(list, || Some(list.index.before(target)?.0));
        }
        let target = Target { key, version: OLDEST };
        let is_moved = self.position.skip::<_, false>(list, || list.index.lower_bound(target).first);
        if is_moved && self.node(list).is_some_and(|node| node.has_key(key)) {
            self.position.next(list);
        }
        is_moved
    }

    /// Moves back to the first visible node of a key that is not newer than `version`; starts at a node of that key that is shown as `item`.
    #[inline(always)]
    fn back_to_newest<'a, T: TableSource>(
        &mut self,
        (table, list): (&'a T, &'a List<T::Schema>),
        at: T::Point,
        item: T::Item<'a>,
        version: u64,
    ) -> Option<T::Item<'a>> {
        match self.position.look_back(list) {
            Some((_, true)) => {
                self.back_over_versions(list, version);
                table.show(self.node(list)?, at)
            }
            _ => Some(item),
        }
    }

    /// Like `back_to_newest`, for a node whose predecessor may have the same key.
    #[inline(never)]
    fn back_over_versions<S: Schema>(&mut self, list: &List<S>, version: u64) {
        let Some(key) = self.node(list).map(NodeRef::key) else { return };
        let target = Target { key, version };
        for step in 1_u32.. {
            let newer = self.position.look_back(list).map(|(prev, _)| list.node(prev));
            if newer.is_none_or(|node| node.version() > version || !node.has_key(key)) {
                return;
            }
            self.position.prev(list);
            if step == HIDDEN_WALK && self.position.skip::<_, true>(list, || list.index.lower_bound(target).first) {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Walk {
        pub(in crate::iter) fn moves(&self) -> usize {
            self.position.moves
        }
    }
}
