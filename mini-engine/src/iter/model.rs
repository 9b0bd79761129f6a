//! A sorted vector as the model of every [`EntryIter`], and a driver that compares the two step by step.

use std::ops::{Bound, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;

use super::{Batch, Direction, EntryIter, MergeIter, Next, VisibleIter, Wanted};
use crate::columns::{BlockBuilder, Columns};
use crate::error::{Error, Result};
use crate::types::{KeyPrefix, Kind, MAX_SEQNO, SeqNo, Slice, entry_order};

/// An entry with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) key: Vec<u8>,
    pub(crate) seqno: SeqNo,
    pub(crate) kind: Kind,
    pub(crate) value: Vec<u8>,
}

/// Entries in order, addressed by index.
#[derive(Clone, Debug)]
pub(crate) struct SortedVec {
    entries: Vec<Entry>,
    at: Option<usize>,
}

impl SortedVec {
    pub(crate) fn new(mut entries: Vec<Entry>) -> Self {
        entries.sort_by(|a, b| entry_order((&a.key, a.seqno), (&b.key, b.seqno)));
        Self { entries, at: None }
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    fn current(&self) -> &Entry {
        &self.entries[self.at.expect("a valid iterator")]
    }

    fn go(&mut self, at: Option<usize>) -> Result<()> {
        self.at = at.filter(|&at| at < self.entries.len());
        Ok(())
    }
}

impl EntryIter for SortedVec {
    fn valid(&self) -> bool {
        self.at.is_some()
    }
    fn key(&self) -> &[u8] {
        &self.current().key
    }
    fn seqno(&self) -> SeqNo {
        self.current().seqno
    }
    fn kind(&self) -> Kind {
        self.current().kind
    }
    fn value(&self) -> &[u8] {
        &self.current().value
    }
    fn seek_to_first(&mut self) -> Result<()> {
        self.go(Some(0))
    }
    fn seek_to_last(&mut self) -> Result<()> {
        self.go(self.entries.len().checked_sub(1))
    }
    fn seek(&mut self, key: &[u8], seqno: SeqNo) -> Result<()> {
        self.go(self.entries.iter().position(|e| entry_order((&e.key, e.seqno), (key, seqno)).is_ge()))
    }
    fn seek_for_prev(&mut self, key: &[u8], seqno: SeqNo) -> Result<()> {
        self.go(self.entries.iter().rposition(|e| entry_order((&e.key, e.seqno), (key, seqno)).is_le()))
    }
    fn next(&mut self) -> Result<()> {
        self.go(self.at.map(|at| at + 1))
    }
    fn prev(&mut self) -> Result<()> {
        self.go(self.at.and_then(|at| at.checked_sub(1)))
    }
    fn repeats(&self) -> bool {
        let before = self.at.and_then(|at| at.checked_sub(1));
        before.is_some_and(|before| self.entries[before].key == self.key())
    }
    fn next_batch(&mut self, batch: &mut Batch, wanted: &Wanted<'_>) -> Result<Next> {
        let Some(at) = self.at else { return Ok(Next::End) };
        let (contents, columns) = self.block();
        let entries = wanted.after(&columns, &contents, at + 1);
        if self.lend(batch, entries.clone(), entries.start) {
            self.go(Some(entries.end - 1))?;
            return Ok(Next::Batch);
        }
        self.next()?;
        Ok(Next::entry_of(self))
    }
    fn fill(&mut self, direction: Direction, batch: &mut Batch, wanted: &Wanted<'_>) -> bool {
        let Some(at) = self.at else { return false };
        let (contents, columns) = self.block();
        let entries = match direction {
            Direction::Forward => wanted.after(&columns, &contents, at),
            Direction::Backward => wanted.before(&columns, &contents, at),
        };
        self.lend(batch, entries.clone(), at) && {
            let to = if direction == Direction::Forward { entries.end } else { entries.start };
            self.go(Some(to - 1)).is_ok()
        }
    }
}

impl SortedVec {
    fn is_plain(&self, at: usize, wanted: &Wanted<'_>) -> bool {
        let Entry { key, seqno, kind, .. } = &self.entries[at];
        let repeats = at.checked_sub(1).is_some_and(|before| self.entries[before].key == *key);
        *kind == Kind::Value && *seqno < wanted.below && !repeats
    }

