//! Databases of the format that knows no keyspaces: they open, unless they have keys that are stored in another way since.

use std::path::Path;

use super::replay::Replayed;
use crate::error::{Error, Result};
use crate::iter::EntryIter;
use crate::table::TableMeta;
use crate::types::{Shown, is_stored_plain};

/// Fails if a table has such a key.
pub(super) fn check_tables<'a>(dir: &Path, mut tables: impl Iterator<Item = &'a TableMeta>) -> Result<()> {
    tables.try_for_each(|table| check(dir, &table.largest))
}

/// Fails if a replayed log has such a key.
pub(super) fn check_replayed(dir: &Path, replayed: &Replayed) -> Result<()> {
    check_tables(dir, replayed.tables.iter().map(|table| table.meta()))?;
    for frozen in &replayed.memtables {
        let mut entries = frozen.memtable.iter();
        entries.seek_to_last()?;
        check(dir, entries.key())?;
    }
    Ok(())
}

/// Fails if `largest`, the last of some keys, begins with the byte that begins the prefixes of keyspaces.
fn check(dir: &Path, largest: &[u8]) -> Result<()> {
    if is_stored_plain(largest) {
        return Ok(());
    }
    let what = format!(
        "it was made by a version without keyspaces, and has keys that begin with the byte 0xff, which are stored in another way \
         since, the last one {}; the command repair, or Builder::salvage, makes a new database with all of its keys",
        Shown(largest)
    );
    Err(Error::MustBeRepaired { path: dir.to_path_buf(), what })
}
