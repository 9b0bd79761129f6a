//! The models: each a concurrent program, the invariant it shows, and all that may be observed of it.

mod arena;
mod axioms;
mod counts;
mod group;
mod hints;
mod insert;
mod lone;
pub mod misuse;
mod publication;
mod publish;
mod quota;
mod room;
mod seal;
mod snapshot;
mod table;
mod walk;

use std::collections::BTreeSet;

use crate::check::{Depth, Program, Report, explore};

/// A model.
pub struct Model {
    /// Its name: what it shows, and the number of the invariant.
    pub name: &'static str,
    run: fn(Depth) -> Report,
}

impl Model {
    /// Explores it.
    ///
    /// # Panics
    /// If what it shows is not so; see [`explore`].
    pub fn run(&self, depth: Depth) -> Report {
        (self.run)(depth)
    }
}

fn explore_all<P: Program>(depth: Depth, outcomes: &[&str]) -> Report {
    explore::<P>(depth, outcomes.iter().map(|outcome| (*outcome).to_owned()).collect::<BTreeSet<_>>())
}

macro_rules! models {
    ($($name:ident: $program:ty, $outcomes:expr;)*) => {
        /// Every model.
        pub static ALL: &[Model] = &[
            Model { name: "seen_entry_is_in_a_later_snapshot_by_the_axioms_i5", run: |_| axioms::seen_entry() },
            $(Model { name: stringify!($name), run: |depth| explore_all::<$program>(depth, $outcomes) },)*
        ];
    };
}

