//! The [`Plan`] of one compaction: its input tables, the place of its output, and the entries that may be dropped.
//!
//! Every plan follows one rule (V4 of the version): a table that shares keys with an input, and that reads search after the input's run and before
//! the output's run, is an input too. Then the versions of a key move together, and no read finds an older version before a newer one.
//! [`expand_inputs`] ensures this rule: it goes from the newest run down and adds the tables that overlap the tables chosen in newer runs.
//!
//! Progress: without new writes compactions end, because each one, with all its pieces, lowers a measure that cannot fall for ever. It is a list of
//! numbers, compared from the left. The numbers, one for each level from the top: the sum over the level's entries, each multiplied by the number of
//! its run (on level 0, its rank from the oldest). The last number counts the entries of tables that a manual compaction has yet to rewrite.
//! * An entry that moves to an older run lowers the number of the level that it leaves, or of its own level; only numbers further right may rise.
//! * Entries that are rewritten in their run get new tables, which are not rewritten again: the last number falls.
//!
//! The pieces end, since each takes at least one key and the next one begins after it (`piece.rs`), or takes earlier keys of tables that have arrived
//! since, which lowers the measure. They also achieve the plan's purpose, since the pointer leads to the rest: tables above the output, or a narrowed
//! table in its run. A table that is rewritten in its run is therefore the first of its plan, so that the first piece narrows it. The tests of policies
//! measure each compaction (`policy/tests/progress.rs`).

use std::collections::HashSet;
use std::ops::Range;

use crate::compaction::key_range::{KeyRange, KeySet};
use crate::compaction::output_sizes::OutputSizes;
use crate::manifest::{Run, RunId, Version};
use crate::options::Options;
use crate::table::TableMeta;

/// A table smaller than this part of a full one is a crumb: it is compacted instead of moved, and included in compactions next to it. Otherwise a
/// large number of small flushes would leave an equal number of small tables.
const CRUMB_PART: u64 = 4;

/// The treatment of the inputs by the compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// The inputs are read, merged and rewritten.
    Rewrite,
    /// The inputs overlap no other table and are disjoint. So they are only assigned to another run, and not read.
    Move,
    /// All keys of the inputs belong to keyspaces that were dropped. So they are removed, and not read.
    Remove,
}

/// The inputs of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Input {
    pub(crate) level: usize,
    /// The number of the run; on level 0 the largest sequence number of its table.
    pub(crate) run: u64,
    /// Numbers of the tables, in key order.
    pub(crate) tables: Vec<u64>,
}

/// One compaction, or one move.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) action: Action,
    /// The newest run comes first.
    pub(crate) inputs: Vec<Input>,
    pub(crate) output: RunId,
    /// From the smallest to the largest key of the inputs.
    pub(crate) key_range: KeyRange,
    /// The keys that tables older than the output may hold. Tombstones of other keys can be dropped.
    pub(crate) below: KeySet,
    /// Bytes of all tables of the whole compaction; the plan may be only the rest of it.
    pub(crate) bytes: u64,
    /// The compact pointer of the compaction that this plan continues.
    pub(crate) resumes: Option<u64>,
    /// Compact pointers of compactions with nothing left.
    pub(crate) finished: Vec<u64>,
}

impl Plan {
    pub(crate) fn tables(&self) -> impl Iterator<Item = u64> {
        self.inputs.iter().flat_map(|input| input.tables.iter().copied())
    }

    /// Whether tables of level 0 are inputs: writers may be waiting for that.
    pub(crate) fn relieves_level_0(&self) -> bool {
        self.inputs.iter().any(|input| input.level == 0)
    }

    /// The compact pointers that this plan makes obsolete.
    pub(crate) fn pointers_done(&self) -> Vec<u64> {
        self.resumes.into_iter().chain(self.finished.iter().copied()).collect()
    }

    /// Leaves the newest tables of level 0 to later plans, because space is short: those that remain are together no larger than the largest table of
    /// level 0, or two of them if they stay on level 0, since a compaction frees them only at its end. V4 holds: no remaining input passes over a table
    /// that is left. Returns the number of inputs that are left: the first ones, each of them one table. If there are any, the compaction that this
    /// plan continues stays unfinished.
    pub(crate) fn leave_newest(&mut self, version: &Version) -> usize {
        if self.action != Action::Rewrite {
            return 0;
        }
        let largest = version.level(0).map(|table| table.size).max().unwrap_or_default();
        let mut room = largest.saturating_mul(if self.output.level == 0 { 2 } else { 1 });
        let taken: HashSet<u64> = self.tables().collect();
        let mut tables: Vec<&TableMeta> = version.level(0).filter(|table| taken.contains(&table.number)).collect();
        while let Some(rest) = tables.last().and_then(|oldest| room.checked_sub(oldest.size)) {
            room = rest;
            tables.pop();
        }
        if !tables.is_empty() {
            self.inputs.drain(..tables.len());
            self.resumes = None;
        }
        tables.len()
    }
}

/// The tables of one run that a plan includes.
#[derive(Debug, Clone)]
pub(crate) struct Chosen<'a> {
    level: usize,
    run: &'a Run,
    tables: Vec<&'a TableMeta>,
}

