//! Random operations on a `Memtable` against a map of versions, every read method compared after each step.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Bound;

use fastskip::{InsertError, Kind, Lookup, Memtable, MemtableCursor, Op, Version};
use proptest::prelude::*;

#[derive(Debug, Clone)]
enum Step {
    Put(Vec<u8>, u64, Vec<u8>),
    Delete(Vec<u8>, u64),
    Apply(Vec<(Vec<u8>, Option<Vec<u8>>)>, u64),
    ApplyAt(Vec<(Vec<u8>, Option<Vec<u8>>)>, u64),
    Abandon(Vec<Vec<u8>>),
}

fn key() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop_oneof![Just(0_u8), Just(b'a'), Just(b'b')], 0..4)
}

/// Few numbers, so that they collide and are not in order, and both ends of the range.
fn seqno() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0..8_u64, 1 => Just(u64::MAX)]
}

fn step() -> impl Strategy<Value = Step> {
    let value = || prop::collection::vec(any::<u8>(), 0..80);
    let writes = || prop::collection::vec((key(), prop::option::of(value())), 0..6);
    prop_oneof![
        4 => (key(), seqno(), value()).prop_map(|(k, s, v)| Step::Put(k, s, v)),
        2 => (key(), seqno()).prop_map(|(k, s)| Step::Delete(k, s)),
        3 => (writes(), seqno()).prop_map(|(w, s)| Step::Apply(w, s)),
        3 => (writes(), seqno()).prop_map(|(w, s)| Step::ApplyAt(w, s)),
        1 => prop::collection::vec(key(), 0..4).prop_map(Step::Abandon),
    ]
}

/// `None` is a tombstone. Ordered as the table is: keys ascending, and of a key the newest first.
type Model = BTreeMap<Key, Option<Vec<u8>>>;
type Key = (Vec<u8>, Reverse<u64>);

fn version<'a>(((key, seqno), value): (&'a Key, &'a Option<Vec<u8>>)) -> Version<'a> {
    let kind = if value.is_some() { Kind::Value } else { Kind::Tombstone };
    Version::new(key, seqno.0, kind, value.as_deref().unwrap_or_default())
}

fn visible(model: &Model, seqno: u64) -> Vec<Version<'_>> {
    let mut newest: Vec<Version<'_>> = Vec::new();
    for version in model.iter().map(version).filter(|version| version.seqno <= seqno) {
        if newest.last().is_none_or(|last| last.key != version.key) {
            newest.push(version);
        }
    }
    newest
}

fn compare_reads(memtable: &Memtable, model: &Model, a: &[u8], b: &[u8]) {
    let all: Vec<_> = model.iter().map(version).collect();
    assert_eq!(memtable.all_versions().collect::<Vec<_>>(), all);
    assert_eq!(memtable.all_versions().rev().collect::<Vec<_>>(), all.iter().rev().copied().collect::<Vec<_>>());
    assert_eq!((memtable.len(), memtable.is_empty()), (all.len(), all.is_empty()));
    for seqno in (0..9).chain([u64::MAX]) {
        let expected = visible(model, seqno);
        assert_eq!(memtable.iter(seqno).collect::<Vec<_>>(), expected);
        compare_bounds(memtable, &expected, a, b, seqno);
        let prefixed = expected.iter().filter(|version| version.key.starts_with(a));
        assert!(memtable.prefix(a, seqno).eq(prefixed.clone().copied()));
        assert!(memtable.prefix(a, seqno).rev().eq(prefixed.rev().copied()));
        compare_versions(memtable, &all, (a, seqno), (b, 3));
        for key in model.keys().map(|(key, _)| key.as_slice()).chain([a, b]) {
            let found = expected.iter().find(|version| version.key == key);
            assert_eq!(memtable.get_version(key, seqno), found.copied());
            let lookup = match found {
                None => Lookup::Absent,
                Some(version) if version.kind == Kind::Tombstone => Lookup::Tombstone,
                Some(version) => Lookup::Value(version.value),
            };
            assert_eq!(memtable.get(key, seqno), lookup);
            assert_eq!(memtable.get_many(&[key], seqno), [lookup]);
        }
        compare_cursor(&memtable.cursor(), &all, (a, seqno));
        for visible_at in [seqno, seqno / 2, 3] {
            compare_cursor(&memtable.cursor().visible_at(visible_at), &visible(model, visible_at), (a, seqno));
        }
    }
    memtable.validate();
}

