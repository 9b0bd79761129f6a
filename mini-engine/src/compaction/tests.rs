use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use fastskip::Op;

use super::*;
use crate::disk::{Fault, FaultFs, Repeat};
use crate::error::{Error, Result};
use crate::fs::{FileSystem, StdFs};
use crate::iter::EntryIter;
use crate::manifest::{FileNumbers, KeyspaceSet, RunId, Version, VersionEdit};
use crate::memtables::LoggedMemtable;
use crate::options::{Compression, MemtableKind, Options};
use crate::table::{OpenRun, RunTable, Table, TableMeta};
use crate::types::{MAX_SEQNO, RangeTombstone, SeqNo};
use proof::TempDir;

fn store(fs: Arc<dyn FileSystem>, dir: &Path) -> TableStore {
    let options = Options::default().l0_trigger(1).compression(Compression::None).cache_bytes(0);
    TableStore::new(fs, dir, options, Arc::new(FileNumbers::starting_at(1)))
}

/// A memtable of values: each key is given with its sequence number.
fn memtable<K: AsRef<str>>(entries: &[(K, SeqNo)]) -> LoggedMemtable {
    let memtable = LoggedMemtable::new(MemtableKind::SkipList, 1, 1 << 16).unwrap();
    for (key, seqno) in entries {
        let put = [Op::Put { key: key.as_ref().as_bytes(), value: &[b'v'; 100] }];
        memtable.table.reserve(&put).unwrap().apply(*seqno);
    }
    memtable
}

fn table<K: AsRef<str>>(store: &TableStore, entries: &[(K, SeqNo)]) -> Arc<Table> {
    write(store, vec![memtable(entries).iter()]).unwrap()
}

/// A retention of all tombstones, without snapshots.
const KEEP: Retention<'_> = Retention { snapshots: &[], instants: &[], tombstones: Tombstones::KeepAll };

fn write<I: EntryIter>(store: &TableStore, inputs: Vec<I>) -> Result<Arc<Table>> {
    let (inputs, cancel) = (Inputs::without_ranges(inputs), AtomicBool::new(false));
    let written = store.write(inputs, KEEP, OutputSpec::flush(10.0), Limits::whole(&cancel))?;
    let mut written = written.expect("not cancelled");
    assert_eq!(written.tables.len(), 1);
    Ok(written.tables.remove(0))
}

fn version(tables: &[Arc<Table>]) -> Version {
    let added = tables.iter().map(|open| (RunId::LEVEL_0, open.meta().clone())).collect();
    Version::default().apply(&VersionEdit { added, ..VersionEdit::default() }).unwrap()
}

fn context<'a>(
    store: &'a TableStore,
    version: &'a Version,
    in_progress: &'a InProgress,
    keyspaces: &'a KeyspaceSet,
) -> Context<'a> {
    Context {
        version,
        options: &store.options,
        in_progress,
        is_scanned_often: false,
        is_tight: false,
        keyspaces,
        instant: 0,
    }
}

/// The plan that compacts all tables of level 0, given newest first in `tables`, down to the deepest level.
fn rewrite_of(store: &TableStore, tables: &[Arc<Table>]) -> Plan {
    let (version, in_progress) = (version(tables), InProgress::default());
    pick(&context(store, &version, &in_progress, &KeyspaceSet::default()), Work::Any).expect("a plan")
}

/// The next compaction of `version`, and its inputs, which are among `open`.
fn next(store: &TableStore, version: &Version, open: &[Arc<Table>]) -> Option<(Plan, Vec<OpenRun>)> {
    let in_progress = InProgress::default();
    let plan = pick(&context(store, version, &in_progress, &KeyspaceSet::default()), Work::Any)?;
    let listed: Vec<RunTable> = version.tables().map(|meta| RunTable::new(opened(open, meta), meta)).collect();
    let inputs = inputs(&plan, &listed);
    Some((plan, inputs))
}

fn opened<'a>(open: &'a [Arc<Table>], meta: &TableMeta) -> &'a Arc<Table> {
    open.iter().find(|table| table.number() == meta.number).unwrap()
}

fn outputs(store: &TableStore) -> (OutputSizes, f64) {
    (OutputSizes::of(&store.options, &Version::default()), 10.0)
}

