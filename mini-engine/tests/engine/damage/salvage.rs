//! Salvage: the contents of a new database that was made from a damaged one. Each file of a database of 300 tables is removed, truncated, or has a
//! bit flipped.

use crate::support::*;
use proof::damage::Damage;
use proof::environment::step;

const NEW: &str = "/new";

/// All written values of each key, the newest last; `None` for a removal.
type History = BTreeMap<String, Vec<Option<String>>>;

/// Bytes of a file that hold entries: a data block, a frame.
struct Piece {
    bytes: Range<u64>,
    keys: BTreeSet<String>,
}

/// A database and its contents.
struct Original {
    disk: Disk,
    history: History,
    now: Texts,
    files: BTreeMap<PathBuf, Vec<Piece>>,
}

/// Text that hardly compresses.
fn noise(random: &mut Random) -> String {
    (0..1 + random.index(4)).map(|_| format!("{:016x}", random.next())).collect()
}

fn shared(fs: MemFs) -> Arc<dyn FileSystem> {
    Arc::new(fs)
}

fn on(disk: &Disk) -> Arc<dyn FileSystem> {
    shared(MemFs::on(disk.clone()))
}

impl Original {
    /// Keys are written, overwritten and removed over many levels; the last writes are in logs.
    fn make(keys: u64, writes: u64) -> Original {
        let fs = Arc::new(MemFs::default());
        let builder = Db::builder(DB)
            .memtable_bytes(64 << 10)
            .table_file_bytes(1 << 10)
            .block_bytes(512)
            .partition_bytes(128)
            .level1_bytes(64 << 10)
            .compression_per_level([Compression::None, Compression::Lz4, Compression::Zstd { level: 1 }]);
        let db = builder.file_system(fs.clone()).open().unwrap();
        let (mut random, mut history) = (Random(7), History::new());
        for n in 0..writes {
            let mut batch = WriteBatch::new();
            for _ in 0..4 {
                let key = format!("key{:05}", random.below(keys));
                let value = (!random.one_in(4)).then(|| noise(&mut random));
                match &value {
                    Some(value) => batch.insert(&key, value).unwrap(),
                    None => batch.remove(&key).unwrap(),
                }
                history.entry(key).or_default().push(value);
            }
            db.write(batch, if n % 3 == 0 { Durability::Synced } else { Durability::Buffered }).unwrap();
            if n % 400 == 0 {
                db.flush().unwrap();
            }
            if n + 30 == writes {
                db.flush().unwrap();
                db.wait_for_compactions().unwrap();
            }
        }
        db.persist(Durability::Synced).unwrap();
        drop(db);
        let newest = |(key, values): (&String, &Vec<Option<String>>)| Some((key.clone(), values.last()?.clone()?));
        let now = history.iter().filter_map(newest).collect();
        let disk = fs.disk();
        let files = proof::damage::files(&disk, DB).into_iter();
        let files = files.map(|(path, _)| (path.clone(), pieces(&on(&disk), &path))).collect();
        Original { disk, history, now, files }
    }

    fn len(&self, file: &Path) -> usize {
        self.disk.read(file).unwrap().len()
    }

    /// The keys that have a version in damaged data.
    fn hit(&self, file: &Path, damage: Damage) -> BTreeSet<&str> {
        let is_hit = |piece: &&Piece| match damage {
            Damage::Removed => true,
            Damage::Cut(len) => piece.bytes.end > len as u64,
            Damage::Flip(at) | Damage::Zeros(at) => piece.bytes.contains(&(at as u64)),
        };
        self.files[file].iter().filter(is_hit).flat_map(|piece| &piece.keys).map(String::as_str).collect()
    }

    /// The keys for which salvage finds anything other than the newest value.
    fn changed(&self, found: &Texts) -> Vec<&String> {
        match found == &self.now {
            true => Vec::new(),
            false => self.history.keys().filter(|key| found.get(*key) != self.now.get(*key)).collect(),
        }
    }

