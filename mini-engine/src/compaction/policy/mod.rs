//! Which merge a version needs most: a pure function of the version, the options and the merges under way, so that each
//! policy is a page and can be tried without a file.

mod context;
mod lazy_leveled;
mod level_0;
mod leveled;
mod neighbours;
mod partial;
mod targets;
#[cfg(test)]
mod tests;
mod tiered;

use crate::compaction::plan::Plan;
use crate::options::Compaction;

pub(crate) use self::context::{BOTTOM, Context};

/// The merges that a thread takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    Any,
    /// Those that take tables off level 0, for which writers wait.
    Level0,
    /// The others.
    Deeper,
}

/// The merge that is needed most among those that do not get into the way of the running ones; `None` if there is none.
pub(crate) fn pick(context: &Context<'_>, work: Work) -> Option<Plan> {
    let mut plans = match context.options.compaction.unwrap_or_default() {
        Compaction::Leveled => leveled::plans(context),
        Compaction::Tiered => tiered::plans(context),
        Compaction::LazyLeveled => lazy_leveled::plans(context),
        Compaction::Partial => partial::plans(context),
    };
    plans.retain(|plan| context.in_progress.allows(plan));
    if context.level_0_is_due() {
        level_0::arrange(context, &mut plans);
    }
    plans.into_iter().find(|plan| match work {
        Work::Any => true,
        Work::Level0 => plan.relieves_level_0(),
        Work::Deeper => !plan.relieves_level_0(),
    })
}
