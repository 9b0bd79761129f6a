//! The core of cursors and ranges: a position that stops only at nodes that a reader sees.
//!
//! In forward direction, the first node of a key that is not too new is shown at a version, and its older nodes are skipped. In backward direction,
//! nodes come from old to new, so the last one that is not too new is shown. A key may have any number of hidden nodes: after [`HIDDEN_WALK`] of
//! them in a row, the walk searches for the next place.

use super::position::Position;
use super::source::{Shown, Source};
use crate::list::List;
use crate::node::Target;
use crate::nodes::{NodeRef, Schema};
use crate::tuning::HIDDEN_WALK;

/// Sorts before every version of its key.
pub(super) const NEWEST: u64 = u64::MAX;
/// Sorts at or after the last version of its key.
pub(super) const OLDEST: u64 = 0;

/// The end of the list to which a step leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Towards {
    First,
    Last,
}

/// Where a walk is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Nowhere: the end of a range before its first step.
    Unplaced,
    /// Before the first shown node: a step forward leads to it.
    Before,
    /// On a node that a search found. A step in this direction takes it and does not move.
    Found(Towards),
    /// On the node that the last step took.
    Taken,
    /// After the last shown node: a step back leads to it.
    After,
    /// Nowhere, for good: the range has no more entries.
    Finished,
}

/// Whether a search may end at its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// It may.
    Included,
    /// It goes past it.
    Excluded,
}

/// A walk over a table, which is shown in the same way at each step. Each method that moves returns the entry that it came to. `None` in place of
/// the table is an untouched one.
#[derive(Debug, Clone)]
pub(super) struct Walk {
    position: Position,
    pub(super) place: Place,
}

impl Walk {
    pub(super) const fn new(place: Place) -> Self {
        Self { position: Position::new(), place }
    }

