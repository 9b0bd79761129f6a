//! Tiered compaction: a level has up to `size_ratio` runs; when it is full, its runs are compacted into one run of the next level, without rewriting
//! the runs there. An entry is written once per level.
//!
//! Runs that overlap hold obsolete versions of each other's keys, up to the ratio times the data. RocksDB's universal compaction bounds the bytes
//! above the oldest run, and so does this one: when they reach the bytes of the oldest run, everything below level 0 becomes one run. Level 0 is not
//! part of that compaction, because writers would wait until it ends.

use super::neighbours::{Growth, WindowLimits, cheapest_window};
use super::{BOTTOM, Context, Policy, level_0};
use crate::compaction::plan::{self, Plan};
use crate::manifest::{Run, RunId};

pub(super) const POLICY: Policy = Policy { plans, push_level_0: level_0::push_as_run };

fn plans(context: &Context<'_>) -> Vec<Plan> {
    let mut plans = Vec::new();
    if context.level_0_is_due() {
        plans.extend(level_0::push_as_run(context));
    }
    if is_stale(context) {
        plans.extend(context.push_tiers());
    }
    plans.extend(full_tiers(context, BOTTOM).filter_map(|level| context.push_as_run(level)));
    if context.version.runs(BOTTOM).len() as u64 >= context.options.size_ratio {
        plans.extend(context.join_runs(BOTTOM));
    }
    plans.extend((1..=BOTTOM).filter_map(|level| join_around_damage(context, level)));
    plans
}

/// Levels below level 0 and above `end` that have the maximum number of runs, the upper ones first, because writers wait for them.
pub(super) fn full_tiers<'a>(context: &'a Context<'_>, end: usize) -> impl Iterator<Item = usize> + use<'a> {
    let (version, ratio) = (context.version, context.options.size_ratio);
    (1..end).filter(move |&level| version.runs(level).len() as u64 >= ratio)
}

/// Whether the newer runs, without level 0, have as many bytes as the oldest one, which they may make obsolete.
fn is_stale(context: &Context<'_>) -> bool {
    let deeper = || context.version.all_runs().filter(|(level, _)| *level > 0).map(|(_, run)| run.bytes());
    let Some(oldest) = deeper().next_back() else { return false };
    deeper().count() > 1 && deeper().sum::<u64>() - oldest >= oldest
}

/// If a damaged table keeps a full level from going down, some of its other runs are joined, so that their number stays bounded.
pub(super) fn join_around_damage(context: &Context<'_>, level: usize) -> Option<Plan> {
    let (runs, ratio) = (context.version.runs(level), context.options.size_ratio as usize);
    let is_damaged = |run: &Run| run.tables().iter().any(|table| context.in_progress.damage.is_avoided(table.number));
    if runs.len() < ratio || !runs.iter().any(is_damaged) {
        return None;
    }
    let candidates = context.candidates(level);
    let window = |growth| cheapest_window(&candidates, WindowLimits { runs: ratio.min(4), bytes: u64::MAX, growth });
    let chosen = window(Growth::Double).or_else(|| window(Growth::Any).filter(|_| runs.len() > 2 * ratio))?;
    let oldest = RunId { level, run: runs.get(chosen.end - 1)?.id() };
    context.plan(plan::whole_runs(context.version, level, chosen), oldest)
}
