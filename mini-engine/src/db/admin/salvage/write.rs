//! Writes what was salvaged to a new database: one run of tables on the lowest level.

use std::path::Path;
use std::sync::Arc;

use crate::compaction::{BOTTOM, OutputSpec, TableStore};
use crate::db::admin::new_directory::make_database;
use crate::error::{Error, Result};
use crate::fs::FileSystem;
use crate::manifest::{CURRENT, FileNumbers, ManifestState, RunId, Version};
use crate::options::Options;
use crate::types::{SeqNo, Slice, check_seqno};

/// Makes `dir` a database of `entries`. New sequence numbers are above `last_seqno`.
pub(super) fn write(
    fs: &Arc<dyn FileSystem>,
    dir: &Path,
    options: Options,
    entries: impl Iterator<Item = Result<(Slice, Slice)>>,
    last_seqno: SeqNo,
) -> Result<()> {
    let spec = OutputSpec {
        level: BOTTOM,
        table_bytes: options.table_file_bytes,
        filter_bits: f64::from(options.filter_bits_per_key),
    };
    let numbers = Arc::new(FileNumbers::starting_at(1));
    make_database(fs, dir, |dir| {
        let store = TableStore::new(fs.clone(), dir, options, numbers.clone());
        let mut failure = Ok(());
        let entries = entries.map_while(|entry| entry.map_err(|error| failure = Err(error)).ok());
        let written = store.write_new(entries, last_seqno + 1, spec)?;
        failure?;
        let last_seqno = last_seqno + written.tables.len() as u64;
        check_seqno(last_seqno)?;
        let version = Version::default().apply(&written.as_edit(RunId { level: BOTTOM, run: 1 }));
        let version = version.map_err(|what| Error::corruption(&dir.join(CURRENT), 0, what))?;
        Ok((ManifestState { version: Arc::new(version), last_seqno, ..ManifestState::default() }, numbers))
    })
}
