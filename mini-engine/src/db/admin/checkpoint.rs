//! Makes a checkpoint: a directory that is a database of its own, out of the tables of this one.
//!
//! Everything written so far is flushed: the copy needs tables and no log. Then the directory is made (`new_directory.rs`). Each table
//! gets a further name there, or is copied and synced; the names are synced. Tables never change (rule 14), so both databases can have
//! one file. A compaction may replace a table meanwhile; its file stays as long as this has the table. Hard links as in the checkpoints of
//! RocksDB.

use std::path::Path;
use std::sync::Arc;

use super::new_directory::{check_free, make_database};
use crate::db::background::flush_all;
use crate::db::core::Core;
use crate::error::{Error, Result};
use crate::fs::link_or_copy;
use crate::lock::lock;
use crate::manifest::FileNumbers;
use crate::table::{self, RunTable, Table};

/// Makes `dir` a copy of the database as it is now.
pub(crate) fn checkpoint(core: &Core, dir: &Path) -> Result<()> {
    let fs = &core.store.fs;
    // Asked first: a flush for nothing would be a waste.
    check_free(&**fs, dir)?;
    flush_all(core)?;
    let (state, tables): (_, Vec<_>) = {
        // Both change together, under the manifest's lock.
        let manifest = lock(&core.manifest);
        (manifest.state().clone(), core.view.load().tables().map(RunTable::table).cloned().collect())
    };
    make_database(fs, dir, |dir| {
        link_tables(core, dir, &tables)?;
        // Above the numbers of all tables, so that no later file of the copy takes the name of one.
        let numbers = Arc::new(FileNumbers::starting_at(state.next_file_number));
        Ok((state, numbers))
    })
}

/// Gives the tables names in `dir`, durably.
fn link_tables(core: &Core, dir: &Path, tables: &[Arc<Table>]) -> Result<()> {
    let fs = &core.store.fs;
    for table in tables {
        let name = table::file_name(table.number());
        let (from, to) = (core.dir().join(&name), dir.join(&name));
        link_or_copy(&**fs, || Ok(Arc::clone(&*table.file()?)), &from, &to)?;
    }
    fs.sync_dir(dir).map_err(Error::io("sync", dir))
}
