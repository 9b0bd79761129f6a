//! The tables that form the database: `Version` (immutable) and `VersionEdit` (the difference between two of them).
//!
//! A version consists of levels of *runs*. A run is a sorted sequence of entries, divided into tables; a level lists its runs newest first. Policies
//! differ in the number of runs that they leave on a level, and every policy can continue with any version.
//!
//! V1 names: a table number occurs in a version only once.
//! V2 level 0: each table is a separate run, and the sequence numbers of two tables never interleave: every number in a newer table is above every
//!    number in an older one.
//! V3 runs: the tables of a run below level 0 are disjoint, so that a key is in at most one of them; all versions of a key in a run are in one table.
//! The runs of a level are ordered by descending run number.
//! V4 age: of two versions of a key, the newer one is in the run that a read searches first. The bounds of tables cannot show V4; the planning of
//! compactions ensures it, and property tests of `compaction` check it.
//!
//! A compaction may end before its last key (`compaction/piece.rs`). Then each input that extends beyond that key stays in its run as a *narrowed*
//! table: its lower bound in the version rises, and its file does not change. For the rules above, a narrowed table contains only the entries from
//! its bound on. Pebble calls such a table a virtual sstable.
//!
//! `VersionBuilder` checks V1 to V3, so that an edit from disk that breaks one is an error and does not lead to wrong results.

use std::collections::HashSet;
use std::sync::Arc;

use crate::manifest::compaction_stats::CompactionStats;
use crate::manifest::keyspaces::KeyspaceEdit;
use crate::table::TableMeta;
use crate::types::{Millis, SeqNo, Slice};

/// The maximum number of levels of a version, level 0 included.
pub(crate) const MAX_LEVELS: usize = crate::metrics::MAX_LEVELS;

/// The level and run of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct RunId {
    pub(crate) level: usize,
    /// The number of the run on its level; a higher one is newer. It is 0 on level 0, where each table is a run.
    pub(crate) run: u64,
}

impl RunId {
    /// The run for flushed memtables.
    pub(crate) const LEVEL_0: RunId = RunId { level: 0, run: 0 };
}

/// A sorted sequence of entries, divided into tables. Clones are cheap.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Run {
    /// The number of the run on its level; on level 0 the newest sequence number of its table.
    id: u64,
    /// The tables in key order, disjoint, at least one.
    tables: Arc<[TableMeta]>,
    /// The numbers of the tables, ascending.
    numbers: Arc<[u64]>,
    bytes: u64,
    largest_table: u64,
    entries: u64,
}

impl Run {
    /// The run `id` of `tables`, which are in key order.
    pub(super) fn new(id: u64, tables: impl IntoIterator<Item = TableMeta>) -> Run {
        let tables: Arc<[TableMeta]> = tables.into_iter().collect();
        let mut numbers: Vec<u64> = tables.iter().map(|table| table.number).collect();
        numbers.sort_unstable();
        let sizes = tables.iter().map(|table| table.size);
        let (bytes, largest_table) = (sizes.clone().sum(), sizes.max().unwrap_or_default());
        let entries = tables.iter().fold(0, |sum: u64, table| sum.saturating_add(table.entries));
        Run { id, numbers: numbers.into(), bytes, largest_table, entries, tables }
    }

    /// Whether table `number` is in the run. O(log tables).
    pub(super) fn has(&self, number: u64) -> bool {
        self.numbers.binary_search(&number).is_ok()
    }

