//! Writes the salvaged entries to a new database: one run of tables on the lowest level.

use std::path::Path;
use std::sync::Arc;

use super::keyspaces::FoundKeyspaces;
use crate::compaction::{BOTTOM, OutputSpec, TableStore};
use crate::db::care::new_directory::{make_database, mark_repaired};
use crate::error::{Error, Result};
use crate::fs::FileSystem;
use crate::manifest::{CURRENT, FileNumbers, ManifestState, RunId, Version};
use crate::options::Options;
use crate::types::{Kind, SeqNo, Slice, millis};

/// Turns `dir` into a database of the `entries` that `keyspaces` keeps.
pub(super) fn write(
    fs: &Arc<dyn FileSystem>,
    dir: &Path,
    options: Options,
    keyspaces: &mut FoundKeyspaces<'_>,
    entries: impl Iterator<Item = Result<(Slice, Kind, Slice)>>,
) -> Result<()> {
    let spec = OutputSpec {
        level: BOTTOM,
        table_bytes: options.table_file_bytes,
        filter_bits: f64::from(options.filter_bits_per_key),
    };
    let numbers = Arc::new(FileNumbers::starting_at(1));
    make_database(fs, dir, |fs, dir| {
        mark_repaired(&**fs, dir)?;
        let store = TableStore::new(fs.clone(), dir, options, numbers.clone());
        let is_kept = |entry: &Result<(Slice, Kind, Slice)>| !matches!(entry, Ok((key, ..)) if !keyspaces.keep(key));
        let written = store.write_new(entries.filter(is_kept), 1, spec)?;
        let last_seqno = written.tables.len() as SeqNo;
        // The clock of the new database runs if the database has entries that expire.
        let has_expiring = written.tables.iter().any(|table| table.meta().expiring.count() > 0);
        let clock = if has_expiring { millis(store.options.time_source.now()).max(1) } else { 0 };
        let inconsistent = |what| Error::corruption(&dir.join(CURRENT), 0, what);
        let version = Version::default().apply(&written.as_edit(RunId { level: BOTTOM, run: 1 }));
        let (version, keyspaces) = (version.map_err(inconsistent)?, keyspaces.set().map_err(inconsistent)?);
        let state =
            ManifestState { version: Arc::new(version), last_seqno, keyspaces, clock, ..ManifestState::default() };
        Ok((state, numbers))
    })
}

#[cfg(test)]
mod tests {
    use super::super::manifest::SalvagedManifest;
    use super::*;
    use crate::db::care::Salvage;
    use crate::disk::{Answer, FaultFs, MemFs, Op};
    use crate::manifest::REPAIRED;
    use crate::types::MAX_SEQNO;

    fn entry(key: &str) -> (Slice, Kind, Slice) {
        (Slice::from(key.as_bytes()), Kind::Value, Slice::from(&b"value"[..]))
    }

    #[test]
    fn a_database_whose_sequence_numbers_are_used_up_is_repaired_and_takes_writes_again() {
        // Catches sequence numbers that continue those of a damaged database that has none left.
        let fs: Arc<dyn FileSystem> = Arc::new(MemFs::default());
        let (full, new) = (Path::new("/full"), Path::new("/new"));
        let numbers = Arc::new(FileNumbers::starting_at(1));
        let spec = OutputSpec { level: BOTTOM, table_bytes: u64::MAX, filter_bits: 10.0 };
        make_database(&fs, full, |fs, dir| {
            let store = TableStore::new(fs.clone(), dir, Options::default(), numbers.clone());
            let written = store.write_new([Ok(entry("key"))], MAX_SEQNO, spec)?;
            let version = Version::default().apply(&written.as_edit(RunId { level: BOTTOM, run: 1 })).unwrap();
            let version = Arc::new(version);
            Ok((ManifestState { version, last_seqno: MAX_SEQNO, ..ManifestState::default() }, numbers.clone()))
        })
        .unwrap();
        let open = |dir: &Path| crate::Db::builder(dir).file_system(fs.clone()).open().unwrap();
        assert!(matches!(open(full).insert("other", ""), Err(Error::Full(_))));
        let report = Salvage::open(fs.clone(), full, Options::default()).unwrap().write_to(new).unwrap();
        assert!(report.is_complete(), "{report}");
        assert!(fs.exists(&new.join(REPAIRED)).unwrap());
        let db = open(new);
        db.insert("other", "").unwrap();
        assert_eq!(db.iter().map(|entry| entry.unwrap().0.to_vec()).collect::<Vec<_>>(), [b"key", &b"other"[..]]);
    }

    #[test]
    fn a_read_error_ends_it_before_a_table_is_synced() {
        // Catches a table that is finished and synced although it is going to be removed.
        let fs = FaultFs::new(Arc::new(MemFs::default()));
        fs.set(|event| {
            assert!(event.op != Op::Sync, "{event:?}");
            Answer::Go
        });
        let shared: Arc<dyn FileSystem> = Arc::new(fs);
        let entries = [Ok(entry("key")), Err(Error::Full("of the source".to_owned()))];
        let written = write(
            &shared,
            Path::new("/new"),
            Options::default(),
            &mut FoundKeyspaces::new(&SalvagedManifest::default()),
            entries.into_iter(),
        );
        assert!(matches!(written, Err(Error::Full(_))), "{written:?}");
        assert!(!shared.exists(Path::new("/new")).unwrap());
    }
}