    /// Checks that salvage finds everything outside of `hit`, and no invented value within it. Returns the keys that changed.
    fn check(&self, found: &Texts, hit: &BTreeSet<&str>, what: &str) -> Vec<&String> {
        let changed = self.changed(found);
        for key in &changed {
            assert!(hit.contains(key.as_str()), "{what}: {key}");
            let found = found.get(*key);
            assert!(found.is_none() || self.history[*key].iter().any(|was| was.as_ref() == found), "{what}: {key}");
        }
        // There is no invented key: each found key is unchanged, or one of those that changed.
        let same = found.len() - changed.iter().filter(|key| found.contains_key(**key)).count();
        let as_before = self.now.len() - changed.iter().filter(|key| self.now.contains_key(**key)).count();
        assert_eq!(same, as_before, "{what}");
        changed
    }
}

/// The pieces of a table or log that hold entries, according to its dump.
fn pieces(fs: &Arc<dyn FileSystem>, path: &Path) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut part = |part: dump::Part<'_>| {
        if let PartKind::Block | PartKind::Frame = part.kind {
            pieces.push(Piece { bytes: part.offset..part.offset + part.len, keys: BTreeSet::new() });
        }
        let key = part.entry.map(|entry| String::from_utf8(entry.key.to_vec()).unwrap());
        if let Some(key) = key {
            pieces.last_mut().unwrap().keys.insert(key);
        }
        ControlFlow::Continue(())
    };
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("sst") => dump::table(fs, path, &mut part).unwrap(),
        Some("log") => dump::log(fs, path, &mut part).unwrap(),
        _ => {}
    }
    pieces
}

/// The path of the newest file whose name contains `part`.
fn file_of(fs: &dyn FileSystem, part: &str) -> PathBuf {
    paths_on(fs, part).pop().unwrap()
}

fn repair(fs: &Arc<dyn FileSystem>) -> (SalvageReport, Texts) {
    let report = Db::builder(DB).file_system(fs.clone()).salvage().unwrap().write_to(NEW).unwrap();
    let new = Db::builder(NEW).file_system(fs.clone()).create_if_missing(false).open().unwrap();
    assert!(new.verify().unwrap().problems.is_empty());
    assert!(new.recovery().findings().is_empty());
    let found = texts(&new);
    assert_eq!(report.keys, found.len() as u64);
    (report, found)
}

#[test]
fn after_any_damage_of_a_single_file_all_that_is_outside_of_it_is_in_the_new_database() {
    // Catches a damaged block that costs its whole table, a damaged index or header that costs the blocks that it leads to, and removed keys that
    // return.
    let original = Original::make(12_000, 12_000);
    let tables = original.files.keys().filter(|path| path.extension().is_some_and(|kind| kind == "sst")).count();
    assert!(tables >= 300, "{tables} tables");
    let (whole, found) = repair(&on(&original.disk));
    assert!(whole.is_complete() && whole.unknown().is_empty(), "{whole}");
    original.check(&found, &BTreeSet::new(), "whole");
    let mut random = Random(1);
    let mut damages = Vec::new();
    for file in original.files.keys() {
        let len = original.len(file);
        let mut add = |kinds: &[Damage]| damages.extend(kinds.iter().map(|kind| (file, *kind)));
        add(&[Damage::Removed, Damage::Cut(random.index(len)), Damage::Flip(random.index(len))]);
        // Tests all files of other kinds, which are few, and one table in ten.
        if file.extension().is_none_or(|kind| kind != "sst") || random.one_in(10) {
            add(&[0, len - 1].map(Damage::Cut));
            add(&[0, len - 1].map(Damage::Flip));
            (0..10).for_each(|_| add(&[Damage::Flip(random.index(len))]));
        }
    }
    // Whether the damage affects no key.
    let is_lossless = |&(file, kind): &(&PathBuf, Damage)| {
        let what = format!("{} {kind:?}", file.display());
        let (report, found) = repair(&shared(kind.to(&original.disk, file)));
        let hit = original.hit(file, kind);
        let lost = |key: &String| report.lost_keys.iter().any(|lost| lost.contains(key));
        let is_log = file.extension().is_some_and(|kind| kind == "log");
        for key in original.check(&found, &hit, &what) {
            // Salvage must report every key whose newest value it did not find.
            assert!(lost(key) || is_log && !report.lost_writes.is_empty(), "{what}: {key} is not as it was\n{report}");
        }
        hit.is_empty()
    };
    // The step is not a multiple of the number of kinds of damage, so that each kind has its turn.
    let damages: Vec<_> = damages.into_iter().step_by(step(4)).collect();
    let repaired = damages.len();
    let lossless = thread::scope(|scope| {
        let repair_half = |half: &'static usize| {
            let (damages, is_lossless) = (&damages, &is_lossless);
            scope.spawn(move || damages.iter().skip(*half).step_by(2).filter(|case| is_lossless(case)).count())
        };
        [&0, &1].map(repair_half).map(|half| half.join().unwrap()).iter().sum::<usize>()
    });
    println!("{tables} tables, {repaired} repairs, {lossless} of them without any loss");
    assert!(lossless * step(4) > 100, "only {lossless} damages left all entries whole");
}

