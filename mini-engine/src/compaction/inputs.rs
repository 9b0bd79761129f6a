//! [`Inputs`]: what a copy reads, be it a flush or a compaction: entries, and the range tombstones beside them.
//!
//! A range tombstone goes with the table that holds it, and what plans go by are the keys that the version gives to tables. So these
//! span the ranges, and every output must be disjoint with the next all the same: where the copy ends a table or a piece, ranges are
//! cut at the place right after the last key before (`store.rs`). Ends that are further than any key are drawn in when a memtable is
//! flushed.

use std::collections::HashSet;

use crate::compaction::retention::Retention;
use crate::error::Result;
use crate::iter::EntryIter;
use crate::memtables::{LoggedMemtable, MemtableIter};
use crate::table::{OpenRun, RunIter, RunTable};
use crate::types::{RangeTombstones, Slice, place_after};

/// What a copy reads.
#[derive(Debug)]
pub(crate) struct Inputs<I> {
    pub(crate) entries: Vec<I>,
    /// Of all inputs: the newest of each stripe.
    pub(crate) ranges: RangeTombstones,
}

impl<I> Inputs<I> {
    /// Entries alone.
    pub(crate) fn without_ranges(entries: Vec<I>) -> Self {
        Self { entries, ranges: RangeTombstones::default() }
    }
}

impl Inputs<MemtableIter> {
    /// Of a frozen memtable, where `older_last` is the last key of all tables with entries that are older. Its ranges reach to the last key
    /// of all: beyond that there is nothing that they could hide. So a range without an end does not give its table all keys to come.
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
    /// Of runs of tables; and the numbers of the tables that are left out, since range tombstones of others cover all that they hold.
    /// Those are not read at all: so to remove a range costs a compaction as many steps as there are tables in it, not keys.
    pub(crate) fn of_runs(runs: &[OpenRun], retention: Retention<'_>) -> Result<(Self, HashSet<u64>)> {
        let with_ranges = runs.iter().flat_map(OpenRun::tables_with_ranges);
        let ranges = with_ranges.map(RunTable::range_tombstones).collect::<Result<Vec<_>>>()?;
        let ranges = retention.reduced(&RangeTombstones::union(&ranges));
        let is_covered = |table: &&RunTable| retention.drops_table(table, &ranges);
        let tables = runs.iter().filter(|_| !ranges.is_empty()).flat_map(OpenRun::tables);
        let covered: HashSet<u64> = tables.filter(is_covered).map(RunTable::number).collect();
        let entries = runs.iter().map(|run| run.without(|table| covered.contains(&table.number())).iter_uncached());
        Ok((Self { entries: entries.collect(), ranges }, covered))
    }
}
