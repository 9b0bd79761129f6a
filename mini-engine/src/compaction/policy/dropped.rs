//! Removes tables whose keys all belong to keyspaces that were dropped. It costs an edit and no reading, so it comes before all other compactions.
//!
//! Progress: tables are removed, and none is added.

use super::Context;
use crate::compaction::live_keys::are_dropped;
use crate::compaction::plan::{self, Plan};
use crate::manifest::MAX_LEVELS;
use crate::table::TableMeta;

/// The removals of such tables: one plan for level 0, and one for all other levels. O(tables) if a keyspace was dropped.
pub(super) fn plans(context: &Context<'_>) -> Vec<Plan> {
    if !context.keyspaces.has_dropped() {
        return Vec::new();
    }
    let is_wanted = |table: &TableMeta| {
        are_dropped(context.keyspaces, &table.smallest, &table.largest) && context.in_progress.is_free(table.number)
    };
    [0..1, 1..MAX_LEVELS].into_iter().filter_map(|levels| plan::removal(context.version, levels, is_wanted)).collect()
}