    /// Whether the two share the same data. May be false for equal runs.
    pub(crate) fn is_same(&self, other: &Run) -> bool {
        Arc::ptr_eq(&self.tables, &other.tables)
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn tables(&self) -> &[TableMeta] {
        #[cfg(test)]
        crate::manifest::test_tables::count_listed(self.tables.len());
        &self.tables
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The size of the largest table.
    pub(crate) fn largest_table(&self) -> u64 {
        self.largest_table
    }

    /// The entries of all tables, as counted in their files.
    pub(crate) fn entries(&self) -> u64 {
        self.entries
    }
}

/// One immutable set of tables.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Version {
    /// Versions share the runs of the levels that did not change between them.
    pub(super) levels: Vec<Vec<Run>>,
    /// Tables that recovery could not read completely and removed from their levels: their contents are unknown (rule 10).
    pub(super) quarantined: Vec<TableMeta>,
    /// Quarantined tables that were dropped. Reads ignore them, but salvage reads the sound blocks of their files. So tombstones that may hide
    /// entries in them are kept, as for the quarantined tables.
    pub(super) dropped: Vec<TableMeta>,
    /// The unfinished compactions.
    pub(super) pointers: Vec<CompactPointer>,
}

/// The position at which an unfinished compaction must continue.
///
/// LevelDB's manifest has a compact pointer for each level: the key at which its next compaction starts. This is the same for a compaction that ended
/// before its last key. A pointer decides only what is compacted next, and has no effect on correctness: each piece is planned for the version of
/// that time, under the rules of all plans, and without the pointer the tables are compacted when a policy chooses them. So a pointer needs no check
/// except that it can be decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CompactPointer {
    /// The identity of the pointer: a file number that no file has.
    pub(crate) id: u64,
    /// The newest run with remaining tables; tables in newer runs arrived later and wait for the next compaction. On level 0, where each table is a
    /// run, this is the newest sequence number of the table.
    pub(crate) top: RunId,
    /// The output run for the rest, the same as that of the finished pieces.
    pub(crate) output: RunId,
    /// The first remaining key.
    pub(crate) from: Slice,
    /// The last key of the whole compaction.
    pub(crate) upto: Slice,
    /// The bytes of all tables of the whole compaction.
    pub(crate) bytes: u64,
}

/// The difference between two versions, with further information for recovery.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct VersionEdit {
    /// Added tables, each with its level and run.
    pub(crate) added: Vec<(RunId, TableMeta)>,
    /// Removed tables, each as level and number.
    pub(crate) removed: Vec<(usize, u64)>,
    /// Tables that are quarantined; the same edit or an earlier one removes each from its level.
    pub(crate) quarantined: Vec<TableMeta>,
    /// Quarantined tables that were dropped, by number.
    pub(crate) dropped: Vec<u64>,
    /// Compact pointers of unfinished compactions.
    pub(crate) pointers: Vec<CompactPointer>,
    /// Pointers of compactions that continued or are complete. An edit may list a pointer that was removed before; it is ignored.
    pub(crate) pointers_done: Vec<u64>,
    /// Logs below this number are obsolete: their contents are in tables.
    pub(crate) log_number: Option<u64>,
    /// A number above those of all files created so far.
    pub(crate) next_file_number: Option<u64>,
    /// The highest sequence number in tables; the log `log_number` continues directly after it.
    pub(crate) last_seqno: Option<SeqNo>,
    /// The number of the policy that compacts tables from now on.
    pub(crate) policy: Option<u64>,
    /// The bytes that the flush or compaction of this edit read and wrote.
    pub(crate) stats: CompactionStats,
    pub(crate) keyspaces: KeyspaceEdit,
    /// The latest instant that the database's clock has shown; 0 if no entry expires.
    pub(crate) clock: Millis,
}

impl Version {
    /// The runs of `level`, newest first.
    pub(crate) fn runs(&self, level: usize) -> &[Run] {
        self.levels.get(level).map_or(&[], Vec::as_slice)
    }

    /// The tables of `level`, newest run first.
    pub(crate) fn level(&self, level: usize) -> impl Iterator<Item = &TableMeta> {
        self.runs(level).iter().flat_map(Run::tables)
    }

    /// The levels down to the deepest one that has a table.
    pub(crate) fn levels(&self) -> &[Vec<Run>] {
        &self.levels
    }

    /// All runs with their levels, in the order in which a point read searches them: newest first.
    pub(crate) fn all_runs(&self) -> impl DoubleEndedIterator<Item = (usize, &Run)> {
        self.levels.iter().enumerate().flat_map(|(level, runs)| runs.iter().map(move |run| (level, run)))
    }

    /// All tables, newest run first, and within a run in key order.
    pub(crate) fn tables(&self) -> impl Iterator<Item = &TableMeta> {
        self.levels.iter().flatten().flat_map(Run::tables)
    }

    pub(crate) fn level_bytes(&self, level: usize) -> u64 {
        self.runs(level).iter().map(Run::bytes).sum()
    }

