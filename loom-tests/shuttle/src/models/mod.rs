//! The programs, grouped by the property that they check.

mod batch;
mod freeze;
mod index;
mod limit;
mod snapshot;
#[path = "../../../src/models/table.rs"]
#[expect(dead_code, reason = "the models of loom use the rest")]
mod table;
mod walk;

// Every node gets a hint unless a writer finds a lock. The limit is that of the storage, 16 KiB. No program has used more than a sixth of it, and
// replaced blocks take at most a sixteenth (`replace.rs`). So a full table is a defect, and not the result of an unlucky schedule.
use self::table::{config, hinted as table, limited};
use crate::schedules::Draw;

/// A program to run.
pub struct Model {
    /// Its name: the property that it shows, and the number of the invariant.
    pub name: &'static str,
    /// Runs the program in the given number of schedules, and panics if its property does not hold; see [`run`](crate::schedules::Program::run).
    pub run: fn(Draw, u64, usize) -> usize,
}

/// Passes the name of every program to the macro `$with`.
#[macro_export]
macro_rules! every_program {
    ($with:ident) => {
        $with! {
            seal_keeps_what_was_acknowledged_i7: freeze::seal();
            freeze_waits_for_every_reservation_i7: freeze::drain();
            snapshot_never_changes_i5: snapshot::snapshots();
            what_was_seen_is_in_a_later_snapshot_i5: snapshot::seen_before();
            batch_in_order_is_seen_whole_or_not_at_all_i5: batch::batches::<true>();
            group_is_seen_whole_or_not_at_all_i5: batch::batches::<false>();
            walks_keep_order_and_miss_nothing_i1: walk::walks();
            splits_and_mends_keep_the_index_whole_i2: index::upkeep::<false>();
            freeze_waits_for_splits_i7: index::upkeep::<true>();
            replaced_blocks_take_a_bounded_part_of_the_table_i6: index::mends();
            limit_of_entries_is_met_exactly_i6: limit::entries();
            limit_of_memory_is_passed_by_one_entry_a_writer_i6: limit::memory();
        }
    };
}

macro_rules! declare {
    ($($name:ident: $program:expr;)*) => {
        /// Every program.
        pub static ALL: &[Model] =
            &[$(Model { name: stringify!($name), run: |draw, seed, count| $program.run(draw, seed, count) }),*];
    };
}
every_program!(declare);
