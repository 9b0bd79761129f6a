//! Leveled compaction (O'Neil and others 1996; LevelDB): one run a level, each level larger than the one above by the size ratio. A level that is too
//! large passes tables to the next one, where they are compacted with those that they overlap.
//!
//! The tables that go down are adjacent and together make up the excess. They are chosen where they overlap the fewest bytes of the next level for
//! each byte that goes down; LevelDB's successors pick single files in the same way. The most urgent level comes first: the urgency of level 0 is its
//! tables over the trigger, that of other levels their bytes over their target.

use super::targets::Targets;
use super::{BOTTOM, Context, Policy, level_0};
use crate::compaction::plan::{self, Plan};
use crate::table::TableMeta;

/// Greater than every other need: used for tables on levels that the policy wants empty.
const FIRST: u64 = u64::MAX;
/// A need up to this requires no compaction: the level is just full.
const FULL: u64 = 1000;

/// The amount that goes down at once from a level that is too large.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Portion {
    Excess,
    Table,
}

pub(super) const POLICY: Policy = Policy { plans, push_level_0 };

fn plans(context: &Context<'_>) -> Vec<Plan> {
    plans_by(context, Portion::Excess)
}

/// The plans of all levels that need one, most needed first.
pub(super) fn plans_by(context: &Context<'_>, portion: Portion) -> Vec<Plan> {
    let targets = Targets::of(context);
    let mut levels: Vec<(u64, usize)> = (0..=BOTTOM).map(|level| (need(context, &targets, level), level)).collect();
    levels.retain(|&(need, _)| need > FULL);
    levels.sort_by_key(|&(need, level)| (std::cmp::Reverse(need), level));
    levels.into_iter().filter_map(|(_, level)| plan_for(context, &targets, level, portion)).collect()
}

/// The fill of the level, in thousandths of its target.
fn need(context: &Context<'_>, targets: &Targets, level: usize) -> u64 {
    let (held, limit) = match level {
        0 if !context.level_0_is_due() => return 0,
        0 => (context.version.runs(0).len() as u64, context.options.level_0_tables() as u64),
        _ if context.version.runs(level).len() > 1 => return FIRST,
        _ => (context.free_bytes(level), targets.bytes(level)),
    };
    if limit == 0 && held > 0 { FIRST } else { held.saturating_mul(FULL) / limit.max(1) }
}

fn plan_for(context: &Context<'_>, targets: &Targets, level: usize, portion: Portion) -> Option<Plan> {
    let version = context.version;
    if level > 0 && version.runs(level).len() > 1 {
        return context.join_runs(level);
    }
    if level == 0 {
        return push_level_0(context);
    }
    let below = targets.below(context, level);
    let output = plan::oldest_run(version, below);
    let excess = context.free_bytes(level).saturating_sub(targets.bytes(level));
    let wanted = match portion {
        // Levels above the base must be emptied.
        Portion::Table if targets.bytes(level) > 0 => 1,
        Portion::Table | Portion::Excess => excess,
    };
    let tables = version.runs(level).first()?.tables();
    let chosen = cheapest(context, tables, below, wanted)?;
    let (first, last) = (&chosen.first()?.smallest, &chosen.last()?.largest);
    let goes = |at: usize, table: &TableMeta| at == level && table.smallest >= *first && table.largest <= *last;
    context.plan(plan::expand_inputs(version, level, below, goes), output)
}

/// The plan that merges the tables of level 0 that can go down into the level below.
pub(super) fn push_level_0(context: &Context<'_>) -> Option<Plan> {
    let below = Targets::of(context).below(context, 0);
    context.plan(level_0::inputs(context, below), plan::oldest_run(context.version, below))
}

/// The adjacent tables among `tables` that together have `wanted` bytes, or extend to the last one, and overlap the fewest bytes of level `below` for
/// each byte that goes down. They and the tables that they overlap must be free. O(n log n).
fn cheapest<'a>(context: &Context<'_>, tables: &'a [TableMeta], below: usize, wanted: u64) -> Option<&'a [TableMeta]> {
    let runs: Vec<&[TableMeta]> = context.version.runs(below).iter().map(|run| run.tables()).collect();
    let is_taken = |table: &TableMeta| !context.in_progress.is_free(table.number);
    let mut best: Option<(u128, &[TableMeta])> = None;
    let (mut end, mut bytes) = (0, 0u64);
    for (start, first) in tables.iter().enumerate() {
        while let Some(next) = tables.get(end).filter(|_| bytes < wanted || end <= start) {
            bytes = bytes.saturating_add(next.size);
            end += 1;
        }
        let window = tables.get(start..end)?;
        let reached = bytes;
        bytes = bytes.saturating_sub(first.size);
        let last = &window.last()?.largest;
        let overlapped = || runs.iter().flat_map(|run| overlapped(run, &first.smallest, last));
        if window.iter().any(is_taken) || overlapped().any(is_taken) {
            continue;
        }
        let rewritten: u64 = overlapped().map(|table| table.size).sum();
        let cost = u128::from(rewritten) * 1_000_000 / u128::from(reached.max(1));
        if best.is_none_or(|(least, _)| cost < least) {
            best = Some((cost, window));
        }
        if end == tables.len() && reached < wanted {
            break;
        }
    }
    best.map(|(_, window)| window)
}

/// The tables of `run` that have any of these keys.
pub(super) fn overlapped<'a>(run: &'a [TableMeta], smallest: &[u8], largest: &[u8]) -> &'a [TableMeta] {
    let from = run.partition_point(|table| *table.largest < *smallest);
    let to = run.partition_point(|table| *table.smallest <= *largest);
    run.get(from..to).unwrap_or_default()
}