/// The tables of levels `from` to `to` that satisfy `is_wanted`, and those that overlap tables chosen in newer runs. O(tables).
pub(crate) fn expand_inputs<'a>(
    version: &'a Version,
    from: usize,
    to: usize,
    is_wanted: impl Fn(usize, &TableMeta) -> bool,
) -> Vec<Chosen<'a>> {
    let (top, output) = (RunId { level: from, run: u64::MAX }, RunId { level: to, run: 0 });
    expand_between(version, top, output, |run_id, table| is_wanted(run_id.level, table))
}

/// Whether a read searches run `a` before `b`.
pub(crate) fn is_newer(a: RunId, b: RunId) -> bool {
    a.level < b.level || a.level == b.level && a.run > b.run
}

/// Like [`expand_inputs`], for the runs from `top` to `output`, both included. O(tables).
pub(crate) fn expand_between<'a>(
    version: &'a Version,
    top: RunId,
    output: RunId,
    is_wanted: impl Fn(RunId, &TableMeta) -> bool,
) -> Vec<Chosen<'a>> {
    let mut key_range: Option<KeyRange> = None;
    let mut all = Vec::new();
    for (level, run) in version.all_runs() {
        let run_id = RunId { level, run: run.id() };
        if is_newer(run_id, top) || is_newer(output, run_id) {
            continue;
        }
        // Tables between two wanted ones are included too; otherwise a table of the output could span them.
        let wanted = run.tables().iter().filter(|table| is_wanted(run_id, table));
        key_range = wanted.fold(key_range, |key_range, table| Some(KeyRange::grown(key_range, table)));
        let spanned = |table: &&TableMeta| key_range.as_ref().is_some_and(|key_range| key_range.overlaps_table(table));
        let tables: Vec<&TableMeta> = run.tables().iter().filter(spanned).collect();
        if tables.is_empty() {
            continue;
        }
        key_range = tables.iter().fold(key_range, |key_range, table| Some(KeyRange::grown(key_range, table)));
        all.push(Chosen { level, run, tables });
    }
    all
}

/// All tables of the runs of `level` at `places`, the newest at 0.
pub(crate) fn whole_runs(version: &Version, level: usize, places: Range<usize>) -> Vec<Chosen<'_>> {
    let runs = version.runs(level).get(places).unwrap_or_default();
    runs.iter().map(|run| Chosen { level, run, tables: run.tables().iter().collect() }).collect()
}

/// The run for tables that are merged into `level`: its oldest run.
pub(crate) fn oldest_run(version: &Version, level: usize) -> RunId {
    RunId { level, run: version.runs(level).last().map_or(1, Run::id) }
}

/// A new run number for tables that become a separate run of `level`, newer than its newest run.
pub(crate) fn new_run(version: &Version, level: usize) -> RunId {
    RunId { level, run: version.runs(level).first().map_or(1, |newest| newest.id().saturating_add(1)) }
}

/// The plan that moves `chosen` to `output`; `None` if nothing was chosen.
pub(crate) fn plan<'a>(
    version: &'a Version,
    options: &Options,
    mut chosen: Vec<Chosen<'a>>,
    output: RunId,
    is_free: impl Fn(&TableMeta) -> bool,
) -> Option<Plan> {
    let key_range = span_of(&chosen)?;
    let below = below(version, &chosen, output, &key_range);
    if is_movable(&chosen, output, crumb_bytes(version, options), &below) {
        return Some(Plan { action: Action::Move, ..rewrite_of(&chosen, output, key_range, below) });
    }
    take_crumbs(version, options, &mut chosen, output, is_free);
    let key_range = span_of(&chosen)?;
    let below = self::below(version, &chosen, output, &key_range);
    Some(rewrite_of(&chosen, output, key_range, below))
}

/// The plan that removes the tables of levels `from` to `to` that satisfy `is_wanted`; `None` if there are none. Unlike other plans it does not
/// include the tables between them: no read returns the removed keys.
pub(crate) fn removal(version: &Version, levels: Range<usize>, is_wanted: impl Fn(&TableMeta) -> bool) -> Option<Plan> {
    let runs = version.all_runs().filter(|(level, _)| levels.contains(level));
    let chosen = runs.map(|(level, run)| Chosen {
        level,
        run,
        tables: run.tables().iter().filter(|table| is_wanted(table)).collect(),
    });
    let chosen: Vec<Chosen<'_>> = chosen.filter(|chosen| !chosen.tables.is_empty()).collect();
    let (key_range, first) = (span_of(&chosen)?, chosen.first()?);
    let output = RunId { level: first.level, run: first.run.id() };
    Some(Plan { action: Action::Remove, ..rewrite_of(&chosen, output, key_range, KeySet::default()) })
}

