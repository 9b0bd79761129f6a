//! Moves tables that are mostly tombstones down when nothing else is due. Otherwise reads would step over the tombstones, and over the entries that
//! they hide, until enough is written to push them down. RocksDB and Pebble have such compactions too (by density of tombstones).
//!
//! D1 Progress: such a table goes to an older run, the next one that has any of its keys. In the oldest run it stays: tombstones that are kept there,
//! for example for a snapshot, would survive a compaction. Entries that have expired for every reader count as tombstones. In the oldest run a table
//! with such entries is rewritten in place: the result has none of them, and fewer than half of the entries.
//! D2 Write amplification: for each entry that moves down, a compaction reads no more entries of the older run than a compaction between levels at
//! their target sizes. A table for which this does not hold waits for the compactions that are due by size.
//! D3 A few tombstones hardly slow reads down, but a compaction costs syncs. So a table is compacted only if it has one tombstone for each
//! [`BYTES_PER_TOMBSTONE`] bytes of a memtable.
//! D4 A shortage of space overrides D2 and D3: every tombstone goes down, and so does level 0, which may hide entries.

use super::{Context, level_0, leveled};
use crate::compaction::plan::{self, Plan};
use crate::manifest::{Run, RunId};
use crate::table::TableMeta;

const BYTES_PER_TOMBSTONE: usize = 64 << 10;

/// The compaction of the table with the most tombstones, if a table has enough of them. O(tables * log tables).
///
/// `push_level_0` is that of the policy.
pub(super) fn plan(context: &Context<'_>, push_level_0: fn(&Context<'_>) -> Option<Plan>) -> Option<Plan> {
    let version = context.version;
    let deeper = version.all_runs().filter(|(level, _)| *level > 0);
    let moves = deeper.flat_map(|(level, run)| {
        let from = RunId { level, run: run.id() };
        let dense = run.tables().iter().filter(|table| is_dense(context, table));
        let in_place = move |table: &TableMeta| (table.expiring.by(context.instant) > 0).then_some(from);
        dense.filter_map(move |table| Some((table, from, older_run(context, from, table).or_else(|| in_place(table))?)))
    });
    let worthy = moves.filter(|&(table, _, to)| is_worth_its_while(context, table, to));
    let Some((dense, from, to)) = worthy.max_by_key(|(table, _, _)| tombstones(context, table)) else {
        return level_0_as_a_whole(context, push_level_0);
    };
    let chosen = plan::expand_between(version, from, to, |_, table| table.number == dense.number);
    context.plan(chosen, to)
}

/// Level 0 goes down as a whole, to the run that the policy chooses.
fn level_0_as_a_whole(context: &Context<'_>, push: fn(&Context<'_>) -> Option<Plan>) -> Option<Plan> {
    if context.is_tight {
        return push(context);
    }
    if context.level_0_is_due() || !context.version.level(0).any(|table| is_dense(context, table)) {
        return None;
    }
    push(context).filter(|plan| level_0::is_worth_its_while(context, plan, entries))
}

/// Range tombstones count as entries.
fn tombstones(context: &Context<'_>, table: &TableMeta) -> u64 {
    table.tombstones + table.range_tombstones + table.expiring.by(context.instant)
}

fn entries(table: &TableMeta) -> u64 {
    table.entries + table.range_tombstones
}

/// Whether a table has many tombstones, which also make up more than half of its entries. A narrowed table, which a compaction will continue with,
/// does not count.
fn is_dense(context: &Context<'_>, table: &TableMeta) -> bool {
    let least = (context.options.memtable_bytes / BYTES_PER_TOMBSTONE).max(1) as u64;
    let is_free = !table.narrowed && context.in_progress.is_free(table.number);
    let tombstones = tombstones(context, table);
    is_free && tombstones > 0 && (context.is_tight || tombstones >= least && tombstones > entries(table) / 2)
}

/// The next run older than `from` that has any of the keys of `table`; the oldest of all if none has, so that the tombstones can be dropped.
fn older_run(context: &Context<'_>, from: RunId, table: &TableMeta) -> Option<RunId> {
    let run_id = |(level, run): (usize, &Run)| RunId { level, run: run.id() };
    let older = || context.version.all_runs().filter(|&run| plan::is_newer(from, run_id(run)));
    let meets = |(_, run): &(usize, &Run)| !overlapped(run, table).is_empty();
    older().find(meets).or_else(|| older().next_back()).map(run_id)
}

fn overlapped<'a>(run: &'a Run, table: &TableMeta) -> &'a [TableMeta] {
    leveled::overlapped(run.tables(), &table.smallest, &table.largest)
}

/// Whether the compaction of a table into run `to` satisfies D2. The tables that it overlaps there must be free of other compactions.
fn is_worth_its_while(context: &Context<'_>, table: &TableMeta, to: RunId) -> bool {
    let run = context.version.runs(to.level).iter().find(|run| run.id() == to.run);
    let overlapped = run.map_or(&[][..], |run| overlapped(run, table));
    let read: u64 = overlapped.iter().map(entries).sum();
    let are_free = overlapped.iter().all(|table| context.in_progress.is_free(table.number));
    are_free && (context.is_tight || read <= entries(table).saturating_mul(context.options.size_ratio))
}
