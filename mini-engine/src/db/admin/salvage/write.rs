//! Writes what was salvaged to a new database: one run of tables on the lowest level.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::merge::Salvaged;
use crate::compaction::{BOTTOM, Inputs, Limits, OutputSpec, Retention, TableStore, Tombstones};
use crate::db::admin::new_directory::make_database;
use crate::error::{Error, Result};
use crate::fs::FileSystem;
use crate::lock::lock;
use crate::manifest::{CURRENT, FileNumbers, ManifestState, RunId, Version, VersionEdit};
use crate::options::Options;
use crate::types::SeqNo;

/// Makes `dir` a database of `entries`. Sequence numbers go on above `last_seqno` and above those of the entries.
pub(super) fn write(
    fs: &Arc<dyn FileSystem>,
    dir: &Path,
    options: Options,
    entries: Salvaged,
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
        let seen = entries.seen();
        let retention = Retention { snapshots: &[], tombstones: Tombstones::KeepAll };
        let never = AtomicBool::new(false);
        let written = store
            .write(Inputs::without_ranges(vec![entries]), retention, spec, Limits::whole(&never))?
            .unwrap_or_default();
        let run = RunId { level: BOTTOM, run: 1 };
        let edit = VersionEdit {
            added: written.tables.iter().map(|table| (run, table.meta().clone())).collect(),
            ..VersionEdit::default()
        };
        let version = Version::default().apply(&edit);
        let version = version.map_err(|what| Error::corruption(&dir.join(CURRENT), 0, what))?;
        let last_seqno = last_seqno.max(lock(&seen).newest);
        Ok((ManifestState { version: Arc::new(version), last_seqno, ..ManifestState::default() }, numbers))
    })
}
