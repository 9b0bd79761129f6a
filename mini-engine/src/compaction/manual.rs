//! Manual compaction: compacts all entries of a key range into one run, one step at a time.
//!
//! Steps go from the top down: the tables in the range on the uppermost level that has any are compacted into the next level that has any. On the
//! lowest level, tables that received no compaction output are rewritten, because they may hold tombstones and versions that were kept for snapshots
//! that no longer exist. So are narrowed tables, which contain entries outside their bounds. Tables without such entries are left unchanged. A step
//! takes one table if possible, so that it needs little space.

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
    /// Versions with sequence numbers up to this are compacted; with later ones the compaction might never end.
    pub(crate) upto: SeqNo,
    /// Tables with this number or a higher one were created since the compaction began.
    pub(crate) made_from: u64,
    /// Tables in which no entry can be dropped (minimal tables).
    pub(crate) minimal: HashSet<u64>,
}

/// The next piece of the compaction that has left the compact pointer `rest`, or the next step; `None` if the range is done. The plan may conflict
/// with a running compaction.
///
/// A compaction continues to its end, even beyond the range, before another step begins. So a compact pointer leads to every narrowed table.
pub(crate) fn pick_manual(context: &Context<'_>, range: &ManualCompaction, rest: Option<u64>) -> Option<Plan> {
    let pointer = context.version.pointers().iter().find(|pointer| Some(pointer.id) == rest);
    if let Some(next) = pointer.and_then(|pointer| context.resume(pointer)) {
        return Some(next);
    }
    let mut step = pick_step(context, range)?;
    step.finished.extend(rest);
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
    // In a single run any table may move alone. With several runs, as on level 0, the tables that it overlaps are included. If space is short, only
    // one table of the oldest run is compacted: such a compaction frees most of its inputs at its end.
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
    // A new table may also have been narrowed: then it still takes the space of entries outside its bounds.
    let is_new = |table: &TableMeta| table.number >= range.made_from && !table.narrowed;
    let is_done = |table: &TableMeta| is_new(table) || range.minimal.contains(&table.number);
    let old = run.tables().iter().find(|table| concerns(table) && !is_done(table))?;
    let run_id = RunId { level, run: run.id() };
    // Includes only tables of this run: entries of older runs would pass over the runs in between, which have newer versions (V4).
    context.plan(plan::expand_between(version, run_id, run_id, |_, table| table.number == old.number), run_id)
}
