//! Merging and visibility compared with sorted vectors and maps.

use std::collections::BTreeMap;
use std::collections::btree_map::Range;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;

use super::model::{
    Entry, Move, SortedVec, Watched, assert_few_moves, assert_same, current, entries, keys, many_versions, moves, shown,
};
use super::*;
use crate::error::Error;
use crate::types::{Millis, RangeTombstone, RangeTombstones, Span};

fn split(all: &[Entry], parts: &[usize], n: usize) -> Vec<SortedVec> {
    let part = |p: usize| {
        let own = all.iter().zip(parts.iter().cycle()).filter(|&(_, &q)| q % n == p);
        SortedVec::new(own.map(|(entry, _)| entry.clone()).collect())
    };
    (0..n).map(part).collect()
}

/// The entries that a snapshot sees, and when they expire: the newest version of each key with a number <= the snapshot's, without tombstones,
/// covered entries and those that have expired by the instant.
fn visible(
    all: &[Entry],
    ranges: &RangeTombstones,
    (snapshot, instant): (SeqNo, Millis),
) -> BTreeMap<Vec<u8>, (Vec<u8>, Option<Millis>)> {
    let mut newest: BTreeMap<&[u8], &Entry> = BTreeMap::new();
    for entry in all.iter().filter(|e| e.seqno <= snapshot) {
        let kept = newest.entry(&entry.key).or_insert(entry);
        if entry.seqno > kept.seqno {
            *kept = entry;
        }
    }
    let is_covered = |e: &Entry| ranges.covering(&e.key, snapshot) > Some(e.seqno);
    let value = |e: &Entry| match e.kind {
        Kind::Value => Some((e.value.clone(), None)),
        Kind::Tombstone => None,
        Kind::Expiring => {
            let (at, value) = (Millis::from(e.value[0]), e.value[8..].to_vec());
            (at > instant).then_some((value, Some(at)))
        }
    };
    let live = newest.into_values().filter(|e| !is_covered(e));
    live.filter_map(|e| Some((e.key.clone(), value(e)?))).collect()
}

/// The same entries on fewer keys.
fn crowd(all: Vec<Entry>) -> Vec<Entry> {
    let short = |mut entry: Entry| {
        entry.key.truncate(1);
        ((entry.key.clone(), entry.seqno), entry)
    };
    all.into_iter().map(short).collect::<BTreeMap<_, _>>().into_values().collect()
}

fn bounds() -> impl Strategy<Value = Bound<Vec<u8>>> {
    prop_oneof![Just(Bound::Unbounded), keys().prop_map(Bound::Included), keys().prop_map(Bound::Excluded)]
}

