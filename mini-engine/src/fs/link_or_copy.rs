//! Second names for files that must not be lost.

use std::path::Path;
use std::sync::Arc;

use super::{File, FileSystem};
use crate::error::{Error, Result};

/// The number of bytes that are copied in one step.
const COPIED_AT_ONCE: usize = 1 << 20;

/// Gives the file `from`, which no longer changes, the additional name `to`: as a hard link, or as a synced copy if links are impossible. For a copy,
/// `open` opens the file. The new name is not synced.
pub(crate) fn link_or_copy(
    fs: &dyn FileSystem,
    open: impl FnOnce() -> Result<Arc<dyn File>>,
    from: &Path,
    to: &Path,
) -> Result<()> {
    let Err(error) = fs.link(from, to) else { return Ok(()) };
    tracing::debug!(file = %from.display(), %error, "no link, so a copy");
    copy(fs, &*open()?, from, to)
}

/// Copies the open file `source`, whose name was `from`, and syncs the copy.
fn copy(fs: &dyn FileSystem, source: &dyn File, from: &Path, to: &Path) -> Result<()> {
    let target = fs.create_new(to).map_err(Error::io("create", to))?;
    let len = source.len().map_err(Error::io("read the length of", from))?;
    let mut buffer = vec![0; COPIED_AT_ONCE.min(usize::try_from(len).unwrap_or(COPIED_AT_ONCE))];
    let mut at = 0;
    while at < len {
        let part = usize::try_from(len - at).unwrap_or(COPIED_AT_ONCE).min(buffer.len());
        let part = buffer.split_at_mut(part).0;
        source.read_exact_at(part, at).map_err(Error::io("read", from))?;
        target.write_all_at(part, at).map_err(Error::io("write", to))?;
        at += part.len() as u64;
    }
    target.sync().map_err(Error::io("sync", to))
}
