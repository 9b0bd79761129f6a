use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tempfile::TempDir;

use super::*;
use crate::cache::BlockCache;
use crate::error::{Error, Result};
use crate::fs::{Fault, FaultFs, FileSystem, Repeat, StdFs};
use crate::iter::EntryIter;
use crate::manifest::{FileNumbers, Version, VersionEdit};
use crate::memtables::LoggedMemtable;
use crate::metrics::Counters;
use crate::options::Options;
use crate::types::SeqNo;

fn store(fs: Arc<dyn FileSystem>, dir: &Path) -> TableStore {
    let counters = Arc::new(Counters::default());
    TableStore {
        fs,
        dir: dir.to_path_buf(),
        options: Options::default().l0_trigger(1),
        numbers: Arc::new(FileNumbers::starting_at(1)),
        cache: Arc::new(BlockCache::new(0, 4096, counters.clone())),
        counters,
    }
}

/// A table of values: each key with its sequence number.
fn table(store: &TableStore, entries: &[(&str, SeqNo)]) -> OpenTable {
    let memtable = LoggedMemtable::new(1, 1 << 16).unwrap();
    for (key, seqno) in entries {
        memtable.table.put(key.as_bytes(), *seqno, &[b'v'; 100]).unwrap();
    }
    write(store, vec![Box::new(memtable.iter())]).unwrap()
}

fn write(store: &TableStore, inputs: Vec<Box<dyn EntryIter>>) -> Result<OpenTable> {
    let retention = Retention { snapshots: &[], drop_tombstones: false };
    match store.write(inputs, retention, &AtomicBool::new(false))? {
        Written::Table(table) => Ok(table),
        other => panic!("expected a table, found {other:?}"),
    }
}

fn files(dir: &TempDir) -> usize {
    std::fs::read_dir(dir.path()).unwrap().count()
}

#[test]
fn a_merge_names_its_inputs_and_its_output_and_touches_nothing_else() {
    // Catches an edit that misses an input: its shadowed versions would come back.
    let dir = TempDir::new().unwrap();
    let store = store(Arc::new(StdFs), dir.path());
    let tables =
        [table(&store, &[("a", 5), ("c", 6)]), table(&store, &[("a", 3), ("b", 4)]), table(&store, &[("z", 1)])];
    let plan = Plan { inputs: vec![tables[0].meta.number, tables[1].meta.number], drop_tombstones: false };
    let merged = run(&store, &plan, &tables, &[], &AtomicBool::new(false)).unwrap().expect("not cancelled");
    let output = merged.output.expect("an output");
    assert_eq!((output.meta.entries, output.meta.min_seqno, output.meta.max_seqno), (3, 4, 6));
    let added = VersionEdit { added: tables.iter().map(|t| (0, t.meta.clone())).collect(), ..VersionEdit::default() };
    let version = Version::default().apply(&added).unwrap().apply(&merged.edit).unwrap();
    let numbers: Vec<u64> = version.tables().map(|meta| meta.number).collect();
    assert_eq!(numbers, [output.meta.number, tables[2].meta.number]);
    assert_eq!(files(&dir), 4);
}

#[test]
fn rule_8_a_failed_write_leaves_no_output_at_any_step() {
    // Catches a partial output that keeps the space it could not get enough of.
    let dir = TempDir::new().unwrap();
    let faults = FaultFs::new(Arc::new(StdFs));
    let store = store(Arc::new(faults.clone()), dir.path());
    let input = table(&store, &[("a", 1), ("b", 2)]);
    let before = faults.mutations();
    write(&store, vec![Box::new(input.table.iter_uncached())]).unwrap();
    let steps = faults.mutations() - before;
    assert!(steps >= 4, "create, write, sync and the directory's sync, not {steps}");
    let files_before = files(&dir);
    for step in 0..steps {
        for fault in [Fault::Device, Fault::StorageFull, Fault::ShortWrite] {
            faults.fail_mutation(faults.mutations() + step, fault, Repeat::Once);
            let error = write(&store, vec![Box::new(input.table.iter_uncached())]).unwrap_err();
            assert!(matches!(error, Error::Io { .. }), "{error}");
            assert_eq!(files(&dir), files_before, "step {step}, {fault:?}");
        }
    }
}

#[test]
fn rule_9_a_merge_that_cannot_read_an_input_leaves_everything_as_it_was() {
    // Catches a merge that takes an unreadable block for the end of its input.
    let dir = TempDir::new().unwrap();
    let store = store(Arc::new(StdFs), dir.path());
    let tables = [table(&store, &[("a", 3)]), table(&store, &[("a", 1), ("b", 2)])];
    let path = dir.path().join(crate::table::file_name(tables[1].meta.number));
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[3] ^= 0x20;
    std::fs::write(&path, &bytes).unwrap();
    let plan = Plan { inputs: tables.iter().map(|t| t.meta.number).collect(), drop_tombstones: true };
    let error = run(&store, &plan, &tables, &[], &AtomicBool::new(false)).unwrap_err();
    assert!(matches!(&error, Error::Corruption { file, .. } if *file == path), "{error}");
    assert_eq!(files(&dir), 2);
}

#[test]
fn a_cancelled_merge_leaves_no_output() {
    // Catches a shutdown that waits for a long merge, or leaves its file.
    let dir = TempDir::new().unwrap();
    let store = store(Arc::new(StdFs), dir.path());
    let tables = [table(&store, &[("a", 3)]), table(&store, &[("a", 1)])];
    let plan = Plan { inputs: tables.iter().map(|t| t.meta.number).collect(), drop_tombstones: true };
    assert!(run(&store, &plan, &tables, &[], &AtomicBool::new(true)).unwrap().is_none());
    assert_eq!(files(&dir), 2);
}

#[test]
fn a_merge_of_nothing_but_dead_tombstones_has_no_output() {
    // Catches an empty table in the version, or a merge that fails for ever because there is none.
    let dir = TempDir::new().unwrap();
    let store = store(Arc::new(StdFs), dir.path());
    let tombstones = |key: &str, seqno| {
        let memtable = LoggedMemtable::new(1, 1 << 16).unwrap();
        memtable.table.delete(key.as_bytes(), seqno).unwrap();
        write(&store, vec![Box::new(memtable.iter())]).unwrap()
    };
    let tables = [tombstones("a", 2), tombstones("b", 1)];
    let plan = Plan { inputs: tables.iter().map(|t| t.meta.number).collect(), drop_tombstones: true };
    let merged = run(&store, &plan, &tables, &[], &AtomicBool::new(false)).unwrap().expect("not cancelled");
    assert!(merged.output.is_none());
    assert_eq!((merged.edit.added.len(), merged.edit.removed.len()), (0, 2));
    assert_eq!(files(&dir), 2);
}

#[test]
fn rule_10_a_table_that_is_missing_or_not_the_one_named_is_an_error() {
    // Catches a version that goes on without a table, or with another file under its name.
    let dir = TempDir::new().unwrap();
    let store = store(Arc::new(StdFs), dir.path());
    let open = table(&store, &[("a", 3)]);
    let mut other = open.meta.clone();
    other.entries += 1;
    assert!(matches!(store.open(&other), Err(Error::Corruption { .. })));
    std::fs::remove_file(dir.path().join(crate::table::file_name(open.meta.number))).unwrap();
    assert!(matches!(store.open(&open.meta), Err(Error::Corruption { .. })));
}
