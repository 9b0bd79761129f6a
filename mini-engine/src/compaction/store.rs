//! Makes, opens and removes tables: sorted inputs in, one durable table out.
//!
//! A table that this hands out is synced and so is its name in the directory, so that a manifest edit may refer to it
//! (rules 4, 6). Whatever fails before that leaves no file behind (rule 8).

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::cache::BlockCache;
use crate::compaction::retention::{Retention, Shadowing};
use crate::error::{Error, Result};
use crate::fs::FileSystem;
use crate::iter::{EntryIter, MergeIter};
use crate::manifest::FileNumbers;
use crate::metrics::Counters;
use crate::options::Options;
use crate::table::{self, Table, TableMeta, TableOptions};

/// A table of a version, opened.
#[derive(Debug, Clone)]
pub(crate) struct OpenTable {
    pub(crate) meta: TableMeta,
    pub(crate) table: Arc<Table>,
}

/// What became of the inputs.
#[derive(Debug)]
pub(crate) enum Written {
    /// They are in this table, which is durable.
    Table(OpenTable),
    /// Nothing of them had to be kept.
    Nothing,
    /// The engine shuts down; no file was left.
    Cancelled,
}

/// Where the tables of one database are made and opened.
#[derive(Debug)]
pub(crate) struct TableStore {
    pub(crate) fs: Arc<dyn FileSystem>,
    pub(crate) dir: PathBuf,
    pub(crate) options: Options,
    pub(crate) numbers: Arc<FileNumbers>,
    pub(crate) cache: Arc<BlockCache>,
    pub(crate) counters: Arc<Counters>,
}

impl TableStore {
    /// Opens a table that the manifest names. A missing file is an error (rule 10).
    pub(crate) fn open(&self, meta: &TableMeta) -> Result<OpenTable> {
        let path = self.path(meta.number);
        if !self.fs.exists(&path).map_err(Error::io("look for", &path))? {
            return Err(Error::corruption(&path, 0, "expected a table that the manifest names, found no such file"));
        }
        let table = Table::open(&*self.fs, &self.dir, meta.number, self.cache.clone(), self.counters.clone())?;
        if table.meta() != meta {
            let what = format!("table: expected {meta:?} as the manifest says, found {:?}", table.meta());
            return Err(Error::corruption(&path, 0, what));
        }
        Ok(OpenTable { meta: meta.clone(), table })
    }

    /// Merges `inputs` into a new table. Inputs with equal entries do not occur: sequence numbers are unique.
    pub(crate) fn write(
        &self,
        inputs: Vec<Box<dyn EntryIter>>,
        retention: Retention<'_>,
        cancel: &AtomicBool,
    ) -> Result<Written> {
        let number = self.numbers.allocate()?;
        let options = TableOptions::at_level(&self.options, 0);
        let mut builder = table::Builder::new(&self.fs, &self.dir, number, options)?;
        // An error drops the builder, which removes the file.
        match copy(inputs, retention, cancel, &mut builder)? {
            Copied::All if builder.is_empty() => return Ok(discard(builder, Written::Nothing)),
            Copied::All => {}
            Copied::Cancelled => return Ok(discard(builder, Written::Cancelled)),
        }
        let meta = builder.finish()?;
        let opened = self.name_and_open(&meta);
        if opened.is_err() {
            self.remove(number);
        }
        opened.map(Written::Table)
    }

    /// Unlinks table `number`, which no version names any more. Readers that have it open keep it (rule 14). A failure
    /// leaves an orphan, which the next open removes.
    pub(crate) fn remove(&self, number: u64) {
        self.unlink(&self.path(number));
    }

    /// Unlinks a file that nothing refers to; a failure is traced.
    pub(crate) fn unlink(&self, path: &Path) {
        if let Err(error) = self.fs.remove(path) {
            tracing::warn!(file = %path.display(), %error, "could not remove an obsolete file");
        }
    }

    fn path(&self, number: u64) -> PathBuf {
        self.dir.join(table::file_name(number))
    }

    /// The file is synced; its name follows. It is opened before any edit names it, so that nothing can fail after.
    fn name_and_open(&self, meta: &TableMeta) -> Result<OpenTable> {
        self.fs.sync_dir(&self.dir).map_err(Error::io("sync", &self.dir))?;
        self.open(meta)
    }
}

/// Removes the file of a table that is not wanted.
fn discard(builder: table::Builder, outcome: Written) -> Written {
    if let Err(error) = builder.abandon() {
        tracing::warn!(%error, "could not remove a table that is not needed");
    }
    outcome
}

enum Copied {
    All,
    Cancelled,
}

fn copy(
    inputs: Vec<Box<dyn EntryIter>>,
    retention: Retention<'_>,
    cancel: &AtomicBool,
    builder: &mut table::Builder,
) -> Result<Copied> {
    let mut merged = MergeIter::new(inputs);
    let mut shadowing = Shadowing::new(retention);
    merged.seek_to_first()?;
    while merged.valid() {
        // Relaxed: a late look at the flag costs time, not correctness.
        if cancel.load(Ordering::Relaxed) {
            return Ok(Copied::Cancelled);
        }
        if shadowing.keeps(merged.key(), merged.seqno(), merged.kind()) {
            builder.add(merged.key(), merged.seqno(), merged.kind(), merged.value())?;
        }
        merged.next()?;
    }
    Ok(Copied::All)
}
