//! Mutants: for each named ordering of the sources, the model that fails when the ordering is made weaker.

/// A weakening of one site, and the model that fails because of it.
#[derive(Debug, Clone, Copy)]
pub struct Mutant {
    /// The name that the source gives to `ord`.
    pub site: &'static str,
    /// The weaker ordering that replaces the ordering in the source.
    pub to: &'static str,
    /// The model.
    pub killed_by: &'static str,
}

macro_rules! mutants {
    ($($site:literal -> $to:ident: $model:ident;)*) => {
        /// Every weakening that is possible.
        pub const ALL: &[Mutant] = &[
            $(Mutant { site: $site, to: stringify!($to), killed_by: stringify!($model) },)*
        ];
    };
}

mutants! {
    "arena.chunk" -> Relaxed: figures_never_show_more_idle_than_reserved_i6;
    "arena.chunk.back" -> Relaxed: spare_pieces_before_a_chunk_are_written_by_one_after_the_other_i6;
    "arena.chunk.read" -> Relaxed: figures_never_show_more_idle_than_reserved_i6;
    "arena.chunk.take" -> Relaxed: spare_pieces_before_a_chunk_are_written_by_one_after_the_other_i6;
    "arena.frontier" -> Acquire: idle_chunk_is_no_pressure_i6;
    "arena.frontier" -> Relaxed: idle_chunk_is_no_pressure_i6;
    "arena.frontier" -> Release: spare_pieces_behind_the_frontier_are_written_by_one_after_the_other_i6;
    "arena.frontier.read" -> Relaxed: idle_chunk_is_no_pressure_i6;
    "arena.returned" -> Relaxed: chunk_that_is_taken_back_is_not_idle_i6;
    "block.bounds" -> Relaxed: readahead_follows_written_leaves_i2;
    "block.bounds.read" -> Relaxed: readahead_follows_written_leaves_i2;
    "block.lock" -> Relaxed: hints_of_two_writers_are_all_there_i2;
    "block.slot" -> Relaxed: hints_lead_to_written_nodes_i2;
    "block.slot.read" -> Relaxed: hints_lead_to_written_nodes_i2;
    "block.unlock" -> Relaxed: hints_of_two_writers_are_all_there_i2;
    "clock.read" -> Relaxed: snapshot_shows_an_insertion_always_or_never_i5;
    "clock.snapshot" -> Relaxed: snapshot_shows_an_insertion_always_or_never_i5;
    "counts.add" -> Relaxed: entry_is_counted_after_its_memory_i6;
    "counts.read" -> Relaxed: entry_is_counted_after_its_memory_i6;
    "delete.mark" -> Relaxed: who_sees_a_deletion_sees_what_led_to_it_i5;
    "gate.drained" -> Relaxed: seal_keeps_what_was_acknowledged_i7;
    "gate.enter" -> Relaxed: lone_writers_follow_one_run_i1;
    "gate.freeze" -> Relaxed: who_sees_the_freeze_sees_what_led_to_it_i7;
    "gate.frozen" -> Relaxed: who_sees_the_freeze_sees_what_led_to_it_i7;
    "gate.look" -> Relaxed: refused_writer_sees_what_led_to_the_freeze_i7;
    "gate.leave" -> Relaxed: seal_keeps_what_was_acknowledged_i7;
    "index.root" -> Relaxed: hints_lead_to_written_blocks_i2;
    "index.root.read" -> Relaxed: hints_lead_to_written_blocks_i2;
    "latest.read" -> Relaxed: replaced_value_is_seen_whole_i10;
    "latest.swap" -> Acquire: replaced_value_is_seen_whole_i10;
    "latest.swap" -> Relaxed: replaced_value_is_seen_whole_i10;
    "latest.swap" -> Release: last_of_two_replacements_stays_i10;
    "link.commit" -> Relaxed: publish_shows_whole_entries_i4;
    "link.next" -> Relaxed: publish_shows_whole_entries_i4;
    "once.get" -> Relaxed: value_set_once_without_std_is_published;
    "once.set" -> Relaxed: value_set_once_without_std_is_published;
    "quota.lease" -> Relaxed: share_is_delivered_once_i6;
    "quota.lease.read" -> Relaxed: share_is_delivered_once_i6;
    "quota.left" -> Relaxed: entries_on_their_way_to_a_shard_are_not_out_of_sight_i6;
    "quota.left.read" -> Relaxed: entries_on_their_way_to_a_shard_are_not_out_of_sight_i6;
    "slot.load" -> Relaxed: loaded_value_is_whole_and_stays_z2;
    "slot.swap" -> Acquire: loaded_value_is_whole_and_stays_z2;
    "slot.swap" -> Relaxed: loaded_value_is_whole_and_stays_z2;
    "slot.swap" -> Release: value_of_another_thread_is_freed_whole_z2;
    "spares.bin" -> Relaxed: spare_pieces_are_written_by_one_after_the_other_i6;
    "spares.bin.read" -> Relaxed: spare_pieces_are_written_by_one_after_the_other_i6;
    "spin.lock" -> Relaxed: locks_without_std_exclude_and_publish;
    "spin.unlock" -> Relaxed: locks_without_std_exclude_and_publish;
    "stamp.read" -> Relaxed: who_sees_a_deletion_sees_what_led_to_it_i5;
    "stamp.set" -> Relaxed: seen_entry_is_in_a_later_snapshot_by_the_axioms_i5;
}
