//! The files that recovery has set aside.

use std::path::{Path, PathBuf};

use crate::db::core::Core;
use crate::error::{Error, Result};
use crate::manifest::{ASIDE, FileKind};
use crate::table;

/// A file that recovery could not use and has kept.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AsideFile {
    /// Where it is.
    pub file: PathBuf,
    /// Its length in bytes; with holes, it takes less.
    pub bytes: u64,
    /// Whether it is a table that is still quarantined: what is sound in it can be salvaged.
    pub is_quarantined: bool,
}

/// The files set aside, by their names.
pub(crate) fn set_aside(core: &Core) -> Result<Vec<AsideFile>> {
    core.check_open()?;
    let (fs, dir) = (&core.store.fs, core.dir());
    let mut names = fs.read_dir(dir).map_err(Error::io("list", dir))?;
    names.sort_unstable();
    let mut found = Vec::new();
    for name in names.iter().filter(|name| matches!(FileKind::of(name), FileKind::Aside(_))) {
        let file = dir.join(name);
        let bytes = fs.open(&file).and_then(|file| file.len()).map_err(Error::io("read the length of", &file))?;
        found.push(AsideFile { is_quarantined: is_quarantined(core, &file), file, bytes });
    }
    Ok(found)
}

fn is_quarantined(core: &Core, file: &Path) -> bool {
    let view = core.view.load();
    view.version.quarantined().iter().any(|meta| file.ends_with(table::file_name(meta.number) + ASIDE))
}
