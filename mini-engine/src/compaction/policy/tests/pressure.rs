//! Tests that level 0 and tiers keep few runs when compactions are blocked: by one that never ends, by damage, or by their cost.

use super::*;

/// A world in which a compaction of level 0 into the levels below has begun and never ends.
fn held_up(policy: Compaction) -> World {
    let mut world = overwritten(policy, 4, 4);
    while world.version.runs(0).len() <= world.options.level_0_tables() {
        world.flush([(0, true), (119, true)]);
    }
    // In some policies the levels below are compacted first.
    while !world.jobs.iter().any(|job| job.plan.relieves_level_0()) {
        assert!(world.begin(), "{policy:?}: {:?}", world.version);
    }
    world
}

#[test]
fn level_0_stays_small_while_a_compaction_of_it_never_ends() {
    // Catches a level 0 that grows with each flush during one long compaction, and one that is rewritten each time.
    for policy in POLICIES {
        let mut world = held_up(policy);
        world.options.memtable_bytes = 1 << 20;
        let (jobs, from, written) = (world.jobs.len(), world.seqno(), world.written);
        for n in 0..400u64 {
            world.flush([(n as u8, true), ((n * 7) as u8, false)]);
            while world.begin_of(Work::Level0) {
                assert_eq!(world.jobs[jobs].plan.output, RunId::LEVEL_0);
                world.end(jobs);
            }
            let tables = world.version.runs(0).len();
            assert!(tables <= 4 + 3 * 9, "{policy:?}: {tables} tables after {n}");
        }
        let (bytes, written) = ((world.seqno() - from) * ENTRY_BYTES, world.written - written);
        assert!(written <= bytes * 9, "{policy:?}: {written} bytes written for {bytes}");
        world.check();
        // The long compaction may end after all.
        world.settle();
        world.check();
    }
}

#[test]
fn a_table_of_level_0_grows_to_a_few_memtables_and_no_further() {
    // Catches a level 0 that becomes one huge table that blocks every other compaction.
    let mut world = held_up(Compaction::Leveled);
    let jobs = world.jobs.len();
    for n in 0..400u64 {
        world.flush((0..5).map(|key| ((n * 5 + key) as u8, true)));
        while world.begin_of(Work::Level0) {
            world.end(jobs);
        }
    }
    let most = 8 * world.options.memtable_bytes as u64;
    assert!(world.version.level(0).all(|table| table.size <= most));
    assert!(world.version.level(0).any(|table| table.size > most / 2));
}

#[test]
fn tiny_tables_are_compacted_with_each_other_before_they_rewrite_what_is_below() {
    // Catches many short sessions of one write each that repeatedly rewrite all of the data, or accumulate tables.
    for policy in [Compaction::Leveled, Compaction::Partial] {
        let mut world = overwritten(policy, 4, 4);
        world.options = world.options.table_file_bytes(100_000).memtable_bytes(1 << 20);
        let (from, written) = (world.seqno(), world.written);
        for n in 0..200u64 {
            world.flush([((n * 13) as u8, true)]);
            world.settle();
            assert!(
                world.version.runs(0).len() <= level_0::patience(&world.options),
                "{policy:?}: {:?}",
                world.version
            );
        }
        let (bytes, written) = ((world.seqno() - from) * ENTRY_BYTES, world.written - written);
        assert!(written <= bytes * 12, "{policy:?}: {written} bytes written for {bytes}");
        world.check();
    }
}

#[test]
fn compactions_go_around_a_damaged_table() {
    // Catches one damaged table that blocks the compaction of other keys, of deeper levels, or of level 0.
    for policy in POLICIES {
        let levels =
            overwritten(policy, 3, 4).version.all_runs().map(|(_, run)| run.tables()[0].number).collect::<Vec<_>>();
        for damaged in levels {
            let mut world = overwritten(policy, 3, 4);
            world.damage(damaged);
            for n in 0..300u64 {
                world.flush([(n as u8, true), ((n * 31) as u8, n % 3 > 0)]);
                let most = world.version.tables().count() * 10 + 20;
                let compactions = (0..most).take_while(|_| world.begin().then(|| world.end_all()).is_some()).count();
                assert!(compactions < most, "{policy:?}: still something due after {compactions} compactions");
                let runs = world.version.all_runs().count();
                assert!(runs <= 36, "{policy:?}: {runs} runs after {n} flushes: {:?}", world.version);
            }
            assert!(world.version.tables().any(|table| table.number == damaged));
            world.check();
            world.settle();
            world.check();
        }
    }
}

/// A world with `tables` on level 0; a piece of a compaction to deeper levels has taken their lower keys.
fn cut(policy: Compaction, tables: usize) -> World {
    let mut world = overwritten(policy, 4, 4);
    while world.version.runs(0).len() < tables {
        world.flush([(0, true), (119, true)]);
    }
    world.options.memtable_bytes = 1 << 20;
    while world.version.pointers().iter().all(|pointer| pointer.top.level > 0) {
        assert!(world.begin(), "{policy:?}: {:?}", world.version);
        let at = world.jobs.len() - 1;
        let is_down = world.jobs[at].plan.relieves_level_0() && world.jobs[at].plan.output.level > 0;
        world.end_after(at, if is_down { 1 } else { usize::MAX }, is_down);
    }
    world
}

#[test]
fn level_0_is_compacted_within_after_damage_has_stopped_a_compaction_that_was_cut() {
    // Catches tables that a piece has narrowed and that can neither go down nor be joined: all of level 0, in the worst case.
    for policy in [Compaction::Leveled, Compaction::Partial] {
        let mut world = cut(policy, 30);
        let base = world.version.tables().filter(|table| table.narrowed).last().unwrap().number;
        world.damage(base);
        let before = world.version.runs(0).len();
        assert!(
            world.begin_of(Work::Level0),
            "{policy:?}: {before} tables, none can be compacted: {:?}",
            world.version.level(0).map(|table| table.narrowed).collect::<Vec<_>>()
        );
        world.end_all();
        assert!(world.version.runs(0).len() < before, "{policy:?}");
        world.settle();
        world.check();
    }
}

#[test]
fn a_cut_compaction_ends_though_space_becomes_short() {
    // Catches pieces of the older pointer that rewrite, again and again, what the pieces of the newer one have written.
    for policy in POLICIES {
        let mut world = cut(policy, 30);
        world.is_tight = true;
        world.settle();
        assert_eq!(world.version.pointers(), [], "{policy:?}");
        world.check();
    }
}

#[test]
fn new_tables_of_level_0_are_compacted_before_the_next_piece_where_writers_wait() {
    // Catches a thread for level 0 that runs piece after piece although none makes level 0 smaller.
    for policy in POLICIES {
        let mut world = cut(policy, 5);
        while world.version.runs(0).len() < world.options.stop_tables() {
            world.flush([(0, true), (119, true)]);
        }
        let before = world.version.runs(0).len();
        assert!(world.begin_of(Work::Level0));
        world.end_after(0, 1, true);
        assert!(world.version.runs(0).len() < before, "{policy:?}: {before} tables before and after");
    }
}
