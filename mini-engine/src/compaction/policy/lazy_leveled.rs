//! Lazy leveling (Dayan and Idreos 2018, "Dostoevsky"): tiers of runs on all levels but the deepest, which is one run.
//!
//! Most entries are on the deepest level, and so are most obsolete ones: with one run there, space and the number of runs stay near those of leveled
//! compaction. Lazy compaction above it saves most of the rewriting, since in leveled compaction every level causes the same share of it. All tiers
//! together may grow to the deepest level's bytes divided by the size ratio. Then they go down in one compaction, but without level 0, because
//! writers would have to wait until it ends.

use super::{BOTTOM, Context, Policy, level_0, tiered};
use crate::compaction::plan::{self, Plan};

pub(super) const POLICY: Policy = Policy { plans, push_level_0: level_0::push_as_run };

fn plans(context: &Context<'_>) -> Vec<Plan> {
    let mut plans = Vec::new();
    if context.version.runs(BOTTOM).len() > 1 {
        plans.extend(context.join_runs(BOTTOM));
    }
    if context.level_0_is_due() {
        plans.extend(level_0::push_as_run(context));
    }
    let tiers = context.tier_bytes();
    if tiers > 0 && tiers >= context.version.level_bytes(BOTTOM) / context.options.size_ratio {
        plans.extend(context.push_tiers());
    }
    plans.extend(tiered::full_tiers(context, BOTTOM - 1).filter_map(|level| context.push_as_run(level)));
    if context.version.runs(BOTTOM - 1).len() as u64 >= context.options.size_ratio {
        let output = plan::oldest_run(context.version, BOTTOM);
        plans.extend(context.plan(context.expand_inputs(BOTTOM - 1, BOTTOM), output));
    }
    plans.extend((1..BOTTOM).filter_map(|level| tiered::join_around_damage(context, level)));
    plans
}