    /// All entries as one block.
    pub(crate) fn block(&self) -> (Vec<u8>, Columns) {
        let mut builder = BlockBuilder::default();
        self.entries.iter().for_each(|entry| builder.add(&entry.key, entry.seqno, entry.kind, &entry.value));
        let contents = builder.finish(<[u8]>::to_vec);
        let columns = Columns::of(&contents).expect("own encoding");
        (contents, columns)
    }

    fn lend(&self, batch: &mut Batch, entries: Range<usize>, at: usize) -> bool {
        let (contents, columns) = self.block();
        let is_any = !entries.is_empty();
        if is_any {
            batch.set((&columns, &contents), entries, at, || Slice::from(&*contents));
        }
        is_any
    }
}

/// One call on an iterator.
#[derive(Clone, Debug)]
pub(crate) enum Move {
    First,
    Last,
    Seek(Vec<u8>, SeqNo),
    SeekForPrev(Vec<u8>, SeqNo),
    Next,
    Prev,
}

/// Keys that collide, share prefixes and are sometimes empty.
pub(crate) fn keys() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(0u8..3, 0..5)
}

/// Calls with several steps between seeks, so that the direction changes in the middle.
pub(crate) fn moves() -> impl Strategy<Value = Vec<Move>> {
    let one = prop_oneof![
        1 => Just(Move::First),
        1 => Just(Move::Last),
        2 => (keys(), 0u64..50).prop_map(|(key, seqno)| Move::Seek(key, seqno)),
        2 => (keys(), 0u64..50).prop_map(|(key, seqno)| Move::SeekForPrev(key, seqno)),
        6 => Just(Move::Next),
        6 => Just(Move::Prev),
    ];
    prop::collection::vec(one, 1..60)
}

/// Entries with several versions of a key; no two have the same key and seqno. Some expire at an instant up to 3.
pub(crate) fn entries(max: usize) -> impl Strategy<Value = Vec<Entry>> {
    let value = || prop::collection::vec(any::<u8>(), 0..20);
    let kinds = prop_oneof![
        2 => Just((Kind::Tombstone, Vec::new())),
        3 => value().prop_map(|value| (Kind::Value, value)),
        1 => (0u64..4, value()).prop_map(|(at, value)| (Kind::Expiring, [&at.to_le_bytes()[..], &value].concat())),
    ];
    let entry = (keys(), 0u64..50, kinds);
    prop::collection::vec(entry, 0..max).prop_map(|list| {
        let unique: std::collections::BTreeMap<_, _> = list.into_iter().map(|(k, s, v)| ((k, s), v)).collect();
        let entry = |((key, seqno), (kind, value))| Entry { key, seqno, kind, value };
        unique.into_iter().map(entry).collect()
    })
}

pub(crate) fn apply(iter: &mut dyn EntryIter, step: &Move) -> Result<()> {
    match step {
        Move::First => iter.seek_to_first(),
        Move::Last => iter.seek_to_last(),
        Move::Seek(key, seqno) => iter.seek(key, *seqno),
        Move::SeekForPrev(key, seqno) => iter.seek_for_prev(key, *seqno),
        Move::Next => iter.next(),
        Move::Prev => iter.prev(),
    }
}

/// The current entry of an iterator.
pub(crate) fn current(iter: &dyn EntryIter) -> Option<Entry> {
    iter.valid().then(|| {
        assert_eq!(&*iter.value_slice(), iter.value());
        Entry { key: iter.key().to_vec(), seqno: iter.seqno(), kind: iter.kind(), value: iter.value().to_vec() }
    })
}

