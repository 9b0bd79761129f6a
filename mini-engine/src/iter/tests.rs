//! Merging and visibility against sorted vectors and maps.

use std::collections::BTreeMap;
use std::collections::btree_map::Range;
use std::ops::Bound;

use proptest::prelude::*;

use super::model::{
    BoxedIter, Entry, Move, SortedVec, assert_few_moves, assert_same, current, entries, keys, many_versions, moves,
};
use super::*;
use crate::error::Error;

fn split(all: &[Entry], parts: &[usize], n: usize) -> Vec<BoxedIter> {
    let part = |p: usize| {
        let own = all.iter().zip(parts.iter().cycle()).filter(|&(_, &q)| q % n == p);
        SortedVec::new(own.map(|(entry, _)| entry.clone()).collect())
    };
    (0..n).map(|p| Box::new(part(p)) as BoxedIter).collect()
}

/// What a snapshot sees: the newest version of each key not newer than it, tombstones left out.
fn visible(all: &[Entry], snapshot: SeqNo) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut newest: BTreeMap<&[u8], &Entry> = BTreeMap::new();
    for entry in all.iter().filter(|e| e.seqno <= snapshot) {
        let kept = newest.entry(&entry.key).or_insert(entry);
        if entry.seqno > kept.seqno {
            *kept = entry;
        }
    }
    let live = newest.into_values().filter(|e| e.kind == Kind::Value);
    live.map(|e| (e.key.clone(), e.value.clone())).collect()
}

fn bounds() -> impl Strategy<Value = Bound<Vec<u8>>> {
    prop_oneof![Just(Bound::Unbounded), keys().prop_map(Bound::Included), keys().prop_map(Bound::Excluded)]
}

fn within(key: &[u8], lower: &Bound<Vec<u8>>, upper: &Bound<Vec<u8>>) -> bool {
    let above = match lower {
        Bound::Unbounded => true,
        Bound::Included(l) => key >= &l[..],
        Bound::Excluded(l) => key > &l[..],
    };
    let below = match upper {
        Bound::Unbounded => true,
        Bound::Included(u) => key <= &u[..],
        Bound::Excluded(u) => key < &u[..],
    };
    above && below
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_merge_is_the_sorted_union_in_both_directions(
        all in entries(60), parts in prop::collection::vec(0usize..5, 1..20), n in 1usize..6, moves in moves(),
    ) {
        // Catches an entry lost, repeated or out of order, above all where the direction changes.
        let mut merge = MergeIter::new(split(&all, &parts, n));
        assert_same(&mut merge, &mut SortedVec::new(all), &moves);
    }

    #[test]
    fn equal_entries_of_several_inputs_come_in_the_order_of_the_inputs(all in entries(12), moves in moves()) {
        // Catches a change of direction that skips or repeats a twin.
        let tagged = |tag: u8| {
            let mut own = all.clone();
            own.iter_mut().for_each(|entry| entry.value = vec![tag]);
            own
        };
        let inputs = [0, 1, 2].map(|tag| Box::new(SortedVec::new(tagged(tag))) as BoxedIter);
        let mut merge = MergeIter::new(inputs.into());
        // A stable sort keeps the order of the inputs among equals.
        let mut model = SortedVec::new([0, 1, 2].into_iter().flat_map(tagged).collect());
        let is_step = |step: &Move| !matches!(step, Move::Seek(..) | Move::SeekForPrev(..));
        let steps: Vec<Move> = moves.into_iter().filter(is_step).collect();
        assert_same(&mut merge, &mut model, &steps);
    }

    #[test]
    fn an_iterator_shows_what_its_snapshot_sees_within_its_bounds(
        all in entries(60), snapshot in 0u64..55, lower in bounds(), upper in bounds(), moves in moves(),
        parts in prop::collection::vec(0usize..3, 1..20),
    ) {
        // Catches a hidden version shown, a deleted key returned, a bound overstepped, a key twice after a turn.
        let mut seen: BTreeMap<Vec<u8>, Vec<u8>> = visible(&all, snapshot);
        seen.retain(|key, _| within(key, &lower, &upper));
        let merge = MergeIter::new(split(&all, &parts, 3));
        let [lower, upper] = [lower, upper].map(|bound| bound.map(Slice::from));
        let mut iter = VisibleIter::new(merge, snapshot, lower, upper);
        let mut at: Option<Vec<u8>> = None;
        for (i, step) in moves.iter().enumerate() {
            let first = |mut range: Range<'_, Vec<u8>, Vec<u8>>| range.next().map(|(k, _)| k.clone());
            let last = |mut range: Range<'_, Vec<u8>, Vec<u8>>| range.next_back().map(|(k, _)| k.clone());
            let unbounded = Bound::<Vec<u8>>::Unbounded;
            at = match step {
                Move::First => { iter.seek_to_first()?; first(seen.range::<Vec<u8>, _>(..)) }
                Move::Last => { iter.seek_to_last()?; last(seen.range::<Vec<u8>, _>(..)) }
                Move::Seek(key, _) => { iter.seek(key)?; first(seen.range(key.clone()..)) }
                Move::SeekForPrev(key, _) => { iter.seek_for_prev(key)?; last(seen.range(..=key.clone())) }
                Move::Next => { iter.next()?; at.and_then(|k| first(seen.range((Bound::Excluded(k), unbounded)))) }
                Move::Prev => { iter.prev()?; at.and_then(|k| last(seen.range((unbounded, Bound::Excluded(k))))) }
            };
            prop_assert_eq!(iter.valid(), at.is_some(), "after move {} of {:?}", i, moves);
            if let Some(key) = &at {
                prop_assert_eq!(iter.key(), &key[..], "after move {} of {:?}", i, moves);
                prop_assert_eq!(iter.value(), &seen[key][..]);
                prop_assert_eq!(&*iter.value_slice(), &seen[key][..]);
            }
        }
    }
}