/// A few keys in a table, in a second table that hides some of them, and in a log.
fn small(fs: &Arc<MemFs>) -> Texts {
    let db = in_memory(fs).l0_trigger(100).open().unwrap();
    for (keys, value) in [(0..6, "old"), (2..4, "new")] {
        keys.for_each(|n| db.insert(format!("key{n}"), value).unwrap());
        db.flush().unwrap();
    }
    db.remove("key0").unwrap();
    db.insert("key5", "newest").unwrap();
    db.persist(Durability::Synced).unwrap();
    texts(&db)
}

#[test]
fn a_new_database_is_whole_or_does_not_open_whenever_its_making_ends() {
    // Catches a partial result that opens as if it were a complete database.
    let fs = Arc::new(MemFs::default());
    let expected = small(&fs);
    let before = fs.disk();
    let mut whole = 0;
    let states: Vec<_> = states_during(&fs, || drop(repair(&(fs.clone() as Arc<dyn FileSystem>)))).collect();
    for (operation, disk) in states {
        for state in [disk.clone(), disk.after_power_cut(3).0] {
            let opened = Db::builder(NEW).create_if_missing(false).file_system(on(&state)).open();
            match opened {
                Ok(db) => {
                    assert_eq!(texts(&db), expected, "after {operation}");
                    whole += 1;
                }
                Err(Error::NotADatabase { .. }) => {
                    let again = on(&state);
                    assert_eq!(repair(&again).1, expected, "again after {operation}");
                    assert!(!again.exists(&incomplete_directory(NEW)).unwrap(), "after {operation}");
                }
                Err(error) => panic!("after {operation}: {error}"),
            }
            let db = Db::builder(DB).file_system(on(&state)).open().unwrap();
            assert_eq!(texts(&db), expected, "the damaged database after {operation}");
        }
    }
    assert!(whole > 0);
    let (mut failed, expected) = (0, before.read(Path::new(DB).join("CURRENT").as_path()).unwrap().to_vec());
    for index in 0.. {
        let inner = MemFs::on(before.clone());
        let faults = FaultFs::new(Arc::new(inner.clone()));
        faults.fail_mutation(index, Fault::StorageFull, Repeat::Once);
        let made = Db::builder(DB).file_system(Arc::new(faults)).salvage().unwrap().write_to(NEW);
        assert_eq!(inner.disk().read(Path::new(DB).join("CURRENT").as_path()).unwrap(), expected);
        match made {
            Ok(_) => break,
            Err(error) => assert!(matches!(error, Error::Io { .. }), "operation {index}: {error}"),
        }
        assert_eq!(inner.read_dir(Path::new("/")).unwrap(), ["db"], "operation {index} left something behind");
        failed += 1;
    }
    assert!(failed > 8, "only {failed} operations could fail");
}