    /// The node it is on.
    #[inline]
    pub(super) fn node<'a, S: Schema>(&self, list: &'a List<S>) -> Option<NodeRef<'a, S>> {
        self.position.node(list)
    }

    /// The entry it is on.
    #[inline]
    pub(super) fn item<'a, T: Source>(&self, shown: Option<Shown<'a, T>>) -> Option<T::Item<'a>> {
        let shown = shown?;
        shown.item(self.node(shown.list)?)
    }

    #[cfg(test)]
    pub(super) fn moves(&self) -> usize {
        self.position.moves
    }

    /// Moves to an end, because no node is shown. A node that is shown later lies on the way back from there.
    fn end_up<I>(&mut self, place: Place) -> Option<I> {
        self.place = place;
        None
    }

    pub(super) fn first<'a, T: Source>(&mut self, shown: Option<Shown<'a, T>>) -> Option<T::Item<'a>> {
        let Some(shown) = shown else { return self.end_up(Place::Before) };
        self.position.seek_to_first(shown.list);
        self.settle_on(shown, Place::Found(Towards::Last)).or_else(|| self.end_up(Place::Before))
    }

    pub(super) fn last<'a, T: Source>(&mut self, shown: Option<Shown<'a, T>>) -> Option<T::Item<'a>> {
        let Some(shown) = shown else { return self.end_up(Place::After) };
        self.position.seek_to_last(shown.list);
        self.settle_back(shown, shown.version(), Place::Found(Towards::First)).or_else(|| self.end_up(Place::After))
    }

    /// To the first node shown at or behind `target`.
    pub(super) fn seek<'a, T: Source>(
        &mut self,
        shown: Option<Shown<'a, T>>,
        target: Target<'_>,
        end: End,
    ) -> Option<T::Item<'a>> {
        let Some(shown) = shown else { return self.end_up(Place::After) };
        let found = Place::Found(Towards::Last);
        self.position.seek(shown.list, Target { version: shown.version().unwrap_or(target.version), ..target });
        let item = self.settle_on(shown, found);
        // Of the target's key, the node shown may be newer than the target, or the target itself.
        let is_before = |version| version > target.version || version == target.version && end == End::Excluded;
        match self.node(shown.list) {
            Some(node) if is_before(node.version()) && node.key() == target.key => {
                match shown.version() {
                    Some(_) => self.skip_key(shown.list),
                    None => _ = self.position.next(shown.list),
                }
                self.settle_on(shown, found)
            }
            _ => item,
        }
    }

    /// To the last node shown at or before `target`.
    pub(super) fn seek_back<'a, T: Source>(
        &mut self,
        shown: Option<Shown<'a, T>>,
        target: Target<'_>,
        end: End,
    ) -> Option<T::Item<'a>> {
        let Some(shown) = shown else { return self.end_up(Place::Before) };
        let found = Place::Found(Towards::First);
        let is_behind = |version| version < target.version || version == target.version && end == End::Excluded;
        if end == End::Included || shown.version().is_some() && target.version < NEWEST {
            // The shown node of the target's key may be the target, or newer.
            self.position.seek(shown.list, Target { version: shown.version().unwrap_or(target.version), ..target });
            let node = self.node(shown.list).filter(|node| !is_behind(node.version()) && node.key() == target.key);
            if let Some(item) = node.and_then(|node| shown.item(node)) {
                self.place = found;
                return Some(item);
            }
        }
        let version = if shown.version().is_some() { NEWEST } else { target.version };
        self.position.seek_before(shown.list, Target { version, ..target });
        self.settle_back(shown, shown.version(), found)
    }

    /// To the next node shown, or takes the one that a search forward found.
    #[inline(always)]
    pub(super) fn next<'a, T: Source>(&mut self, shown: Option<Shown<'a, T>>) -> Option<T::Item<'a>> {
        let (Place::Taken, Some(shown)) = (self.place, shown) else { return self.begin(shown, Towards::Last) };
        let from = self.node(shown.list);
        let link = self.position.next(shown.list);
        if shown.version().is_some() && link.partial.may_be_same_key() {
            self.skip_rest::<_, false>(shown.list, from);
            return self.settle_on(shown, Place::Taken);
        }
        let Some(node) = link.to else { return self.end_up(Place::After) };
        let item = shown.item(shown.list.node(node));
        if item.is_none() {
            return self.settle_on(shown, Place::Taken);
        }
        item
    }

    /// Moves to the previous shown node, or takes the one that a backward search found. Amortised O(1) in a list at rest.
    #[inline(always)]
    pub(super) fn prev<'a, T: Source>(&mut self, shown: Option<Shown<'a, T>>) -> Option<T::Item<'a>> {
        let (Place::Taken, Some(shown)) = (self.place, shown) else { return self.begin(shown, Towards::First) };
        match shown.version() {
            Some(_) => self.skip_key_back(shown.list),
            None => _ = self.position.prev(shown.list),
        }
        let Some(node) = self.node(shown.list) else { return self.end_up(Place::Before) };
        match (shown.item(node), shown.version()) {
            (None, version) => self.settle_back(shown, version, Place::Taken),
            (Some(item), Some(version)) => self.back_to_newest(shown, item, version),
            (item, None) => item,
        }
    }

    /// As [`next`](Self::next), to the first node that is shown of the next key, or of the key that a search forward found.
    pub(super) fn next_key<'a, T: Source>(&mut self, shown: Option<Shown<'a, T>>) -> Option<T::Item<'a>> {
        match (self.place, shown) {
            (Place::Taken | Place::Found(Towards::First), Some(shown)) => {
                self.skip_key(shown.list);
                self.settle_on(shown, Place::Taken)
            }
            (Place::Found(Towards::Last), Some(shown)) => {
                // Where a key is shown once, the search has found its first node.
                let newest = if shown.version().is_none() { newest(shown) } else { None };
                self.settle_back(shown, newest, Place::Taken)
            }
            _ => self.begin(shown, Towards::Last),
        }
    }

    /// As [`prev`](Self::prev), to the first node that is shown of the previous key, or of the key that a search back found.
    pub(super) fn prev_key<'a, T: Source>(&mut self, shown: Option<Shown<'a, T>>) -> Option<T::Item<'a>> {
        let Some(shown) = shown else { return self.end_up(Place::Before) };
        match self.place {
            Place::Taken | Place::Found(Towards::Last) => self.skip_key_back(shown.list),
            Place::After => self.position.seek_to_last(shown.list),
            Place::Found(Towards::First) | Place::Before | Place::Unplaced | Place::Finished => {}
        }
        self.settle_back(shown, newest(shown), Place::Taken)
    }

    /// A step that does not lead away from a node that the last step took.
    #[inline(never)]
    fn begin<'a, T: Source>(&mut self, shown: Option<Shown<'a, T>>, towards: Towards) -> Option<T::Item<'a>> {
        let item = match (self.place, towards) {
            (Place::Before, Towards::Last) => self.first(shown),
            (Place::After, Towards::First) => self.last(shown),
            (Place::Found(found), _) if found != towards => {
                self.place = Place::Taken;
                return match towards {
                    Towards::First => self.prev(shown),
                    Towards::Last => self.next(shown),
                };
            }
            _ => self.item(shown),
        };
        self.place = match towards {
            _ if item.is_some() => Place::Taken,
            Towards::First => Place::Before,
            Towards::Last => Place::After,
        };
        item
    }

    /// From the first node of a key that may be shown, to the first one that is.
    #[inline(never)]
    fn settle_on<'a, T: Source>(&mut self, shown: Shown<'a, T>, place: Place) -> Option<T::Item<'a>> {
        while let Some(node) = self.node(shown.list) {
            if let Some(item) = shown.item(node) {
                self.place = place;
                return Some(item);
            }
            match shown.version() {
                Some(version) => self.skip_newer(shown.list, Target { key: node.key(), version }),
                None => _ = self.position.next(shown.list),
            }
        }
        self.end_up(Place::After)
    }

    /// Moves from the last node of a key (or from any node if `version` is `None`) back to the first one that is shown.
    #[inline(never)]
    fn settle_back<'a, T: Source>(
        &mut self,
        shown: Shown<'a, T>,
        version: Option<u64>,
        place: Place,
    ) -> Option<T::Item<'a>> {
        while let Some(node) = self.node(shown.list) {
            if let Some(item) = shown.item(node) {
                self.place = place;
                return match version {
                    Some(version) => self.back_to_newest(shown, item, version),
                    None => Some(item),
                };
            }
            match version {
                Some(_) => self.skip_key_back(shown.list),
                None => _ = self.position.prev(shown.list),
            }
        }
        self.end_up(Place::Before)
    }
}