fn compare_bounds(memtable: &Memtable, visible: &[Version<'_>], a: &[u8], b: &[u8], seqno: u64) {
    for lower in [Bound::Unbounded, Bound::Included(a), Bound::Excluded(a)] {
        for upper in [Bound::Unbounded, Bound::Included(b), Bound::Excluded(b)] {
            let is_below = |key: &[u8]| match lower {
                Bound::Unbounded => false,
                Bound::Included(low) => key < low,
                Bound::Excluded(low) => key <= low,
            };
            let is_above = |key: &[u8]| match upper {
                Bound::Unbounded => false,
                Bound::Included(high) => key > high,
                Bound::Excluded(high) => key >= high,
            };
            let within: Vec<_> = visible.iter().filter(|v| !is_below(v.key) && !is_above(v.key)).copied().collect();
            let range = || memtable.range((lower, upper), seqno);
            assert_eq!(range().collect::<Vec<_>>(), within);
            assert_eq!(range().rev().collect::<Vec<_>>(), within.iter().rev().copied().collect::<Vec<_>>());
            compare_both_ends(range(), &within);
        }
    }
}

/// Every version between two positions.
fn compare_versions(memtable: &Memtable, all: &[Version<'_>], a: (&[u8], u64), b: (&[u8], u64)) {
    let order = |version: &Version<'_>, place: (&[u8], u64)| {
        (version.key, Reverse(version.seqno)).cmp(&(place.0, Reverse(place.1)))
    };
    for lower in [Bound::Unbounded, Bound::Included(a), Bound::Excluded(a)] {
        for upper in [Bound::Unbounded, Bound::Included(b), Bound::Excluded(b)] {
            let is_within = |version: &&Version<'_>| {
                (match lower {
                    Bound::Unbounded => true,
                    Bound::Included(low) => order(version, low).is_ge(),
                    Bound::Excluded(low) => order(version, low).is_gt(),
                }) && match upper {
                    Bound::Unbounded => true,
                    Bound::Included(high) => order(version, high).is_le(),
                    Bound::Excluded(high) => order(version, high).is_lt(),
                }
            };
            let within: Vec<_> = all.iter().filter(is_within).copied().collect();
            let range = || memtable.versions((lower, upper));
            assert_eq!(range().collect::<Vec<_>>(), within);
            assert_eq!(range().rev().collect::<Vec<_>>(), within.iter().rev().copied().collect::<Vec<_>>());
            compare_both_ends(range(), &within);
        }
    }
}

fn operation<'a>((key, value): &'a (Vec<u8>, Option<Vec<u8>>)) -> Op<'a> {
    match value {
        Some(value) => Op::Put { key, value },
        None => Op::Delete { key },
    }
}

fn compare_both_ends<'a>(mut range: impl DoubleEndedIterator<Item = Version<'a>>, expected: &[Version<'_>]) {
    let mut rest = expected;
    while let Some((first, others)) = rest.split_first() {
        assert_eq!(range.next(), Some(*first));
        rest = others;
        if let Some((last, others)) = rest.split_last() {
            assert_eq!(range.next_back(), Some(*last));
            rest = others;
        }
    }
    // The back first: what the front took of a key must not come again from there.
    assert_eq!((range.next_back(), range.next()), (None, None));
}