fn within(key: &[u8], lower: &Bound<Vec<u8>>, upper: &Bound<Vec<u8>>) -> bool {
    std::ops::RangeBounds::contains(&(lower.as_ref(), upper.as_ref()), &key.to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_merge_is_the_sorted_union_in_both_directions(
        all in entries(60), parts in prop::collection::vec(0usize..5, 1..20), n in 1usize..6, moves in moves(),
    ) {
        // Catches an entry that is lost, repeated or out of order, in particular where the direction changes.
        let mut merge = MergeIter::new(split(&all, &parts, n));
        assert_same(&mut merge, &mut SortedVec::new(all), &moves);
    }

    #[test]
    fn equal_entries_of_several_inputs_come_in_the_order_of_the_inputs(all in entries(12), moves in moves()) {
        // Catches a change of direction that skips or repeats an equal entry of another input.
        let tagged = |tag: u8| {
            let mut own = all.clone();
            own.iter_mut().for_each(|entry| entry.value = vec![tag]);
            own
        };
        let mut merge = MergeIter::new([0, 1, 2].map(|tag| SortedVec::new(tagged(tag))).into());
        // A stable sort keeps the order of the inputs among equals.
        let mut model = SortedVec::new([0, 1, 2].into_iter().flat_map(tagged).collect());
        let is_step = |step: &Move| !matches!(step, Move::Seek(..) | Move::SeekForPrev(..));
        let steps: Vec<Move> = moves.into_iter().filter(is_step).collect();
        assert_same(&mut merge, &mut model, &steps);
    }

    #[test]
    fn an_iterator_shows_what_its_snapshot_sees_within_its_bounds(
        all in entries(250), is_crowded in any::<bool>(),
        ranges in prop_oneof![Just(Vec::new()), prop::collection::vec((keys(), keys(), 0u64..50), 1..5)],
        snapshot in 0u64..55, instant in 0u64..4, lower in bounds(), upper in bounds(), moves in moves(), mut cuts in [0u64..50, 0u64..50],
    ) {
        // Catches a hidden version that is shown, a deleted key that is returned, a bound that is exceeded, a duplicate key after a turn, and a seek
        // past hidden entries (many versions of a key, or many keys that a range tombstone covers) that also skips visible ones. Also catches an
        // entry that is shown from its instant on, an older version of it shown instead, and a value that begins with the instant. Only without range
        // tombstones are entries shown in batches.
        let all: Vec<Entry> = if is_crowded { crowd(all) } else { all };
        let ranges = ranges.into_iter().map(|(start, end, seqno)| RangeTombstone { start: start.into(), end: end.into(), seqno });
        let ranges = RangeTombstones::new(ranges);
        let mut seen = visible(&all, &ranges, (snapshot, instant));
        seen.retain(|key, _| within(key, &lower, &upper));
        // Each source contains newer versions than the next one.
        cuts.sort_unstable();
        let source = |seqno: SeqNo| cuts.iter().filter(|cut| seqno < **cut).count();
        let part = |n: usize| SortedVec::new(all.iter().filter(|entry| source(entry.seqno) == n).cloned().collect());
        let merge = MergeIter::new((0..3).map(part).collect());
        let mut hidden = Hidden::new(snapshot);
        for n in 0..3 {
            let own = ranges.retain(|range| source(range.seqno) == n);
            if own.iter().next().is_some() {
                hidden.add(n, Box::new(RangesInMemory::new(Arc::new(own))));
            }
        }
        let [lower, upper] = [lower, upper].map(|bound| bound.map(Slice::from));
        let mut iter = VisibleIter::new(merge, snapshot, lower, upper).hiding(hidden).at(instant);
        let mut at: Option<Vec<u8>> = None;
        for (i, step) in moves.iter().enumerate() {
            let first = |mut range: Range<'_, Vec<u8>, _>| range.next().map(|(k, _)| k.clone());
            let last = |mut range: Range<'_, Vec<u8>, _>| range.next_back().map(|(k, _)| k.clone());
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
                let (value, expiry) = &seen[key];
                prop_assert_eq!(iter.value(), &value[..]);
                prop_assert_eq!(&*iter.value_slice(), &value[..]);
                prop_assert_eq!(iter.expiry(), *expiry);
            }
        }
    }
}

#[test]
fn sources_that_take_turns_are_read_in_batches() {
    // Catches a merge that steps through single entries although only one source has keys in that place.
    let entry = |n: u8| Entry { key: vec![n], seqno: 1, kind: Kind::Value, value: vec![n] };
    let source = |of: u8| SortedVec::new((0..200).filter(|n| n / 10 % 2 == of).map(entry).collect());
    for is_forward in [true, false] {
        let moves = Arc::default();
        let children = [0, 1].map(|of| Watched::new(source(of), &moves, usize::MAX));
        let mut iter = VisibleIter::new(MergeIter::new(children.into()), 1, Bound::Unbounded, Bound::Unbounded);
        let mut shown = shown(&mut iter, (is_forward, usize::MAX), |iter| iter.key()[0]);
        if !is_forward {
            shown.reverse();
        }
        assert!(shown.into_iter().eq(0..200));
        let moves = moves.load(Ordering::Relaxed);
        assert!(moves <= 50, "{moves} moves for 20 turns, forward {is_forward}");
    }
}

#[test]
fn a_key_with_many_versions_takes_few_moves_in_either_direction() {
    // Catches a read that steps through all versions of a key: a backward read, or one at a number older than most of them.
    let all = many_versions();
    for sources in [1, 2, 5] {
        assert_few_moves(|| split(&all, &[0, 3, 1, 4, 2], sources));
    }
}

/// Range tombstones whose lookups are counted.
struct CountedRanges(RangesInMemory, Arc<AtomicUsize>);

impl RangeSource for CountedRanges {
    fn span(&mut self, key: &[u8], seqno: SeqNo) -> Result<Span> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.span(key, seqno)
    }
}

