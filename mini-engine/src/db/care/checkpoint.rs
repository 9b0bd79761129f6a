//! Creates a checkpoint: a directory that is a separate database, made of the tables of this one.
//!
//! Everything written so far is flushed, because the copy needs tables and no log. Then the directory is created (`new_directory.rs`). Each table
//! gets a second name in the new directory (a hard link), or is copied and synced; the names are synced. Tables never change (rule 14), so both
//! databases can share a file. A compaction may replace a table meanwhile; its file is kept as long as the checkpoint holds the table. RocksDB's
//! checkpoints use hard links in the same way.

use std::path::Path;
use std::sync::Arc;

use super::new_directory::{check_free, make_database, mark_repaired};
use crate::compaction::{Inputs, OutputSpec, Retention, TableStore};
use crate::db::background::flush_all;
use crate::db::core::Core;
use crate::error::{Error, Result};
use crate::fs::{FileSystem, link_or_copy};
use crate::lock::lock;
use crate::manifest::{CURRENT, FileNumbers, ManifestState, REPAIRED, RunId};
use crate::table::{self, RunTable, Table};

/// Makes `dir` a copy of the database in its present state.
pub(crate) fn checkpoint(core: &Core, dir: &Path) -> Result<()> {
    let fs = &core.store.fs;
    // Checked first, so that no flush is wasted.
    check_free(&**fs, dir)?;
    flush_all(core)?;
    let (state, tables): (_, Vec<_>) = {
        // Entries that a caller moves to another keyspace after the flush, before it drops the old keyspace, would be missing from both. So a drop
        // waits until a second flush has written the entries that arrived during the first.
        let _undropped = core.keyspaces.hold();
        flush_all(core)?;
        // The view and the manifest change together, under the manifest's lock.
        let manifest = lock(&core.manifest);
        (manifest.state().clone(), core.view.get().tables().map(RunTable::table).cloned().collect())
    };
    make_database(fs, dir, |fs, dir| {
        link_tables(&**fs, core.dir(), dir, &tables)?;
        // Numbers above those of all tables, so that no later file of the copy gets the name of a table.
        let numbers = Arc::new(FileNumbers::starting_at(state.next_file_number));
        Ok((state, numbers))
    })
}

/// Makes `dir` a copy of the database at the moment of a reader, which must not move meanwhile. The writes that the reader has in memory become tables
/// of the copy.
pub(crate) fn checkpoint_moment(core: &Core, dir: &Path) -> Result<()> {
    core.check_open()?;
    let (state, view) = (lock(&core.manifest).state().clone(), core.view.get());
    let tables: Vec<_> = view.tables().map(RunTable::table).cloned().collect();
    make_database(&core.store.fs, dir, |fs, dir| {
        link_tables(&**fs, core.dir(), dir, &tables)?;
        let numbers = Arc::new(FileNumbers::starting_at(state.next_file_number));
        let store = TableStore::new(fs.clone(), dir, core.store.options.clone(), numbers.clone());
        store.set_keyspaces(state.keyspaces.clone());
        let spec = OutputSpec::flush(f64::from(store.options.filter_bits_per_key));
        let mut version = state.version.clone();
        for memtable in view.frozen.iter().rev().map(|frozen| &frozen.memtable).chain([&view.active]) {
            // A refresh that has failed may have left newer ones there.
            let inputs = Inputs::of_memtable(memtable, view.upto, Retention::NEWEST, &version.last_key())?;
            let added = version.apply(&store.write_all(inputs, spec)?.as_edit(RunId::LEVEL_0));
            version = Arc::new(added.map_err(|what| Error::corruption(&dir.join(CURRENT), 0, what))?);
        }
        let clock = core.clock.latest();
        Ok((ManifestState { version, last_seqno: view.upto, clock, ..state }, numbers))
    })
}

/// Links or copies the tables of directory `source` into `dir`, durably, and the mark of a repaired database.
fn link_tables(fs: &dyn FileSystem, source: &Path, dir: &Path, tables: &[Arc<Table>]) -> Result<()> {
    let mark = source.join(REPAIRED);
    if fs.exists(&mark).map_err(Error::io("look for", &mark))? {
        mark_repaired(fs, dir)?;
    }
    for table in tables {
        let name = table::file_name(table.number());
        let (from, to) = (source.join(&name), dir.join(&name));
        link_or_copy(fs, || Ok(Arc::clone(&*table.file()?)), &from, &to)?;
    }
    fs.sync_dir(dir).map_err(Error::io("sync", dir))
}
