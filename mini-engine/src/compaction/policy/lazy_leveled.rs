//! Lazy leveling (Dayan and Idreos 2018, "Dostoevsky"): tiers of runs on all levels but the deepest, which is one run.
//!
//! Most entries are on the deepest level, so most of what is obsolete is too: one run there keeps space and the number of
//! runs near those of leveled. Merging lazily above it saves most of the rewriting, of which every level of leveled has the
//! same share. All tiers together may grow to the deepest level's bytes divided by the size ratio; then they go down at
//! once, level 0 with them since that is when it is looked at.

use super::{BOTTOM, Context, tiered};
use crate::compaction::plan::{self, Plan};

pub(super) fn plans(context: &Context<'_>) -> Vec<Plan> {
    let mut plans = Vec::new();
    if context.version.runs(BOTTOM).len() > 1 {
        plans.extend(context.join_runs(BOTTOM));
    }
    if context.level_0_is_due() {
        let limit = context.version.level_bytes(BOTTOM) / context.options.size_ratio;
        let full = context.bytes_above_bottom() >= limit;
        plans.extend(if full { context.push_all() } else { context.push_as_run(0) });
    }
    plans.extend(tiered::full_tiers(context, BOTTOM - 1).filter_map(|level| context.push_as_run(level)));
    if context.version.runs(BOTTOM - 1).len() as u64 >= context.options.size_ratio {
        let output = plan::oldest_run(context.version, BOTTOM);
        plans.extend(context.plan(context.expand_inputs(BOTTOM - 1, BOTTOM), output));
    }
    plans
}