fn run_on(store: &TableStore, plan: &Plan, tables: &[Arc<Table>], cancel: bool) -> Result<Option<job::Done>> {
    let tables: Vec<RunTable> = tables.iter().map(|table| RunTable::new(table, table.meta())).collect();
    run(store, plan, outputs(store), &inputs(plan, &tables), (&[], &[]), &AtomicBool::new(cancel))
}

/// The tables that `plan` names.
fn inputs(plan: &Plan, tables: &[RunTable]) -> Vec<OpenRun> {
    let named = |&number: &u64| tables.iter().find(|table| table.number() == number).unwrap().clone();
    plan.inputs.iter().map(|input| OpenRun::new(input.tables.iter().map(named))).collect()
}

fn files(dir: &TempDir) -> usize {
    std::fs::read_dir(dir.path()).unwrap().count()
}

#[test]
fn a_compaction_names_its_inputs_and_its_outputs_and_touches_nothing_else() {
    // Catches an edit that misses an input: its shadowed versions would come back.
    let dir = TempDir::new().unwrap();
    let store = store(Arc::new(StdFs), dir.path());
    let tables = [table(&store, &[("a", 5), ("c", 6)]), table(&store, &[("a", 3), ("b", 4)])];
    let plan = rewrite_of(&store, &tables);
    let newer = table(&store, &[("z", 9)]);
    let done = run_on(&store, &plan, &tables, false).unwrap().expect("not cancelled");
    assert_eq!(done.outputs.len(), 1);
    let output = done.outputs[0].meta();
    assert_eq!((output.entries, output.min_seqno, output.max_seqno), (3, 4, 6));
    let mut all = vec![newer.clone()];
    all.extend(tables.iter().cloned());
    let after = version(&all).apply(&done.edit).unwrap();
    assert_eq!(after.tables().map(|meta| meta.number).collect::<Vec<_>>(), [newer.meta().number, output.number]);
    assert_eq!(after.level(7).count(), 1);
    let read: u64 = tables.iter().map(|open| open.meta().size).sum();
    assert_eq!((done.read_bytes(), done.written_bytes()), (read, output.size));
    assert_eq!((done.edit.stats.levels[0].read, done.edit.stats.levels[7].arrived), (read, read));
    assert_eq!(
        done.obsolete.iter().map(|table| table.number()).collect::<Vec<_>>(),
        tables.iter().map(|open| open.meta().number).collect::<Vec<_>>()
    );
    assert_eq!(files(&dir), 4);
}

#[test]
fn tables_that_overlap_nothing_are_moved_without_being_read() {
    // Catches a load in key order that is rewritten on each level, and a move that unlinks the moved table.
    let dir = TempDir::new().unwrap();
    let mut store = store(Arc::new(StdFs), dir.path());
    store.options = store.options.table_file_bytes(1024);
    let tables = [table(&store, &[("c", 5), ("d", 6)]), table(&store, &[("a", 3), ("b", 4)])];
    let plan = rewrite_of(&store, &tables);
    let reads = store.counters.block_reads.get();
    let done = run_on(&store, &plan, &tables, false).unwrap().expect("not cancelled");
    assert!(done.outputs.is_empty() && done.obsolete.is_empty());
    assert_eq!((done.read_bytes(), done.written_bytes(), store.counters.block_reads.get()), (0, 0, reads));
    let after = version(&tables).apply(&done.edit).unwrap();
    let numbers: Vec<u64> = after.level(7).map(|meta| meta.number).collect();
    assert_eq!((numbers, after.runs(7).len(), after.level(0).count()), (vec![2, 1], 1, 0));
}

