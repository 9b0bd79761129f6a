//! [`VersionBuilder`]: builds a version from another one and any number of edits.
//!
//! A manifest of many edits is loaded by one builder: each edit costs time in proportion to its changes, and the tables are sorted and checked once,
//! at the end (LevelDB's `VersionSet::Builder`). Runs that no edit changes are shared with the previous version, so that the cost of a flush does not
//! depend on the number of tables.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

use crate::manifest::version::{CompactPointer, MAX_LEVELS, Run, RunId, Version, VersionEdit};
use crate::table::TableMeta;

/// The changes to a level.
#[derive(Debug, Default)]
struct LevelChanges {
    /// The tables of the base version that were removed.
    removed: HashSet<u64>,
    /// New tables by their number, each with the number of its run.
    added: HashMap<u64, (u64, TableMeta)>,
}

/// A version that is being built.
#[derive(Debug)]
pub(super) struct VersionBuilder<'a> {
    base: &'a Version,
    changed: BTreeMap<usize, LevelChanges>,
    quarantined: Vec<TableMeta>,
    dropped: Vec<TableMeta>,
    pointers: Vec<CompactPointer>,
}

impl Version {
    /// The version that results from `edit`, or a description of the fault in the edit. O(runs + tables of the changed runs).
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

    /// Applies `edit`, or describes the fault in it (V1). O(runs of the base * log tables) for each table.
    pub(super) fn apply(&mut self, edit: &VersionEdit) -> Result<(), String> {
        for (level, number) in &edit.removed {
            if !self.remove(*level, *number) {
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

    /// The version that results from all edits, or a description of the fault in the order of its tables (V2, V3).
    pub(super) fn build(self) -> Result<Version, String> {
        let mut levels = self.base.levels.clone();
        let deepest = self.changed.keys().next_back().map_or(0, |level| level + 1);
        levels.resize_with(levels.len().max(deepest), Vec::new);
        self.quarantined.iter().chain(&self.dropped).try_for_each(check_limits)?;
        for (level, changes) in self.changed {
            levels[level] = runs_after(level, self.base.runs(level), changes)?;
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
        self.changed.entry(level).or_default().added.insert(number, (id, table.clone()));
        Ok(())
    }

    /// Removes the table; returns whether the level had it.
    fn remove(&mut self, level: usize, number: u64) -> bool {
        let is_of_base = self.base.runs(level).iter().any(|run| run.has(number));
        let Some(changes) = (level < MAX_LEVELS).then(|| self.changed.entry(level).or_default()) else { return false };
        changes.added.remove(&number).is_some() || is_of_base && changes.removed.insert(number)
    }

    fn contains(&self, number: u64) -> bool {
        let is_removed = |level| self.changed.get(&level).is_some_and(|changes| changes.removed.contains(&number));
        self.changed.values().any(|changes| changes.added.contains_key(&number))
            || self.base.all_runs().any(|(level, run)| run.has(number) && !is_removed(level))
    }

    fn is_quarantined(&self, number: u64) -> bool {
        self.quarantined.iter().chain(&self.dropped).any(|table| table.number == number)
    }
}

/// The runs of `level` after the changes, newest first. Unchanged runs are shared with `before`.
fn runs_after(level: usize, before: &[Run], changes: LevelChanges) -> Result<Vec<Run>, String> {
    let LevelChanges { removed, added } = changes;
    added.values().try_for_each(|(_, table)| check_limits(table))?;
    // On level 0 each table is a run of its own.
    let joined: HashSet<u64> = added.values().map(|(id, _)| *id).filter(|_| level > 0).collect();
    let is_changed = |run: &Run| joined.contains(&run.id()) || removed.iter().any(|number| run.has(*number));
    let (changed, mut runs): (Vec<Run>, Vec<Run>) = before.iter().cloned().partition(is_changed);
    let left = changed.iter().flat_map(|run| run.tables().iter().map(|table| (run.id(), table.clone())));
    let left = left.filter(|(_, table)| !removed.contains(&table.number));
    let mut tables: Vec<(u64, TableMeta)> = left.chain(added.into_values()).collect();
    tables.sort_by(|(a, x), (b, y)| (a, &*x.smallest, x.number).cmp(&(b, &*y.smallest, y.number)));
    for chunk in tables.chunk_by(|(a, _), (b, _)| level > 0 && a == b) {
        let Some(&(id, _)) = chunk.first() else { continue };
        let run = Run::new(id, chunk.iter().map(|(_, table)| table.clone()));
        check_disjoint(level, &run)?;
        runs.push(run);
    }
    runs.sort_by_key(|run| Reverse(run.id()));
    if level == 0 {
        check_ages(&runs)?;
    }
    Ok(runs)
}

/// Checks that the bounds of a table are in order.
fn check_limits(table: &TableMeta) -> Result<(), String> {
    match table.smallest > table.largest || table.min_seqno > table.max_seqno {
        true => Err(format!("table {} has its limits in the wrong order", table.number)),
        false => Ok(()),
    }
}

/// Checks V2 for the runs of level 0, newest first, which have one table each.
fn check_ages(runs: &[Run]) -> Result<(), String> {
    let tables = || runs.iter().flat_map(Run::tables);
    for (newer, older) in tables().zip(tables().skip(1)) {
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
