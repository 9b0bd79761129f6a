//! Moves level 0 down when scans have merged its runs again and again and no other compaction is due, like LevelDB's seek compactions and Pebble's
//! read-triggered ones. Otherwise level 0 would stay as it is after the last flush, with up to `l0_trigger` runs whose keys interleave. A scan of two
//! such runs takes one and a half times as long as a scan of one.
//!
//! R1 Progress: all free tables of level 0 go down, and the next such compaction waits for a flush, and for the same number of scans again.
//! R2 Write amplification: such a compaction rewrites no more of the levels below than one between levels at their target sizes.

use super::{Context, level_0};
use crate::compaction::plan::Plan;

/// The compaction of level 0 for the sake of scans, if there were many. `push_level_0` is that of the policy.
pub(super) fn plan(context: &Context<'_>, push_level_0: fn(&Context<'_>) -> Option<Plan>) -> Option<Plan> {
    let is_merged = !context.version.runs(0).is_empty() && context.version.all_runs().nth(1).is_some();
    if !context.is_scanned_often || !is_merged {
        return None;
    }
    push_level_0(context).filter(|plan| level_0::is_worth_its_while(context, plan, |table| table.size))
}
