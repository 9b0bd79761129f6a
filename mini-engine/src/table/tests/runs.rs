use std::ops::Bound;

use super::*;
use crate::iter::RangeSource;
use crate::iter::model::{assert_few_moves, many_versions};
use crate::types::{RangeTombstone, RangeTombstones};

/// Divides the entries into tables of `per_table` keys each.
fn by_table(entries: &[Entry], per_table: usize) -> Vec<Vec<Entry>> {
    let mut tables: Vec<Vec<Entry>> = Vec::new();
    let (mut keys, mut last) = (0, None);
    for entry in entries {
        if last != Some(&entry.key) {
            if keys % per_table == 0 {
                tables.push(Vec::new());
            }
            keys += 1;
            last = Some(&entry.key);
        }
        tables.last_mut().expect("begun with the first key").push(entry.clone());
    }
    tables
}

/// A run of tables with these entries, numbered from 1, each narrowed to its bound, if it has one.
fn run_of(dir: &Path, tables: &[(Vec<Entry>, Option<Slice>)]) -> OpenRun {
    OpenRun::new((1..).zip(tables).map(|(number, (entries, from))| {
        build(dir, number, &small_blocks(), entries).expect("a table");
        let table = open(dir, number).expect("a table");
        let meta = table.meta();
        RunTable::new(&table, &from.clone().map_or_else(|| meta.clone(), |from| meta.narrowed_to(from)))
    }))
}

/// A bound within the keys of `entries`, or between two of them.
fn bound(entries: &[Entry], (at, between): (usize, bool)) -> Slice {
    let at = at % entries.len();
    let (mut key, largest) = (entries[at].key.clone(), &entries[entries.len() - 1].key);
    key.extend(between.then_some(0));
    Slice::from(if key <= *largest { key } else { largest.clone() })
}

