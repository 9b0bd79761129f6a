//! Manual compaction: compacts all entries of a key range into one run, one step at a time.
//!
//! Steps go from the top down: the tables of the uppermost level that has any in the range go to the next level that has some. On the lowest level,
//! tables into which nothing was compacted are rewritten, because they may hold tombstones and versions that were kept for snapshots that no longer
//! exist; so are narrowed tables, which hold entries that no longer count. Tables without such entries are left unchanged. A step takes one table
//! where it can, so that it needs little space.

use std::collections::HashSet;

use crate::compaction::key_range::overlaps_bounds;
use crate::compaction::plan::{self, Plan};
use crate::compaction::policy::{BOTTOM, Context};
use crate::manifest::{MAX_LEVELS, Run, RunId};
use crate::table::TableMeta;
use crate::types::{OwnedBounds, SeqNo};

/// The range and the versions to compact.
#[derive(Debug, Clone)]
pub(crate) struct ManualCompaction {
    pub(crate) bounds: OwnedBounds,
    /// Versions up to this number are compacted; later ones would never end.
    pub(crate) upto: SeqNo,
    /// Tables with this number or a higher one were made since.
    pub(crate) made_from: u64,
    /// Tables in which no entry can be dropped.
    pub(crate) minimal: HashSet<u64>,
}

/// The next piece of the compaction that has left the compact pointer `rest`, or the next step; `None` if nothing more is to be done. It may
/// conflict with a compaction under way.
///
/// A compaction continues to its end, even beyond the range, before another step begins. So every narrowed table has a pointer that leads to it.
pub(crate) fn pick_manual(context: &Context<'_>, range: &ManualCompaction, rest: Option<u64>) -> Option<Plan> {
    let pointer = context.version.pointers().iter().find(|pointer| Some(pointer.id) == rest);
    if let Some(next) = pointer.and_then(|pointer| context.resume(pointer)) {
        return Some(next);
    }
    let mut step = pick_step(context, range)?;
    step.resumes.extend(rest);
    Some(step)
}

fn pick_step(context: &Context<'_>, range: &ManualCompaction) -> Option<Plan> {
    let version = context.version;
    let concerns = |table: &TableMeta| table.min_seqno <= range.upto && overlaps_bounds(table, &range.bounds);
    let mut holding = (0..MAX_LEVELS).filter(|&level| version.level(level).any(concerns));
    let top = holding.next()?;
    let below = holding.next();
    if top > 0 && below.is_none() {
        return rewrite(context, range, top, concerns);
    }
    let below = below.unwrap_or(BOTTOM);
    // In a single run any table may move alone. With several runs, as on level 0, it takes along the tables that it overlaps. Where space is short,
    // only one of the oldest run goes: such a compaction frees most of its inputs at its end.
    let single = version.runs(top).len() == 1;
    let mut concerned = version.level(top).filter(|table| concerns(table)).map(|table| table.number);
    let alone = match (single, context.is_tight) {
        (true, _) => concerned.next(),
        (false, true) => concerned.last(),
        (false, false) => None,
    };
    let goes = |level: usize, table: &TableMeta| {
        level == top && alone.map_or_else(|| concerns(table), |alone| table.number == alone)
    };
    context.plan(plan::expand_inputs(version, top, below, goes), plan::oldest_run(version, below))
}

/// Turns the lowest level of the range into one run, and then rewrites each of its tables.
fn rewrite(
    context: &Context<'_>,
    range: &ManualCompaction,
    level: usize,
    concerns: impl Fn(&TableMeta) -> bool,
) -> Option<Plan> {
    let version = context.version;
    let output = plan::oldest_run(version, level);
    let has_any = |run: &&Run| run.tables().iter().any(&concerns);
    if version.runs(level).iter().filter(has_any).count() > 1 {
        return context.plan(plan::expand_inputs(version, level, level, |_, table| concerns(table)), output);
    }
    let run = version.runs(level).iter().find(|run| has_any(run))?;
    // A new table may also have been narrowed: then it still has the space of entries that no longer count.
    let is_new = |table: &TableMeta| table.number >= range.made_from && !table.narrowed;
    let is_done = |table: &TableMeta| is_new(table) || range.minimal.contains(&table.number);
    let old = run.tables().iter().find(|table| concerns(table) && !is_done(table))?;
    let run_id = RunId { level, run: run.id() };
    // Only tables of this run: entries of older runs would pass over the runs in between, which have newer versions (V4).
    context.plan(plan::expand_between(version, run_id, run_id, |_, table| table.number == old.number), run_id)
}
