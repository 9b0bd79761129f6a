//! The tables that make up the database: `Version` (immutable) and `VersionEdit` (the step from one to the next).
//!
//! A version is levels of *runs*. A run is a sorted sequence of entries, cut into tables; a level holds its runs newest
//! first. Policies differ in how many runs they leave on a level, and any version can be worked on by any of them.
//!
//! V1 names: a table number is in a version once.
//! V2 level 0: each table is a run of its own, and the sequence numbers of two of them never interleave: every number in
//!    a newer table is above every number in an older one.
//! V3 runs: the tables of a run below level 0 are disjoint, so that a key is in one of them at most; all versions of a
//!    key that a run has are in one table. Runs of a level stand by descending number.
//! V4 age: of two versions of a key the newer one is in the run that is asked first. No limits of tables can show
//!    that; the planning of compactions keeps it, and the properties of `compaction` check it.
//!
//! A compaction may end before its last key (`compaction/piece.rs`). Then each input that reaches beyond that key stays in its run as a
//! *narrowed* table: its lower bound in the version rises, and its file does not change. Of all that is said above a table holds
//! what lies from its bound on. Pebble calls such a table a virtual sstable.
//!
//! V1 to V3 are checked by `VersionBuilder`, so that an edit from disk that breaks one is an error and not a wrong answer.

use std::collections::HashSet;
use std::sync::Arc;

use crate::manifest::compaction_stats::CompactionStats;
use crate::table::TableMeta;
use crate::types::{SeqNo, Slice};

/// Levels a version may have, level 0 among them.
pub(crate) const MAX_LEVELS: usize = crate::metrics::MAX_LEVELS;

/// Where a table stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct RunId {
    pub(crate) level: usize,
    /// The number of its run on that level; a higher one is newer. 0 on level 0, where each table is a run.
    pub(crate) run: u64,
}

impl RunId {
    /// Where memtables are flushed to.
    pub(crate) const LEVEL_0: RunId = RunId { level: 0, run: 0 };
}

/// A sorted sequence of entries, cut into tables. A cheap clone.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Run {
    /// Its number on its level; on level 0 the newest sequence number of its table.
    id: u64,
    /// By key, disjoint, at least one.
    tables: Arc<[TableMeta]>,
    bytes: u64,
}

impl Run {
    /// The run `id` of `tables`, which are in order.
    pub(super) fn new(id: u64, tables: impl IntoIterator<Item = TableMeta>) -> Run {
        let tables: Arc<[TableMeta]> = tables.into_iter().collect();
        Run { id, bytes: tables.iter().map(|table| table.size).sum(), tables }
    }

    /// Whether the two are one run of versions that share it. May say no of equal ones.
    pub(crate) fn is_same(&self, other: &Run) -> bool {
        Arc::ptr_eq(&self.tables, &other.tables)
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn tables(&self) -> &[TableMeta] {
        &self.tables
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// One immutable set of tables.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Version {
    /// Versions share the tables of levels that the edits between them leave alone.
    pub(super) levels: Vec<Vec<Run>>,
    /// Tables of which recovery could not read all, on no level any more: what they held is unknown (rule 10).
    pub(super) quarantined: Vec<TableMeta>,
    /// Quarantined tables that were given up for good. Reads do without them; salvage reads what is left of their files. So tombstones
    /// that may hide what they hold are kept, as for the quarantined ones.
    pub(super) dropped: Vec<TableMeta>,
    /// The compactions of which a part is done.
    pub(super) pointers: Vec<CompactPointer>,
}

/// Where a compaction that took a piece is to go on.
///
/// LevelDB's manifest has a compact pointer for each level: the key from which its next compaction starts. This is the same for a
/// compaction that ended before its last key. It decides what is compacted next and never what is right: each piece is planned on the
/// version as it is by then, under the rules of all plans, and without the pointer the tables are compacted when a policy wants them
/// compacted. So nothing has to be checked of a pointer but that it can be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CompactPointer {
    /// A file number that no file has.
    pub(crate) id: u64,
    /// The newest run with tables that are left; those above it came later and wait for the next compaction. On level 0, where each
    /// table is a run, its newest sequence number.
    pub(crate) top: RunId,
    /// Where the rest goes, as what was compacted has.
    pub(crate) output: RunId,
    /// The first key that is left.
    pub(crate) from: Slice,
    /// The last key of the whole compaction.
    pub(crate) upto: Slice,
    /// Bytes of the tables of the whole compaction.
    pub(crate) bytes: u64,
}

/// The difference between two versions, and what recovery must know along with it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct VersionEdit {
    /// Tables that come in, each with its place.
    pub(crate) added: Vec<(RunId, TableMeta)>,
    /// Tables that go, each as level and number.
    pub(crate) removed: Vec<(usize, u64)>,
    /// Tables that are given up for now; each is removed from its level by the same edit or was by an earlier one.
    pub(crate) quarantined: Vec<TableMeta>,
    /// Quarantined tables that were given up for good, by number.
    pub(crate) dropped: Vec<u64>,
    /// Compactions that took a piece.
    pub(crate) pointers: Vec<CompactPointer>,
    /// Pointers to compactions that went on or have nothing left to do; one that is gone already is none.
    pub(crate) pointers_done: Vec<u64>,
    /// Logs below this number are obsolete: tables hold what they held.
    pub(crate) log_number: Option<u64>,
    /// No file of this number or a higher one has been made yet.
    pub(crate) next_file_number: Option<u64>,
    /// The highest sequence number that tables hold; the log `log_number` goes on right after it.
    pub(crate) last_seqno: Option<SeqNo>,
    /// The policy that compacts tables from now on, by its number.
    pub(crate) policy: Option<u64>,
    /// What was read and written for this step.
    pub(crate) stats: CompactionStats,
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

