//! Sets files aside, and limits the number of useless ones: otherwise a process that is often killed would fill the disk with them.
//!
//! Torn tails without a whole batch, and tables without a whole footer, which were never finished, are removed, the oldest first: nothing in them can
//! be recovered. All other files stay until a user removes them. This happens at the end of an open; if a crash interrupts it, the next open
//! continues.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::report::RecoveryReport;
use crate::compaction::TableStore;
use crate::error::{Error, Result};
use crate::manifest::{ASIDE, FileKind, TAIL_ASIDE, Version};
use crate::table::{self, Table};
use crate::wal;

/// The number of torn tails that are kept, and of tables, including those with contents.
const KEPT: usize = 16;

/// Renames the files `names`, so that no later open treats them as files of the database or as orphans, and makes that durable.
pub(super) fn set_aside(store: &TableStore, names: Vec<String>, report: &mut RecoveryReport) -> Result<()> {
    if names.is_empty() {
        return Ok(());
    }
    for name in names {
        let (path, aside) = (store.dir.join(&name), store.dir.join(name + ASIDE));
        store.fs.rename(&path, &aside).map_err(Error::io("rename", &path))?;
        report.set_aside.push(aside);
    }
    store.fs.sync_dir(&store.dir).map_err(Error::io("sync", &store.dir))
}

/// Removes the oldest torn tails without a whole batch until at most [`KEPT`] torn tails are left, and likewise the oldest tables that were never
/// finished. The tail that this open has set aside stays.
pub(super) fn bound_aside(store: &TableStore, version: &Version, report: &mut RecoveryReport) -> Result<()> {
    if let Some(torn) = report.torn.as_ref().and_then(|torn| torn.kept.as_ref()) {
        // A file that cannot be read is kept too.
        let is_empty = |path: &Path, number| path != torn && !wal::may_hold_batches(&*store.fs, path, number);
        bound(store, |number| wal::file_name(number) + TAIL_ASIDE, is_empty)?;
    }
    if report.manifest_tail_dropped {
        let is_quarantined = |number| version.quarantined().iter().any(|table| table.number == number);
        let is_unfinished = |path: &Path, number| {
            let opened = || Table::open(&store.tables, number, Some(path.to_path_buf()));
            !is_quarantined(number) && matches!(opened(), Err(Error::Corruption { .. }))
        };
        let removed = bound(store, |number| table::file_name(number) + ASIDE, is_unfinished)?;
        report.set_aside.retain(|path| !removed.contains(path));
        report.orphans_removed += removed.len();
    }
    Ok(())
}

/// Removes the oldest of the files `names` for which `is_empty` holds, until at most [`KEPT`] files are left. Returns the removed files.
fn bound(
    store: &TableStore,
    name: impl Fn(u64) -> String,
    is_empty: impl Fn(&Path, u64) -> bool,
) -> Result<Vec<PathBuf>> {
    let names = store.fs.read_dir(&store.dir).map_err(Error::io("list", &store.dir))?;
    let number = |found: &OsString| match FileKind::of(found) {
        FileKind::Aside(number) if **found == *name(number) => Some(number),
        _ => None,
    };
    let mut numbers: Vec<u64> = names.iter().filter_map(number).collect();
    numbers.sort_unstable();
    let (too_many, mut removed) = (numbers.len().saturating_sub(KEPT), Vec::new());
    for number in numbers {
        let path = store.dir.join(name(number));
        if removed.len() < too_many && is_empty(&path, number) {
            store.unlink(&path);
            removed.push(path);
        }
    }
    Ok(removed)
}
