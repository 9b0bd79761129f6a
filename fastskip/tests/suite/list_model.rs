//! Random operations on a `ConcurrentSkipList` against an ordinary map, every read method compared after each step.

use std::collections::BTreeMap;
use std::ops::Bound;

use fastskip::{ConcurrentSkipList, Cursor, Entry, InsertError};
use proptest::prelude::*;

#[derive(Debug, Clone)]
enum Step {
    Insert(Vec<u8>, Vec<u8>),
    GetOrInsert(Vec<u8>, Vec<u8>),
    Batch(Vec<(Vec<u8>, Vec<u8>)>),
    Delete(Vec<u8>),
    Tombstone(Vec<u8>),
    Snapshot,
    Seal,
    Reset,
}

/// Few distinct keys, with zeros, shared prefixes and prefixes of each other.
fn key() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        8 => prop::collection::vec(prop_oneof![Just(0_u8), Just(b'a'), Just(b'b'), Just(255)], 0..5),
        1 => (250..262_usize, any::<u8>()).prop_map(|(len, last)| {
            let mut key = vec![b'p'; len];
            key.push(last);
            key
        }),
    ]
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![prop::collection::vec(any::<u8>(), 0..4), prop::collection::vec(any::<u8>(), 60..140)]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (key(), value()).prop_map(|(k, v)| Step::Insert(k, v)),
        4 => (key(), value()).prop_map(|(k, v)| Step::GetOrInsert(k, v)),
        2 => prop::collection::vec((key(), value()), 0..6).prop_map(Step::Batch),
        6 => key().prop_map(Step::Delete),
        4 => key().prop_map(Step::Tombstone),
        2 => Just(Step::Snapshot),
        1 => Just(Step::Seal),
        1 => Just(Step::Reset),
    ]
}

type Model = BTreeMap<Vec<u8>, (Vec<u8>, bool)>;

fn entries<'a>(model: impl IntoIterator<Item = (&'a Vec<u8>, &'a (Vec<u8>, bool))>) -> Vec<Entry<'a>> {
    let entry = |(key, (value, is_tombstone)): (&'a Vec<u8>, &'a (Vec<u8>, bool))| Entry {
        key,
        value,
        is_tombstone: *is_tombstone,
    };
    model.into_iter().map(entry).collect()
}

fn compare_reads(list: &ConcurrentSkipList, model: &Model, probe: &[u8], other: &[u8]) {
    let expected = entries(model);
    assert_eq!(list.iter().collect::<Vec<_>>(), expected);
    assert_eq!(list.iter().rev().collect::<Vec<_>>(), expected.iter().rev().copied().collect::<Vec<_>>());
    assert_eq!(list.cursor().collect::<Vec<_>>(), expected);
    assert_eq!(list.cursor().valid(), !expected.is_empty());
    let live = expected.iter().filter(|entry| !entry.is_tombstone).count();
    assert_eq!((list.len(), list.is_empty()), (live, live == 0));
    compare_lookups(list, model, &[probe, other]);
    compare_bounds(list, model, probe, other);
    compare_cursor(list, &expected, probe);
    list.validate();
}

fn compare_lookups(list: &ConcurrentSkipList, model: &Model, keys: &[&[u8]]) {
    for key in keys.iter().copied().chain(model.keys().map(Vec::as_slice)) {
        let expected = model.get(key).map(|(value, dead)| (value.as_slice(), *dead));
        assert_eq!(list.get(key), expected);
        let live = expected.filter(|(_, dead)| !dead).map(|(value, _)| value);
        assert_eq!(list.get_live(key), live);
        assert_eq!(list.contains_key(key), live.is_some());
        assert_eq!(list.get_many(&[key]), [live]);
    }
}

fn compare_bounds(list: &ConcurrentSkipList, model: &Model, a: &[u8], b: &[u8]) {
    for lower in [Bound::Unbounded, Bound::Included(a), Bound::Excluded(a)] {
        for upper in [Bound::Unbounded, Bound::Included(b), Bound::Excluded(b)] {
            let inside = |key: &[u8]| {
                (match lower {
                    Bound::Unbounded => true,
                    Bound::Included(low) => key >= low,
                    Bound::Excluded(low) => key > low,
                }) && match upper {
                    Bound::Unbounded => true,
                    Bound::Included(high) => key <= high,
                    Bound::Excluded(high) => key < high,
                }
            };
            let expected = entries(model.iter().filter(|(key, _)| inside(key)));
            let range = || list.range((lower, upper));
            assert_eq!(range().collect::<Vec<_>>(), expected);
            assert_eq!(range().rev().collect::<Vec<_>>(), expected.iter().rev().copied().collect::<Vec<_>>());
            assert_eq!(from_both_ends(range()), expected);
        }
    }
    let expected = entries(model.iter().filter(|(key, _)| key.starts_with(a)));
    assert_eq!(list.prefix(a).collect::<Vec<_>>(), expected);
}