pub(crate) fn rewrite_of(chosen: &[Chosen<'_>], output: RunId, key_range: KeyRange, below: KeySet) -> Plan {
    let bytes = all_tables(chosen).map(|table| table.size).sum();
    let (action, inputs) = (Action::Rewrite, inputs(chosen));
    Plan { action, inputs, output, key_range, below, bytes, resumes: None, finished: Vec::new() }
}

fn all_tables<'a, 'b>(chosen: &'b [Chosen<'a>]) -> impl Iterator<Item = &'a TableMeta> + use<'a, 'b> {
    chosen.iter().flat_map(|chosen| chosen.tables.iter().copied())
}

pub(crate) fn span_of(chosen: &[Chosen<'_>]) -> Option<KeyRange> {
    KeyRange::around(all_tables(chosen))
}

fn inputs(chosen: &[Chosen<'_>]) -> Vec<Input> {
    let numbers = |tables: &[&TableMeta]| tables.iter().map(|table| table.number).collect();
    let input =
        |chosen: &Chosen<'_>| Input { level: chosen.level, run: chosen.run.id(), tables: numbers(&chosen.tables) };
    chosen.iter().map(input).collect()
}

/// The keys that tables older than the output hold within its key range. Tables of the output's run are disjoint with the output. Quarantined tables
/// count, whatever their age: a key that was removed since must still read as removed, also after a salvage.
fn below(version: &Version, chosen: &[Chosen<'_>], output: RunId, key_range: &KeyRange) -> KeySet {
    let taken: HashSet<u64> = all_tables(chosen).map(|table| table.number).collect();
    let is_older = |level: usize, run: &Run| level > output.level || level == output.level && run.id() < output.run;
    let older = version.all_runs().filter(|(level, run)| is_older(*level, run)).flat_map(|(_, run)| run.tables());
    let older = older.chain(version.set_aside());
    KeySet::covering(older.filter(|table| key_range.overlaps_table(table) && !taken.contains(&table.number)))
}

/// Whether the tables can be moved unchanged. Not if a compaction would be useful: if tombstones could be dropped, if crumbs would accumulate, or if
/// a narrowed table would keep entries outside its bounds.
fn is_movable(chosen: &[Chosen<'_>], output: RunId, crumb_bytes: u64, below: &KeySet) -> bool {
    let is_there = |chosen: &Chosen<'_>| chosen.level == output.level && chosen.run.id() == output.run;
    if chosen.iter().any(is_there) {
        return false;
    }
    let mut tables: Vec<&TableMeta> = all_tables(chosen).collect();
    tables.sort_by(|a, b| a.smallest.cmp(&b.smallest));
    let disjoint = tables.iter().zip(tables.iter().skip(1)).all(|(a, b)| a.largest < b.smallest);
    let bytes: u64 = tables.iter().map(|table| table.size).sum();
    let crumbs = bytes / (tables.len() as u64).max(1) < crumb_bytes;
    let narrowed = tables.iter().any(|table| table.narrowed);
    let removes = |table: &&TableMeta| table.tombstones > 0 || table.range_tombstones > 0;
    let can_drop = below.is_empty() && tables.iter().any(removes);
    disjoint && !crumbs && !narrowed && !can_drop
}

fn crumb_bytes(version: &Version, options: &Options) -> u64 {
    OutputSizes::of(options, version).table_bytes / CRUMB_PART
}

/// Adds the small tables next to the output, as long as each is at most twice the size of the data that is rewritten anyway. So an entry is rewritten
/// for this reason only when the data around it has grown. If no entry comes from a newer run, only the tables after it are added: a piece that
/// rewrote only the tables before it would achieve nothing.
fn take_crumbs<'a>(
    version: &'a Version,
    options: &Options,
    chosen: &mut Vec<Chosen<'a>>,
    output: RunId,
    is_free: impl Fn(&TableMeta) -> bool,
) {
    let Some(key_range) = span_of(chosen) else { return };
    let Some(run) = version.runs(output.level).iter().find(|run| run.id() == output.run) else { return };
    let is_own = |chosen: &Chosen<'_>| chosen.level == output.level && chosen.run.id() == output.run;
    let comes_down = !chosen.iter().all(is_own);
    let (mut bytes, crumb_bytes) =
        (all_tables(chosen).map(|table| table.size).sum::<u64>(), crumb_bytes(version, options));
    let mut takes = |table: &&TableMeta| {
        let small = table.size < crumb_bytes && table.size <= bytes.saturating_mul(2) && is_free(table);
        bytes = bytes.saturating_add(if small { table.size } else { 0 });
        small
    };
    let tables = run.tables();
    let before = tables.get(..tables.partition_point(|table| table.largest < key_range.smallest)).unwrap_or_default();
    let after = tables.get(tables.partition_point(|table| table.smallest <= key_range.largest)..).unwrap_or_default();
    let mut taken: Vec<&TableMeta> = before.iter().rev().take_while(|table| comes_down && takes(table)).collect();
    taken.reverse();
    let right: Vec<&TableMeta> = after.iter().take_while(&mut takes).collect();
    if let Some(own) = chosen.pop_if(|last| is_own(last)) {
        taken.extend(own.tables);
    }
    taken.extend(right);
    if !taken.is_empty() {
        chosen.push(Chosen { level: output.level, run, tables: taken });
    }
}
