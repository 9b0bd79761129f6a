//! Moves level 0 down when scans have merged its runs again and again, and nothing else is due: LevelDB's seek compactions, Pebble's read-triggered
//! ones. Level 0 stays as it is after the last flush, with up to `l0_trigger` runs whose keys take turns. A scan of two such runs takes half as
//! long again as a scan of one.
//!
//! R1 Progress: all of level 0 that is free goes down, and the next such compaction waits for a flush, and for as many scans again.
//! R2 Write amplification: such a compaction rewrites no more of the levels below than one between levels at their target sizes.

use super::{Context, level_0};
use crate::compaction::plan::Plan;

/// The compaction of level 0 for the sake of scans, if they are many. `push_level_0` is the policy's.
pub(super) fn plan(context: &Context<'_>, push_level_0: fn(&Context<'_>) -> Option<Plan>) -> Option<Plan> {
    let is_merged = !context.version.runs(0).is_empty() && context.version.all_runs().nth(1).is_some();
    if !context.is_scanned_often || !is_merged {
        return None;
    }
    push_level_0(context).filter(|plan| level_0::is_worth_its_while(context, plan, |table| table.size))
}