    /// The tables that are quarantined and not yet dropped.
    pub(crate) fn quarantined(&self) -> &[TableMeta] {
        &self.quarantined
    }

    /// The tables outside all levels that may still be read: quarantined tables, and dropped tables whose files may still exist.
    pub(crate) fn set_aside(&self) -> impl Iterator<Item = &TableMeta> {
        self.quarantined.iter().chain(&self.dropped)
    }

    /// All tables to which the version refers, on a level or set aside.
    pub(crate) fn named_tables(&self) -> impl Iterator<Item = &TableMeta> {
        self.tables().chain(self.set_aside())
    }

    /// The last key of all tables to which the version refers; empty if there are none. O(runs).
    pub(crate) fn last_key(&self) -> Slice {
        let last = self.levels.iter().flatten().filter_map(|run| run.tables.last());
        last.chain(self.set_aside()).map(|table| &table.largest).max().cloned().unwrap_or_default()
    }

    /// The numbers of all tables to which the version refers.
    pub(crate) fn named_numbers(&self) -> HashSet<u64> {
        self.named_tables().map(|table| table.number).collect()
    }

    /// The numbers of the dropped tables.
    pub(crate) fn dropped(&self) -> impl Iterator<Item = u64> {
        self.dropped.iter().map(|table| table.number)
    }

    /// This version without the dropped tables that do not satisfy `kept`: nothing can be read from these any more.
    pub(crate) fn forgetting_dropped(&self, kept: impl Fn(u64) -> bool) -> Version {
        let mut version = self.clone();
        version.dropped.retain(|table| kept(table.number));
        version
    }

    /// The pointers of unfinished compactions.
    pub(crate) fn pointers(&self) -> &[CompactPointer] {
        &self.pointers
    }

