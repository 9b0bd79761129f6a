//! The programs, by what they show.

mod batch;
mod freeze;
mod index;
mod limit;
mod snapshot;
mod walk;

use crate::builder::Config;
use crate::builder::sealed::{FromConfig, Settings};
use crate::schedules::{Draw, run};
use crate::tuning::{Hinting, hint};

/// A program to run.
pub struct Model {
    /// Its name: what it shows, and the number of the invariant.
    pub name: &'static str,
    run: fn(Draw, u64, usize) -> usize,
}

impl Model {
    /// Runs it in `count` schedules drawn from `seed`; returns how many there were.
    ///
    /// # Panics
    /// If what it shows is not so; see [`run`].
    pub fn run(&self, draw: Draw, seed: u64, count: usize) -> usize {
        (self.run)(draw, seed, count)
    }
}

macro_rules! models {
    ($($name:ident: $program:ty;)*) => {
        /// Every program.
        pub static ALL: &[Model] = &[$(Model { name: stringify!($name), run: run::<$program> }),*];
    };
}

models! {
    seal_keeps_what_was_acknowledged_i7: freeze::Seal;
    freeze_waits_for_every_reservation_i7: freeze::Drain;
    snapshot_never_changes_i5: snapshot::Snapshots;
    what_was_seen_is_in_a_later_snapshot_i5: snapshot::SeenBefore;
    batch_in_order_is_seen_whole_or_not_at_all_i5: batch::Batches<true>;
    group_is_seen_whole_or_not_at_all_i5: batch::Batches<false>;
    walks_keep_order_and_miss_nothing_i1: walk::Walks;
    splits_and_mends_keep_the_index_whole_i2: index::Upkeep<false>;
    freeze_waits_for_splits_i7: index::Upkeep<true>;
    replaced_blocks_take_a_bounded_part_of_the_table_i6: index::Mends;
    limit_of_entries_is_met_exactly_i6: limit::Entries;
    limit_of_memory_is_passed_by_one_entry_a_writer_i6: limit::Memory;
}

/// Settings with this many shards. The limit is that of the storage, 16 KiB, of which no program has used more than a sixth; replaced
/// blocks take at most a sixteenth (`replace.rs`). So a table that is full is a defect, and no chance of the schedule.
fn config(shards: usize) -> Config {
    Config { shards, chunk_bytes: 0, huge_pages: false, ..Config::default() }
}

/// The table with these settings. Every node has a hint, if no lock is taken.
fn table<T: FromConfig>(config: Config) -> T {
    hint(Hinting::All);
    T::from_config(Settings(config)).expect("the storage refuses nothing")
}