models! {
    publish_shows_whole_entries_i4: publish::Publish, publish::OUTCOMES;
    adjacent_inserts_keep_order_i1: insert::Adjacent, insert::ADJACENT;
    same_key_has_one_winner_i3: insert::SameKey, insert::SAME_KEY;
    two_writers_and_a_reader_scan_in_order_i1: insert::Scans, insert::SCANS;
    partial_keys_that_share_nothing_i9: insert::PartialKeys<0>, &[""];
    partial_keys_that_share_much_i9: insert::PartialKeys<1>, &[""];
    partial_keys_of_zeros_i9: insert::PartialKeys<2>, &[""];
    partial_keys_of_prefixes_i9: insert::PartialKeys<3>, &[""];
    snapshot_shows_an_insertion_always_or_never_i5: snapshot::Insertion<false>, snapshot::INSERTION;
    snapshot_shows_a_helped_insertion_always_or_never_i5: snapshot::Insertion<true>, snapshot::INSERTION;
    snapshot_shows_a_deletion_always_or_never_i5: snapshot::Deletion<false>, snapshot::DELETION;
    snapshot_shows_a_helped_deletion_always_or_never_i5: snapshot::Deletion<true>, snapshot::DELETION;
    snapshot_has_what_was_seen_before_i5: snapshot::SeenBefore, snapshot::SEEN_BEFORE;
    who_sees_a_deletion_sees_what_led_to_it_i5: snapshot::Witness<false>, snapshot::WITNESS;
    who_sees_a_helped_deletion_sees_what_led_to_it_i5: snapshot::Witness<true>, snapshot::WITNESS;
    deletion_has_one_winner_i3: snapshot::TwoDeletions, snapshot::TWO_DELETIONS;
    seal_keeps_what_was_acknowledged_i7: seal::Seal<false>, seal::SEAL;
    seal_keeps_what_writers_of_one_shard_were_told_i7: seal::Seal<true>, seal::SEAL_SHARED;
    freeze_waits_for_an_open_reservation_i7: seal::Drain<false, false, false>, seal::DRAIN;
    freeze_waits_for_a_dropped_reservation_i7: seal::Drain<true, false, false>, seal::DRAIN_DROPPED;
    two_freezes_wait_for_an_open_reservation_i7: seal::Drain<false, true, false>, seal::DRAIN_BOTH;
    freeze_waits_for_a_batch_in_order_i7: seal::Drain<false, false, true>, seal::DRAIN;
    refused_writer_sees_what_led_to_the_freeze_i7: seal::Successor<false>, seal::SUCCESSOR;
    who_sees_the_freeze_sees_what_led_to_it_i7: seal::Successor<true>, seal::SUCCESSOR;
    first_chunk_is_fetched_once_i6: arena::Refill<2, false>, arena::REFILL;
    next_chunk_is_fetched_once_and_none_is_lost_i6: arena::Refill<2, true>, arena::REFILL_HAD_ONE;
    next_chunk_of_three_threads_is_fetched_once_i6: arena::Refill<3, true>, arena::REFILL_OF_THREE;
    spare_pieces_are_written_by_one_after_the_other_i6: arena::Spare<false, false>, arena::SPARE;
    spare_pieces_in_a_chunk_are_written_by_one_after_the_other_i6: arena::Spare<true, false>, arena::SPARE;
    spare_pieces_behind_the_frontier_are_written_by_one_after_the_other_i6: arena::Spare<false, true>, arena::SPARE;
    last_place_is_taken_once_i6: arena::LastPlace<false>, arena::LAST_PLACE;
    limit_is_passed_by_one_entry_i6: arena::LastPlace<true>, arena::LAST_PLACE;
    last_chunk_serves_both_shards_i6: arena::OneChunk, arena::ONE_CHUNK;
    last_entry_of_the_limit_is_taken_once_i6: arena::Entries<1>, arena::ONE_ENTRY;
    entries_within_the_limit_are_all_taken_i6: arena::Entries<2>, arena::TWO_ENTRIES;
    figures_never_show_more_idle_than_reserved_i6: arena::Figures, arena::FIGURES;
    chunk_that_is_taken_back_is_not_idle_i6: arena::TakenBack, &[""];
    entry_is_counted_after_its_memory_i6: arena::Counted, arena::COUNTED;
    chunk_that_is_put_back_was_reserved_i6: arena::PutBack, arena::PUT_BACK;
    idle_chunk_is_no_pressure_i6: arena::Pressure, arena::PRESSURE;
    share_is_delivered_once_i6: quota::Share<false>, quota::TWICE;
    entries_on_their_way_to_a_shard_are_not_out_of_sight_i6: quota::Share<true>, quota::ALL_OF_IT;
    tombstones_are_counted_after_what_they_replace_i6: counts::Deleted, counts::DELETED;
    lone_writers_follow_one_run_i1: lone::Run<1>, lone::RUN;
    run_lacks_what_another_shard_links_i1: lone::Run<2>, lone::RUN;
    lone_writers_lose_no_count_i6: lone::Counts, lone::RUN;
    room_that_is_given_back_is_handed_out_once_i6: room::GiveBack<false>, room::GIVE_BACK;
    room_that_is_given_back_at_the_end_of_a_chunk_is_handed_out_once_i6: room::GiveBack<true>, room::GIVE_BACK;
    groups_that_alternate_keep_order_i1: group::Groups, group::GROUPS;
    same_keys_of_two_groups_have_one_winner_each_i3: group::SameKeys, group::SAME_KEYS;
    interleaved_lookups_see_whole_entries_i4: group::Lookups, group::LOOKUPS;
    batch_in_order_is_seen_whole_or_not_at_all_i5: group::Batch<true>, group::BATCH;
    group_is_seen_whole_or_not_at_all_i5: group::Batch<false>, group::BATCH;
    walk_with_readahead_misses_nothing_i1: walk::Walk<true, false>, walk::WALK;
    walk_back_misses_nothing_i1: walk::Walk<false, false>, walk::WALK_BACK;
    walk_from_both_ends_misses_nothing_i1: walk::Walk<true, true>, walk::WALK_BACK;
    hints_lead_to_written_nodes_i2: hints::Written<false>, hints::WRITTEN;
    hints_lead_to_written_blocks_i2: hints::Written<true>, hints::WRITTEN;
    readahead_follows_written_leaves_i2: hints::Leaves, hints::LEAVES;
    hints_of_two_writers_are_all_there_i2: hints::TwoHints, hints::TWO_HINTS;
    splits_exclude_each_other_i2: hints::TwoSplits, hints::TWO_SPLITS;
    search_beside_a_split_finds_what_stays_i3: hints::BesideSplit<b'd'>, hints::BESIDE_SPLIT;
    search_beside_a_split_finds_what_moves_i3: hints::BesideSplit<b'l'>, hints::BESIDE_SPLIT;
    search_beside_a_split_under_a_tied_root_i3: hints::BesideTies, hints::BESIDE_TIES;
    block_is_replaced_beside_its_holder_i2: hints::Replaced<false, { hints::STUCK_LOOKS }>, hints::REPLACED;
    block_is_replaced_beside_a_split_i2: hints::Replaced<true, { hints::STUCK_LOOKS }>, hints::REPLACED_BESIDE_SPLIT;
    too_few_looks_leave_a_block_to_its_holder_i2: hints::Replaced<false, { hints::STUCK_LOOKS - 1 }>, hints::LOOKED_AT;
    freeze_waits_for_a_split_i7: hints::Frozen, hints::FROZEN;
    writes_become_visible_in_order_and_whole_q4: publication::InOrder<2>, publication::IN_ORDER;
    writes_of_three_become_visible_in_order_and_whole_q4: publication::InOrder<3>, publication::IN_ORDER_OF_THREE;
    no_ticket_and_no_sleeper_is_left_behind_q5_q6: publication::Sleepers, &["1 | 2"];
    slot_is_given_to_one_ticket_at_a_time_q1: publication::OneSlot, &[""];
    rotation_waits_for_the_writes_under_way: publication::Rotation, publication::ROTATION;
    a_sync_covers_whole_frames_only: publication::GroupSync, publication::GROUP_COMMIT;
}