#[test]
fn tables_that_were_compacted_do_not_come_back_and_the_others_do_without_a_manifest() {
    // Catches a removed key that returns from an obsolete table, and a tombstone that is ignored because its level is unknown.
    let fs = Arc::new(MemFs::default());
    let expected = small(&fs);
    fs.remove(&file_of(&*fs, "MANIFEST")).unwrap();
    let (report, found) = repair(&on(&fs.disk()));
    assert_eq!(found, expected);
    assert!(!report.is_complete() && report.manifest.is_none() && report.unknown().len() == 1, "{report}");

    // A table that a compaction has replaced, whose tombstones are dropped, but that was not removed because of an interruption.
    let fs = Arc::new(MemFs::default());
    small(&fs);
    let db = in_memory(&fs).l0_trigger(100).open().unwrap();
    db.flush().unwrap();
    let before = fs.disk();
    db.compact_range(..).unwrap();
    let expected = texts(&db);
    drop(db);
    let mut compacted = paths_on(&MemFs::on(before.clone()), ".sst");
    compacted.retain(|path| !fs.exists(path).unwrap());
    for path in &compacted {
        fs.create_new(path).unwrap().write_all_at(before.read(path).unwrap(), 0).unwrap();
    }
    let back = compacted.len();
    assert!(back > 1, "{compacted:?}");
    let (report, found) = repair(&on(&fs.disk()));
    assert_eq!((found, report.left_out.len()), (expected.clone(), back), "{report}");
    // The edit of the compaction is whole, and the next edit is torn: the manifest still shows that the tables are obsolete.
    let fs = MemFs::on(fs.disk());
    let file = fs.open_write(&file_of(&fs, "MANIFEST")).unwrap();
    file.write_all_at(&[0xff; 8], file.len().unwrap()).unwrap();
    let (report, found) = repair(&on(&fs.disk()));
    assert!(report.manifest.is_none(), "{report}");
    assert_eq!((found, report.left_out.len()), (expected.clone(), back), "{report}");
    // The same holds if the first edit is damaged too.
    file.write_all_at(&[0xff; 16], 32).unwrap();
    let (report, found) = repair(&(Arc::new(fs) as Arc<dyn FileSystem>));
    assert_eq!((found, report.left_out.len()), (expected, back), "{report}");
}

#[test]
fn a_manifest_that_was_cut_between_two_edits_takes_no_table_with_it() {
    // Catches tables that are taken for leftovers because a truncated manifest, whose edits are all whole, does not name them.
    let memory = MemFs::default();
    let fs: Arc<dyn FileSystem> = Arc::new(memory.clone());
    let db = Db::builder(DB).l0_trigger(3).file_system(fs.clone()).open().unwrap();
    for round in 0..12 {
        (0..20).for_each(|n| db.insert(format!("key{:02}", n + round), format!("{round}")).unwrap());
        db.remove(format!("key{round:02}")).unwrap();
        db.flush().unwrap();
    }
    db.wait_for_compactions().unwrap();
    let expected = texts(&db);
    drop(db);
    let disk = memory.disk();
    let manifest = file_of(&memory, "MANIFEST");
    let mut edits = Vec::new();
    let mut part = |part: dump::Part<'_>| {
        edits.extend((part.kind == PartKind::Edit).then_some(part.offset as usize));
        ControlFlow::Continue(())
    };
    dump::manifest(&fs, &manifest, &mut part).unwrap();
    assert!(edits.len() > 12, "{edits:?}");
    // Cuts at all edits but the first: a manifest without any edit is not whole.
    for &edit in &edits[1..] {
        let (report, found) = repair(&shared(Damage::Cut(edit).to(&disk, &manifest)));
        assert_eq!(found, expected, "cut to {edit}: {report}");
        assert!(!report.is_complete(), "cut to {edit}: {report}");
        // An open that quarantines missing files keeps tables that no edit names.
        let fs = shared(Damage::Cut(edit).to(&disk, &manifest));
        let tables = |fs: &Arc<dyn FileSystem>| -> BTreeSet<String> {
            paths_on(&**fs, ".sst").iter().map(|path| path.to_str().unwrap().replace(".aside", "")).collect()
        };
        let before = tables(&fs);
        let opened = Db::builder(DB).file_system(fs.clone()).recovery_mode(RecoveryMode::Quarantine).open();
        drop(opened);
        assert!(tables(&fs).is_superset(&before), "cut to {edit}: {before:?} became {:?}", tables(&fs));
    }
}

