//! Reads everything that the database is made of and checks it.

use std::sync::PoisonError;

use crate::db::core::Core;
use crate::db::read::refusal;
use crate::error::{Error, Result};
use crate::manifest::{self, CURRENT};

/// What a verification read, and what it found wrong.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct VerifyReport {
    /// Tables read.
    pub tables: usize,
    /// Data blocks in the sound ones.
    pub blocks: u64,
    /// Entries in the sound ones: versions and tombstones, more than there are keys.
    pub entries: u64,
    /// Bytes of the sound ones.
    pub bytes: u64,
    /// What is wrong: the first finding of each file. Empty for a sound database.
    pub problems: Vec<Error>,
}

/// Verifies the manifest and every table of the current view. A problem of one file does not keep others from being
/// checked. The logs were read when the database was opened; what came after is in memory too.
pub(crate) fn verify(core: &Core) -> Result<VerifyReport> {
    core.check_open()?;
    let mut report = VerifyReport::default();
    report.problems.extend(verify_manifest(core).err());
    let view = core.view.load_full();
    report.problems.extend(view.version.quarantined().iter().map(|meta| refusal(core, meta)));
    for table in view.tables() {
        report.tables += 1;
        match table.verify() {
            Ok(table) => {
                report.blocks += table.blocks;
                report.entries += table.entries;
                report.bytes += table.bytes;
            }
            Err(error) => report.problems.push(error),
        }
    }
    Ok(report)
}

/// Whether what the files say is what the engine goes by.
fn verify_manifest(core: &Core) -> Result<()> {
    // No edit is written meanwhile.
    let manifest = core.manifest.lock().unwrap_or_else(PoisonError::into_inner);
    let path = core.dir().join(CURRENT);
    let found = manifest::load(&*core.store.fs, core.dir())?;
    let number = found.as_ref().map(|found| found.number);
    if number != Some(manifest.number()) {
        let what = format!("expected a pointer to manifest {}, found {number:?}", manifest.number());
        return Err(Error::corruption(&path, 0, what));
    }
    // After a failed append the file may hold more than was ever in force, or a torn record.
    let differs = found.is_some_and(|found| found.state != *manifest.state() || found.tail_dropped);
    if differs && core.check_usable().is_ok() {
        return Err(Error::corruption(&path, 0, "the manifest does not say what was written to it"));
    }
    Ok(())
}