    /// Levels up to the deepest that holds a table.
    pub(crate) fn levels(&self) -> &[Vec<Run>] {
        &self.levels
    }

    /// All runs with their levels, in the order in which a point read asks them: newest first.
    pub(crate) fn all_runs(&self) -> impl DoubleEndedIterator<Item = (usize, &Run)> {
        self.levels.iter().enumerate().flat_map(|(level, runs)| runs.iter().map(move |run| (level, run)))
    }

    /// All tables, newest run first, in a run by key.
    pub(crate) fn tables(&self) -> impl Iterator<Item = &TableMeta> {
        self.levels.iter().flatten().flat_map(Run::tables)
    }

    pub(crate) fn level_bytes(&self, level: usize) -> u64 {
        self.runs(level).iter().map(Run::bytes).sum()
    }

    /// The tables that were given up and are not dropped yet.
    pub(crate) fn quarantined(&self) -> &[TableMeta] {
        &self.quarantined
    }

    /// The tables on no level that may still be read: those that are quarantined, and those dropped whose files may be there.
    pub(crate) fn set_aside(&self) -> impl Iterator<Item = &TableMeta> {
        self.quarantined.iter().chain(&self.dropped)
    }

    /// Every table that the version names, on a level or set aside.
    pub(crate) fn named_tables(&self) -> impl Iterator<Item = &TableMeta> {
        self.tables().chain(self.set_aside())
    }

    /// Their numbers.
    pub(crate) fn named_numbers(&self) -> HashSet<u64> {
        self.named_tables().map(|table| table.number).collect()
    }

    /// The numbers of those that were dropped.
    pub(crate) fn dropped(&self) -> impl Iterator<Item = u64> {
        self.dropped.iter().map(|table| table.number)
    }

    /// This version without the dropped tables that are not `kept`: nothing can be read of them any more.
    pub(crate) fn forgetting_dropped(&self, kept: impl Fn(u64) -> bool) -> Version {
        let mut version = self.clone();
        version.dropped.retain(|table| kept(table.number));
        version
    }

    /// Where compactions that took a piece are to go on.
    pub(crate) fn pointers(&self) -> &[CompactPointer] {
        &self.pointers
    }

    /// An edit that makes this version out of an empty one: the first record of a manifest.
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

    /// Tables by level, run, number and keys.
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
        // Catches ordering by table number: a compaction that ends after a later flush has the higher number and older data.
        let version = Version::default().apply(&adding(&[(9, 1, 40), (7, 41, 50), (8, 51, 60)])).unwrap();
        assert_eq!(numbers(&version), [8, 7, 9]);
        assert_eq!(version.runs(0).len(), 3);
    }

    #[test]
    fn compaction_takes_the_place_of_its_inputs() {
        // Catches an edit that appends its output as if it were the newest data.
        let version = Version::default().apply(&adding(&[(1, 1, 10), (2, 11, 20), (3, 21, 30)])).unwrap();
        let mut compaction = adding(&[(5, 1, 20)]);
        compaction.removed = vec![(0, 1), (0, 2)];
        assert_eq!(numbers(&version.apply(&compaction).unwrap()), [3, 5]);
    }

    #[test]
    fn runs_stand_newest_first_and_their_tables_by_key() {
        // Catches runs ordered by when they were installed: a read would stop at an older version.
        let placed = [(2, 1, 6, "a", "z"), (1, 7, 4, "p", "z"), (1, 9, 3, "a", "z"), (1, 7, 5, "a", "c")];
        let version = Version::default().apply(&placing(&placed)).unwrap();
        assert_eq!(numbers(&version), [3, 5, 4, 6]);
        let ids: Vec<(usize, u64)> = version.all_runs().map(|(level, run)| (level, run.id())).collect();
        assert_eq!(ids, [(1, 9), (1, 7), (2, 1)]);
        // A run goes with its last table.
        let gone = VersionEdit { removed: vec![(1, 4), (1, 5), (2, 6)], ..VersionEdit::default() };
        let version = version.apply(&gone).unwrap();
        assert_eq!((version.levels().len(), version.runs(1).len()), (2, 1));
    }

    #[test]
    fn edits_that_break_the_version_are_refused() {
        // Catches a damaged or misordered manifest that would be served as data.
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
        // Catches a suspect that a rollover forgets: older versions of its keys would be read.
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
        // Known until its file is gone, through a rollover too.
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