#[test]
fn removed_ranges_stay_removed_wherever_their_tombstones_can_be_read() {
    // Catches keys that return from older tables, because a damaged block had only a range tombstone and no entry.
    let fs = Arc::new(MemFs::default());
    let db = in_memory(&fs).l0_trigger(100).open().unwrap();
    (0..60).for_each(|n| db.insert(format!("key{n:02}"), "old").unwrap());
    db.flush().unwrap();
    db.remove_range("key10".."key20").unwrap();
    db.insert("key15", "new").unwrap();
    db.flush().unwrap();
    db.remove_range("key50"..).unwrap();
    db.persist(Durability::Synced).unwrap();
    let expected = texts(&db);
    assert_eq!(expected.len(), 60 - 10 + 1 - 10);
    drop(db);
    assert_eq!(repair(&on(&fs.disk())).1, expected);
    let without_manifest = MemFs::on(fs.disk());
    without_manifest.remove(&file_of(&*fs, "MANIFEST")).unwrap();
    let without_manifest = without_manifest.disk();
    assert_eq!(repair(&on(&without_manifest)).1, expected);
    // Damages every byte of the newer table: keys may return only if the report lists them.
    let (table, mut told) = (file_of(&*fs, ".sst"), 0);
    for at in 0..fs.disk().read(&table).unwrap().len() {
        for disk in [fs.disk(), without_manifest.clone()] {
            let (report, found) = repair(&shared(Damage::Flip(at).to(&disk, &table)));
            let changed = (0..60).map(|n| format!("key{n:02}")).filter(|key| found.get(key) != expected.get(key));
            for key in changed {
                assert!(report.lost_keys.iter().any(|lost| lost.contains(&key)), "byte {at}: {key}\n{report}");
                assert!(report.older_keys > 0 || !found.contains_key(&key), "byte {at}: {report}");
                told += 1;
            }
        }
    }
    assert!(told > 100, "{told}");
}

#[test]
fn a_log_that_cannot_be_read_costs_its_writes_and_not_the_tables() {
    // Catches a database that cannot be salvaged because of one unreadable sector of a log.
    let original = Arc::new(MemFs::default());
    small(&original);
    let mut lost = 0;
    for index in 0.. {
        let inner = MemFs::on(original.disk());
        let faults = FaultFs::new(Arc::new(inner.clone()));
        faults.fail_read(index, Fault::Device, Repeat::Once);
        let builder = Db::builder(DB).file_system(Arc::new(faults.clone()));
        let made = builder.salvage().and_then(|salvage| salvage.write_to(NEW));
        if faults.reads() <= index {
            break;
        }
        let is_of_log = |error: &Error| {
            let Error::Io { path, .. } = error else { return false };
            path.starts_with(DB) && path.extension().is_some_and(|kind| kind == "log")
        };
        let report = match made {
            Ok(report) => report,
            Err(error) => {
                assert!(!is_of_log(&error), "read {index}: {error}");
                continue;
            }
        };
        if report.damage.iter().any(is_of_log) {
            assert!(!report.is_complete() && report.lost_writes.iter().all(|lost| !lost.may_be_torn), "{report}");
            let new = Db::builder(NEW).file_system(Arc::new(inner)).create_if_missing(false).open().unwrap();
            assert_eq!(texts(&new).get("key2").map(String::as_str), Some("new"), "read {index}: {report}");
            lost += 1;
        }
    }
    // Only the open of the log and the read of its length fail; a repeated read succeeds. `unreadable.rs` tests permanent failures.
    assert!(lost >= 2, "{lost}");
}

