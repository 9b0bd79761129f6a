//! Compares the moves that cursors of both tables have in common with positions in a sorted slice.

use fastskip::{Cursor, Entry, Kind, MemtableCursor, Order, OwnedCursor, OwnedMemtableCursor, Version};

/// An entry as every cursor shows it: key, number (0 in a list), value, and whether it is a tombstone.
pub(crate) type Shown<'a> = (&'a [u8], u64, &'a [u8], bool);

pub(crate) fn version(version: Version<'_>) -> Shown<'_> {
    (version.key, version.seqno, version.value, version.kind == Kind::Tombstone)
}

pub(crate) fn entry(entry: Entry<'_>) -> Shown<'_> {
    (entry.key, 0, entry.value, entry.is_tombstone)
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Step {
    Next,
    Prev,
    NextKey,
    PrevKey,
}

impl Step {
    pub(crate) const ALL: [Self; 4] = [Self::Next, Self::Prev, Self::NextKey, Self::PrevKey];
}

/// A cursor of either table.
pub(crate) trait Moves: Clone {
    type Order: Order;

    fn shown(&self) -> (bool, Option<Shown<'_>>);

    /// Moves to the first entry or, with `back`, to the last.
    fn seek_to_end(&mut self, back: bool) -> bool;

    /// Moves to the first entry behind `key` and `seqno` or, with `back`, to the last entry before them. With `included`, an entry exactly there
    /// counts.
    fn search(&mut self, key: &[u8], seqno: u64, back: bool, included: bool) -> bool;

    fn step(&mut self, step: Step) -> Option<Shown<'_>>;
}

macro_rules! impl_moves {
    ($cursor:ty: $item:ident as $shown:ident, ($key:ident, $seqno:ident) => ($($place:ident),+)) => {
        impl<O: Order> Moves for $cursor {
            type Order = O;

            fn shown(&self) -> (bool, Option<Shown<'_>>) {
                (self.valid(), self.$item().map($shown))
            }

            fn seek_to_end(&mut self, back: bool) -> bool {
                if back { self.seek_to_last() } else { self.seek_to_first() }
            }

            fn search(&mut self, $key: &[u8], $seqno: u64, back: bool, included: bool) -> bool {
                match (back, included) {
                    (false, true) => self.seek($($place),+),
                    (false, false) => self.seek_after($($place),+),
                    (true, true) => self.seek_for_prev($($place),+),
                    (true, false) => self.seek_before($($place),+),
                }
            }

            fn step(&mut self, step: Step) -> Option<Shown<'_>> {
                match step {
                    Step::Next => self.next(),
                    Step::Prev => self.prev(),
                    Step::NextKey => self.next_key(),
                    Step::PrevKey => self.prev_key(),
                }
                .map($shown)
            }
        }
    };
}

impl_moves!(MemtableCursor<'_, O>: version as version, (key, seqno) => (key, seqno));
impl_moves!(OwnedMemtableCursor<O>: version as version, (key, seqno) => (key, seqno));
impl_moves!(Cursor<'_, O>: entry as entry, (key, _seqno) => (key));
impl_moves!(OwnedCursor<O>: entry as entry, (key, _seqno) => (key));

/// One more than the index of an entry; 0 is before the first entry, and the count plus one is behind the last. The flag is set if a search
/// (true: back) found the entry and no step yielded it yet: then the first step in that direction yields it.
type Position = (usize, Option<bool>);

/// The position after a step.
fn after<O: Order>(shown: &[Shown<'_>], (at, found_back): Position, step: Step) -> Position {
    let end = shown.len() + 1;
    let key = |at: usize| shown[at - 1].0;
    let newest = |at| {
        if (1..end).contains(&at) {
            1 + shown.partition_point(|entry| O::compare(entry.0, key(at)).is_lt())
        } else {
            at
        }
    };
    let behind = |at| match at {
        0 => 1,
        _ if at < end => 1 + shown.partition_point(|entry| O::compare(entry.0, key(at)).is_le()),
        _ => end,
    };
    let at = match step {
        Step::Next if found_back == Some(false) => at,
        Step::Next => end.min(at + 1),
        Step::Prev if found_back == Some(true) => at,
        Step::Prev => at.saturating_sub(1),
        Step::NextKey if found_back == Some(false) => newest(at),
        Step::NextKey => behind(at),
        Step::PrevKey if found_back == Some(true) => newest(at),
        Step::PrevKey => newest(newest(at).saturating_sub(1)),
    };
    (at, None)
}

/// Checks that every search of `cursor`, which yields `shown`, finds the right entry. Checks every walk from there: steps of each kind to the
/// end, and a few of each kind after a step of another kind.
pub(crate) fn compare_moves<M: Moves>(mut cursor: M, shown: &[Shown<'_>], (key, seqno): (&[u8], u64), back: bool) {
    assert_eq!(cursor.shown(), (!shown.is_empty(), shown.first().copied()));
    let order = |entry: &Shown<'_>| M::Order::compare(entry.0, key).then(seqno.cmp(&entry.1));
    let at = shown.partition_point(|entry| order(entry).is_lt());
    let behind = shown.partition_point(|entry| order(entry).is_le());
    let searches = if back { [(true, behind), (false, at)] } else { [(true, at + 1), (false, behind + 1)] };
    for (included, place) in searches {
        let is_found = cursor.search(key, seqno, back, included);
        compare_walks(&cursor, shown, is_found, (place, Some(back)));
    }
    let is_found = cursor.seek_to_end(back);
    compare_walks(&cursor, shown, is_found, end(shown, back));
}

/// Checks the moves of a cursor with bounds, which yields `shown`, from places at the bounds and outside: forward from half of them, backward from
/// the others.
pub(crate) fn compare_bounded(cursor: &impl Moves, shown: &[Shown<'_>], ends: [&[u8]; 2], seqno: u64) {
    let places = [ends[0], ends[1], &[], &[u8::MAX; 9]];
    for (key, number) in places.into_iter().zip(ends[0].len()..) {
        compare_moves(cursor.clone(), shown, (key, seqno), number % 2 == 1);
    }
}

/// Checks the steps from an end of a cursor that yields `shown`.
pub(crate) fn compare_steps(
    mut cursor: impl Moves,
    shown: &[Shown<'_>],
    back: bool,
    steps: impl IntoIterator<Item = Step>,
) {
    assert_eq!(cursor.seek_to_end(back), !shown.is_empty());
    walk(cursor, shown, end(shown, back), steps);
}

/// The position at an end, as a search from beyond the end leaves it.
fn end(shown: &[Shown<'_>], back: bool) -> Position {
    (if back { shown.len() } else { 1 }, Some(back))
}

fn compare_walks(cursor: &impl Moves, shown: &[Shown<'_>], is_found: bool, start: Position) {
    assert_eq!((is_found, cursor.shown()), (at(shown, start).is_some(), (is_found, at(shown, start))));
    for (first, then) in Step::ALL.into_iter().flat_map(|first| Step::ALL.map(|then| (first, then))) {
        let more = if first == then { shown.len() + 1 } else { 3 };
        walk(cursor.clone(), shown, start, std::iter::once(first).chain(std::iter::repeat_n(then, more)));
    }
}

fn at<'a>(shown: &[Shown<'a>], position: Position) -> Option<Shown<'a>> {
    position.0.checked_sub(1).and_then(|index| shown.get(index)).copied()
}

fn walk<M: Moves>(mut cursor: M, shown: &[Shown<'_>], start: Position, steps: impl IntoIterator<Item = Step>) {
    let mut position = start;
    for (number, step) in steps.into_iter().enumerate() {
        let before = position;
        position = after::<M::Order>(shown, before, step);
        let entry = at(shown, position);
        assert_eq!(cursor.step(step), entry, "step {number} from {start:?}: {step:?} from {before:?} of {shown:?}");
        assert_eq!(cursor.shown(), (entry.is_some(), entry));
    }
}