    /// An edit that turns an empty version into this one: the first record of a manifest.
    pub(crate) fn as_edit(&self) -> VersionEdit {
        let tables = |(level, run): (usize, &Run)| {
            let run_id = RunId { level, run: if level == 0 { 0 } else { run.id } };
            run.tables.iter().map(move |table| (run_id, table.clone())).collect::<Vec<_>>()
        };
        VersionEdit {
            added: self.all_runs().flat_map(tables).collect(),
            quarantined: self.set_aside().cloned().collect(),
            dropped: self.dropped().collect(),
            pointers: self.pointers.clone(),
            ..VersionEdit::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::test_tables::{table, table_of_keys};

    fn adding(tables: &[(u64, SeqNo, SeqNo)]) -> VersionEdit {
        let added = tables.iter().map(|&(number, min, max)| (RunId::LEVEL_0, table(number, min, max))).collect();
        VersionEdit { added, ..VersionEdit::default() }
    }

    /// Tables, each given as level, run, number, first key and last key.
    fn placing(tables: &[(usize, u64, u64, &str, &str)]) -> VersionEdit {
        let placed = |&(level, run, number, from, to): &(usize, u64, u64, &str, &str)| {
            (RunId { level, run }, table_of_keys(number, from, to))
        };
        VersionEdit { added: tables.iter().map(placed).collect(), ..VersionEdit::default() }
    }

    fn numbers(version: &Version) -> Vec<u64> {
        version.tables().map(|table| table.number).collect()
    }

    #[test]
    fn level_0_stands_newest_first_whatever_the_table_numbers() {
        // Catches ordering by table number: a compaction that ends after a later flush has the higher number but older data.
        let version = Version::default().apply(&adding(&[(9, 1, 40), (7, 41, 50), (8, 51, 60)])).unwrap();
        assert_eq!(numbers(&version), [8, 7, 9]);
        assert_eq!(version.runs(0).len(), 3);
    }

    #[test]
    fn compaction_takes_the_place_of_its_inputs() {
        // Catches an edit that adds its output as if it were the newest data.
        let version = Version::default().apply(&adding(&[(1, 1, 10), (2, 11, 20), (3, 21, 30)])).unwrap();
        let mut compaction = adding(&[(5, 1, 20)]);
        compaction.removed = vec![(0, 1), (0, 2)];
        assert_eq!(numbers(&version.apply(&compaction).unwrap()), [3, 5]);
    }

    #[test]
    fn runs_stand_newest_first_and_their_tables_by_key() {
        // Catches runs ordered by the time of their installation: a read would stop at an older version.
        let placed = [(2, 1, 6, "a", "z"), (1, 7, 4, "p", "z"), (1, 9, 3, "a", "z"), (1, 7, 5, "a", "c")];
        let version = Version::default().apply(&placing(&placed)).unwrap();
        assert_eq!(numbers(&version), [3, 5, 4, 6]);
        let ids: Vec<(usize, u64)> = version.all_runs().map(|(level, run)| (level, run.id())).collect();
        assert_eq!(ids, [(1, 9), (1, 7), (2, 1)]);
        // A run is removed with its last table.
        let gone = VersionEdit { removed: vec![(1, 4), (1, 5), (2, 6)], ..VersionEdit::default() };
        let version = version.apply(&gone).unwrap();
        assert_eq!((version.levels().len(), version.runs(1).len()), (2, 1));
    }

    #[test]
    fn edits_that_break_the_version_are_refused() {
        // Catches a damaged or misordered manifest that is accepted.
        let version = Version::default().apply(&adding(&[(1, 1, 10)])).unwrap();
        let unknown = VersionEdit { removed: vec![(0, 7)], ..VersionEdit::default() };
        assert!(version.apply(&unknown).unwrap_err().contains("does not hold it"));
        assert!(version.apply(&adding(&[(1, 11, 12)])).unwrap_err().contains("there already"));
        assert!(version.apply(&adding(&[(2, 10, 12)])).unwrap_err().contains("interleave"));
        assert!(version.apply(&placing(&[(MAX_LEVELS, 1, 3, "a", "b")])).unwrap_err().contains("expected below"));
        assert!(version.apply(&placing(&[(0, 1, 3, "a", "b")])).unwrap_err().contains("has no runs"));
        let touching = placing(&[(1, 1, 3, "a", "c"), (1, 1, 4, "c", "d")]);
        assert!(version.apply(&touching).unwrap_err().contains("overlap"));
        assert!(version.apply(&placing(&[(1, 2, 3, "a", "c"), (1, 1, 4, "c", "d")])).is_ok());
    }

    #[test]
    fn a_quarantined_table_is_on_no_level_and_known_until_it_is_dropped() {
        // Catches a suspect that is lost in a rollover: older versions of its keys would be read.
        let version = Version::default().apply(&adding(&[(1, 1, 10), (2, 11, 20)])).unwrap();
        let suspect = table(1, 1, 10);
        let mut edit = VersionEdit { quarantined: vec![suspect.clone()], ..VersionEdit::default() };
        assert!(version.apply(&edit).unwrap_err().contains("there already"));
        edit.removed = vec![(0, 1)];
        let version = version.apply(&edit).unwrap();
        assert_eq!((numbers(&version), version.quarantined()), (vec![2], std::slice::from_ref(&suspect)));
        assert_eq!(Version::default().apply(&version.as_edit()).unwrap(), version);
        let drop = VersionEdit { dropped: vec![1], ..VersionEdit::default() };
        let dropped = version.apply(&drop).unwrap();
        assert!(dropped.quarantined().is_empty());
        // The version lists the suspect until its file is removed, also after a rollover.
        assert_eq!(dropped.set_aside().collect::<Vec<_>>(), [&suspect]);
        assert_eq!(Version::default().apply(&dropped.as_edit()).unwrap(), dropped);
        assert_eq!(dropped.forgetting_dropped(|number| number != 1).set_aside().count(), 0);
        assert!(dropped.apply(&drop).unwrap_err().contains("not quarantined"));
    }

    #[test]
    fn as_edit_rebuilds_the_version() {
        // Catches a rollover that loses a table, its level or its run.
        let deep = placing(&[(1, 4, 3, "a", "c"), (1, 4, 4, "d", "e"), (1, 2, 5, "a", "e"), (7, 1, 6, "b", "b")]);
        let version = Version::default().apply(&adding(&[(1, 1, 10), (2, 11, 20)])).unwrap().apply(&deep).unwrap();
        assert_eq!(Version::default().apply(&version.as_edit()).unwrap(), version);
    }
}
