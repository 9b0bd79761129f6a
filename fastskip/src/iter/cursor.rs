//! The core of cursors and ranges: a position that stops only at nodes that a view shows.
//!
//! In forward direction, the first node of a key that is not too new is shown at a version, and its older nodes are skipped. In backward direction,
//! nodes come from old to new, so the last one that is not too new is shown. A key may have any number of hidden nodes: after [`HIDDEN_WALK`] of
//! them in a row, the walk searches for the next place.

use super::position::Position;
use super::view::View;
use crate::list::List;
use crate::node::Target;
use crate::nodes::{NodeRef, Schema};
use crate::tuning::HIDDEN_WALK;

/// Sorts before every version of its key.
pub(crate) const NEWEST: u64 = u64::MAX;
/// Sorts at or after the last version of its key.
pub(crate) const OLDEST: u64 = 0;

/// The end of the list to which a step leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Towards {
    First,
    Last,
}

/// The version up to which a step by key looks for the newest one; `None` if a key has no versions.
fn newest<'a, V: View<'a>>(view: V) -> Option<u64> {
    view.at().or(V::Schema::HAS_VERSIONS.then_some(NEWEST))
}

/// The state of a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nowhere: the end of a range that was not asked yet.
    Unplaced,
    /// Before the first shown node: a step forward leads to it.
    Before,
    /// On a node that a search found. A step in this direction takes it and does not move.
    Found(Towards),
    /// On the node that the last step took.
    Taken,
    /// After the last shown node: a step back leads to it.
    After,
}

/// Whether a search may end at its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// It may.
    Included,
    /// It goes past it.
    Excluded,
}

/// The list of a table; `None` while the table is untouched, which shows what an empty list does.
type Made<'a, V> = Option<&'a List<<V as View<'a>>::Schema>>;

/// A walk over what a view shows of a list, which is the same at each step once it was made. Each method that moves returns what the
/// node is shown as that it came to.
#[derive(Debug, Clone)]
pub(crate) struct Walk {
    position: Position,
    state: State,
}

impl Walk {
    /// Before the first node.
    pub(crate) const fn new() -> Self {
        Self { position: Position::new(), state: State::Before }
    }

    /// Behind the last node.
    pub(super) const fn behind() -> Self {
        Self { position: Position::new(), state: State::After }
    }

    /// Nowhere: the end of a range, which is placed before its first step.
    pub(super) const fn unplaced() -> Self {
        Self { position: Position::new(), state: State::Unplaced }
    }

    /// Whether it was made so.
    #[inline(always)]
    pub(super) fn is_unplaced(&self) -> bool {
        self.state == State::Unplaced
    }

    /// Whether it is on the node that the last step took.
    #[inline(always)]
    pub(super) fn is_under_way(&self) -> bool {
        self.state == State::Taken
    }

    /// Whether it is on a node.
    pub(crate) fn is_on_node(&self) -> bool {
        matches!(self.state, State::Found(_) | State::Taken)
    }

