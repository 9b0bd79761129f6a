//! Tests that tables of mostly tombstones go down without further writes, at a bounded cost, and that this ends.

use super::*;
use crate::compaction::plan::Action;
use crate::manifest::VersionEdit;
use crate::table::{Expiring, TableMeta};

#[test]
fn few_tombstones_do_not_rewrite_what_they_are_spread_over() {
    // Catches a large level that is rewritten for the sake of a few tombstones, or for a table that is not mostly tombstones.
    for policy in [Compaction::Leveled, Compaction::Partial] {
        let rewrites = |writes: Vec<(u8, bool)>| {
            let mut world = World::new(policy, 4);
            world.flush((0..KEYS).map(|n| (n, true)));
            world.run(Step::Manual(0, KEYS, Some(usize::MAX)));
            world.settle();
            world.flush(writes);
            let written = world.written;
            world.settle();
            world.check();
            world.written > written
        };
        let spread = |step: usize, sets: fn(u8) -> bool| (0..KEYS).step_by(step).map(|n| (n, sets(n))).collect();
        assert!(!rewrites(spread(20, |_| false)), "{policy:?}: few");
        assert!(!rewrites(spread(2, |n| n % 4 == 0)), "{policy:?}: no more than half");
        assert!(rewrites(spread(2, |n| n % 8 == 0)), "{policy:?}: most");
    }
}

#[test]
fn range_tombstones_count_and_there_is_a_least_number() {
    // Catches a table with thousands of removed ranges that has too few entries to be considered, and a compaction for a single range.
    let table = |number: u64, keys: [&[u8]; 2], entries: u64, range_tombstones: u64| TableMeta {
        number,
        size: 1 << 20,
        entries,
        range_tombstones,
        smallest: keys[0].into(),
        largest: keys[1].into(),
        min_seqno: number,
        max_seqno: number,
        ..TableMeta::default()
    };
    let picked = |range_tombstones: u64, memtable_bytes: usize| {
        let mut world = World::new(Compaction::Tiered, 4);
        world.options = world.options.memtable_bytes(memtable_bytes);
        let old = [table(1, [b"a", b"f"], 30_000, 0), table(2, [b"g", b"z"], 30_000, 0)];
        let run_id = |run| RunId { level: 1, run };
        let mut added: Vec<_> = old.into_iter().map(|table| (run_id(1), table)).collect();
        added.push((run_id(2), table(3, [b"b", b"c"], 1, range_tombstones)));
        world.apply(VersionEdit { added, ..VersionEdit::default() });
        pick(&world.context(), Work::Any).map(|plan| (plan.tables().collect::<Vec<_>>(), plan.output))
    };
    assert_eq!(picked(10_000, 64 << 20), Some((vec![3, 1], RunId { level: 1, run: 1 })));
    // With four times as many entries below, there are too many for each that moves down.
    assert_eq!(picked(7_000, 64 << 20), None);
    assert_eq!(picked(10_000, 1 << 30), None);
}

#[test]
fn a_table_of_which_most_has_expired_is_compacted_also_where_nothing_lies_below() {
    // Catches expired data that takes space for ever if it is not overwritten or if one entry expires late; a table that is rewritten although
    // readers still see most of its entries; and one that is rewritten again and again because of entries that have not expired.
    let mut world = World::new(Compaction::Tiered, 4);
    let run_id = RunId { level: 1, run: 1 };
    let table = |number: u64, count: u64, instants: [u64; 8]| TableMeta {
        number,
        size: 1 << 20,
        entries: 32_000,
        expiring: Expiring::new(count, instants),
        smallest: number.to_be_bytes()[..].into(),
        largest: number.to_be_bytes()[..].into(),
        ..TableMeta::default()
    };
    let (day, year) = (50, 18_000);
    let tables = [
        table(1, 14_000, [day; 8]),
        // One entry expires late.
        table(2, 32_000, [day, day, day, day, day, day, day, year]),
        table(3, 0, [0; 8]),
        table(4, 20_000, [60, 60, 60, 60, 60, 60, 61, 61]),
        // At most half of all its entries have expired.
        table(5, 32_000, [day, day, day, day, year, year, year, year]),
    ];
    let added = tables.into_iter().map(|table| (run_id, table)).collect();
    world.apply(VersionEdit { added, ..VersionEdit::default() });
    let picked = |world: &World, instant| {
        let plan = pick(&Context { instant, ..world.context() }, Work::Any)?;
        assert_eq!((plan.action, plan.output), (Action::Rewrite, run_id));
        Some(plan.tables().collect::<Vec<_>>())
    };
    assert_eq!(picked(&world, day - 1), None);
    assert_eq!(picked(&world, day), Some(vec![2]));
    world.apply(VersionEdit { removed: vec![(1, 2)], ..VersionEdit::default() });
    assert_eq!([day, 59, 60, 61].map(|instant| picked(&world, instant)), [None, None, None, Some(vec![4])]);
    assert_eq!(picked(&world, year), Some(vec![5]));
}
