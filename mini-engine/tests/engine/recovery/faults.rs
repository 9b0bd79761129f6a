//! One failure at each operation of a small workload, and an end at each: what was acknowledged is there afterwards.

use crate::support::*;

/// Pairs of keys that are only ever written together.
const PAIRS: u64 = 5;
const FAULTS: [Fault; 3] = [Fault::Device, Fault::StorageFull, Fault::ShortWrite];

/// For each pair, the values that it may have after a reopen; 0 stands for absent.
type Possible = BTreeMap<u64, Vec<u64>>;

#[derive(Default)]
struct Outcome {
    possible: Possible,
    errors: Vec<Error>,
    /// A write has failed, and not for want of space: from then on the engine must refuse every write and leave the files alone.
    read_only: bool,
}

impl Outcome {
    fn note<T>(&mut self, result: Result<T, Error>) -> Option<T> {
        result.map_err(|error| self.errors.push(error)).ok()
    }

    /// Writes `value` to a pair and notes what that makes possible.
    fn write(&mut self, db: &Db, value: u64, durability: Durability) {
        let pair = value % PAIRS;
        let mut batch = WriteBatch::new();
        for half in ["a", "b"] {
            let key = format!("{half}{pair}");
            if value.is_multiple_of(4) { batch.remove(key) } else { batch.insert(key, value.to_le_bytes()) }.unwrap();
        }
        let shown = if value.is_multiple_of(4) { 0 } else { value };
        let possible = self.possible.entry(pair).or_insert_with(|| vec![0]);
        match db.write(batch, durability) {
            Ok(_) => {
                assert!(!self.read_only, "a write is acknowledged after one that failed");
                *possible = vec![shown];
            }
            Err(error) => {
                // The first failure may or may not have taken effect: the frame may be there, and a worker's failure
                // may come between a write and its sync. A refusal of a read-only engine touches nothing, and neither does
                // one for want of space, unless a sync found none.
                match self.read_only {
                    true => assert!(matches!(error, Error::ReadOnly { .. }), "{error}"),
                    false if is_refusal(&error) => {}
                    false => {
                        possible.push(shown);
                        self.read_only = true;
                    }
                }
                self.errors.push(error);
            }
        }
    }
}

fn is_refusal(error: &Error) -> bool {
    matches!(error, Error::Io { op, source, .. } if *op != "sync" && source.kind() == ErrorKind::StorageFull)
}

fn builder(fs: Arc<dyn FileSystem>, dir: &Path) -> mini_engine::Builder {
    Db::builder(dir).file_system(fs).memtable_bytes(64 << 10).l0_trigger(1)
}

/// Opens, writes, flushes so that a merge follows, closes; goes on after errors as a stubborn caller would.
fn workload(fs: Arc<dyn FileSystem>, dir: &Path) -> Outcome {
    let mut outcome = Outcome::default();
    let Some(db) = outcome.note(builder(fs, dir).open()) else { return outcome };
    for round in 0..3 {
        for n in 1..=6 {
            let durability = if n == 3 { Durability::Synced } else { Durability::Buffered };
            outcome.write(&db, round * 10 + n, durability);
        }
        outcome.note(db.flush());
    }
    outcome.write(&db, 41, Durability::Buffered);
    outcome.note(db.persist(Durability::Synced));
    outcome.write(&db, 42, Durability::Buffered);
    outcome.note(db.close());
    outcome
}

/// Opens what is left with a healthy file system and compares.
fn check(dir: &Path, possible: &Possible, context: &str) {
    let db = builder(Arc::new(StdFs), dir).l0_trigger(100).open().unwrap_or_else(|error| panic!("{context}: {error}"));
    let value = |key: String| match db.get(key).unwrap() {
        Some(value) => u64::from_le_bytes(value[..].try_into().unwrap()),
        None => 0,
    };
    for pair in 0..PAIRS {
        let found = value(format!("a{pair}"));
        assert_eq!(found, value(format!("b{pair}")), "{context}: part of a batch");
        let possible = possible.get(&pair).cloned().unwrap_or_else(|| vec![0]);
        assert!(possible.contains(&found), "{context}: pair {pair} is {found}, expected one of {possible:?}");
    }
    // A merge that took a piece goes on whatever the trigger.
    db.wait_for_compactions().unwrap();
    let report = db.verify().unwrap();
    assert!(report.problems.is_empty(), "{context}: {:?}", report.problems);
    // Nothing half done is left behind.
    wait_for_removals(&db, dir);
    let aside = files(dir, ".aside");
    let count = |end: &str| files(dir, "").iter().filter(|name| name.ends_with(end)).count();
    assert_eq!((count(".log"), files(dir, "MANIFEST").len()), (1, 1), "{context}");
    assert_eq!(files(dir, "CURRENT"), ["CURRENT"], "{context}");
    let torn = db.recovery().torn.is_some() || db.recovery().manifest_tail_dropped;
    assert!(aside.is_empty() || torn, "{context}: {aside:?}");
    assert_eq!(count(".sst"), report.tables, "{context}");
}

/// Whether the engine may go on after this failure without telling its caller: what failed was not needed, or is tried
/// again.
fn is_harmless(failure: &Failure, fault: Fault) -> bool {
    let event = &failure.event;
    let pointer = event.name.contains("MANIFEST") || event.name.contains("CURRENT");
    // What has no space is cut off and written elsewhere: in the next log, the next manifest.
    let is_moved = event.op == Op::Write && fault != Fault::Device && !event.name.contains("CURRENT");
    match failure.thread.as_str() {
        _ if event.op == Op::Remove || (is_moved && !failure.thread.is_empty()) => true,
        // The space of an obsolete log: without it the next one has a file of its own.
        "mini-engine-flush" if event.name.ends_with(".log") => matches!(event.op, Op::Rename | Op::Truncate),
        "mini-engine-flush" => fault != Fault::Device && !pointer,
        "mini-engine-compact" => (fault != Fault::Device || !matches!(event.op, Op::Sync | Op::SyncDir)) && !pointer,
        _ => false,
    }
}