    /// The node it is on.
    #[inline]
    pub(super) fn node<'a, S: Schema>(&self, list: &'a List<S>) -> Option<NodeRef<'a, S>> {
        self.position.node(list)
    }

    /// The item of the current node.
    #[inline]
    pub(crate) fn item<'a, V: View<'a>>(&self, list: Made<'a, V>, view: V) -> Option<V::Item> {
        view.item(self.node(list?)?)
    }

    #[cfg(test)]
    pub(crate) fn moves(&self) -> usize {
        self.position.moves
    }

    /// Moves to an end, because no node is shown. A node that is shown later lies on the way back from there.
    fn end_up<T>(&mut self, state: State) -> Option<T> {
        self.state = state;
        None
    }

    pub(crate) fn first<'a, V: View<'a>>(&mut self, list: Made<'a, V>, view: V) -> Option<V::Item> {
        let Some(list) = list else { return self.end_up(State::Before) };
        self.position.seek_to_first(list);
        self.settle_on(list, view, State::Found(Towards::Last)).or_else(|| self.end_up(State::Before))
    }

    pub(crate) fn last<'a, V: View<'a>>(&mut self, list: Made<'a, V>, view: V) -> Option<V::Item> {
        let Some(list) = list else { return self.end_up(State::After) };
        self.position.seek_to_last(list);
        self.settle_back(list, view, view.at(), State::Found(Towards::First)).or_else(|| self.end_up(State::After))
    }

    /// To the first node shown at or behind `target`.
    pub(crate) fn seek<'a, V: View<'a>>(
        &mut self,
        list: Made<'a, V>,
        view: V,
        target: Target<'_>,
        end: End,
    ) -> Option<V::Item> {
        let Some(list) = list else { return self.end_up(State::After) };
        let found = State::Found(Towards::Last);
        self.position.seek(list, Target { version: view.at().unwrap_or(target.version), ..target });
        let item = self.settle_on(list, view, found);
        // Of the target's key, the node shown may be newer than the target, or the target itself.
        let is_before = |version| version > target.version || version == target.version && end == End::Excluded;
        match self.node(list) {
            Some(node) if is_before(node.version()) && node.key() == target.key => {
                self.step_on(list, view);
                self.settle_on(list, view, found)
            }
            _ => item,
        }
    }

    /// To the last node shown at or before `target`.
    pub(crate) fn seek_back<'a, V: View<'a>>(
        &mut self,
        list: Made<'a, V>,
        view: V,
        target: Target<'_>,
        end: End,
    ) -> Option<V::Item> {
        let Some(list) = list else { return self.end_up(State::Before) };
        let found = State::Found(Towards::First);
        let is_behind = |version| version < target.version || version == target.version && end == End::Excluded;
        if end == End::Included || view.at().is_some() && target.version < NEWEST {
            // The shown node of the target's key may be the target, or newer.
            self.position.seek(list, Target { version: view.at().unwrap_or(target.version), ..target });
            let node = self.node(list).filter(|node| !is_behind(node.version()) && node.key() == target.key);
            if let Some(item) = node.and_then(|node| view.item(node)) {
                self.state = found;
                return Some(item);
            }
        }
        let version = if view.at().is_some() { NEWEST } else { target.version };
        self.position.seek_before(list, Target { version, ..target });
        self.settle_back(list, view, view.at(), found)
    }

    /// To the next node shown, or takes the one that a search forward found.
    #[inline(always)]
    pub(crate) fn next<'a, V: View<'a>>(&mut self, list: Made<'a, V>, view: V) -> Option<V::Item> {
        match (self.state, list) {
            (State::Taken, Some(list)) => {
                let from = self.node(list);
                let link = self.position.next(list);
                if view.at().is_some() && link.partial.may_be_same_key() {
                    self.skip_rest(list, from);
                    return self.settle_on(list, view, State::Taken);
                }
                let item = match link.to {
                    Some(node) => view.item(list.node(node)),
                    None => return self.end_up(State::After),
                };
                if item.is_none() {
                    return self.settle_on(list, view, State::Taken);
                }
                item
            }
            _ => self.begin(list, view, Towards::Last),
        }
    }

    /// Moves to the previous shown node, or takes the one that a backward search found. Amortised O(1) in a list at rest.
    #[inline(always)]
    pub(crate) fn prev<'a, V: View<'a>>(&mut self, list: Made<'a, V>, view: V) -> Option<V::Item> {
        match (self.state, list) {
            (State::Taken, Some(list)) => {
                self.step_back(list, view);
                let item = match self.node(list) {
                    Some(node) => view.item(node),
                    None => return self.end_up(State::Before),
                };
                match (item, view.at()) {
                    (None, at) => self.settle_back(list, view, at, State::Taken),
                    (Some(item), Some(at)) => self.back_to_newest(list, view, item, at),
                    (item, None) => item,
                }
            }
            _ => self.begin(list, view, Towards::First),
        }
    }

    /// As [`next`](Self::next), to the first node that is shown of the next key, or of the key that a search forward found.
    pub(crate) fn next_key<'a, V: View<'a>>(&mut self, list: Made<'a, V>, view: V) -> Option<V::Item> {
        match (self.state, list) {
            (State::Taken | State::Found(Towards::First), Some(list)) => {
                self.skip_key(list);
                self.settle_on(list, view, State::Taken)
            }
            (State::Found(Towards::Last), Some(list)) => {
                // Where a key is shown once, the search has found its first node.
                let newest = view.at().is_none().then(|| newest(view)).flatten();
                self.settle_back(list, view, newest, State::Taken)
            }
            _ => self.begin(list, view, Towards::Last),
        }
    }

    /// As [`prev`](Self::prev), to the first node that is shown of the previous key, or of the key that a search back found.
    pub(crate) fn prev_key<'a, V: View<'a>>(&mut self, list: Made<'a, V>, view: V) -> Option<V::Item> {
        let Some(list) = list else { return self.end_up(State::Before) };
        match self.state {
            State::Taken | State::Found(Towards::Last) => self.skip_key_back(list),
            State::After => self.position.seek_to_last(list),
            State::Found(Towards::First) | State::Before | State::Unplaced => {}
        }
        self.settle_back(list, view, newest(view), State::Taken)
    }

    /// A step that does not lead away from a node that the last step took.
    #[inline(never)]
    fn begin<'a, V: View<'a>>(&mut self, list: Made<'a, V>, view: V, towards: Towards) -> Option<V::Item> {
        let item = match (self.state, towards) {
            (State::Before, Towards::Last) => self.first(list, view),
            (State::After, Towards::First) => self.last(list, view),
            (State::Found(found), _) if found != towards => {
                self.state = State::Taken;
                return match towards {
                    Towards::First => self.prev(list, view),
                    Towards::Last => self.next(list, view),
                };
            }
            _ => self.item(list, view),
        };
        self.state = match towards {
            _ if item.is_some() => State::Taken,
            Towards::First => State::Before,
            Towards::Last => State::After,
        };
        item
    }

    #[inline(always)]
    fn step_on<'a, V: View<'a>>(&mut self, list: &'a List<V::Schema>, view: V) {
        match view.at() {
            Some(_) => self.skip_key(list),
            None => _ = self.position.next(list),
        }
    }

    #[inline(always)]
    fn step_back<'a, V: View<'a>>(&mut self, list: &'a List<V::Schema>, view: V) {
        match view.at() {
            Some(_) => self.skip_key_back(list),
            None => _ = self.position.prev(list),
        }
    }

    /// From the first node of a key that may be shown, to the first one that is.
    #[inline(never)]
    fn settle_on<'a, V: View<'a>>(&mut self, list: &'a List<V::Schema>, view: V, state: State) -> Option<V::Item> {
        while let Some(node) = self.node(list) {
            if let Some(item) = view.item(node) {
                self.state = state;
                return Some(item);
            }
            match view.at() {
                Some(at) => self.skip_newer(list, node.key(), at),
                None => _ = self.position.next(list),
            }
        }
        self.end_up(State::After)
    }

    /// Moves from the last node of a key (or from any node if `at` is `None`) back to the first one that is shown.
    #[inline(never)]
    fn settle_back<'a, V: View<'a>>(
        &mut self,
        list: &'a List<V::Schema>,
        view: V,
        at: Option<u64>,
        state: State,
    ) -> Option<V::Item> {
        while let Some(node) = self.node(list) {
            if let Some(item) = view.item(node) {
                self.state = state;
                return match at {
                    Some(at) => self.back_to_newest(list, view, item, at),
                    None => Some(item),
                };
            }
            match at {
                Some(_) => self.skip_key_back(list),
                None => _ = self.position.prev(list),
            }
        }
        self.end_up(State::Before)
    }
}

