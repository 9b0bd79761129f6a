//! The files that recovery has set aside, and the quarantined tables among them: lists them, and drops a table for good.

use std::path::PathBuf;

use crate::db::core::{Core, fail_on_unwind};
use crate::db::read::QuarantinedTable;
use crate::error::{Error, Result};
use crate::manifest::{FileKind, Version, VersionEdit};

/// The quarantined tables, in the order in which they were found.
pub(crate) fn quarantined(core: &Core) -> Vec<QuarantinedTable> {
    core.view.get().version.quarantined().iter().map(|meta| QuarantinedTable::new(&core.store, meta)).collect()
}

/// Drops table `number`: reads then ignore it. Durable on return. Its file stays, for a salvage. Returns the dropped table.
pub(crate) fn drop_quarantined(core: &Core, number: u64) -> Result<QuarantinedTable> {
    core.check_writable(&core.lock())?;
    let not_quarantined = || Error::InvalidArgument(format!("table {number} is not quarantined"));
    let table = quarantined(core).into_iter().find(|table| table.number == number).ok_or_else(not_quarantined)?;
    let is_quarantined = |version: &Version| match version.quarantined().iter().any(|table| table.number == number) {
        true => Ok(()),
        false => Err(not_quarantined()),
    };
    // Checked under the manifest's lock, where no other edit can come in between, so that a second caller just gets an error.
    let edit = VersionEdit { dropped: vec![number], ..VersionEdit::default() };
    fail_on_unwind(core, || core.install_if(is_quarantined, edit, Vec::new(), |_| {}))?;
    Ok(table)
}

/// A file that recovery could not use and has kept under another name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AsideFile {
    /// The path of the file.
    pub file: PathBuf,
    /// The length of the file in bytes; a file with holes takes less space.
    pub bytes: u64,
    /// Whether the file is a table that is still quarantined: its sound blocks can be salvaged.
    pub is_quarantined: bool,
}

/// The files set aside, by their names.
pub(crate) fn set_aside(core: &Core) -> Result<Vec<AsideFile>> {
    core.check_open()?;
    let (fs, dir) = (&core.store.fs, core.dir());
    let mut names = fs.read_dir(dir).map_err(Error::io("list", dir))?;
    names.sort_unstable();
    let (mut found, quarantined) = (Vec::new(), quarantined(core));
    for name in names.iter().filter(|name| matches!(FileKind::of(name), FileKind::Aside(_))) {
        let file = dir.join(name);
        let bytes = fs.open(&file).and_then(|file| file.len()).map_err(Error::io("read the length of", &file))?;
        found.push(AsideFile { is_quarantined: quarantined.iter().any(|table| table.file == file), file, bytes });
    }
    Ok(found)
}
