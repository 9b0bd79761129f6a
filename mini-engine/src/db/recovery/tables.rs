//! Finds the tables of the version that the manifest names, and puts aside the files of those that it must do without.

use std::collections::HashSet;
use std::sync::Arc;

use crate::compaction::TableStore;
use crate::db::read::QuarantinedTable;
use crate::error::{Error, Result};
use crate::manifest::{CURRENT, FileKind, ManifestState, VersionEdit};
use crate::options::RecoveryMode;
use crate::table::{self, RunTable, Table};

use super::aside::set_aside;
use super::report::RecoveryReport;

/// What opening the tables of a version led to.
pub(super) struct OpenedTables {
    /// Without the tables that were given up.
    pub(crate) state: ManifestState,
    pub(crate) tables: Vec<Arc<Table>>,
    /// The tables given up now, whose files are still where they were.
    pub(crate) suspects: Vec<u64>,
}

/// The tables of `state`. None is opened, but a missing file is an error (rule 10), which a look at the `names` in the directory
/// shows. In quarantine mode each is read whole, and given up if it is damaged or missing; a table that cannot be read for another
/// reason is still an error.
pub(super) fn open_tables(
    store: &TableStore,
    state: ManifestState,
    names: &[FileKind],
    report: &mut RecoveryReport,
) -> Result<OpenedTables> {
    let quarantine = store.options.recovery_mode == RecoveryMode::Quarantine;
    let (mut tables, mut edit) = (Vec::new(), VersionEdit::default());
    let there: HashSet<u64> = names.iter().filter_map(FileKind::table).collect();
    for (level, run) in state.version.all_runs() {
        for meta in run.tables() {
            let table = Table::new(&store.tables, meta.clone());
            match check(&table, &there, quarantine) {
                Ok(()) => tables.push(table),
                Err(error @ Error::Corruption { .. }) if quarantine => {
                    report.damage.push(error.to_string());
                    edit.removed.push((level, meta.number));
                    edit.quarantined.push(meta.clone());
                }
                Err(error) => return Err(error),
            }
        }
    }
    let suspects = edit.quarantined.iter().map(|meta| meta.number).collect();
    let version = state.version.apply(&edit);
    let version = version.map_err(|what| Error::corruption(&store.dir.join(CURRENT), 0, what))?;
    report.quarantined = version.quarantined().iter().map(|meta| QuarantinedTable::new(store, meta)).collect();
    Ok(OpenedTables { state: ManifestState { version: version.into(), ..state }, tables, suspects })
}

fn check(table: &Arc<Table>, there: &HashSet<u64>, whole: bool) -> Result<()> {
    match whole {
        true => RunTable::new(table, table.meta()).verify().map(drop),
        false if there.contains(&table.number()) => Ok(()),
        false => table.check(),
    }
}

/// Renames the files of `suspects`, those that are there, and makes that durable. A crash before a manifest says that they
/// are quarantined leaves tables that are missing, which the next open finds as it found these.
pub(super) fn set_suspects_aside(store: &TableStore, suspects: &[u64], report: &mut RecoveryReport) -> Result<()> {
    let mut there = Vec::new();
    for &number in suspects {
        let name = table::file_name(number);
        let path = store.dir.join(&name);
        if store.fs.exists(&path).map_err(Error::io("look for", &path))? {
            there.push(name);
        }
    }
    set_aside(store, there, report)
}

/// Forgets the dropped tables whose files are gone: no tombstone has to be kept for them any more.
pub(super) fn forget_removed(state: ManifestState, names: &[FileKind]) -> ManifestState {
    let kept = |number| names.contains(&FileKind::Aside(number));
    ManifestState { version: Arc::new(state.version.forgetting_dropped(kept)), ..state }
}

/// The tables that a torn manifest does not name could be what its lost record named, if that was damaged after it was in force. Known to
/// be obsolete are those of which recovery has all, by their sequence numbers: outputs and inputs of flushes and compactions, which the
/// version and the replayed logs hold in another form, and what an interrupted recovery has replayed. They stay for the end of the open,
/// which removes them as orphans. Others are suspects, as tables from outside are, and such as cannot be read: renamed, not removed.
/// Durable before the new manifest, which has no tear any more, sentences them as orphans.
///
/// A manifest that was cut between two edits shows no tear. But it names tables that are gone, which are among the `suspects` of this open,
/// and those that took their place are unnamed.
pub(super) fn set_unnamed_aside(
    store: &TableStore,
    state: &ManifestState,
    names: &[FileKind],
    suspects: &[u64],
    report: &mut RecoveryReport,
) -> Result<()> {
    let lacks_a_table = suspects.iter().any(|number| !names.contains(&FileKind::Table(*number)));
    if !report.manifest_tail_dropped && !lacks_a_table {
        return Ok(());
    }
    // After damage recovery may have less than the numbers say.
    let (is_whole, last_seqno) = (report.damage.is_empty(), report.last_seqno);
    let is_known = |table: Arc<Table>| is_whole && table.meta().max_seqno <= last_seqno;
    let is_suspect = |&number: &u64| !Table::open(&store.tables, number, None).is_ok_and(is_known);
    let named = state.version.named_numbers();
    let unnamed = names.iter().filter_map(FileKind::table).filter(|number| !named.contains(number));
    set_aside(store, unnamed.filter(is_suspect).map(table::file_name).collect(), report)
}
