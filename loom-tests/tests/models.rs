//! Runs every model. How deep, `Depth::of_tests` says.

use std::collections::BTreeSet;

use loom_tests::check::Depth;
use loom_tests::models::ALL;

fn run(name: &str) {
    let model = ALL.iter().find(|model| model.name == name).expect("the model of this name");
    let depth = Depth::of_tests();
    if depth != Depth::QUICK && depth.executions != usize::MAX {
        // The first executions of a deeper search are not those of this one, at which `ordering_mutants.rs` kills.
        println!("{name}: {}", model.run(Depth::QUICK));
    }
    println!("{name}: {}", model.run(depth));
}

macro_rules! models {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                run(stringify!($name));
            }
        )*

        /// Catches a model that is written and never run.
        #[test]
        fn every_model_is_run() {
            let run = [$(stringify!($name)),*];
            assert_eq!(BTreeSet::from(run), ALL.iter().map(|model| model.name).collect());
        }
    };
}

models! {
    seen_entry_is_in_a_later_snapshot_by_the_axioms_i5
    publish_shows_whole_entries_i4
    adjacent_inserts_keep_order_i1
    same_key_has_one_winner_i3
    two_writers_and_a_reader_scan_in_order_i1
    partial_keys_that_share_nothing_i9
    partial_keys_that_share_much_i9
    partial_keys_of_zeros_i9
    partial_keys_of_prefixes_i9
    snapshot_shows_an_insertion_always_or_never_i5
    snapshot_shows_a_helped_insertion_always_or_never_i5
    snapshot_shows_a_deletion_always_or_never_i5
    snapshot_shows_a_helped_deletion_always_or_never_i5
    snapshot_has_what_was_seen_before_i5
    who_sees_a_deletion_sees_what_led_to_it_i5
    who_sees_a_helped_deletion_sees_what_led_to_it_i5
    deletion_has_one_winner_i3
    seal_keeps_what_was_acknowledged_i7
    seal_keeps_what_writers_of_one_shard_were_told_i7
    freeze_waits_for_an_open_reservation_i7
    freeze_waits_for_a_dropped_reservation_i7
    two_freezes_wait_for_an_open_reservation_i7
    freeze_waits_for_a_batch_in_order_i7
    refused_writer_sees_what_led_to_the_freeze_i7
    who_sees_the_freeze_sees_what_led_to_it_i7
    first_chunk_is_fetched_once_i6
    next_chunk_is_fetched_once_and_none_is_lost_i6
    next_chunk_of_three_threads_is_fetched_once_i6
    spare_pieces_are_written_by_one_after_the_other_i6
    spare_pieces_in_a_chunk_are_written_by_one_after_the_other_i6
    spare_pieces_behind_the_frontier_are_written_by_one_after_the_other_i6
    last_place_is_taken_once_i6
    limit_is_passed_by_one_entry_i6
    last_chunk_serves_both_shards_i6
    last_entry_of_the_limit_is_taken_once_i6
    entries_within_the_limit_are_all_taken_i6
    figures_never_show_more_idle_than_reserved_i6
    chunk_that_is_taken_back_is_not_idle_i6
    entry_is_counted_after_its_memory_i6
    chunk_that_is_put_back_was_reserved_i6
    idle_chunk_is_no_pressure_i6
    share_is_delivered_once_i6
    entries_on_their_way_to_a_shard_are_not_out_of_sight_i6
    tombstones_are_counted_after_what_they_replace_i6
    lone_writers_follow_one_run_i1
    run_lacks_what_another_shard_links_i1
    lone_writers_lose_no_count_i6
    room_that_is_given_back_is_handed_out_once_i6
    room_that_is_given_back_at_the_end_of_a_chunk_is_handed_out_once_i6
    groups_that_alternate_keep_order_i1
    same_keys_of_two_groups_have_one_winner_each_i3
    interleaved_lookups_see_whole_entries_i4
    batch_in_order_is_seen_whole_or_not_at_all_i5
    group_is_seen_whole_or_not_at_all_i5
    walk_with_readahead_misses_nothing_i1
    walk_back_misses_nothing_i1
    walk_from_both_ends_misses_nothing_i1
    hints_lead_to_written_nodes_i2
    hints_lead_to_written_blocks_i2
    readahead_follows_written_leaves_i2
    hints_of_two_writers_are_all_there_i2
    splits_exclude_each_other_i2
    search_beside_a_split_finds_what_stays_i3
    search_beside_a_split_finds_what_moves_i3
    search_beside_a_split_under_a_tied_root_i3
    block_is_replaced_beside_its_holder_i2
    block_is_replaced_beside_a_split_i2
    too_few_looks_leave_a_block_to_its_holder_i2
    freeze_waits_for_a_split_i7
    writes_become_visible_in_order_and_whole_q4
    writes_of_three_become_visible_in_order_and_whole_q4
    no_ticket_and_no_sleeper_is_left_behind_q5_q6
    slot_is_given_to_one_ticket_at_a_time_q1
    rotation_waits_for_the_writes_under_way
    a_sync_covers_whole_frames_only
}
