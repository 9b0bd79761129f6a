//! Tables that recovery could not read and was told to go on without (rule 10, [`RecoveryMode::Quarantine`]).
//!
//! Such a table is on no level any more, but the version remembers it: what it held is unknown, so older versions of its
//! keys must not be shown, nor keys that it may have removed. Sequence numbers tell: a version newer than the newest of
//! the table is right whatever the table held, wherever it is by now. All other reads of keys in the table's range fail,
//! and so do scans that pass over a part of it, until somebody drops the table and thereby says that its writes are gone.

use std::path::{Path, PathBuf};

use super::report::RecoveryReport;
use super::state::{Core, fail_on_unwind};
use super::view::View;
use crate::compaction::{Bounds, OpenTable, TableStore, overlaps_bounds};
use crate::error::{Error, Result};
use crate::manifest::{ASIDE, CURRENT, ManifestState, Version, VersionEdit};
use crate::options::RecoveryMode;
use crate::table::{self, TableMeta};
use crate::types::{SeqNo, Shown, Slice};

/// A table that recovery gave up for now.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QuarantinedTable {
    /// Its number, by which [`Db::drop_quarantined`](crate::Db::drop_quarantined) drops it.
    pub number: u64,
    /// Where its file is kept, unless it was missing.
    pub file: PathBuf,
    /// The first key that it held.
    pub smallest: Slice,
    /// The last key that it held.
    pub largest: Slice,
}

impl QuarantinedTable {
    fn new(dir: &Path, meta: &TableMeta) -> QuarantinedTable {
        QuarantinedTable {
            number: meta.number,
            file: dir.join(table::file_name(meta.number) + ASIDE),
            smallest: meta.smallest.clone(),
            largest: meta.largest.clone(),
        }
    }
}

impl std::fmt::Display for QuarantinedTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let QuarantinedTable { number, file, smallest, largest } = self;
        write!(
            f,
            "{}: table {number} is quarantined: reads of keys {} to {} fail, unless they were written anew; restore the \
             database from a copy, or give the table up with the command quarantine --drop {number}: older values of \
             its keys, and removed keys, may then be back",
            file.display(),
            Shown(smallest),
            Shown(largest)
        )
    }
}

/// The quarantined tables, in the order in which they were found.
pub(super) fn list(core: &Core) -> Vec<QuarantinedTable> {
    core.view.load().version.quarantined().iter().map(|meta| QuarantinedTable::new(core.dir(), meta)).collect()
}

/// Gives up table `number`: reads of its keys show what else there is. Durable on return. Its file stays.
pub(super) fn drop_table(core: &Core, number: u64) -> Result<()> {
    core.check_writable(&core.lock())?;
    let is_quarantined = |version: &Version| match version.quarantined().iter().any(|table| table.number == number) {
        true => Ok(()),
        false => Err(Error::InvalidArgument(format!("table {number} is not quarantined"))),
    };
    // Asked where no other edit can come between: a second caller is refused, and not taken for a broken manifest.
    let edit = VersionEdit { dropped: vec![number], ..VersionEdit::default() };
    fail_on_unwind(core, || core.install_if(is_quarantined, edit, &[], |_| {}))
}

/// What opening the tables of a version led to.
pub(super) struct Opened {
    /// Without the tables that were given up.
    pub(super) state: ManifestState,
    pub(super) tables: Vec<OpenTable>,
    /// The tables given up now, whose files are still where they were.
    pub(super) suspects: Vec<u64>,
}

/// Opens the tables of `state`. In quarantine mode each is read whole, and given up if it is damaged or missing; a table
/// that cannot be read for another reason is still an error.
pub(super) fn open_tables(store: &TableStore, state: ManifestState, report: &mut RecoveryReport) -> Result<Opened> {
    let quarantine = store.options.recovery_mode == RecoveryMode::Quarantine;
    let (mut tables, mut edit) = (Vec::new(), VersionEdit::default());
    for (level, run) in state.version.all_runs() {
        for meta in run.tables() {
            let opened = store.open(meta).and_then(|open| {
                let checked = if quarantine { open.table.verify().map(drop) } else { Ok(()) };
                checked.map(|()| open)
            });
            match opened {
                Ok(open) => tables.push(open),
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
    report.quarantined = version.quarantined().iter().map(|meta| QuarantinedTable::new(&store.dir, meta)).collect();
    Ok(Opened { state: ManifestState { version: version.into(), ..state }, tables, suspects })
}

/// Renames the files of `suspects`, those that are there, and makes that durable. A crash before a manifest says that they
/// are quarantined leaves tables that are missing, which the next open finds as it found these.
pub(super) fn set_aside(store: &TableStore, suspects: &[u64], report: &mut RecoveryReport) -> Result<()> {
    let before = report.set_aside.len();
    for &number in suspects {
        let name = table::file_name(number);
        let (path, aside) = (store.dir.join(&name), store.dir.join(name + ASIDE));
        if store.fs.exists(&path).map_err(Error::io("look for", &path))? {
            store.fs.rename(&path, &aside).map_err(Error::io("rename", &path))?;
            report.set_aside.push(aside);
        }
    }
    if report.set_aside.len() == before {
        return Ok(());
    }
    store.fs.sync_dir(&store.dir).map_err(Error::io("sync", &store.dir))
}

/// Fails if a quarantined table may hold a version of `key` that is newer than the one `found`, and that `seqno` sees.
pub(super) fn check_key(core: &Core, view: &View, key: &[u8], found: Option<SeqNo>, seqno: SeqNo) -> Result<()> {
    let hides = |table: &&TableMeta| {
        let within = *table.smallest <= *key && *key <= *table.largest;
        within && table.min_seqno <= seqno && found.is_none_or(|found| found <= table.max_seqno)
    };
    view.version.quarantined().iter().find(hides).map_or(Ok(()), |table| Err(refusal(core, table)))
}

/// Fails if a quarantined table may hold a key in both ranges that `seqno` sees.
pub(super) fn check_range(core: &Core, view: &View, ranges: [Bounds<'_>; 2], seqno: SeqNo) -> Result<()> {
    let hides =
        |table: &&TableMeta| table.min_seqno <= seqno && ranges.into_iter().all(|range| overlaps_bounds(table, range));
    view.version.quarantined().iter().find(hides).map_or(Ok(()), |table| Err(refusal(core, table)))
}

/// What reads of keys of a quarantined table get.
pub(super) fn refusal(core: &Core, meta: &TableMeta) -> Error {
    let QuarantinedTable { file, smallest, largest, number } = QuarantinedTable::new(core.dir(), meta);
    let what = format!(
        "keys {} to {}: expected what table {number} held, which is quarantined; found no newer version",
        Shown(&smallest),
        Shown(&largest)
    );
    Error::corruption(&file, 0, what)
}
