//! What single files of a database hold, as lines of text for people: logs, tables, manifests.
//!
//! A file is looked at by itself, wherever it is: no database is opened and nothing is changed. Its number has to be in its
//! name, as the engine gave it, since checksums depend on it; what recovery has put aside (`.aside`) keeps it there.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::fs::FileSystem;
use crate::manifest::{self, ASIDE, FileKind, TAIL_ASIDE};
use crate::metrics::Counters;
use crate::table::{BlockCache, Table, TableCache};
use crate::types::Lines;
use crate::wal;

/// Says what the log at `path` in `fs` holds: each frame with its offset, sequence numbers and operations, and how the log
/// ends. A torn end is told, with the whole frames behind it; it is no error, since a crash leaves one.
///
/// # Errors
/// [`Error::InvalidArgument`] if the name is not a log's; [`Error::Corruption`] with the offset of the damage, after the
/// lines of what comes before it; [`Error::UnsupportedVersion`]; [`Error::Io`].
pub fn log(fs: &Arc<dyn FileSystem>, path: impl AsRef<Path>, lines: &mut Lines<'_>) -> Result<()> {
    let path = path.as_ref();
    match kind(path) {
        Some(FileKind::Log(number)) => wal::dump(&**fs, path, number, lines),
        _ => Err(wrong_name(path, "000012.log")),
    }
}

/// Says what the table at `path` in `fs` holds: its counts and bounds, each data block with its offset and fence, each
/// entry.
///
/// # Errors
/// As of [`log`]; a damaged block is told in its place, and the first is the error that comes after all lines.
pub fn table(fs: &Arc<dyn FileSystem>, path: impl AsRef<Path>, lines: &mut Lines<'_>) -> Result<()> {
    let path = path.as_ref();
    let Some(FileKind::Table(number)) = kind(path) else { return Err(wrong_name(path, "000012.sst")) };
    let counters = Arc::new(Counters::default());
    // Each block is read once.
    let blocks = Arc::new(BlockCache::new(0, counters.clone()));
    let tables = TableCache::new(fs.clone(), PathBuf::new(), blocks, counters, 1);
    Table::open(&tables, number, Some(path.to_path_buf()))?.dump(lines)
}

/// Says what the manifest at `path` in `fs` holds: each edit with its offset and its fields.
///
/// # Errors
/// As of [`log`].
pub fn manifest(fs: &Arc<dyn FileSystem>, path: impl AsRef<Path>, lines: &mut Lines<'_>) -> Result<()> {
    let path = path.as_ref();
    match kind(path) {
        Some(FileKind::Manifest(number)) => manifest::dump(&**fs, path, number, lines),
        _ => Err(wrong_name(path, "MANIFEST-000012")),
    }
}

/// What the name says, of a file put aside what it was before.
fn kind(path: &Path) -> Option<FileKind> {
    let name = path.file_name()?.to_str()?;
    let original = name.strip_suffix(TAIL_ASIDE).or_else(|| name.strip_suffix(ASIDE)).unwrap_or(name);
    Some(FileKind::of(original.as_ref()))
}

fn wrong_name(path: &Path, example: &str) -> Error {
    let what = "its number is in its name, and its checksums depend on that";
    Error::InvalidArgument(format!("{}: expected a name like {example}: {what}", path.display()))
}