#[test]
fn a_key_with_many_versions_takes_few_moves_in_either_direction() {
    // Catches a run that steps through obsolete versions, kept for a snapshot, one by one.
    let dir = dir();
    let run = run_of(dir.path(), &[(SortedVec::new(many_versions()).entries().to_vec(), None)]);
    assert_few_moves(|| vec![run.iter()]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_run_reads_as_one_table(all in entries(80), per_table in 1usize..6, moves in moves()) {
        // Catches an entry that is skipped or repeated where one table ends and the next begins, in either direction, and a key that is searched for
        // in the wrong table.
        let mut model = SortedVec::new(all);
        let dir = dir();
        let tables: Vec<_> = by_table(model.entries(), per_table).into_iter().map(|entries| (entries, None)).collect();
        let run = run_of(dir.path(), &tables);
        for entry in model.entries() {
            let table = run.find(&entry.key).expect("the table of a key");
            let found = get(table.table(), &entry.key, entry.seqno)?;
            prop_assert_eq!(found, Some((entry.kind, entry.seqno, Slice::from(&entry.value[..]))));
        }
        for absent in [&b"\xff"[..], b"\x01\x7f", b"\x00\x00\x00\x00\x00\x00"] {
            let holds = |table: &RunTable| table.smallest() <= absent && absent <= table.largest();
            let expected = run.tables().iter().find(|table| holds(table)).map(|table| table.number());
            prop_assert_eq!(run.find(absent).map(|table| table.number()), expected);
        }
        assert_same(&mut run.iter(), &mut model.clone(), &moves);
        assert_same(&mut run.iter_uncached(), &mut model, &moves);
    }

    #[test]
    fn merged_runs_read_as_one_table(
        all in entries(80), of in prop::collection::vec(0usize..3, 80), per_table in 1usize..20, moves in moves(),
    ) {
        // Catches a batch of one run that begins with an older version of a key, or goes on behind a key of another run.
        let (mut model, dirs) = (SortedVec::new(all), [dir(), dir(), dir()]);
        let runs = (0..3).filter_map(|n| {
            let entries = model.entries().iter().zip(&of).filter(|(_, of)| **of == n);
            let entries: Vec<_> = entries.map(|(entry, _)| entry.clone()).collect();
            let tables: Vec<_> = by_table(&entries, per_table).into_iter().map(|entries| (entries, None)).collect();
            (!tables.is_empty()).then(|| run_of(dirs[n].path(), &tables).iter())
        });
        let mut merge = MergeIter::new(runs.collect());
        assert_same(&mut merge, &mut model, &moves);
    }

    #[test]
    fn a_narrowed_table_shows_what_lies_from_its_bound_on(
        all in entries(80),
        per_table in 1usize..20,
        bounds in prop::collection::vec(prop::option::of((any::<usize>(), any::<bool>())), 80),
        moves in moves(),
    ) {
        // Catches an entry below the bound that is returned, in either direction or after a seek below it, and an entry above the bound that is not:
        // a removed key would return, or a key would be lost.
        let dir = dir();
        let (mut tables, mut left, mut gone) = (Vec::new(), Vec::new(), Vec::new());
        for (entries, chosen) in by_table(SortedVec::new(all).entries(), per_table).into_iter().zip(bounds) {
            let from = chosen.map(|chosen| bound(&entries, chosen));
            let below = |entry: &Entry| from.as_ref().is_some_and(|from| entry.key[..] < **from);
            let (merged, kept): (Vec<Entry>, Vec<Entry>) = entries.iter().cloned().partition(below);
            left.extend(kept);
            gone.extend(merged);
            tables.push((entries, from));
        }
        let run = run_of(dir.path(), &tables);
        let mut model = SortedVec::new(left);
        for entry in model.entries() {
            let table = run.find(&entry.key).expect("the table of a key");
            let found = get(table.table(), &entry.key, entry.seqno)?;
            prop_assert_eq!(found, Some((entry.kind, entry.seqno, Slice::from(&entry.value[..]))));
        }
        prop_assert!(gone.iter().all(|entry| run.find(&entry.key).is_none()));
        assert_same(&mut run.iter(), &mut model.clone(), &moves);
        assert_same(&mut run.iter_uncached(), &mut model, &moves);
        for table in run.tables() {
            table.verify()?;
            prop_assert!(table.bytes() <= table.meta().size && table.bytes_before(table.smallest()) == 0);
        }
    }

    #[test]
    fn a_narrowed_table_of_which_only_a_range_is_left_is_passed_over(
        bounds in prop::collection::vec(0..4usize, 3), moves in moves(), seqno in 0u64..20,
    ) {
        // Catches a run that ends at a table without remaining entries, in either direction and after a seek into it, and a range tombstone that
        // applies below the bound.
        let dir = dir();
        let (mut tables, mut left) = (Vec::new(), Vec::new());
        for (n, bound) in (0..3u8).zip(bounds) {
            let all = [value([n], 5, "1"), value([n, 0], 5, "2")];
            let mut builder = Builder::new(&real(), dir.path(), n.into(), level_0(&small_blocks()))?;
            all.iter().try_for_each(|entry| builder.add(&entry.key, entry.seqno, entry.kind, &entry.value))?;
            let tombstone = RangeTombstone { start: Slice::from(&[n, 0][..]), end: Slice::from(&[n, 2, 0][..]), seqno: 9 };
            builder.set_range_tombstones(RangeTombstones::new([tombstone]));
            let meta = builder.finish()?;
            prop_assert_eq!((&*meta.largest, meta.max_seqno, meta.range_tombstones), (&[n, 2][..], 9, 1));
            let table = open(dir.path(), n.into())?;
            prop_assert_eq!(table.meta(), &meta);
            // The bounds: none, between the entries, at the second entry, after the entries.
            let from = [None, Some(vec![n, 0]), Some(vec![n, 0, 0]), Some(vec![n, 1])][bound].clone();
            let counts = |key: &[u8]| from.as_ref().is_none_or(|from| from[..] <= *key);
            left.extend(all.into_iter().filter(|entry| counts(&entry.key)));
            let narrowed = from.clone().map_or(meta.clone(), |from| meta.narrowed_to(Slice::from(from)));
            let table = RunTable::new(&table, &narrowed);
            table.verify()?;
            let covered = table.range_tombstones()?;
            for key in [&[n][..], &[n, 0], &[n, 0, 0], &[n, 1], &[n, 2], &[n, 2, 0]] {
                let expected = (key.len() > 1 && *key != [n, 2, 0] && counts(key) && seqno >= 9).then_some(9);
                prop_assert_eq!(covered.covering(key, seqno), expected, "{:?}", key);
                if counts(key) {
                    let found = table.get(key, codec::key_hash(key), seqno)?.map(|found| (found.0, found.1));
                    let entry = (key.len() < 3 && *key != [n, 1] && *key != [n, 2] && seqno >= 5).then_some((Kind::Value, 5));
                    prop_assert_eq!(found, expected.map(|at| (Kind::Tombstone, at)).or(entry), "{:?} at {}", key, seqno);
                }
            }
            tables.push(table);
        }
        let run = OpenRun::new(tables);
        assert_same(&mut run.iter(), &mut SortedVec::new(left), &moves);
        // Keys outside the tables, at their ends and between their keys.
        let keys: Vec<Vec<u8>> = (0..4).flat_map(|n| [vec![n], vec![n, 0], vec![n, 1], vec![n, 2], vec![n, 2, 0]]).collect();
        let covering = |key: &[u8]| {
            let table = run.find(key)?;
            table.range_tombstones().expect("a table").covering(key, seqno)
        };
        let mut ranges = run.ranges_within(Bound::Unbounded, Bound::Unbounded).expect("range tombstones");
        for key in &keys {
            let span = ranges.span(key, seqno)?;
            prop_assert!(span.contains(key));
            for other in keys.iter().filter(|other| span.contains(other)) {
                prop_assert_eq!(span.newest, covering(other), "{:?} in {:?}", other, span);
            }
        }
        prop_assert!(run.ranges_within(Bound::Included(&[2, 3]), Bound::Unbounded).is_none());
    }
}