/// Skips the nodes of one key: step by step, or by a search if there are many.
impl Walk {
    /// Moves from a node of `key` past the nodes newer than `at`.
    fn skip_newer<S: Schema>(&mut self, list: &List<S>, key: &[u8], at: u64) {
        for _ in 0..HIDDEN_WALK {
            self.position.next(list);
            if self.node(list).is_none_or(|node| node.version() <= at || node.key() != key) {
                return;
            }
        }
        self.position.seek(list, Target { key, version: at });
    }

    /// To the first node of the next key.
    #[inline(always)]
    fn skip_key<S: Schema>(&mut self, list: &List<S>) {
        let from = self.node(list);
        if self.position.next(list).partial.may_be_same_key() {
            self.skip_rest(list, from);
        }
    }

    /// From a node that may have the key of the node before, `from`, to the first one that has not.
    #[inline(never)]
    fn skip_rest<S: Schema>(&mut self, list: &List<S>, from: Option<NodeRef<'_, S>>) {
        let Some(key) = from.map(NodeRef::key) else { return };
        let has_key = |walk: &Self| walk.node(list).is_some_and(|node| node.key() == key);
        let mut steps = 1;
        while steps < HIDDEN_WALK {
            if !(has_key(self) && self.position.next(list).partial.may_be_same_key()) {
                return;
            }
            steps += 1;
        }
        if has_key(self) {
            self.position.seek(list, Target { key, version: OLDEST });
            if has_key(self) {
                self.position.next(list);
            }
        }
    }

    /// To the last node of the previous key.
    #[inline(always)]
    fn skip_key_back<S: Schema>(&mut self, list: &List<S>) {
        let from = self.node(list);
        if self.position.prev(list) {
            self.skip_rest_back(list, from);
        }
    }

    /// From a node that may have the key of the node behind it, `from`, to the last one that has not.
    #[inline(never)]
    fn skip_rest_back<S: Schema>(&mut self, list: &List<S>, from: Option<NodeRef<'_, S>>) {
        let Some(key) = from.map(NodeRef::key) else { return };
        let has_key = |walk: &Self| walk.node(list).is_some_and(|node| node.key() == key);
        let mut steps = 1;
        while steps < HIDDEN_WALK {
            if !(has_key(self) && self.position.prev(list)) {
                return;
            }
            steps += 1;
        }
        if has_key(self) {
            self.position.seek_before(list, Target { key, version: NEWEST });
        }
    }

