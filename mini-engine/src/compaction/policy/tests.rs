//! Policies on versions without files: tables are lists in memory, and compactions follow the rules of the real ones.

use proptest::collection::vec;
use proptest::prelude::*;

use self::world::{ENTRY_BYTES, KEYS, POLICIES, Step, World, step};
use super::*;
use crate::manifest::RunId;
use proof::Random;

mod dense;
mod dropped;
mod pressure;
mod progress;
mod read_triggered;
mod world;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_plan_loses_a_version_breaks_a_level_or_meets_another_and_plans_end(
        policy in prop::sample::select(&POLICIES[..]),
        ratio in 2..5u64,
        piece in prop::sample::select(&[1, 30, usize::MAX][..]),
        steps in vec(step(), 1..150),
    ) {
        // Catches a compaction that passes over an older or newer version of its keys, a tombstone dropped too early, concurrent compactions that
        // undo each other's outputs, and a policy that never stops, also with tables that another policy has left.
        let mut world = World::new(policy, ratio);
        world.piece = piece;
        for step in steps {
            world.run(step);
        }
        world.settle();
        world.check();
    }
}

/// A world after `rounds` flushes that each overwrite 5 random keys; compactions settle after each flush.
fn overwritten(policy: Compaction, ratio: u64, rounds: u64) -> World {
    overwritten_with(policy, ratio, rounds, World::settle)
}

/// The same, with `settle` called after each flush.
fn overwritten_with(policy: Compaction, ratio: u64, rounds: u64, settle: impl Fn(&mut World)) -> World {
    let mut world = World::new(policy, ratio);
    let mut random = Random(7);
    for _ in 0..rounds * u64::from(KEYS) / 5 {
        world.flush((0..5).map(|_| (random.below(KEYS.into()) as u8, true)));
        settle(&mut world);
    }
    world.check();
    world
}

#[test]
fn lazier_policies_write_less_and_keep_more() {
    // Catches a policy that behaves like another one, or rewrites everything each time.
    let figures = POLICIES.map(|policy| {
        let world = overwritten(policy, 4, 40);
        (world.written * 10 / (world.seqno() * ENTRY_BYTES), world.version.tables().map(|table| table.size).sum())
    });
    let [leveled, tiered, lazy, partial, ..]: [(u64, u64); POLICIES.len()] = figures;
    assert!(tiered.0 < lazy.0 && lazy.0 < leveled.0.max(partial.0), "written for each byte, in tenths: {figures:?}");
    let live = u64::from(KEYS) * ENTRY_BYTES;
    assert!([leveled.1, lazy.1, partial.1].iter().all(|&bytes| bytes <= live * 2), "{figures:?} of {live}");
    assert!(tiered.1 <= live * 5 / 2, "{figures:?} of {live}");
}

#[test]
fn a_load_in_key_order_is_moved_and_not_rewritten() {
    // Catches a compaction of tables that overlap nothing: a sorted load would be rewritten once per level.
    for policy in POLICIES {
        let mut world = World::new(policy, 4);
        world.options.table_file_bytes = 400;
        for from in (0..KEYS).step_by(4) {
            world.run(Step::FlushRange(from, 4));
            world.settle();
        }
        assert!(world.moved > 0, "{policy:?}");
        assert_eq!(world.written, world.seqno() * ENTRY_BYTES, "{policy:?}");
    }
}

#[test]
fn small_tables_do_not_pile_up() {
    // Catches thousands of tables with a few keys each, one for each of thousands of short sessions that write keys in order.
    for policy in POLICIES {
        let mut world = World::new(policy, 4);
        // The sessions end long before a memtable is full.
        (world.options.table_file_bytes, world.options.memtable_bytes) = (100_000, 100_000);
        for n in 0..KEYS {
            world.run(Step::FlushRange(n, 1));
            world.settle();
        }
        assert!(world.version.tables().count() < 15, "{policy:?}: {:?}", world.version);
    }
}

#[test]
fn the_upper_keys_of_old_tables_do_not_wait_for_new_tables() {
    // Catches a compaction that restarts below its last key whenever a new table arrives: it would never reach the upper keys, and level 0 would grow
    // for ever.
    for policy in POLICIES {
        let mut world = World::new(policy, 4);
        world.flush((0..KEYS).map(|n| (n, true)));
        world.run(Step::Reopen(Compaction::Leveled, 4));
        world.settle();
        world.run(Step::Reopen(policy, 4));
        let (mut random, mut most) = (Random(7), 0);
        for _ in 0..600 {
            world.run(Step::Flush(vec![(random.below(KEYS.into()) as u8, true)]));
            // As in a process that writes one key: it does a sixteenth of the compaction.
            if world.begin() {
                world.end_after(0, usize::from(KEYS) / 16, true);
            }
            world.check();
            most = most.max(world.version.runs(0).len());
        }
        assert!(most <= 2 * 16 + 8, "{policy:?}: {most} tables on level 0");
        world.settle();
    }
}
