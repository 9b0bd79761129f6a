//! Finds the tables of the manifest's version, and sets aside the files of tables that cannot be used.

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

/// The result of opening the tables of a version.
pub(super) struct OpenedTables {
    /// The state without the quarantined tables.
    pub(crate) state: ManifestState,
    pub(crate) tables: Vec<Arc<Table>>,
    /// The tables that this open has quarantined; their files are still in place.
    pub(crate) suspects: Vec<u64>,
}

/// Checks the tables of `state`. They are not opened, but if a file is not among the `names` in the directory, that is an error (rule 10). In
/// quarantine mode each table is read completely, and quarantined if it is damaged or missing; a table that cannot be read for another reason is
/// still an error.
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

/// Renames the files of `suspects` that exist, and makes that durable. A crash before a manifest records the quarantine leaves missing tables, which
/// the next open handles in the same way.
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

/// Removes from `state` the dropped tables whose files no longer exist: no tombstone has to be kept for them any more.
pub(super) fn forget_removed(state: ManifestState, names: &[FileKind]) -> ManifestState {
    let kept = |number| names.contains(&FileKind::Aside(number));
    ManifestState { version: Arc::new(state.version.forgetting_dropped(kept)), ..state }
}

/// If a torn manifest does not refer to a table, the lost record may have referred to it, in case that record was damaged after it was durable. A
/// table counts as obsolete if recovery has all of its entries, judged by sequence numbers. These are outputs and inputs of flushes and compactions,
/// whose entries are also in the version and the replayed logs, and tables of an interrupted recovery. Such tables stay until the end of the open,
/// which removes them as orphans. Other tables, such as ingested ones and those that cannot be read, are suspects: they are renamed, not removed. The
/// new names are durable before the new manifest, which is not torn, makes the tables orphans.
///
/// A manifest that was cut between two edits does not look torn. But it refers to missing tables, which are among the `suspects` of this open, and
/// does not refer to the tables that replaced them.
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
    // After damage, recovery may have fewer entries than the sequence numbers cover.
    let (is_whole, last_seqno) = (report.damage.is_empty(), report.last_seqno);
    let is_known = |table: Arc<Table>| is_whole && table.meta().max_seqno <= last_seqno;
    let is_suspect = |&number: &u64| !Table::open(&store.tables, number, None).is_ok_and(is_known);
    let named = state.version.named_numbers();
    let unnamed = names.iter().filter_map(FileKind::table).filter(|number| !named.contains(number));
    set_aside(store, unnamed.filter(is_suspect).map(table::file_name).collect(), report)
}