    /// Moves from a node of a key that is shown as `item` and is not newer than `at` back to the first such node.
    #[inline(always)]
    fn back_to_newest<'a, V: View<'a>>(
        &mut self,
        list: &'a List<V::Schema>,
        view: V,
        item: V::Item,
        at: u64,
    ) -> Option<V::Item> {
        match self.position.look_back(list) {
            Some((_, true)) => self.back_over_versions(list, view, at),
            _ => Some(item),
        }
    }

    /// The same where the node before may have the same key.
    #[inline(never)]
    fn back_over_versions<'a, V: View<'a>>(&mut self, list: &'a List<V::Schema>, view: V, at: u64) -> Option<V::Item> {
        let key = self.node(list)?.key();
        for _ in 0..HIDDEN_WALK {
            let newer = self.position.look_back(list).map(|(prev, _)| list.node(prev));
            if newer.is_none_or(|node| node.version() > at || node.key() != key) {
                return view.item(self.node(list)?);
            }
            self.position.prev(list);
        }
        self.position.seek(list, Target { key, version: at });
        view.item(self.node(list)?)
    }
}

/// The moves of a public cursor, whose `parts` are its walk and its view. `$item` is its item; a position consists of `$arg`s.
/// A method `last` would be hidden by `Iterator::last`.
macro_rules! moves {
    ($item:ty, ($($arg:ident: $type:ty),+) => $target:expr) => {
        /// Whether the cursor is on an entry. O(1).
        #[must_use]
        pub fn valid(&self) -> bool {
            self.walk.is_on_node()
        }

        /// Moves to the first entry, for [`next`](Self::next) to take. O(1), not counting entries that are hidden.
        pub fn seek_to_first(&mut self) -> bool {
            let (walk, list, view) = self.parts();
            walk.first(list, view).is_some()
        }

        /// Moves to the last entry, for [`prev`](Self::prev) to take. Expected O(log n), not counting entries that are hidden.
        pub fn seek_to_last(&mut self) -> bool {
            let (walk, list, view) = self.parts();
            walk.last(list, view).is_some()
        }

        /// Moves to the first entry at or behind a position, for [`next`](Self::next) to take. Returns false if there is none;
        /// then the cursor is behind the last entry. Expected O(log n), not counting entries that are hidden.
        pub fn seek(&mut self, $($arg: $type),+) -> bool {
            let (walk, list, view) = self.parts();
            walk.seek(list, view, $target, End::Included).is_some()
        }

        /// Like [`seek`](Self::seek), to the first entry behind a position.
        pub fn seek_exclusive(&mut self, $($arg: $type),+) -> bool {
            let (walk, list, view) = self.parts();
            walk.seek(list, view, $target, End::Excluded).is_some()
        }

        /// Moves to the last entry at or before a position, for [`prev`](Self::prev) to take. Returns false if there is none;
        /// then the cursor is before the first entry. Expected O(log n), not counting entries that are hidden.
        pub fn seek_for_prev(&mut self, $($arg: $type),+) -> bool {
            let (walk, list, view) = self.parts();
            walk.seek_back(list, view, $target, End::Included).is_some()
        }

        /// Like [`seek_for_prev`](Self::seek_for_prev), to the last entry before a position.
        pub fn seek_before(&mut self, $($arg: $type),+) -> bool {
            let (walk, list, view) = self.parts();
            walk.seek_back(list, view, $target, End::Excluded).is_some()
        }

        /// Moves to the previous entry and returns it; after a seek back, returns the entry found. From behind the last entry it
        /// moves to the last one. Amortised O(1), not counting entries that are hidden.
        pub fn prev(&mut self) -> Option<$item> {
            let (walk, list, view) = self.parts();
            walk.prev(list, view)
        }

        /// Moves to the next key and returns its first entry, which is its newest version; after a seek forward, to the first entry of the
        /// key found. O(1) if the current key has few versions, expected O(log n) if it has many or was found by a seek.
        pub fn next_key(&mut self) -> Option<$item> {
            let (walk, list, view) = self.parts();
            walk.next_key(list, view)
        }

        /// Moves to the previous key and returns its first entry, which is its newest version; after a seek back, to the first entry of
        /// the key found. From behind the last entry it moves to the last key. Amortised O(1) if that key has few versions, expected O(log n)
        /// if it has many.
        pub fn prev_key(&mut self) -> Option<$item> {
            let (walk, list, view) = self.parts();
            walk.prev_key(list, view)
        }
    };
}

pub(crate) use moves;