#[test]
fn outputs_are_cut_at_their_size_and_never_between_versions_of_a_key() {
    // Catches a key with versions in two tables of a run, of which a read searches only one; and a size that is ignored.
    let dir = TempDir::new().unwrap();
    let store = store(Arc::new(StdFs), dir.path());
    let entries: Vec<(String, SeqNo)> =
        (0..60u64).flat_map(|n| (0..7).map(move |version| (format!("key{n:02}"), n * 10 + version))).collect();
    let memtable = memtable(&entries);
    let every: Vec<SeqNo> = (0..600).collect();
    let retention = Retention { snapshots: &every, instants: &[], tombstones: Tombstones::KeepAll };
    let inputs = Inputs::without_ranges(vec![memtable.iter()]);
    let spec = OutputSpec { level: 7, table_bytes: 2048, filter_bits: 10.0 };
    let written =
        store.write(inputs, retention, spec, Limits::whole(&AtomicBool::new(false))).unwrap().expect("not cancelled");
    assert!(written.tables.len() > 5, "{} tables", written.tables.len());
    assert_eq!(written.entry_bytes, entries.len() as u64 * 105);
    let added = written.tables.iter().map(|open| (RunId { level: 7, run: 1 }, open.meta().clone())).collect();
    let version = Version::default().apply(&VersionEdit { added, ..VersionEdit::default() }).unwrap();
    assert_eq!(version.tables().map(|meta| meta.entries).sum::<u64>(), entries.len() as u64);
}

#[test]
fn rule_8_a_failed_write_leaves_no_output_at_any_step() {
    // Catches a partial output that keeps its space after the disk was full.
    let dir = TempDir::new().unwrap();
    let faults = FaultFs::new(Arc::new(StdFs));
    let store = store(Arc::new(faults.clone()), dir.path());
    let input = table(&store, &[("a", 1), ("b", 2)]);
    let before = faults.mutations();
    write(&store, vec![input.iter_uncached()]).unwrap();
    let steps = faults.mutations() - before;
    assert!(steps >= 4, "create, write, sync and the directory's sync, not {steps}");
    let files_before = files(&dir);
    for step in 0..steps {
        for fault in [Fault::Device, Fault::StorageFull, Fault::ShortWrite] {
            faults.fail_mutation(faults.mutations() + step, fault, Repeat::Once);
            let error = write(&store, vec![input.iter_uncached()]).unwrap_err();
            assert!(matches!(error, Error::Io { .. }), "{error}");
            assert_eq!(files(&dir), files_before, "step {step}, {fault:?}");
        }
    }
}

#[test]
fn rule_9_a_compaction_that_cannot_read_an_input_leaves_everything_as_it_was() {
    // Catches a compaction that treats an unreadable block as the end of its input.
    let dir = TempDir::new().unwrap();
    let store = store(Arc::new(StdFs), dir.path());
    let tables = [table(&store, &[("a", 3)]), table(&store, &[("a", 1), ("b", 2)])];
    let path = dir.path().join(crate::table::file_name(tables[1].meta().number));
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[3] ^= 0x20;
    std::fs::write(&path, &bytes).unwrap();
    let error = run_on(&store, &rewrite_of(&store, &tables), &tables, false).unwrap_err();
    assert!(matches!(&error, Error::Corruption { file, .. } if *file == path), "{error}");
    assert_eq!(files(&dir), 2);
}

#[test]
fn a_cancelled_flush_leaves_no_output() {
    // Catches a shutdown that waits for a flush although the log still exists, or a cancelled flush that leaves its file.
    let dir = TempDir::new().unwrap();
    let store = store(Arc::new(StdFs), dir.path());
    let input = table(&store, &[("a", 3)]);
    let (inputs, cancel) = (Inputs::without_ranges(vec![input.iter_uncached()]), AtomicBool::new(true));
    assert!(store.write(inputs, KEEP, OutputSpec::flush(10.0), Limits::whole(&cancel)).unwrap().is_none());
    assert_eq!(files(&dir), 1);
}

/// A table of 64 keys with these versions.
fn table_of_64(store: &TableStore, first: SeqNo) -> Arc<Table> {
    let entries: Vec<(String, SeqNo)> = (0..64).map(|n| (format!("key{n:02}"), first + n)).collect();
    table(store, &entries)
}

