//! Picks the compaction that a version needs most: a pure function of the version, the options and the running compactions. So each policy fits on a
//! page and can be tested without files.

mod context;
mod dense;
mod dropped;
mod lazy_leveled;
mod level_0;
mod leveled;
mod neighbours;
mod partial;
mod read_triggered;
mod targets;
#[cfg(test)]
mod tests;
mod tiered;

use crate::compaction::plan::Plan;
use crate::options::Compaction;

pub(crate) use self::context::{BOTTOM, Context};

/// A policy; each has a file in this folder, a line in [`policy_of`], and a variant of [`Compaction`].
struct Policy {
    /// The compactions that the policy proposes, the most needed one first.
    plans: fn(&Context<'_>) -> Vec<Plan>,
    /// The plan that moves all of level 0 to the run that the policy chooses.
    push_level_0: fn(&Context<'_>) -> Option<Plan>,
}

fn policy_of(compaction: Compaction) -> Policy {
    match compaction {
        Compaction::Leveled => leveled::POLICY,
        Compaction::Tiered => tiered::POLICY,
        Compaction::LazyLeveled => lazy_leveled::POLICY,
        Compaction::Partial => partial::POLICY,
    }
}

/// The compactions that a thread may choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    Any,
    /// Compactions that take tables from level 0, for which writers wait.
    Level0,
    /// All other compactions.
    Deeper,
}

/// The compaction that is needed most among those that do not conflict with running ones; `None` if there is none.
pub(crate) fn pick(context: &Context<'_>, work: Work) -> Option<Plan> {
    let policy = policy_of(context.options.compaction.unwrap_or_default());
    let plans = (policy.plans)(context);
    let (resumed, finished) = resumed(context);
    // A compaction that has begun continues before another begins on top of it. The only exception is level 0, which writers wait for: its compaction
    // may begin before a compaction of deeper levels continues.
    let passes = |plan: &Plan| plan.relieves_level_0() && !resumed.iter().any(Plan::relieves_level_0);
    let (first, others): (Vec<Plan>, Vec<Plan>) = plans.into_iter().partition(passes);
    let dropped = dropped::plans(context);
    let mut plans: Vec<Plan> = dropped.into_iter().chain(first).chain(resumed).chain(others).collect();
    plans.retain(|plan| context.in_progress.allows(plan));
    if context.level_0_is_due() {
        level_0::arrange(context, &mut plans);
    }
    if plans.is_empty() {
        let optional = [dense::plan, read_triggered::plan].into_iter();
        let allowed = |plan: &Plan| context.in_progress.allows(plan);
        plans.extend(optional.filter_map(|plan| plan(context, policy.push_level_0)).find(allowed));
    }
    let mut plan = plans.into_iter().find(|plan| match work {
        Work::Any => true,
        Work::Level0 => plan.relieves_level_0(),
        Work::Deeper => !plan.relieves_level_0(),
    })?;
    plan.finished = finished;
    Some(plan)
}

/// The next pieces of unfinished compactions, and the pointers of compactions with nothing left. The oldest compaction comes first. But of the
/// pointers to the same run, the newest comes first: a compaction that [`Plan::leave_newest`] cut short leaves a pointer to some tables of an older one,
/// which would rewrite the outputs of the first again and again.
fn resumed(context: &Context<'_>) -> (Vec<Plan>, Vec<u64>) {
    let (mut plans, mut finished) = (Vec::new(), Vec::new());
    let all = context.version.pointers();
    let mut pointers: Vec<_> = all.iter().rev().filter(|pointer| !context.in_progress.is_claimed(pointer.id)).collect();
    pointers.sort_by_key(|pointer| all.iter().position(|first| first.output == pointer.output));
    for pointer in pointers {
        match context.resume(pointer) {
            Some(plan) => plans.push(plan),
            None => finished.push(pointer.id),
        }
    }
    (plans, finished)
}