/// Makes the same calls on `subject` and `model`, and compares their positions after each.
pub(crate) fn assert_same(subject: &mut dyn EntryIter, model: &mut SortedVec, moves: &[Move]) {
    for (i, step) in moves.iter().enumerate() {
        apply(subject, step).expect("no error injected");
        apply(model, step).expect("a vector");
        assert_eq!(current(subject), current(model), "after move {i} of {moves:?}");
        if matches!(step, Move::Next) && model.valid() {
            assert_eq!(subject.repeats(), model.repeats(), "after move {i} of {moves:?}");
        }
        // Most moves follow each other: moves to the next entry or batch would leave few entries for the others.
        if i % 3 != 0 {
            continue;
        }
        if matches!(step, Move::Last | Move::SeekForPrev(..) | Move::Prev) {
            assert_batch(subject, model, i, false);
        }
        if subject.valid() && i % 2 == 0 {
            let next = subject.next_batch(&mut Batch::default(), &Wanted::NONE).expect("no error injected");
            model.next().expect("a vector");
            assert_eq!(current(subject), current(model), "after a step after move {i} of {moves:?}");
            let known = subject.valid().then(|| (subject.seqno(), subject.kind(), subject.repeats()));
            assert_eq!(subject.repeats() && subject.valid(), model.repeats(), "a step after move {i} of {moves:?}");
            let found = match next {
                Next::Batch => panic!("a batch of unwanted entries after move {i} of {moves:?}"),
                Next::Entry { seqno, kind, repeats } => Some((seqno, kind, repeats)),
                Next::End => None,
            };
            assert_eq!(found, known, "after move {i} of {moves:?}");
        }
        if subject.valid() {
            assert_batch(subject, model, i, true);
        }
    }
}

/// Fills a batch in the direction of the last move, and compares its entries and the resulting position with the model. `choice` decides which
/// entries are wanted.
fn assert_batch(subject: &mut dyn EntryIter, model: &mut SortedVec, choice: usize, is_forward: bool) {
    // Some versions are too new, and some keys beyond the bound.
    let middle = model.entries.get(model.entries.len() / 2).map(|entry| entry.key.clone()).unwrap_or_default();
    let bounds = [Bound::Unbounded, Bound::Excluded(&middle[..]), Bound::Included(&middle[..])];
    let (below, bound) = ([MAX_SEQNO, 25][choice / 9 % 2], bounds[choice / 3 % 3]);
    let (wanted, mut batch) = (Wanted { below, bound, is_near: false }, Batch::default());
    if !subject.valid() {
        return;
    }
    let mut left = match is_forward {
        true => match subject.next_batch(&mut batch, &wanted).expect("no error injected") {
            Next::Batch => true,
            Next::Entry { .. } | Next::End => {
                model.next().expect("a vector");
                false
            }
        },
        false => subject.fill(Direction::Backward, &mut batch, &wanted),
    };
    while left {
        if is_forward {
            model.next().expect("a vector");
        }
        let entry = model.current();
        let found = (batch.key(), batch.value(), &*batch.value_slice());
        assert_eq!(found, (&*entry.key, &*entry.value, &*entry.value));
        if let Some((key, value)) = batch.short_entry(&KeyPrefix::DEFAULT) {
            assert_eq!((&*key, &*value), (&*entry.key, &*entry.value));
        }
        let is_within = match (bound, is_forward) {
            (Bound::Excluded(bound), true) => *entry.key < *bound,
            (Bound::Excluded(bound), false) => *entry.key > *bound,
            (Bound::Included(bound), true) => *entry.key <= *bound,
            (Bound::Included(bound), false) => *entry.key >= *bound,
            (Bound::Unbounded, _) => true,
        };
        assert!(is_within && model.at.is_some_and(|at| model.is_plain(at, &wanted)), "{entry:?} in a batch");
        left = if is_forward { batch.next() } else { batch.prev() };
        if !is_forward {
            model.prev().expect("a vector");
        }
    }
    assert_eq!(current(subject), current(model), "after a batch below {below}, forward {is_forward}");
}

/// An iterator that counts its moves, both seeks and steps; moves after the first `most` fail.
pub(crate) struct Watched<I> {
    inner: I,
    moves: Arc<AtomicUsize>,
    most: usize,
}

impl<I> Watched<I> {
    pub(crate) fn new(inner: I, moves: &Arc<AtomicUsize>, most: usize) -> Self {
        Self { inner, moves: moves.clone(), most }
    }

    fn moved(&mut self) -> Result<&mut I> {
        let is_sound = self.moves.fetch_add(1, Ordering::Relaxed) < self.most;
        is_sound.then_some(&mut self.inner).ok_or(Error::Closed)
    }
}

