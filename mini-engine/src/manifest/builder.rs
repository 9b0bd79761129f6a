//! [`VersionBuilder`]: makes a version out of another one and any number of edits.
//!
//! A manifest of many edits is loaded by one builder: each edit costs in proportion to its changes, and the tables are ordered and checked once, at
//! the end (LevelDB's `VersionSet::Builder`). Levels that no edit changes are shared with the previous version.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use crate::manifest::version::{CompactPointer, MAX_LEVELS, Run, RunId, Version, VersionEdit};
use crate::table::TableMeta;

/// The tables of a level by their number, each with the number of its run.
type Level = HashMap<u64, (u64, TableMeta)>;

/// A version in the making.
#[derive(Debug)]
pub(super) struct VersionBuilder<'a> {
    base: &'a Version,
    /// The levels that an edit changed.
    changed: BTreeMap<usize, Level>,
    quarantined: Vec<TableMeta>,
    dropped: Vec<TableMeta>,
    pointers: Vec<CompactPointer>,
}

impl Version {
    /// The version after `edit`, or a description of the fault in the edit. O(tables of the levels that it changes).
    pub(crate) fn apply(&self, edit: &VersionEdit) -> Result<Version, String> {
        let mut builder = VersionBuilder::new(self);
        builder.apply(edit)?;
        builder.build()
    }
}

impl<'a> VersionBuilder<'a> {
    pub(super) fn new(base: &'a Version) -> Self {
        let (quarantined, dropped) = (base.quarantined.clone(), base.dropped.clone());
        Self { base, changed: BTreeMap::new(), quarantined, dropped, pointers: base.pointers.clone() }
    }

    /// Applies `edit`, or describes the fault in it (V1). O(1) for each table, and O(tables) for each level that was not
    /// changed before.
    pub(super) fn apply(&mut self, edit: &VersionEdit) -> Result<(), String> {
        for (level, number) in &edit.removed {
            let known = *level < MAX_LEVELS && self.level(*level).remove(number).is_some();
            if !known {
                return Err(format!("edit removes table {number} from level {level}, which does not hold it"));
            }
        }
        for (run_id, table) in &edit.added {
            self.add(*run_id, table)?;
        }
        for table in &edit.quarantined {
            if self.is_quarantined(table.number) || self.contains(table.number) {
                return Err(format!("edit quarantines table {}, which is there already", table.number));
            }
            self.quarantined.push(table.clone());
        }
        for number in &edit.dropped {
            let at = self.quarantined.iter().position(|table| table.number == *number);
            let at = at.ok_or_else(|| format!("edit drops table {number}, which is not quarantined"))?;
            self.dropped.push(self.quarantined.remove(at));
        }
        self.pointers.retain(|pointer| !edit.pointers_done.contains(&pointer.id));
        self.pointers.extend_from_slice(&edit.pointers);
        Ok(())
    }

    /// The version after all edits, or a description of the fault in the order of its tables (V2, V3).
    pub(super) fn build(self) -> Result<Version, String> {
        let mut levels = self.base.levels.clone();
        let deepest = self.changed.keys().next_back().map_or(0, |level| level + 1);
        levels.resize_with(levels.len().max(deepest), Vec::new);
        self.quarantined.iter().chain(&self.dropped).try_for_each(check_limits)?;
        for (level, tables) in self.changed {
            levels[level] = runs(level, tables)?;
        }
        while levels.last().is_some_and(Vec::is_empty) {
            levels.pop();
        }
        Ok(Version { levels, quarantined: self.quarantined, dropped: self.dropped, pointers: self.pointers })
    }

    fn add(&mut self, RunId { level, run }: RunId, table: &TableMeta) -> Result<(), String> {
        let number = table.number;
        if level >= MAX_LEVELS {
            return Err(format!("edit adds table {number} to level {level}, expected below {MAX_LEVELS}"));
        }
        if level == 0 && run != 0 {
            return Err(format!("edit adds table {number} to run {run} of level 0, which has no runs"));
        }
        if self.contains(number) {
            return Err(format!("edit adds table {number}, which is there already"));
        }
        let id = if level == 0 { table.max_seqno } else { run };
        self.level(level).insert(number, (id, table.clone()));
        Ok(())
    }

    fn level(&mut self, level: usize) -> &mut Level {
        let of_run = |run: &'a Run| run.tables().iter().map(|table| (table.number, (run.id(), table.clone())));
        self.changed.entry(level).or_insert_with(|| self.base.runs(level).iter().flat_map(of_run).collect())
    }

    fn contains(&self, number: u64) -> bool {
        let unchanged = (0..self.base.levels.len()).filter(|level| !self.changed.contains_key(level));
        self.changed.values().any(|level| level.contains_key(&number))
            || unchanged.flat_map(|level| self.base.level(level)).any(|table| table.number == number)
    }

    fn is_quarantined(&self, number: u64) -> bool {
        self.quarantined.iter().chain(&self.dropped).any(|table| table.number == number)
    }
}

/// The runs of a level, newest first.
fn runs(level: usize, tables: Level) -> Result<Vec<Run>, String> {
    let mut tables: Vec<(u64, TableMeta)> = tables.into_values().collect();
    tables.iter().try_for_each(|(_, table)| check_limits(table))?;
    tables.sort_unstable_by(|(a, x), (b, y)| {
        (Reverse(a), &*x.smallest, x.number).cmp(&(Reverse(b), &*y.smallest, y.number))
    });
    if level == 0 {
        check_ages(&tables)?;
    }
    let mut runs: Vec<Run> = Vec::new();
    for chunk in tables.chunk_by(|(a, _), (b, _)| level > 0 && a == b) {
        let Some(&(id, _)) = chunk.first() else { continue };
        let run = Run::new(id, chunk.iter().map(|(_, table)| table.clone()));
        check_disjoint(level, &run)?;
        runs.push(run);
    }
    Ok(runs)
}

/// Checks that the limits of a table are in order.
fn check_limits(table: &TableMeta) -> Result<(), String> {
    match table.smallest > table.largest || table.min_seqno > table.max_seqno {
        true => Err(format!("table {} has its limits in the wrong order", table.number)),
        false => Ok(()),
    }
}

/// Checks V2 for the tables of level 0, newest first.
fn check_ages(tables: &[(u64, TableMeta)]) -> Result<(), String> {
    for ((_, newer), (_, older)) in tables.iter().zip(tables.iter().skip(1)) {
        if older.max_seqno >= newer.min_seqno {
            return Err(format!(
                "tables {} and {} of level 0 interleave: expected sequence numbers above {}, found {}",
                newer.number, older.number, older.max_seqno, newer.min_seqno
            ));
        }
    }
    Ok(())
}

/// Checks V3.
fn check_disjoint(level: usize, run: &Run) -> Result<(), String> {
    for (before, after) in run.tables().iter().zip(run.tables().iter().skip(1)) {
        if before.largest >= after.smallest {
            return Err(format!(
                "tables {} and {} of run {} of level {level} overlap: expected keys above \"{}\", found \"{}\"",
                before.number,
                after.number,
                run.id(),
                before.largest.escape_ascii(),
                after.smallest.escape_ascii()
            ));
        }
    }
    Ok(())
}
