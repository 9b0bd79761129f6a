//! Compactions of level 0: chooses the tables that can go down, or that are better compacted among themselves.
//!
//! Writers wait if level 0 is full, and a compaction into a large level takes long. So a compaction within level 0 reduces the number of its tables
//! (RocksDB's intra-level-0 compaction) in two cases:
//! * The tables cannot go down, since a running compaction, or a table that cannot be read, is in the way.
//! * The tables are tiny compared with the tables that they overlap below. If each session writes once, many sessions would rewrite the level below
//!   for a few bytes each, and none would last to the end. Then no table goes down before level 0 has half the number of tables at which writers are
//!   slowed down.
//!
//! L1 Such a compaction takes tables adjacent in age, and merges them into one table: the sequence numbers of two tables of level 0 never interleave
//!    (V2 of the version).
//! L2 It keeps every tombstone: the tables below, and older ones of level 0, may hold what a tombstone hides.
//! L3 A table that goes down does not pass over an older table that stays and shares keys with it (V4).

use std::collections::HashSet;

use super::Context;
use super::neighbours::{Growth, WindowLimits, cheapest_window};
use crate::compaction::key_range::{KeyRange, KeySet};
use crate::compaction::plan::{self, Action, Chosen, Plan};
use crate::manifest::{Run, RunId};
use crate::options::Options;
use crate::table::TableMeta;

/// The minimum number of tables to merge, unless `l0_trigger` is smaller.
const TABLES: usize = 4;
/// The maximum size of a table of level 0, in memtables. Larger tables must go down.
const MEMTABLES: u64 = 8;

/// The tables of level 0 that can go down to level `below`, and the tables that they overlap down to there. These are all tables of level 0, or the
/// oldest ones that nothing blocks. O(tables).
pub(super) fn inputs<'a>(context: &Context<'a>, below: usize) -> Vec<Chosen<'a>> {
    let in_the_way = |(level, _): &(usize, &Run)| (1..=below).contains(level);
    let mut waiting: Vec<&TableMeta> = match context.in_progress.is_idle() {
        true => Vec::new(),
        false => context.version.all_runs().filter(in_the_way).flat_map(|(_, run)| run.tables()).collect(),
    };
    waiting.retain(|table| !context.in_progress.is_free(table.number));
    let mut going = HashSet::new();
    let mut span: Option<KeyRange> = None;
    // A compaction frees the tables of level 0 at its end. So while space is short, the inputs together are no larger than the largest table.
    let mut room = match context.is_tight {
        true => context.version.level(0).map(|table| table.size).max().unwrap_or_default(),
        false => u64::MAX,
    };
    for table in context.version.runs(0).iter().rev().flat_map(Run::tables) {
        let grown = KeyRange::grown(span.clone(), table);
        let fits = table.size <= room;
        if fits && context.in_progress.is_free(table.number) && !waiting.iter().any(|other| grown.overlaps_table(other))
        {
            going.insert(table.number);
            room -= table.size;
            span = Some(grown);
        } else {
            waiting.push(table);
        }
    }
    plan::expand_inputs(context.version, 0, below, |level, table| level == 0 && going.contains(&table.number))
}

/// The plan that makes the tables that can go down a new run of level 1.
pub(super) fn push_as_run(context: &Context<'_>) -> Option<Plan> {
    context.plan(inputs(context, 0), plan::new_run(context.version, 1))
}

/// Inserts a compaction within level 0 before `plans`, all of which can begin, if there is one that is more useful than their compactions of level 0.
/// Removes a compaction from level 0 to deeper levels if it is not worthwhile yet.
pub(super) fn arrange(context: &Context<'_>, plans: &mut Vec<Plan>) {
    let down = plans.iter().position(Plan::relieves_level_0);
    // While space is short, every compaction to deeper levels frees some, and a compaction within level 0 needs more.
    if context.is_tight && down.is_some() {
        return;
    }
    // Only the last piece of a compaction makes level 0 smaller.
    let is_passed_by = |plan: &Plan| plan.resumes.is_some() && is_pressing(context);
    let goes_first = |plan: &Plan| !is_passed_by(plan) && is_worth_its_while(context, plan, |table| table.size);
    if down.and_then(|at| plans.get(at)).is_some_and(goes_first) {
        return;
    }
    match (within(context), down) {
        (Some(within), _) => plans.insert(0, within),
        (None, Some(down)) if context.version.runs(0).len() <= patience(context.options) => drop(plans.remove(down)),
        (None, _) => {}
    }
}

/// The number of tables that level 0 may hold before tiny ones go down too.
pub(super) fn patience(options: &Options) -> usize {
    (options.level_0_tables() + options.slowdown_tables().min(options.stop_tables())) / 2
}

/// Whether the compaction's cost for each unit taken off level 0 is no higher than between two levels at their target sizes; `weight` gives the size
/// of a table.
pub(super) fn is_worth_its_while(context: &Context<'_>, plan: &Plan, weight: impl Fn(&TableMeta) -> u64) -> bool {
    // A compaction that has begun continues: its cost was checked when it began.
    if plan.action == Action::Move || plan.resumes.is_some() {
        return true;
    }
    let taken: HashSet<u64> = plan.tables().collect();
    let weigh = |run: &Run| run.tables().iter().filter(|table| taken.contains(&table.number)).map(&weight).sum::<u64>();
    let (mut own, mut overlapped) = (0u64, 0u64);
    for (level, run) in context.version.all_runs() {
        let sum = if level == 0 { &mut own } else { &mut overlapped };
        *sum = sum.saturating_add(weigh(run));
    }
    overlapped <= own.saturating_mul(context.options.size_ratio)
}

/// Whether writers are slowed down, or about to wait.
fn is_pressing(context: &Context<'_>) -> bool {
    let options = context.options;
    context.version.runs(0).len() >= options.slowdown_tables().min(options.stop_tables().saturating_sub(1))
}

/// The compaction of adjacent tables of level 0 that saves the most, if one is allowed.
fn within(context: &Context<'_>) -> Option<Plan> {
    let (version, options) = (context.version, context.options);
    let candidates = context.candidates(0);
    let runs = TABLES.min(options.level_0_tables() + 1);
    let bytes = match context.is_tight {
        // The reserved space has room for three of the largest tables.
        true => 2 * context.version.level(0).map(|table| table.size).max().unwrap_or_default(),
        false => (options.memtable_bytes as u64).saturating_mul(MEMTABLES),
    };
    let window = |growth: Growth| cheapest_window(&candidates, WindowLimits { runs, bytes, growth });
    let chosen = window(Growth::Double).or_else(|| window(Growth::Any).filter(|_| is_pressing(context)))?;
    let chosen = plan::whole_runs(version, 0, chosen);
    let key_range = plan::span_of(&chosen)?;
    let below = KeySet::of(key_range.clone());
    let plan = plan::rewrite_of(&chosen, RunId::LEVEL_0, key_range, below);
    context.in_progress.allows(&plan).then_some(plan)
}