/// The version up to which a step by key looks for the newest one; `None` if a key has no versions.
fn newest<T: Source>(shown: Shown<'_, T>) -> Option<u64> {
    shown.version().or(T::Schema::HAS_VERSIONS.then_some(NEWEST))
}

/// Skips the nodes of one key: step by step, or by a search if there are many.
impl Walk {
    /// Moves from a node of the target's key past the nodes newer than the target.
    fn skip_newer<S: Schema>(&mut self, list: &List<S>, target: Target<'_>) {
        for _ in 0..HIDDEN_WALK {
            self.position.next(list);
            if self.node(list).is_none_or(|node| node.version() <= target.version || node.key() != target.key) {
                return;
            }
        }
        self.position.seek(list, target);
    }

    /// To the first node of the next key.
    #[inline(always)]
    fn skip_key<S: Schema>(&mut self, list: &List<S>) {
        let from = self.node(list);
        if self.position.next(list).partial.may_be_same_key() {
            self.skip_rest::<_, false>(list, from);
        }
    }

    /// To the last node of the previous key.
    #[inline(always)]
    fn skip_key_back<S: Schema>(&mut self, list: &List<S>) {
        let from = self.node(list);
        if self.position.prev(list) {
            self.skip_rest::<_, true>(list, from);
        }
    }

    /// From a node that may have the key of `from`, from which the walk came, to the first one in this direction that has not.
    #[inline(never)]
    fn skip_rest<S: Schema, const BACK: bool>(&mut self, list: &List<S>, from: Option<NodeRef<'_, S>>) {
        let Some(key) = from.map(NodeRef::key) else { return };
        let has_key = |walk: &Self| walk.node(list).is_some_and(|node| node.key() == key);
        for _ in 1..HIDDEN_WALK {
            if !has_key(self) {
                return;
            }
            let may_be_same_key = match BACK {
                true => self.position.prev(list),
                false => self.position.next(list).partial.may_be_same_key(),
            };
            if !may_be_same_key {
                return;
            }
        }
        if has_key(self) && BACK {
            self.position.seek_before(list, Target { key, version: NEWEST });
        } else if has_key(self) {
            self.position.seek(list, Target { key, version: OLDEST });
            if has_key(self) {
                self.position.next(list);
            }
        }
    }

    /// Moves from a node of a key that is shown as `item` and is not newer than `version` back to the first such node.
    #[inline(always)]
    fn back_to_newest<'a, T: Source>(
        &mut self,
        shown: Shown<'a, T>,
        item: T::Item<'a>,
        version: u64,
    ) -> Option<T::Item<'a>> {
        match self.position.look_back(shown.list) {
            Some((_, true)) => self.back_over_versions(shown, version),
            _ => Some(item),
        }
    }

    /// The same where the node before may have the same key.
    #[inline(never)]
    fn back_over_versions<'a, T: Source>(&mut self, shown: Shown<'a, T>, version: u64) -> Option<T::Item<'a>> {
        let list = shown.list;
        let key = self.node(list)?.key();
        for _ in 0..HIDDEN_WALK {
            let newer = self.position.look_back(list).map(|(prev, _)| list.node(prev));
            if newer.is_none_or(|node| node.version() > version || node.key() != key) {
                return shown.item(self.node(list)?);
            }
            self.position.prev(list);
        }
        self.position.seek(list, Target { key, version });
        shown.item(self.node(list)?)
    }
}
