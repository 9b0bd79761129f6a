//! Reads and checks all files of the database.

use crate::db::core::Core;
use crate::db::read::quarantined_error;
use crate::error::{Error, Result};
use crate::lock::lock;
use crate::table::TableReport;

/// The result of a verification: the amount of data read, and the problems found.
#[derive(Clone, Debug, Default)]
#[must_use = "damage is in the report, not in the result: see `into_result`"]
#[non_exhaustive]
pub struct VerifyReport {
    /// Tables read.
    pub tables: usize,
    /// Data blocks that are sound.
    pub blocks: u64,
    /// Entries in the sound blocks: all versions in tables, obsolete ones too, and tombstones. This is not the number of keys.
    pub entries: u64,
    /// Tombstones among the entries.
    pub tombstones: u64,
    /// Bytes of the tables' files.
    pub bytes: u64,
    /// The problems: each damaged block of the tables, and the first one of the manifest. Empty for a sound database.
    pub problems: Vec<Error>,
}

impl VerifyReport {
    /// Whether nothing is wrong.
    pub fn is_sound(&self) -> bool {
        self.problems.is_empty()
    }

    /// The report, or the first problem as an error.
    ///
    /// # Errors
    /// The first of the problems.
    pub fn into_result(mut self) -> Result<VerifyReport> {
        if self.problems.is_empty() { Ok(self) } else { Err(self.problems.swap_remove(0)) }
    }
}

/// Verifies the manifest and every table of the current view. A problem in one file or block does not stop the check of the others. The logs are not
/// read again: they were read when the database was opened, and later writes are also in memory.
pub(crate) fn verify(core: &Core) -> Result<VerifyReport> {
    core.check_open()?;
    let mut report = VerifyReport::default();
    report.problems.extend(lock(&core.manifest).check_file().err());
    let view = core.view.get();
    report.problems.extend(view.version.quarantined().iter().map(|meta| quarantined_error(core, meta)));
    for table in view.tables() {
        report.tables += 1;
        report.bytes += table.table().meta().size;
        let TableReport { blocks, entries, tombstones } = table.verify_all(&mut report.problems);
        report.blocks += blocks;
        report.entries += entries;
        report.tombstones += tombstones;
    }
    Ok(report)
}