impl<I: EntryIter> EntryIter for Watched<I> {
    fn valid(&self) -> bool {
        self.inner.valid()
    }
    fn key(&self) -> &[u8] {
        self.inner.key()
    }
    fn seqno(&self) -> SeqNo {
        self.inner.seqno()
    }
    fn kind(&self) -> Kind {
        self.inner.kind()
    }
    fn value(&self) -> &[u8] {
        self.inner.value()
    }
    fn seek_to_first(&mut self) -> Result<()> {
        self.moved()?.seek_to_first()
    }
    fn seek_to_last(&mut self) -> Result<()> {
        self.moved()?.seek_to_last()
    }
    fn seek(&mut self, key: &[u8], seqno: SeqNo) -> Result<()> {
        self.moved()?.seek(key, seqno)
    }
    fn seek_for_prev(&mut self, key: &[u8], seqno: SeqNo) -> Result<()> {
        self.moved()?.seek_for_prev(key, seqno)
    }
    fn next(&mut self) -> Result<()> {
        self.moved()?.next()
    }
    fn prev(&mut self) -> Result<()> {
        self.moved()?.prev()
    }
    fn repeats(&self) -> bool {
        self.inner.repeats()
    }
    fn next_batch(&mut self, batch: &mut Batch, wanted: &Wanted<'_>) -> Result<Next> {
        self.moved()?.next_batch(batch, wanted)
    }
    fn fill(&mut self, direction: Direction, batch: &mut Batch, wanted: &Wanted<'_>) -> bool {
        self.moved().is_ok_and(|inner| inner.fill(direction, batch, wanted))
    }
}

/// Of the first `most` entries that an iterator shows, from the first or from the last one on, what `take` takes.
pub(crate) fn shown<I: EntryIter, T>(
    iter: &mut VisibleIter<I>,
    (is_forward, most): (bool, usize),
    take: impl Fn(&VisibleIter<I>) -> T,
) -> Vec<T> {
    let mut shown = Vec::new();
    if is_forward { iter.seek_to_first() } else { iter.seek_to_last() }.expect("no error injected");
    while iter.valid() && shown.len() < most {
        shown.push(take(iter));
        if is_forward { iter.next() } else { iter.prev() }.expect("no error injected");
    }
    shown
}

/// The greatest number in [`many_versions`].
const NEWEST: SeqNo = 10_000;

/// Three keys, of which only the middle one was overwritten, often.
pub(crate) fn many_versions() -> Vec<Entry> {
    let key = |seqno| match seqno {
        1 => b"a",
        NEWEST => b"c",
        _ => b"b",
    };
    let entry =
        |seqno: SeqNo| Entry { key: key(seqno).to_vec(), seqno, kind: Kind::Value, value: seqno.to_be_bytes().into() };
    (1..=NEWEST).map(entry).collect()
}

/// Reads sources that together contain [`many_versions`], at all snapshots and in both directions, and checks the results and the number of moves.
pub(crate) fn assert_few_moves<I: EntryIter>(sources: impl Fn() -> Vec<I>) {
    for snapshot in [1, 2, 20, NEWEST / 2, NEWEST - 20, NEWEST - 1, NEWEST] {
        let all =
            [(b"a", 1), (b"b", snapshot.min(NEWEST - 1)), (b"c", NEWEST)].map(|(key, seqno)| (key.to_vec(), seqno));
        let is_seen = |(key, seqno): &(Vec<u8>, SeqNo)| *seqno <= snapshot && (key != b"b" || snapshot > 1);
        let expected: Vec<_> = all.into_iter().filter(is_seen).collect();
        for is_forward in [true, false] {
            let moves = Arc::default();
            let counted: Vec<_> =
                sources().into_iter().map(|source| Watched::new(source, &moves, usize::MAX)).collect();
            let most = 100 * counted.len();
            let mut iter = VisibleIter::new(MergeIter::new(counted), snapshot, Bound::Unbounded, Bound::Unbounded);
            let mut shown = shown(&mut iter, (is_forward, usize::MAX), |iter| {
                (iter.key().to_vec(), SeqNo::from_be_bytes(iter.value().try_into().expect("eight bytes")))
            });
            if !is_forward {
                shown.reverse();
            }
            assert_eq!(shown, expected, "at {snapshot}");
            let moves = moves.load(Ordering::Relaxed);
            assert!(moves <= most, "{moves} moves, forward {is_forward}, at {snapshot}");
        }
    }
}