#[test]
fn a_compaction_that_is_told_to_stop_hands_over_its_share() {
    // Catches a shutdown that discards the work of a compaction, so that short-lived processes never finish one, and a shutdown that waits for all of
    // it.
    let dir = TempDir::new().unwrap();
    let store = store(Arc::new(StdFs), dir.path());
    let tables = [table_of_64(&store, 100), table_of_64(&store, 1)];
    let mut version = version(&tables);
    let mut open: Vec<Arc<Table>> = tables.to_vec();
    let mut pieces = 0;
    while let Some((plan, inputs)) = next(&store, &version, &open) {
        let done =
            run(&store, &plan, outputs(&store), &inputs, (&[], &[]), &AtomicBool::new(true)).unwrap().expect("a share");
        assert!(done.edit.pointers.len() <= 1);
        assert_eq!(done.edit.pointers_done.is_empty(), pieces == 0);
        version = version.apply(&done.edit).unwrap();
        open.extend(done.outputs);
        pieces += 1;
        assert!(pieces <= 17, "{version:?}");
    }
    assert!(pieces >= 10, "{pieces} pieces of one part in 16 each");
    assert!(version.pointers().is_empty() && !version.tables().any(|table| table.narrowed), "{version:?}");
    assert_eq!((version.level(0).count(), version.tables().map(|table| table.entries).sum::<u64>()), (0, 64));
    assert_eq!(files(&dir), 2 + pieces);
}

#[test]
fn a_compaction_ends_its_piece_with_a_full_table() {
    // Catches a compaction that takes as much space as its inputs, pieces that leave crumbs, and statistics that count bytes that were not read, or
    // count them twice.
    let dir = TempDir::new().unwrap();
    let mut store = store(Arc::new(StdFs), dir.path());
    store.options = store.options.table_file_bytes(1024).block_bytes(512).max_compaction_bytes(2048);
    let tables = [table_of_64(&store, 100), table_of_64(&store, 1)];
    let plan = rewrite_of(&store, &tables);
    let done = run_on(&store, &plan, &tables, false).unwrap().expect("not cancelled");
    assert_eq!(done.outputs.len(), 2);
    assert!(done.outputs.iter().all(|open| open.meta().size >= 1024));
    let inputs: Vec<u64> = tables.iter().map(|open| open.meta().number).collect();
    assert_eq!(done.edit.removed, [(0, inputs[0]), (0, inputs[1])]);
    assert!(done.obsolete.is_empty());
    let next = &done.edit.pointers[0].from;
    assert!(done.outputs.iter().all(|open| open.meta().largest < *next));
    let narrowed: Vec<&(RunId, TableMeta)> = done.edit.added.iter().filter(|(_, meta)| meta.narrowed).collect();
    assert_eq!(narrowed.iter().map(|(_, meta)| meta.number).collect::<Vec<_>>(), inputs);
    assert!(narrowed.iter().all(|(run_id, meta)| *run_id == RunId::LEVEL_0 && meta.smallest == *next));
    let all: u64 = tables.iter().map(|open| open.meta().size).sum();
    assert!(done.read_bytes() > all / 8 && done.read_bytes() < all / 2, "{} of {all}", done.read_bytes());
}

#[test]
fn a_compaction_of_nothing_but_dead_tombstones_has_no_output() {
    // Catches an empty table in the version, or a compaction that fails for ever because it has no output.
    let dir = TempDir::new().unwrap();
    let store = store(Arc::new(StdFs), dir.path());
    let tombstones = |key: &str, seqno| {
        let memtable = memtable::<&str>(&[]);
        memtable.table.reserve(&[Op::Delete { key: key.as_bytes() }]).unwrap().apply(seqno);
        write(&store, vec![memtable.iter()]).unwrap()
    };
    let tables = [tombstones("a", 2), tombstones("b", 1)];
    let done = run_on(&store, &rewrite_of(&store, &tables), &tables, false).unwrap().expect("not cancelled");
    assert!(done.outputs.is_empty());
    assert_eq!((done.edit.added.len(), done.edit.removed.len()), (0, 2));
    assert_eq!(files(&dir), 2);
}