/// Creates many keys in the older of two sources, and range tombstones in the newer one. Reads ten keys in one direction, and returns the number of
/// moves and of range tombstone lookups.
fn read_ten(is_forward: bool, ranges: impl IntoIterator<Item = (u32, u32)>) -> (Vec<u32>, usize, usize) {
    let (moves, lookups) = <(Arc<AtomicUsize>, Arc<AtomicUsize>)>::default();
    let entry = |key: u32| Entry { key: key.to_be_bytes().into(), seqno: 1, kind: Kind::Value, value: Vec::new() };
    let older = SortedVec::new((0..20_000).map(|n| entry(10 * n)).collect());
    let sources = [SortedVec::new(Vec::new()), older].map(|source| Watched::new(source, &moves, usize::MAX));
    let range = |(start, end): (u32, u32)| {
        let [start, end] = [start, end].map(|key| Slice::from(&key.to_be_bytes()[..]));
        RangeTombstone { start, end, seqno: 2 }
    };
    let ranges = RangesInMemory::new(Arc::new(RangeTombstones::new(ranges.into_iter().map(range))));
    let mut hidden = Hidden::new(9);
    hidden.add(0, Box::new(CountedRanges(ranges, lookups.clone())));
    let mut iter =
        VisibleIter::new(MergeIter::new(sources.into()), 9, Bound::Unbounded, Bound::Unbounded).hiding(hidden);
    let number = |iter: &VisibleIter<_>| u32::from_be_bytes(iter.key().try_into().expect("four bytes"));
    let shown = shown(&mut iter, (is_forward, 10), number);
    (shown, moves.load(Ordering::Relaxed), lookups.load(Ordering::Relaxed))
}

#[test]
fn a_scan_looks_up_the_range_tombstones_around_its_keys_only() {
    // Catches range tombstones that are collected although the scan never reaches them, and one that is looked up again for each key next to it.
    for (is_forward, first) in [(true, 0), (false, 199_990)] {
        let keys = (0..10).map(|n: u32| if is_forward { 10 * n } else { first - 10 * n }).collect::<Vec<_>>();
        let (_, plain, _) = read_ten(is_forward, []);
        let between = (0..20_000).flat_map(|n| (0..5).map(move |at| (10 * n + 2 * at + 1, 10 * n + 2 * at + 2)));
        let (shown, moves, lookups) = read_ten(is_forward, between);
        assert_eq!((&shown, moves), (&keys, plain));
        assert!(lookups <= 11, "{lookups} lookups");
        // All range tombstones are on the other side of the keys that are read.
        let beside = (0..100_000).map(|n| if is_forward { 100_001 + 2 * n } else { 2 * n }).map(|at| (at, at + 1));
        let beside = beside.filter(|(at, _)| is_forward || *at < 199_000);
        let (shown, moves, lookups) = read_ten(is_forward, beside);
        assert_eq!((&shown, moves, lookups), (&keys, plain, 1));
    }
}

#[test]
fn what_newer_sources_hide_is_left_out_by_a_seek() {
    // Catches a scan that steps through all entries that a range tombstone covers.
    for is_forward in [true, false] {
        let keys = (0..10u32).map(|n| if is_forward { 199_900 + 10 * n } else { 90 - 10 * n }).collect::<Vec<_>>();
        let hidden = if is_forward { (0, 199_895) } else { (95, u32::MAX) };
        let (shown, moves, lookups) = read_ten(is_forward, [hidden]);
        assert_eq!(shown, keys);
        assert!(moves < 60 && lookups <= 2, "{moves} moves, {lookups} lookups");
        // The ranges are adjacent and extend to the end of all keys.
        let hidden = (0..4).map(|n| (50_000 * n, 50_000 * (n + 1)));
        let (shown, moves, lookups) = read_ten(is_forward, hidden);
        assert_eq!(shown, [0; 0]);
        assert!(moves < 200 && lookups <= 4, "{moves} moves, {lookups} lookups");
    }
}

#[test]
fn an_error_of_an_input_surfaces_and_leaves_the_iterator_invalid() {
    // Catches an unreadable input that is treated as one that has ended: its keys would silently be missing.
    let entry = |key: u8| Entry { key: vec![key], seqno: 1, kind: Kind::Value, value: vec![key] };
    for forward in [true, false] {
        for calls_left in 0..6 {
            let sound = SortedVec::new((0..10).step_by(2).map(entry).collect());
            let failing = SortedVec::new((1..10).step_by(2).map(entry).collect());
            let watch = |(iter, most)| Watched::new(iter, &Arc::default(), most);
            let merge = MergeIter::new([(sound, usize::MAX), (failing, calls_left)].map(watch).into());
            let mut iter = VisibleIter::new(merge, 9, Bound::Unbounded, Bound::Unbounded);
            let mut result = if forward { iter.seek_to_first() } else { iter.seek_to_last() };
            let mut shown = 0;
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
        assert!(matches!(merge.next_batch(&mut Batch::default(), &Wanted::NONE), Ok(Next::End)));
    }
    let mut iter = VisibleIter::<SortedVec>::new(merge, 1, Bound::Unbounded, Bound::Unbounded);
    iter.next().expect("nothing to fail");
    assert!(!iter.valid() && iter.value().is_empty() && iter.value_slice().is_empty());
}