/// Every move of a cursor that shows `shown`, with `target` as the position sought.
fn compare_cursor(cursor: &MemtableCursor<'_>, shown: &[Version<'_>], target: (&[u8], u64)) {
    assert_eq!((cursor.valid(), cursor.version()), (!shown.is_empty(), shown.first().copied()));
    let place = |version: &Version<'_>| (version.key, Reverse(version.seqno)).cmp(&(target.0, Reverse(target.1)));
    let (key, seqno) = target;
    let mut moved = cursor.clone();
    let ends = |found: bool, moved: &mut MemtableCursor<'_>, at: Option<usize>| {
        assert_eq!((found, moved.valid()), (at.is_some(), at.is_some()));
        assert_eq!(moved.version(), at.map(|at| shown[at]));
    };
    for (exclusive, at) in
        [(false, shown.iter().position(|v| place(v).is_ge())), (true, shown.iter().position(|v| place(v).is_gt()))]
    {
        let found = if exclusive { moved.seek_exclusive(key, seqno) } else { moved.seek(key, seqno) };
        ends(found, &mut moved, at);
        compare_steps(&moved, shown, at.unwrap_or(shown.len()));
    }
    for (exclusive, at) in
        [(false, shown.iter().rposition(|v| place(v).is_le())), (true, shown.iter().rposition(|v| place(v).is_lt()))]
    {
        let found = if exclusive { moved.seek_before(key, seqno) } else { moved.seek_for_prev(key, seqno) };
        ends(found, &mut moved, at);
        compare_steps(&moved, shown, at.map_or(0, |at| at + 1));
    }
    let last = moved.seek_to_last();
    ends(last, &mut moved, shown.len().checked_sub(1));
    assert!(std::iter::from_fn(|| moved.prev()).eq(shown.iter().rev().copied()));
    assert!(moved.by_ref().eq(shown.iter().copied()), "from before the first entry");
    assert_eq!(moved.prev(), shown.last().copied(), "from behind the last entry");
    let first = moved.seek_to_first();
    ends(first, &mut moved, if shown.is_empty() { None } else { Some(0) });
    let newest = shown.chunk_by(|a, b| a.key == b.key).map(|versions| versions[0]);
    assert!(std::iter::from_fn(|| moved.next_key()).eq(newest.clone()));
    assert!(std::iter::from_fn(|| moved.prev_key()).eq(newest.rev()));
}

/// The steps from where a search led: until one is taken, the cursor is in a gap between what is shown.
fn compare_steps(found: &MemtableCursor<'_>, shown: &[Version<'_>], gap: usize) {
    let (before, behind) = shown.split_at(gap);
    let mut moved = found.clone();
    assert!(moved.by_ref().eq(behind.iter().copied()));
    assert_eq!((moved.valid(), moved.prev()), (false, shown.last().copied()), "from behind the last entry");
    let mut moved = found.clone();
    assert!(std::iter::from_fn(|| moved.prev()).eq(before.iter().rev().copied()));
    assert_eq!((moved.valid(), moved.next()), (false, shown.first().copied()), "from before the first entry");
}

fn apply(memtable: &Memtable, model: &mut Model, step: &Step) {
    let mut store = |key: &[u8], seqno: u64, value: Option<Vec<u8>>| {
        let len = model.len();
        model.entry((key.to_vec(), Reverse(seqno))).or_insert(value);
        model.len() > len
    };
    let result = |stored| if stored { Ok(()) } else { Err(InsertError::DuplicateKey) };
    match step {
        Step::Put(key, seqno, value) => {
            assert_eq!(memtable.put(key, *seqno, value), result(store(key, *seqno, Some(value.clone()))));
        }
        Step::Delete(key, seqno) => assert_eq!(memtable.delete(key, *seqno), result(store(key, *seqno, None))),
        Step::Apply(writes, first) => {
            let ops: Vec<_> = writes.iter().map(operation).collect();
            let numbered = writes.iter().zip(0..);
            let stored =
                numbered.filter(|((key, value), index)| store(key, first.saturating_add(*index), value.clone()));
            let stored = stored.count();
            assert_eq!(memtable.reserve(&ops).unwrap().apply(*first), stored);
        }
        Step::ApplyAt(writes, seqno) => {
            let ops: Vec<_> = writes.iter().map(operation).collect();
            // The last write of a key wins.
            let stored = writes.iter().rev().filter(|(key, value)| store(key, *seqno, value.clone())).count();
            assert_eq!(memtable.apply_at(&ops, *seqno), Ok(stored));
        }
        Step::Abandon(keys) => {
            let ops: Vec<_> = keys.iter().map(|key| Op::Delete { key }).collect();
            drop(memtable.reserve(&ops).unwrap());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Catches any read or write method that departs from a map of versions, live and frozen.
    #[test]
    fn memtable_behaves_as_a_map_of_versions(steps in prop::collection::vec(step(), 1..30), a in key(), b in key(), shards in 1..4_usize) {
        let memtable = Memtable::builder().shards(shards).build();
        let mut model = Model::new();
        for step in &steps {
            apply(&memtable, &mut model, step);
            compare_reads(&memtable, &model, &a, &b);
        }
        let frozen = memtable.freeze();
        prop_assert_eq!(memtable.put(b"late", 1, b""), Err(InsertError::Sealed));
        drop(memtable);
        compare_reads(&frozen, &model, &a, &b);
    }
}