#[test]
fn the_end_of_a_log_that_a_later_one_records_as_synced_was_not_left_by_a_crash() {
    // Catches damage that is reported as a tear, although a sync of a later log proves that the bytes were whole.
    let fs = Arc::new(MemFs::default());
    let db = in_memory(&fs).open().unwrap();
    ["a", "b"].into_iter().for_each(|key| db.insert(key, "value").unwrap());
    db.persist(Durability::Synced).unwrap();
    let before = fs.disk();
    // The next log may have been made in advance.
    let first = paths_on(&*fs, ".log").remove(0);
    db.flush().unwrap();
    assert_eq!(["c", "d"].map(|key| put(&db, key, "value", Durability::Synced).unwrap()), [3, 4]);
    drop(db);
    // The first log is restored with a damaged end of its last batch, and no manifest marks it as obsolete.
    let mut bytes = before.read(&first).unwrap().to_vec();
    let last = bytes.iter().rposition(|&byte| byte != 0).unwrap();
    bytes[last] ^= 1;
    if fs.exists(&first).unwrap() {
        fs.remove(&first).unwrap();
    }
    fs.create_new(&first).unwrap().write_all_at(&bytes, 0).unwrap();
    fs.remove(&file_of(&*fs, "MANIFEST")).unwrap();
    let (report, found) = repair(&on(&fs.disk()));
    assert_eq!(found.len(), 4, "{report}");
    let lost: Vec<_> = report.lost_writes.iter().filter(|lost| lost.log == first).collect();
    assert!(lost.len() == 1 && !lost[0].may_be_torn, "{report}");
}

#[test]
fn keyspaces_keep_their_names_while_a_manifest_tells_them_and_their_keys_in_any_case() {
    // Catches a keyspace that is lost with its name, keys that get into another keyspace, and a dropped one that comes back despite its recorded
    // drop.
    let (dir, db) = fresh();
    let spaces = ["a", "b", "gone"].map(|name| db.keyspace(name).unwrap());
    for (n, space) in spaces.iter().enumerate() {
        space.insert("in a table", n.to_string()).unwrap();
        db.flush().unwrap();
        space.insert("in the log", n.to_string()).unwrap();
    }
    db.insert([0xff, 1], "default").unwrap();
    db.drop_keyspace("gone").unwrap();
    drop((spaces, db));
    let salvaged = |dir: &Path| {
        let new = TempDir::new().unwrap();
        let report = Db::builder(dir).salvage().unwrap().write_to(new.path().join("new")).unwrap();
        let db = Db::open(new.path().join("new")).unwrap();
        let contents = db.keyspaces().into_iter().map(|name| (name.clone(), keys(&db.keyspace(&name).unwrap())));
        assert_eq!(pairs(db.iter()), [(vec![0xff, 1], b"default".to_vec())]);
        assert_sound(&db);
        (report, contents.collect::<Vec<_>>())
    };
    let named = |names: &[&str]| -> Vec<(String, Vec<String>)> {
        names.iter().map(|name| ((*name).to_owned(), vec!["in a table".to_owned(), "in the log".to_owned()])).collect()
    };
    let (report, contents) = salvaged(dir.path());
    assert!(report.is_complete() && report.keys == 5, "{report}");
    assert_eq!(contents, named(&["a", "b"]));
    let mut of_b = Db::builder(dir.path()).salvage().unwrap().keyspace("b").unwrap().range("in t"..).unwrap();
    assert_eq!(of_b.next().unwrap().unwrap(), (Slice::from(&b"in the log"[..]), Slice::from(&b"1"[..])));
    assert!(of_b.next().is_none());
    drop(of_b);
    let salvage = Db::builder(dir.path()).salvage().unwrap();
    assert_eq!(salvage.keyspaces(), ["a", "b"]);
    assert!(matches!(salvage.keyspace("gone"), Err(Error::NoKeyspace { .. })));
    // The last edit, the drop, is damaged.
    let manifest = the_file(dir.path(), "MANIFEST");
    let sound = flip(&manifest, fs::metadata(&manifest).unwrap().len() as usize - 9);
    let (report, contents) = salvaged(dir.path());
    assert_eq!(contents, named(&["a", "b", "gone"]));
    assert!(!report.is_complete() && report.renamed_keyspaces.is_empty(), "{report}");
    fs::write(&manifest, sound).unwrap();
    // All manifests are removed.
    fs::remove_file(&manifest).unwrap();
    let (report, contents) = salvaged(dir.path());
    assert_eq!(contents, named(&["recovered-1", "recovered-2", "recovered-3"]));
    assert_eq!(report.renamed_keyspaces, ["recovered-1", "recovered-2", "recovered-3"]);
    assert!(report.unknown().iter().any(|unknown| unknown.contains("recovered-2")), "{report}");
}
