//! Which tables make up the database: `Version` (immutable) and `VersionEdit` (the step from one to the next).
//!
//! V1 names: a table number stands in a version once.
//! V2 runs: the tables of level 0 stand newest first, and the sequence numbers of two of them never interleave: every
//!    number in a newer table is above every number in an older one. So a read may stop at the first table that knows
//!    the key, and a merge of neighbours stays in order.
//! Both are checked by `Version::apply`, so that an edit from disk that breaks one is an error and not a wrong answer.

use crate::table::TableMeta;
use crate::types::SeqNo;

/// Levels a version may have. This slice fills level 0 only; the format has room for the others.
pub(crate) const MAX_LEVELS: usize = 8;

/// One immutable set of tables.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Version {
    levels: Vec<Vec<TableMeta>>,
}

/// The difference between two versions, and what recovery must know along with it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct VersionEdit {
    /// Tables that come in, each with its level.
    pub(crate) added: Vec<(usize, TableMeta)>,
    /// Tables that go, each as level and number.
    pub(crate) removed: Vec<(usize, u64)>,
    /// Logs below this number are obsolete: tables hold what they held.
    pub(crate) log_number: Option<u64>,
    /// No file of this number or a higher one has been made yet.
    pub(crate) next_file_number: Option<u64>,
    /// The highest sequence number that tables hold; the log `log_number` goes on right after it.
    pub(crate) last_seqno: Option<SeqNo>,
}

impl Version {
    /// The tables of `level`; of level 0 the newest first.
    pub(crate) fn level(&self, level: usize) -> &[TableMeta] {
        self.levels.get(level).map_or(&[], Vec::as_slice)
    }

    /// Levels up to the deepest that holds a table.
    pub(crate) fn levels(&self) -> &[Vec<TableMeta>] {
        &self.levels
    }

    /// All tables, in the order in which a point read asks them: newest first.
    pub(crate) fn tables(&self) -> impl Iterator<Item = &TableMeta> {
        self.levels.iter().flatten()
    }

    /// Whether table `number` is part of this version.
    pub(crate) fn contains(&self, number: u64) -> bool {
        self.tables().any(|table| table.number == number)
    }

    /// The version after `edit`, or what is wrong with the edit.
    pub(crate) fn apply(&self, edit: &VersionEdit) -> Result<Version, String> {
        let mut next = self.clone();
        for (level, number) in &edit.removed {
            next.take(*level, *number)?;
        }
        for (level, table) in &edit.added {
            next.put(*level, table)?;
        }
        while next.levels.last().is_some_and(Vec::is_empty) {
            next.levels.pop();
        }
        next.check_runs()?;
        Ok(next)
    }

    /// An edit that makes this version out of an empty one: the first record of a manifest.
    pub(crate) fn as_edit(&self) -> VersionEdit {
        let tables = |(level, tables): (usize, &Vec<TableMeta>)| {
            tables.iter().map(move |table| (level, table.clone())).collect::<Vec<_>>()
        };
        VersionEdit { added: self.levels.iter().enumerate().flat_map(tables).collect(), ..VersionEdit::default() }
    }

    fn take(&mut self, level: usize, number: u64) -> Result<(), String> {
        let tables = self.levels.get_mut(level);
        let found = tables.and_then(|tables| {
            let at = tables.iter().position(|table| table.number == number)?;
            Some(tables.remove(at))
        });
        match found {
            Some(_) => Ok(()),
            None => Err(format!("edit removes table {number} from level {level}, which does not hold it")),
        }
    }

    fn put(&mut self, level: usize, table: &TableMeta) -> Result<(), String> {
        if level >= MAX_LEVELS {
            return Err(format!("edit adds table {} to level {level}, expected below {MAX_LEVELS}", table.number));
        }
        if self.contains(table.number) {
            return Err(format!("edit adds table {}, which is there already", table.number));
        }
        if self.levels.len() <= level {
            self.levels.resize_with(level + 1, Vec::new);
        }
        if let Some(tables) = self.levels.get_mut(level) {
            let at = tables.partition_point(|older| older.max_seqno > table.max_seqno);
            tables.insert(at, table.clone());
        }
        Ok(())
    }

    /// V2, and that the limits of each table are in order.
    fn check_runs(&self) -> Result<(), String> {
        for table in self.tables() {
            if table.smallest > table.largest || table.min_seqno > table.max_seqno {
                return Err(format!("table {} has its limits in the wrong order", table.number));
            }
        }
        for (newer, older) in self.level(0).iter().zip(self.level(0).iter().skip(1)) {
            if older.max_seqno >= newer.min_seqno {
                return Err(format!(
                    "tables {} and {} of level 0 interleave: expected sequence numbers above {}, found {}",
                    newer.number, older.number, older.max_seqno, newer.min_seqno
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::test_tables::table;

    fn adding(tables: &[(u64, SeqNo, SeqNo)]) -> VersionEdit {
        let added = tables.iter().map(|&(number, min, max)| (0, table(number, min, max))).collect();
        VersionEdit { added, ..VersionEdit::default() }
    }

    fn numbers(version: &Version) -> Vec<u64> {
        version.tables().map(|table| table.number).collect()
    }

    #[test]
    fn level_0_stands_newest_first_whatever_the_table_numbers() {
        // Catches ordering by table number: a merge that ends after a later flush has the higher number and older data.
        let version = Version::default().apply(&adding(&[(9, 1, 40), (7, 41, 50), (8, 51, 60)])).unwrap();
        assert_eq!(numbers(&version), [8, 7, 9]);
    }

    #[test]
    fn merge_takes_the_place_of_its_inputs() {
        // Catches an edit that appends its output as if it were the newest data.
        let version = Version::default().apply(&adding(&[(1, 1, 10), (2, 11, 20), (3, 21, 30)])).unwrap();
        let mut merge = adding(&[(5, 1, 20)]);
        merge.removed = vec![(0, 1), (0, 2)];
        assert_eq!(numbers(&version.apply(&merge).unwrap()), [3, 5]);
    }

    #[test]
    fn edits_that_break_the_version_are_refused() {
        // Catches a damaged or misordered manifest that would be served as data.
        let version = Version::default().apply(&adding(&[(1, 1, 10)])).unwrap();
        let unknown = VersionEdit { removed: vec![(0, 7)], ..VersionEdit::default() };
        assert!(version.apply(&unknown).unwrap_err().contains("does not hold it"));
        assert!(version.apply(&adding(&[(1, 11, 12)])).unwrap_err().contains("there already"));
        assert!(version.apply(&adding(&[(2, 10, 12)])).unwrap_err().contains("interleave"));
        let deep = VersionEdit { added: vec![(MAX_LEVELS, table(3, 1, 2))], ..VersionEdit::default() };
        assert!(version.apply(&deep).unwrap_err().contains("expected below"));
    }

    #[test]
    fn as_edit_rebuilds_the_version() {
        // Catches a rollover that loses a table or its level.
        let version = Version::default().apply(&adding(&[(1, 1, 10), (2, 11, 20)])).unwrap();
        assert_eq!(Version::default().apply(&version.as_edit()).unwrap(), version);
    }
}