#[test]
fn a_key_with_more_versions_than_are_stepped_over_is_left_behind_whole() {
    // Catches a seek past a key's versions that lands on one of them, or beyond the next key.
    let version = |key: &[u8], seqno| Entry { key: key.to_vec(), seqno, kind: Kind::Value, value: vec![seqno as u8] };
    let mut all: Vec<Entry> = (0..100).map(|seqno| version(b"b", seqno)).collect();
    all.extend([version(b"a", 3), version(b"c", 4)]);
    let mut iter = VisibleIter::new(SortedVec::new(all), 60, Bound::Unbounded, Bound::Unbounded);
    let mut shown = Vec::new();
    iter.seek_to_first().expect("a vector");
    while iter.valid() {
        shown.push((iter.key().to_vec(), iter.value().to_vec()));
        iter.next().expect("a vector");
    }
    let expected = vec![(b"a".to_vec(), vec![3]), (b"b".to_vec(), vec![60]), (b"c".to_vec(), vec![4])];
    assert_eq!(shown, expected);
}

#[test]
fn a_key_with_many_versions_takes_few_moves_in_either_direction() {
    // Catches a read that steps through all versions of a key: a reverse one, or one that is older than most of them.
    let all = many_versions();
    for sources in [1, 2, 5] {
        assert_few_moves(|| split(&all, &[0, 3, 1, 4, 2], sources));
    }
}

/// Fails the `n`-th call.
struct Failing {
    inner: SortedVec,
    calls_left: u32,
}

impl Failing {
    fn call(&mut self) -> Result<()> {
        self.calls_left = self.calls_left.checked_sub(1).ok_or(Error::Closed)?;
        Ok(())
    }
}

impl EntryIter for Failing {
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
        self.call()?;
        self.inner.seek_to_first()
    }
    fn seek_to_last(&mut self) -> Result<()> {
        self.call()?;
        self.inner.seek_to_last()
    }
    fn seek(&mut self, key: &[u8], seqno: SeqNo) -> Result<()> {
        self.call()?;
        self.inner.seek(key, seqno)
    }
    fn seek_for_prev(&mut self, key: &[u8], seqno: SeqNo) -> Result<()> {
        self.call()?;
        self.inner.seek_for_prev(key, seqno)
    }
    fn next(&mut self) -> Result<()> {
        self.call()?;
        self.inner.next()
    }
    fn prev(&mut self) -> Result<()> {
        self.call()?;
        self.inner.prev()
    }
    fn repeats(&self) -> bool {
        self.inner.repeats()
    }
}

#[test]
fn an_error_of_an_input_surfaces_and_leaves_the_iterator_invalid() {
    // Catches an unreadable input that is taken for one that has ended: its keys would silently be missing.
    let entry = |key: u8| Entry { key: vec![key], seqno: 1, kind: Kind::Value, value: vec![key] };
    for forward in [true, false] {
        for calls_left in 0..6 {
            let sound = SortedVec::new((0..10).step_by(2).map(entry).collect());
            let failing = Failing { inner: SortedVec::new((1..10).step_by(2).map(entry).collect()), calls_left };
            let merge = MergeIter::<BoxedIter>::new(vec![Box::new(sound), Box::new(failing)]);
            let mut iter = VisibleIter::new(merge, 9, Bound::Unbounded, Bound::Unbounded);
            let mut result = if forward { iter.seek_to_first() } else { iter.seek_to_last() };
            let mut shown = 0u32;
            while result.is_ok() && iter.valid() {
                shown += 1;
                result = if forward { iter.next() } else { iter.prev() };
            }
            assert!(matches!(result, Err(Error::Closed)), "{shown} shown with {calls_left} calls");
            assert!(!iter.valid() && shown <= 2 * calls_left);
        }
    }
}

#[test]
fn an_unpositioned_iterator_is_invalid_and_stays_so() {
    // Catches a step on an empty heap.
    let mut merge = MergeIter::<SortedVec>::new(Vec::new());
    for step in [MergeIter::next, MergeIter::prev, MergeIter::seek_to_first, MergeIter::seek_to_last] {
        step(&mut merge).expect("nothing to fail");
        assert_eq!(current(&merge), None);
    }
    let mut iter = VisibleIter::new(merge, 1, Bound::Unbounded, Bound::Unbounded);
    iter.next().expect("nothing to fail");
    assert!(!iter.valid() && iter.value().is_empty() && iter.value_slice().is_empty());
}
