//! Tiered compaction: up to as many runs on a level as the size ratio says; that many are merged into one run of the next
//! level, and touch nothing there. An entry is written once a level.
//!
//! Runs that overlap hold obsolete versions of each other's keys, up to the ratio times the data. RocksDB's universal
//! compaction bounds that by the bytes above the oldest run; so does this: once they are as many as the oldest run has,
//! everything becomes one run. That is looked at when level 0 is due, so that level 0 goes with it at no extra cost.

use super::{BOTTOM, Context};
use crate::compaction::plan::Plan;
use crate::manifest::Run;

pub(super) fn plans(context: &Context<'_>) -> Vec<Plan> {
    let mut plans = Vec::new();
    if context.level_0_is_due() {
        plans.extend(if is_stale(context) { context.push_all() } else { context.push_as_run(0) });
    }
    plans.extend(full_tiers(context, BOTTOM).filter_map(|level| context.push_as_run(level)));
    if context.version.runs(BOTTOM).len() as u64 >= context.options.size_ratio {
        plans.extend(context.join_runs(BOTTOM));
    }
    plans
}

/// Levels below level 0 and above `end` with as many runs as a level may have, the upper ones first: writers wait for them.
pub(super) fn full_tiers<'a>(context: &'a Context<'_>, end: usize) -> impl Iterator<Item = usize> + use<'a> {
    let (version, ratio) = (context.version, context.options.size_ratio);
    (1..end).filter(move |&level| version.runs(level).len() as u64 >= ratio)
}

/// Whether all that may make the oldest run obsolete has as many bytes.
fn is_stale(context: &Context<'_>) -> bool {
    let deeper = || context.version.all_runs().filter(|(level, _)| *level > 0).map(|(_, run)| run);
    let Some(oldest) = deeper().next_back().map(Run::bytes) else { return false };
    let all: u64 = context.version.all_runs().map(|(_, run)| run.bytes()).sum();
    all - oldest >= oldest
}
