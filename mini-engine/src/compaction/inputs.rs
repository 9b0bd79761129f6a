//! [`Inputs`]: the entries and the range tombstones that a flush or a compaction reads.
//!
//! A range tombstone is stored in one table, and plans use the key range that the version records for that table. So the key range must include the
//! table's range tombstones, although the outputs of a compaction must be disjoint. Therefore, where a compaction or flush ends a table or a piece,
//! range tombstones are cut directly after the last key (`store.rs`). Range tombstones beyond all keys are shortened when their memtable is flushed.

use std::collections::HashSet;

use crate::compaction::live_keys::are_dropped;
use crate::compaction::retention::Retention;
use crate::error::Result;
use crate::iter::EntryIter;
use crate::manifest::KeyspaceSet;
use crate::memtables::{LoggedMemtable, MemtableIter};
use crate::table::{OpenRun, RunIter, RunTable};
use crate::types::{MAX_SEQNO, RangeTombstones, SeqNo, Slice, place_after};

/// The inputs of a compaction or a flush.
#[derive(Debug)]
pub(crate) struct Inputs<I> {
    pub(crate) entries: Vec<I>,
    /// The range tombstones of all inputs: for the same keys, the newest of each stripe (`retention.rs`).
    pub(crate) ranges: RangeTombstones,
    /// Versions with greater numbers are left out.
    pub(crate) upto: SeqNo,
}

impl<I> Inputs<I> {
    /// Inputs without range tombstones.
    pub(crate) fn without_ranges(entries: Vec<I>) -> Self {
        Self { entries, ranges: RangeTombstones::default(), upto: MAX_SEQNO }
    }
}

impl Inputs<MemtableIter> {
    /// The inputs of a flush, where `older_last` is the last key of all tables with older entries. Range tombstones are cut after the last key of all
    /// entries and tables, because they hide nothing beyond it. So a range tombstone without an end does not make its table span all future keys.
    /// Versions with numbers above `upto` are left out.
    pub(crate) fn of_memtable(
        memtable: &LoggedMemtable,
        upto: SeqNo,
        retention: Retention<'_>,
        older_last: &[u8],
    ) -> Result<Self> {
        let mut entries = memtable.iter();
        let sets = memtable.range_sets();
        if sets.is_empty() {
            return Ok(Self { upto, ..Self::without_ranges(vec![entries]) });
        }
        entries.seek_to_last()?;
        let end = Slice::from(place_after(entries.key().max(older_last)));
        let ranges = RangeTombstones::union(sets.iter().map(|set| &**set)).within(&Slice::default(), &end);
        let ranges = retention.reduced(&ranges.retain(|range| range.seqno <= upto));
        Ok(Self { entries: vec![entries], ranges, upto })
    }
}

impl Inputs<RunIter> {
    /// The inputs of a compaction, and the numbers of the tables that are left out: range tombstones of other inputs cover them completely, or all of
    /// their keys belong to dropped keyspaces. These tables are not read at all: so the removal of a range costs a compaction one step for each table
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
        Ok((Self { entries: entries.collect(), ranges, upto: MAX_SEQNO }, covered))
    }
}
