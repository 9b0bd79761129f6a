//! [`Inputs`]: the entries and the range tombstones that a copy reads, for a flush or a compaction.
//!
//! A range tombstone belongs to the table that holds it, and plans use the key range that the version records for a table. So this key range
//! includes the ranges, and yet every output must be disjoint with the next. Therefore, where the copy ends a table or a piece, ranges are cut
//! directly after the last key (`store.rs`). Ends beyond all keys are reduced when a memtable is flushed.

use std::collections::HashSet;

use crate::compaction::live_keys::are_dropped;
use crate::compaction::retention::Retention;
use crate::error::Result;
use crate::iter::EntryIter;
use crate::manifest::KeyspaceSet;
use crate::memtables::{LoggedMemtable, MemtableIter};
use crate::table::{OpenRun, RunIter, RunTable};
use crate::types::{RangeTombstones, Slice, place_after};

/// The inputs of a copy.
#[derive(Debug)]
pub(crate) struct Inputs<I> {
    pub(crate) entries: Vec<I>,
    /// The range tombstones of all inputs: the newest of each stripe.
    pub(crate) ranges: RangeTombstones,
}

impl<I> Inputs<I> {
    /// Inputs without range tombstones.
    pub(crate) fn without_ranges(entries: Vec<I>) -> Self {
        Self { entries, ranges: RangeTombstones::default() }
    }
}

impl Inputs<MemtableIter> {
    /// The inputs of a flush, where `older_last` is the last key of all tables with older entries. Ranges end at the last key of all: beyond it
    /// there is nothing to hide. So a range without an end does not make its table span all future keys.
    pub(crate) fn of_memtable(memtable: &LoggedMemtable, retention: Retention<'_>, older_last: &[u8]) -> Result<Self> {
        let mut entries = memtable.iter();
        let sets = memtable.range_sets();
        if sets.is_empty() {
            return Ok(Self::without_ranges(vec![entries]));
        }
        entries.seek_to_last()?;
        let end = Slice::from(place_after(entries.key().max(older_last)));
        let ranges = RangeTombstones::union(sets.iter().map(|set| &**set)).within(&Slice::default(), &end);
        let ranges = retention.reduced(&ranges);
        Ok(Self { entries: vec![entries], ranges })
    }
}

impl Inputs<RunIter> {
    /// The inputs of a compaction, and the numbers of the tables that are left out because range tombstones of others cover them completely, or
    /// because all of their keys belong to dropped keyspaces. Those are not read at all: so removing a range costs a compaction one step for each table
    /// in it, not for each key.
    pub(crate) fn of_runs(
        runs: &[OpenRun],
        retention: Retention<'_>,
        keyspaces: &KeyspaceSet,
    ) -> Result<(Self, HashSet<u64>)> {
        let with_ranges = runs.iter().flat_map(OpenRun::tables_with_ranges);
        let ranges = with_ranges.map(RunTable::range_tombstones).collect::<Result<Vec<_>>>()?;
        let ranges = retention.reduced(&RangeTombstones::union(&ranges));
        let is_covered = |table: &&RunTable| {
            are_dropped(keyspaces, table.smallest(), table.largest())
                || !ranges.is_empty() && retention.drops_table(table, &ranges)
        };
        let tables = runs.iter().flat_map(OpenRun::tables);
        let covered: HashSet<u64> = tables.filter(is_covered).map(RunTable::number).collect();
        let entries = runs.iter().map(|run| run.without(|table| covered.contains(&table.number())).iter_uncached());
        Ok((Self { entries: entries.collect(), ranges }, covered))
    }
}
