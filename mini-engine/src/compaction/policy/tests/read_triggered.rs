//! Tests that level 0 goes down for the sake of scans, at a bounded cost, and that this ends.

use super::*;

/// A world with a level that holds all keys, and then one flush for each of `strides`, of every key at that stride.
fn flushed(policy: Compaction, strides: &[usize]) -> World {
    let mut world = World::new(policy, 4);
    world.options = world.options.l0_trigger(8);
    world.flush((0..KEYS).map(|n| (n, true)));
    world.run(Step::Manual(0, KEYS, Some(usize::MAX)));
    world.settle();
    strides.iter().for_each(|stride| world.flush((0..KEYS).step_by(*stride).map(|n| (n, true))));
    world.settle();
    world
}

#[test]
fn level_0_goes_down_once_scans_are_many() {
    // Catches a trigger that does nothing, that acts without scans, or that rewrites what has already gone down.
    for policy in POLICIES {
        let mut world = flushed(policy, &[2, 3]);
        assert_eq!(world.version.runs(0).len(), 2, "{policy:?}");
        world.run(Step::Scan(true));
        world.settle();
        world.check();
        assert_eq!(world.version.runs(0).len(), 0, "{policy:?}");
        assert!(!world.begin(), "{policy:?}");
    }
}

#[test]
fn a_small_level_0_rewrites_no_large_level_for_scans() {
    // Catches scans that, with slow concurrent writes, rewrite a level for each flush.
    for (stride, goes_down) in [(20, false), (4, true)] {
        let mut world = flushed(Compaction::Leveled, &[stride]);
        world.run(Step::Scan(true));
        world.settle();
        assert_eq!(world.version.runs(0).is_empty(), goes_down, "every {stride}th key");
    }
}

#[test]
fn scans_of_one_run_need_no_compaction() {
    // Catches a compaction that merges nothing.
    let mut world = World::new(Compaction::Leveled, 4);
    world.flush((0..KEYS).map(|n| (n, true)));
    world.run(Step::Scan(true));
    assert!(!world.begin());
}