#[test]
fn rule_10_a_table_that_is_missing_or_not_the_one_named_is_an_error() {
    // Catches a version that is opened without a table, or with another file in its place.
    let dir = TempDir::new().unwrap();
    let store = store(Arc::new(StdFs), dir.path());
    let open = table(&store, &[("b", 3), ("c", 4)]);
    let mut other = open.meta().clone();
    other.entries += 1;
    assert!(matches!(Table::new(&store.tables, other).check(), Err(Error::Corruption { .. })));
    // The first key of a narrowed table may be above that of its file, but not below; for any other table the two are equal.
    let from =
        |narrowed: bool, from: &str| TableMeta { smallest: from.as_bytes().into(), narrowed, ..open.meta().clone() };
    for (meta, is_sound) in
        [(from(true, "b"), true), (from(true, "bx"), true), (from(true, "a"), false), (from(false, "bx"), false)]
    {
        assert_eq!(Table::new(&store.tables, meta.clone()).check().is_ok(), is_sound, "{meta:?}");
    }
    std::fs::remove_file(dir.path().join(crate::table::file_name(open.meta().number))).unwrap();
    assert!(matches!(Table::new(&store.tables, open.meta().clone()).check(), Err(Error::Corruption { .. })));
}

/// A table of level 0 with a value for each key and a range tombstone, all with their numbers.
fn table_with_range(
    store: &TableStore,
    entries: &[(&str, SeqNo)],
    (start, end, seqno): (&str, &str, SeqNo),
) -> Arc<Table> {
    let memtable = memtable(entries);
    memtable.table.reserve(&[Op::Delete { key: start.as_bytes() }]).unwrap().apply(seqno);
    memtable.add_ranges([RangeTombstone { start: start.as_bytes().into(), end: end.as_bytes().into(), seqno }]);
    let inputs = Inputs::of_memtable(&memtable, MAX_SEQNO, KEEP, b"zz").unwrap();
    let limits = AtomicBool::new(false);
    let written = store.write(inputs, KEEP, OutputSpec::flush(10.0), Limits::whole(&limits)).unwrap();
    written.expect("not cancelled").tables.remove(0)
}

#[test]
fn a_range_tombstone_is_cut_at_the_ends_of_outputs_and_pieces() {
    // Catches a range that extends into the next table of its run or out of its piece, and one that ends too early. A snapshot keeps all entries, so
    // that none may be lost.
    let dir = TempDir::new().unwrap();
    let mut store = store(Arc::new(StdFs), dir.path());
    store.options = store.options.table_file_bytes(1024).block_bytes(512).max_compaction_bytes(2048);
    let old = table_of_64(&store, 1);
    let new = table_with_range(&store, &[("key05", 101)], ("key03", "key60x", 100));
    assert_eq!((&*new.meta().smallest, &*new.meta().largest), (&b"key03"[..], &b"key60x"[..]));
    assert_eq!((new.meta().min_seqno, new.meta().max_seqno, new.meta().range_tombstones), (100, 101, 1));
    let tables = [new, old];
    let mut version = version(&tables);
    let mut open: Vec<Arc<Table>> = tables.to_vec();
    while let Some((plan, inputs)) = next(&store, &version, &open) {
        let done =
            run(&store, &plan, outputs(&store), &inputs, (&[70], &[]), &AtomicBool::new(false)).unwrap().unwrap();
        // `apply` checks V3.
        version = version.apply(&done.edit).unwrap();
        open.extend(done.outputs);
        for n in 0..64 {
            let key = format!("key{n:02}");
            let tables =
                version.tables().filter(|meta| *meta.smallest <= *key.as_bytes() && *key.as_bytes() <= *meta.largest);
            let tables: Vec<RunTable> = tables.map(|meta| RunTable::new(opened(&open, meta), meta)).collect();
            let get = |seqno: SeqNo| {
                let hash = crate::codec::key_hash(key.as_bytes());
                let mut found = tables.iter().filter_map(|table| table.get(key.as_bytes(), hash, seqno).unwrap());
                found.next().filter(|found| found.0 == crate::types::Kind::Value).map(|found| found.1)
            };
            assert_eq!(get(70), Some(1 + n), "{key}");
            let expected = if n == 5 { Some(101) } else { Some(1 + n).filter(|_| !(3..=60).contains(&n)) };
            assert_eq!(get(200), expected, "{key}: {version:?}");
        }
        assert!(open.len() < 40, "{version:?}");
    }
    let tables = || version.level(BOTTOM);
    assert!(tables().count() > 4 && tables().filter(|meta| meta.range_tombstones > 0).count() > 3, "{version:?}");
    assert_eq!(version.tables().count(), tables().count());
}
