//! Runs every program in schedules of both kinds. `SHUTTLE_SCHEDULES=n` sets how many of each, `SHUTTLE_SEED=n` repeats a
//! run; what fails prints how to repeat it.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};
use std::time::Instant;

use shuttle_tests::models::ALL;
use shuttle_tests::schedules::Draw;

/// What a machine can do for each commit.
const COMMIT: u64 = 10_000;

fn number(name: &str, otherwise: impl FnOnce() -> u64) -> u64 {
    std::env::var(name).map_or_else(|_| otherwise(), |text| text.parse().expect("a number"))
}

fn run(name: &str) {
    let seed = number("SHUTTLE_SEED", || RandomState::new().hash_one(name) >> 16);
    let schedules = number("SHUTTLE_SCHEDULES", || COMMIT) as usize;
    let model = ALL.iter().find(|model| model.name == name).expect("the program of this name");
    for draw in [Draw::Even, Draw::Priorities] {
        println!("{draw:?}: SHUTTLE_SEED={seed} SHUTTLE_SCHEDULES={schedules} cargo test -p shuttle-tests {name}");
        let began = Instant::now();
        let count = model.run(draw, seed, schedules);
        assert_eq!(count, schedules, "schedules run, and asked for");
        println!("{name}: {draw:?}, {count} schedules, {:.1} s", began.elapsed().as_secs_f64());
    }
}

macro_rules! models {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                run(stringify!($name));
            }
        )*

        /// Catches a program that is written and never run.
        #[test]
        fn every_program_is_run() {
            let run = [$(stringify!($name)),*];
            assert_eq!(BTreeSet::from(run), ALL.iter().map(|model| model.name).collect());
        }
    };
}

models! {
    seal_keeps_what_was_acknowledged_i7
    freeze_waits_for_every_reservation_i7
    snapshot_never_changes_i5
    what_was_seen_is_in_a_later_snapshot_i5
    batch_in_order_is_seen_whole_or_not_at_all_i5
    group_is_seen_whole_or_not_at_all_i5
    walks_keep_order_and_miss_nothing_i1
    splits_and_mends_keep_the_index_whole_i2
    freeze_waits_for_splits_i7
    replaced_blocks_take_a_bounded_part_of_the_table_i6
    limit_of_entries_is_met_exactly_i6
    limit_of_memory_is_passed_by_one_entry_a_writer_i6
}
