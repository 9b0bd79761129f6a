//! The models: each is a concurrent program, the invariant that it shows, and the complete set of outcomes that may be observed.

mod arena;
mod axioms;
mod budget;
mod counts;
mod group;
mod hints;
mod insert;
mod lone;
pub mod misuse;
mod publication;
mod publish;
mod quota;
mod replace;
mod room;
mod seal;
mod slot;
mod snapshot;
mod spin;
mod table;
mod walk;

use crate::Memtable;
use crate::check::{Depth, Report};
use crate::tuning::STUCK_LOOKS;
use arena::Spare;
use seal::Fate;
use snapshot::Help;
use walk::From;

/// A model.
pub struct Model {
    /// Its name: the property that it shows, and the number of the invariant.
    pub name: &'static str,
    /// Explores the model, and panics if its property does not hold; see [`explore`](crate::check::Program::explore).
    pub run: fn(Depth) -> Report,
}

/// Passes every model to the macro `$with`: its name, and its program.
#[macro_export]
macro_rules! every_model {
    ($with:ident) => {
        $with! {
            seen_entry_is_in_a_later_snapshot_by_the_axioms_i5: axioms::SeenEntry;
            publish_shows_whole_entries_i4: publish::publish();
            adjacent_inserts_keep_order_i1: insert::adjacent();
            same_key_has_one_winner_i3: insert::same_key();
            two_writers_and_a_reader_scan_in_order_i1: insert::scans();
            replaced_value_is_seen_whole_i10: replace::value();
            last_of_two_replacements_stays_i10: replace::writers(true);
            last_of_two_writers_of_one_number_stays_i10: replace::writers(false);
            one_of_two_writes_of_an_absent_key_stores_i10: replace::if_absent();
            partial_keys_that_share_nothing_i9: insert::partial_keys(insert::SHARE_NOTHING);
            partial_keys_that_share_much_i9: insert::partial_keys(insert::SHARE_MUCH);
            partial_keys_of_zeros_i9: insert::partial_keys(insert::ZEROS);
            partial_keys_of_prefixes_i9: insert::partial_keys(insert::PREFIXES);
            snapshot_shows_an_insertion_always_or_never_i5: snapshot::change(false, Help::None);
            snapshot_shows_a_helped_insertion_always_or_never_i5: snapshot::change(false, Help::Looks);
            snapshot_shows_a_deletion_always_or_never_i5: snapshot::change(true, Help::None);
            snapshot_shows_a_helped_deletion_always_or_never_i5: snapshot::change(true, Help::Looks);
            snapshot_has_what_was_seen_before_i5: snapshot::seen_before();
            who_sees_a_deletion_sees_what_led_to_it_i5: snapshot::witness(Help::None);
            who_sees_a_helped_deletion_sees_what_led_to_it_i5: snapshot::witness(Help::Looks);
            deletion_has_one_winner_i3: snapshot::two_deletions();
            seal_keeps_what_was_acknowledged_i7: seal::seal(&[b"kl"]);
            seal_keeps_what_writers_of_one_shard_were_told_i7: seal::seal(&[b"k", b"l"]);
            freeze_waits_for_an_open_reservation_i7: seal::drain(Fate::Applied, 1);
            freeze_waits_for_a_dropped_reservation_i7: seal::drain(Fate::Dropped, 1);
            two_freezes_wait_for_an_open_reservation_i7: seal::drain(Fate::Applied, 2);
            freeze_waits_for_a_batch_in_order_i7: seal::drain(Fate::Follows, 1);
            begun_freeze_drains_without_waiting_i7: seal::begun();
            freeze_waits_where_another_thread_began_it_i7: seal::begun_and_waited_for();
            refused_writer_sees_what_led_to_the_freeze_i7: seal::successor(seal::by_refusal);
            who_sees_the_freeze_sees_what_led_to_it_i7: seal::successor(Memtable::is_frozen);
            first_chunk_is_fetched_once_i6: arena::refill(2, false);
            next_chunk_is_fetched_once_and_none_is_lost_i6: arena::refill(2, true);
            next_chunk_of_three_threads_is_fetched_once_i6: arena::refill(3, true);
            spare_pieces_are_written_by_one_after_the_other_i6: arena::spare(Spare::Alone);
            spare_pieces_in_a_chunk_are_written_by_one_after_the_other_i6: arena::spare(Spare::InAChunk);
            spare_pieces_behind_the_frontier_are_written_by_one_after_the_other_i6: arena::spare(Spare::BehindTheFrontier);
            spare_pieces_before_a_chunk_are_written_by_one_after_the_other_i6: arena::spare_before_a_chunk();
            last_place_is_taken_once_i6: arena::last_place(false);
            limit_is_passed_by_one_entry_i6: arena::last_place(true);
            last_chunk_serves_both_shards_i6: arena::one_chunk();
            last_entry_of_the_limit_is_taken_once_i6: arena::entries(1);
            entries_within_the_limit_are_all_taken_i6: arena::entries(2);
            figures_never_show_more_idle_than_reserved_i6: arena::figures();
            chunk_that_is_taken_back_is_not_idle_i6: arena::taken_back();
            entry_is_counted_after_its_memory_i6: arena::counted();
            chunk_that_is_put_back_was_reserved_i6: arena::put_back();
            idle_chunk_is_no_pressure_i6: arena::pressure();
            share_is_delivered_once_i6: quota::share(false);
            entries_on_their_way_to_a_shard_are_not_out_of_sight_i6: quota::share(true);
            budget_of_two_tables_is_used_up_exactly_i6: budget::two_tables(false);
            budget_of_two_tables_gets_room_back_i6: budget::two_tables(true);
            waiting_for_room_in_a_budget_ends_i6: budget::waits();
            tombstones_are_counted_after_what_they_replace_i6: counts::deleted();
            lone_writers_follow_one_run_i1: lone::run(1);
            run_lacks_what_another_shard_links_i1: lone::run(2);
            lone_writers_lose_no_count_i6: lone::counts();
            room_that_is_given_back_is_handed_out_once_i6: room::give_back(false);
            room_that_is_given_back_at_the_end_of_a_chunk_is_handed_out_once_i6: room::give_back(true);
            groups_that_alternate_keep_order_i1: group::groups();
            same_keys_of_two_groups_have_one_winner_each_i3: group::same_keys();
            interleaved_lookups_see_whole_entries_i4: group::lookups();
            batch_in_order_is_seen_whole_or_not_at_all_i5: group::batch(true);
            group_is_seen_whole_or_not_at_all_i5: group::batch(false);
            walk_with_readahead_misses_nothing_i1: walk::walk(From::Front);
            walk_back_misses_nothing_i1: walk::walk(From::Back);
            walk_from_both_ends_misses_nothing_i1: walk::walk(From::Both);
            hints_lead_to_written_nodes_i2: hints::written(false);
            hints_lead_to_written_blocks_i2: hints::written(true);
            readahead_follows_written_leaves_i2: hints::readahead();
            hints_of_two_writers_are_all_there_i2: hints::two_hints();
            splits_exclude_each_other_i2: hints::two_splits();
            search_beside_a_split_finds_what_stays_i3: hints::search_beside_split(b'd');
            search_beside_a_split_finds_what_moves_i3: hints::search_beside_split(b'l');
            search_beside_a_split_under_a_tied_root_i3: hints::beside_ties();
            block_is_replaced_beside_its_holder_i2: hints::replaced(false, STUCK_LOOKS);
            block_is_replaced_beside_a_split_i2: hints::replaced(true, STUCK_LOOKS);
            too_few_looks_leave_a_block_to_its_holder_i2: hints::replaced(false, STUCK_LOOKS - 1);
            freeze_waits_for_a_split_i7: hints::frozen();
            writes_become_visible_in_order_and_whole_q4: publication::in_order::<2>(&["0", "1", "2"]);
            writes_of_three_become_visible_in_order_and_whole_q4: publication::in_order::<3>(&["0", "1", "2", "3"]);
            no_ticket_and_no_sleeper_is_left_behind_q5_q6: publication::sleepers();
            slot_is_given_to_one_ticket_at_a_time_q1: publication::one_slot();
            rotation_waits_for_the_writes_under_way: publication::rotation();
            a_sync_covers_whole_frames_only: publication::group_sync();
            loaded_value_is_whole_and_stays_z2: slot::load();
            value_of_another_thread_is_freed_whole_z2: slot::take();
            locks_without_std_exclude_and_publish: spin::lock();
            value_set_once_without_std_is_published: spin::once();
        }
    };
}

macro_rules! declare {
    ($($name:ident: $program:expr;)*) => {
        /// Every model.
        pub static ALL: &[Model] = &[$(Model { name: stringify!($name), run: |depth| $program.explore(depth) },)*];
    };
}
every_model!(declare);
