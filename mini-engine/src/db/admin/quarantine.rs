//! The quarantined tables: which there are, and giving one up for good.

use crate::db::core::{Core, fail_on_unwind};
use crate::db::read::QuarantinedTable;
use crate::error::{Error, Result};
use crate::manifest::{Version, VersionEdit};

/// The quarantined tables, in the order in which they were found.
pub(crate) fn quarantined(core: &Core) -> Vec<QuarantinedTable> {
    core.view.load().version.quarantined().iter().map(|meta| QuarantinedTable::new(&core.store, meta)).collect()
}

/// Gives up table `number`: reads of its keys show what else there is. Durable on return. Its file stays, for salvage. What was dropped.
pub(crate) fn drop_quarantined(core: &Core, number: u64) -> Result<QuarantinedTable> {
    core.check_writable(&core.lock())?;
    let not_quarantined = || Error::InvalidArgument(format!("table {number} is not quarantined"));
    let table = quarantined(core).into_iter().find(|table| table.number == number).ok_or_else(not_quarantined)?;
    let is_quarantined = |version: &Version| match version.quarantined().iter().any(|table| table.number == number) {
        true => Ok(()),
        false => Err(not_quarantined()),
    };
    // Asked where no other edit can come between: a second caller is refused, and not taken for a broken manifest.
    let edit = VersionEdit { dropped: vec![number], ..VersionEdit::default() };
    fail_on_unwind(core, || core.install_if(is_quarantined, edit, Vec::new(), |_| {}))?;
    Ok(table)
}
