//! Which merge a version needs most: a pure function of the version, the options and the merges under way, so that each
//! policy is a page and can be tried without a file.

mod context;
mod lazy_leveled;
mod leveled;
mod partial;
mod targets;
#[cfg(test)]
mod tests;
mod tiered;

use crate::compaction::plan::Plan;
use crate::options::Compaction;

pub(crate) use self::context::{BOTTOM, Context};

/// The merge that is needed most among those that do not get into the way of the running ones; `None` if there is none.
pub(crate) fn pick(context: &Context<'_>) -> Option<Plan> {
    let plans = match context.options.compaction.unwrap_or_default() {
        Compaction::Leveled => leveled::plans(context),
        Compaction::Tiered => tiered::plans(context),
        Compaction::LazyLeveled => lazy_leveled::plans(context),
        Compaction::Partial => partial::plans(context),
    };
    plans.into_iter().find(|plan| !context.in_progress.conflicts_with(plan))
}