fn operations(run: impl FnOnce(Arc<dyn FileSystem>)) -> u64 {
    let faults = faulty();
    run(Arc::new(faults.clone()));
    faults.mutations()
}

#[test]
fn a_single_error_at_any_operation_surfaces_and_loses_nothing_acknowledged() {
    // Catches an ignored result anywhere on the way from a write to a table, and an acknowledgement that came too
    // early.
    let dir = TempDir::new().unwrap();
    let count = operations(|fs| assert!(workload(fs, dir.path()).errors.is_empty()));
    assert!(count > 60, "only {count} operations");
    let (mut surfaced, mut harmless) = (0, 0);
    for index in 0..count {
        for fault in FAULTS {
            let dir = TempDir::new().unwrap();
            let faults = faulty();
            faults.fail_mutation(index, fault, Repeat::Once);
            let hook = HookFs::over(Arc::new(faults));
            let outcome = workload(hook.arc(), dir.path());
            // Workers and callers take turns as they like: an index may come to lie past the end.
            for failure in hook.failures() {
                let context = format!("operation {index}, {fault:?}, {failure:?}");
                let tolerated = is_harmless(&failure, fault);
                assert!(tolerated || !outcome.errors.is_empty(), "{context}: no error");
                if outcome.errors.is_empty() { harmless += 1 } else { surfaced += 1 }
            }
            check(dir.path(), &outcome.possible, &format!("operation {index}, {fault:?}, {:?}", hook.failures()));
        }
    }
    assert!(surfaced > 40 && harmless > 3, "{surfaced} surfaced, {harmless} harmless");
}

/// A database whose writes are in two logs and in tables that a merge is due for.
fn unclean(dir: &Path) -> Possible {
    let mut outcome = Outcome::default();
    let hook = HookFs::new();
    let db = builder(hook.arc(), dir).l0_trigger(100).open().unwrap();
    for value in [1, 2, 3] {
        outcome.write(&db, value, Durability::Buffered);
        db.flush().unwrap();
    }
    outcome.write(&db, 13, Durability::Synced);
    hook.fail(Op::Create, ".sst", ErrorKind::StorageFull);
    db.flush().unwrap_err();
    outcome.write(&db, 14, Durability::Buffered);
    outcome.write(&db, 16, Durability::Buffered);
    drop(db);
    assert_eq!(files(dir, ".log").len(), 2);
    outcome.possible
}

#[test]
fn an_error_or_an_end_at_any_operation_of_recovery_loses_nothing() {
    // Catches a recovery that removes a log before what it replayed from it is durable.
    let original = TempDir::new().unwrap();
    let possible = unclean(original.path());
    let dir = copy(original.path());
    let count = operations(|fs| drop(builder(fs, dir.path()).l0_trigger(100).open().unwrap()));
    assert!(count >= 15, "only {count} operations");
    for index in 0..count {
        for (fault, repeat) in
            FAULTS.map(|fault| (fault, Repeat::Once)).into_iter().chain([(Fault::Device, Repeat::FromThenOn)])
        {
            let dir = copy(original.path());
            let faults = faulty();
            faults.fail_mutation(index, fault, repeat);
            let hook = HookFs::over(Arc::new(faults));
            let opened = builder(hook.arc(), dir.path()).l0_trigger(100).open();
            let context = format!("operation {index}, {fault:?}, {repeat:?}, {:?}", hook.failures());
            let harmless = hook.failures().iter().all(|failure| failure.event.op == Op::Remove);
            assert_eq!(opened.is_ok(), harmless, "{context}: {:?}", opened.err());
            drop(opened);
            check(dir.path(), &possible, &context);
        }
    }
}

#[test]
fn a_read_error_at_any_point_is_an_error_and_never_a_wrong_answer() {
    // Catches rule 9: a block that cannot be read taken for one without the key, so that an older value shows.
    let dir = TempDir::new().unwrap();
    let possible = unclean(dir.path());
    drop(builder(Arc::new(StdFs), dir.path()).l0_trigger(100).open().unwrap());
    let read = |fs: Arc<dyn FileSystem>| -> Result<Vec<(Vec<u8>, Vec<u8>)>, Error> {
        let db = builder(fs, dir.path()).l0_trigger(100).cache_bytes(0).open()?;
        let mut all = Vec::new();
        for pair in 0..PAIRS {
            let key = format!("a{pair}");
            if let Some(value) = db.get(&key)? {
                all.push((key.into_bytes(), value.to_vec()));
            }
        }
        for entry in db.iter().rev() {
            all.push(entry.map(|(key, value)| (key.to_vec(), value.to_vec()))?);
        }
        Ok(all)
    };
    let faults = faulty();
    let expected = read(Arc::new(faults.clone())).unwrap();
    let count = faults.reads();
    assert!(count > 30, "only {count} reads");
    let mut failed = 0;
    for index in 0..count {
        let faults = faulty();
        faults.fail_read(index, Fault::Device, Repeat::Once);
        match read(Arc::new(faults)) {
            Ok(found) => assert_eq!(found, expected, "read {index}"),
            Err(error) => {
                assert!(matches!(error, Error::Io { .. }), "read {index}: {error}");
                failed += 1;
            }
        }
    }
    assert!(failed > 20, "{failed} of {count} reads failed");
    check(dir.path(), &possible, "after read errors");
}