/// Takes from both ends in turns, and puts the halves together again.
fn from_both_ends<'a>(mut range: impl DoubleEndedIterator<Item = Entry<'a>>) -> Vec<Entry<'a>> {
    let (mut front, mut back) = (Vec::new(), Vec::new());
    while let Some(entry) = range.next() {
        front.push(entry);
        back.extend(range.next_back());
    }
    assert_eq!((range.next(), range.next_back()), (None, None));
    front.extend(back.into_iter().rev());
    front
}

fn compare_cursor(list: &ConcurrentSkipList, expected: &[Entry<'_>], probe: &[u8]) {
    let first = expected.iter().position(|entry| entry.key >= probe);
    let mut cursor = list.cursor();
    assert_eq!(cursor.entry(), expected.first().copied());
    assert_eq!(cursor.seek(probe), first.is_some());
    assert_eq!(cursor.entry(), first.map(|at| expected[at]));
    assert_eq!(list.cursor_at(probe).and_then(|mut c| c.next_entry()), first.map(|at| expected[at]));
    if let Some(at) = first {
        assert_eq!(cursor.clone().prev_entry(), at.checked_sub(1).map(|at| expected[at]));
        assert_eq!(cursor.next_entry(), Some(expected[at]));
        assert_eq!(cursor.next_entry(), expected.get(at + 1).copied());
    }
    let last = expected.iter().rposition(|entry| entry.key <= probe);
    assert_eq!(cursor.seek_for_prev(probe), last.is_some());
    assert_eq!(cursor.entry(), last.map(|at| expected[at]));
    if let Some(at) = last {
        assert_eq!(cursor.clone().next_entry(), expected.get(at + 1).copied());
        for before in (0..=at).rev() {
            assert_eq!(cursor.prev_entry(), Some(expected[before]));
        }
        assert_eq!((cursor.prev_entry(), cursor.prev_entry()), (None, None));
        assert_eq!((cursor.valid(), cursor.next_entry()), (false, expected.first().copied()));
    }
    compare_moves(list.cursor(), expected, probe);
}

/// Every move of a cursor that shows `shown`.
fn compare_moves<'a>(mut cursor: Cursor<'a>, shown: &[Entry<'_>], probe: &[u8]) {
    let (at, behind) = (shown.partition_point(|e| e.key < probe), shown.partition_point(|e| e.key <= probe));
    for (seek, gap, forward) in [
        (Cursor::seek as fn(&mut Cursor<'a>, &[u8]) -> bool, at, true),
        (Cursor::seek_exclusive, behind, true),
        (Cursor::seek_for_prev, behind, false),
        (Cursor::seek_before, at, false),
    ] {
        let found = if forward { shown.get(gap) } else { gap.checked_sub(1).map(|last| &shown[last]) };
        assert_eq!((seek(&mut cursor, probe), cursor.valid()), (found.is_some(), found.is_some()));
        assert_eq!(cursor.entry(), found.copied());
        // Until a step is taken, the cursor is in a gap between what is shown.
        let mut moved = cursor.clone();
        assert!(moved.by_ref().eq(shown[gap..].iter().copied()));
        assert_eq!((moved.valid(), moved.prev()), (false, shown.last().copied()), "from behind the last entry");
        assert!(std::iter::from_fn(|| cursor.prev_key()).eq(shown[..gap].iter().rev().copied()));
        assert_eq!((cursor.valid(), cursor.next_key()), (false, shown.first().copied()), "from before the first entry");
    }
    assert_eq!((cursor.seek_to_last(), cursor.prev()), (!shown.is_empty(), shown.last().copied()));
    assert_eq!((cursor.seek_to_first(), cursor.next()), (!shown.is_empty(), shown.first().copied()));
}

fn apply(list: &ConcurrentSkipList, model: &mut Model, step: &Step) {
    let put = |model: &mut Model, key: &Vec<u8>, value: &Vec<u8>| {
        let absent = !model.contains_key(key);
        model.entry(key.clone()).or_insert_with(|| (value.clone(), false));
        absent
    };
    match step {
        Step::Insert(key, value) => {
            let expected = if put(model, key, value) { Ok(()) } else { Err(InsertError::DuplicateKey) };
            assert_eq!(list.try_insert(key, value), expected);
        }
        Step::GetOrInsert(key, value) => {
            let stored = put(model, key, value);
            assert_eq!(list.get_or_insert(key, value), (model[key].0.as_slice(), stored));
        }
        Step::Batch(entries) => {
            let stored = entries.iter().filter(|(key, value)| put(model, key, value)).count();
            let result = list.insert_batch(entries);
            assert_eq!(result.is_ok(), stored == entries.len());
            if let Ok(count) = result {
                assert_eq!(count, stored);
            }
        }
        Step::Delete(key) => {
            let live = model.get(key).is_some_and(|(_, dead)| !dead);
            model.entry(key.clone()).and_modify(|(_, dead)| *dead = true);
            assert_eq!(list.try_delete(key), Ok(live));
        }
        Step::Tombstone(key) => {
            model.entry(key.clone()).or_default().1 = true;
            assert_eq!(list.insert_tombstone(key), Ok(()));
        }
        Step::Snapshot | Step::Seal | Step::Reset => unreachable!("handled by the caller"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Catches any read or write method that departs from a map, with snapshots held over later writes.
    #[test]
    fn list_behaves_as_a_map(steps in prop::collection::vec(step(), 1..40), a in key(), b in key(), shards in 1..4_usize) {
        let mut list = ConcurrentSkipList::with_shards(shards);
        let mut steps = steps.as_slice();
        let mut model = Model::new();
        while let Some((last, before)) = {
            let end = steps.iter().position(|step| matches!(step, Step::Seal | Step::Reset)).unwrap_or(steps.len());
            let (before, rest) = steps.split_at(end);
            let turn = (!steps.is_empty()).then_some((rest.first(), before));
            steps = rest.get(1..).unwrap_or_default();
            turn
        } {
            let mut snapshots = Vec::new();
            for step in before {
                if let Step::Snapshot = step {
                    snapshots.push((list.snapshot(), model.clone()));
                } else {
                    apply(&list, &mut model, step);
                }
                compare_reads(&list, &model, &a, &b);
                for (snapshot, then) in &snapshots {
                    prop_assert_eq!(snapshot.iter().collect::<Vec<_>>(), entries(then));
                    prop_assert_eq!(snapshot.get(&a), then.get(&a).map(|(value, dead)| (value.as_slice(), *dead)));
                    let within = entries(then.iter().filter(|(key, _)| **key >= a));
                    prop_assert_eq!(snapshot.range(a.as_slice()..).collect::<Vec<_>>(), within.clone());
                    let first = snapshot.cursor_at(&a).and_then(|mut cursor| cursor.next_entry());
                    prop_assert_eq!(first, within.first().copied());
                    if let Some(mut cursor) = snapshot.cursor_at(&a) {
                        compare_moves(cursor.clone(), &entries(then), &b);
                        let before: Vec<_> = std::iter::from_fn(|| cursor.prev_entry()).collect();
                        let expected = entries(then.iter().rev().filter(|(key, _)| **key < a));
                        prop_assert_eq!(before, expected);
                    }
                }
            }
            drop(snapshots);
            match last {
                Some(Step::Seal) => {
                    let (frozen, fresh) = list.seal().unwrap();
                    compare_reads(&frozen, &model, &a, &b);
                    prop_assert_eq!(frozen.try_insert(&a, b""), Err(InsertError::Sealed));
                    prop_assert_eq!(frozen.try_delete(&a), Err(InsertError::Sealed));
                    list = fresh;
                }
                Some(_) => list.reset(),
                None => break,
            }
            model.clear();
            compare_reads(&list, &model, &a, &b);
        }
    }
}

/// Catches a link that ends its level taken for one to a node, where the key sought begins as no other can be greater.
#[test]
fn keys_that_look_like_the_end_of_a_level_are_found() {
    let list = ConcurrentSkipList::with_shards(1);
    let keys: Vec<_> = (0..300).map(|len| vec![0xff; len]).collect();
    for key in keys.iter().rev().chain(&keys) {
        assert_eq!(list.get(key).is_some(), list.contains_key(key));
        list.insert(key, &[key.len() as u8]);
        assert_eq!(list.get(key), Some((&[key.len() as u8][..], false)));
    }
    assert!(list.iter().map(|entry| entry.key).eq(keys.iter().map(Vec::as_slice)));
    list.validate();
}
