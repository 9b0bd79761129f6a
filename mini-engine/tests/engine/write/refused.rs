//! Rule 8: a writer that needs space, file handles or a thread gets an error if the resource is missing, and does not wait for ever. Reads go
//! on, and writes are accepted again when the resource is back.

use crate::support::*;

fn small(dir: &TempDir, fs: &FaultFs) -> Builder {
    let builder = Db::builder(dir.path()).file_system(fs.arc()).memtable_bytes(4096).compression(Compression::None);
    builder.l0_trigger(2).l0_slowdown(1000).l0_stop(6)
}

/// The result of `action`, which runs on a thread of its own, so that a hang fails the test.
fn in_time<T: Send + 'static>(what: &str, action: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, is_done) = mpsc::channel();
    thread::spawn(move || done.send(action()));
    is_done.recv_timeout(PATIENCE).unwrap_or_else(|error| panic!("{what}: {error}"))
}

/// Writes keys from `from` on until a write fails. Returns the number of keys then, and the error.
fn fill_up(what: &str, db: &Db, from: u64) -> (u64, Error) {
    let db = db.clone();
    in_time(what, move || {
        let mut n = from;
        loop {
            match db.insert(scattered(n), [7; 400]) {
                Ok(()) => n += 1,
                Err(error) => return (n, error),
            }
        }
    })
}

/// Checks that the database has exactly the keys below `n`.
fn check(what: &str, db: &Db, n: u64) {
    let mut expected: Vec<_> = (0..n).map(scattered).collect();
    expected.sort_unstable();
    let found: Vec<_> = db.iter().map(|entry| entry.unwrap().0.to_vec()).collect();
    assert_eq!(found, expected, "{what}");
}

type Hits = fn(&Event) -> bool;

/// The missing resource, the operations that fail, and their error.
struct Case {
    what: &'static str,
    is_hit: Hits,
    answer: Answer,
}

const NO_SPACE: Answer = Answer::Fail(ErrorKind::StorageFull);
/// EMFILE.
const NO_HANDLE: Answer = Answer::FailOs(24);

const CASES: [Case; 8] = [
    Case { what: "a flush", is_hit: |e| e.is(Op::Write, ".sst") && !on_compaction_thread(), answer: NO_SPACE },
    Case { what: "its sync", is_hit: |e| e.is(Op::Sync, ".sst") && !on_compaction_thread(), answer: NO_SPACE },
    Case { what: "no handle", is_hit: |e| e.is(Op::Create, ".sst") && !on_compaction_thread(), answer: NO_HANDLE },
    Case { what: "the manifest", is_hit: |e| e.is(Op::Write, "MANIFEST"), answer: NO_SPACE },
    Case { what: "the next log", is_hit: |e| e.is(Op::Create, ".log"), answer: NO_SPACE },
    Case { what: "no handle for it", is_hit: |e| e.is(Op::Create, ".log"), answer: NO_HANDLE },
    Case { what: "a compaction", is_hit: |e| e.is(Op::Write, ".sst") && on_compaction_thread(), answer: NO_SPACE },
    Case { what: "no handle", is_hit: |e| e.is(Op::Create, ".sst") && on_compaction_thread(), answer: NO_HANDLE },
];

#[test]
fn rule_8_a_write_that_waits_for_space_or_handles_gets_the_error_and_writes_resume_by_themselves() {
    // Catches a writer that waits until the disk has space, an error without its reason, a refused write that is stored nevertheless, reads that
    // wait too, and writes that stay refused for ever.
    for Case { what, is_hit, answer } in CASES {
        for mapped in [false, true] {
            let dir = TempDir::new().unwrap();
            let fs = if mapped { FaultFs::of_system() } else { unmapped() };
            let db = small(&dir, &fs).open().unwrap();
            db.insert(scattered(0), [7; 400]).unwrap();
            fs.answer_where(answer, is_hit);
            let (written, error) = fill_up(what, &db, 1);
            assert!(is_the_cause(&error, answer), "{what}: {error}");
            // The next write is refused too, and existing data can be read. Writes may be refused earlier than before while a step uses the reserve.
            let (again, error) = fill_up(what, &db, written);
            assert!(again - written <= 1 || answer == NO_SPACE, "{what}: {error}");
            assert!(is_the_cause(&error, answer), "{what}: {error}");
            check(what, &db, again);
            fs.clear();
            let more = {
                let db = db.clone();
                in_time(what, move || {
                    for n in again..again + 100 {
                        while let Err(error) = db.insert(scattered(n), [7; 400]) {
                            // Writes may stay refused until the next try; the engine tries once a second.
                            assert!(is_the_cause(&error, answer), "{what}: {error}");
                            thread::yield_now();
                        }
                    }
                    again + 100
                })
            };
            check(what, &db, more);
            db.close().unwrap();
            let db = Db::open(dir.path()).unwrap();
            check(what, &db, more);
            assert!(db.recovery().findings().is_empty() && db.verify().unwrap().problems.is_empty());
        }
    }
}

#[test]
fn a_thread_that_panics_or_gets_no_more_space_for_a_log_ends_the_waits_for_it() {
    // Catches a writer that waits for a flush, a log, its space or a compaction that will never come.
    let space: Hits = |event| event.is(Op::Write, ".log") && on_log_thread();
    let dead: [(&str, Hits, bool); 5] = [
        ("the flush", |event| event.is(Op::Create, ".sst") && !on_compaction_thread(), true),
        ("the log", |event| event.is(Op::Create, ".log"), true),
        ("the compaction", |event| event.is(Op::Create, ".sst") && on_compaction_thread(), true),
        ("space of a log, for good", space, true),
        ("space of a log", space, false),
    ];
    for (what, is_hit, panics) in dead {
        let is_space = what.starts_with("space");
        let (dir, fs) = (TempDir::new().unwrap(), if is_space { FaultFs::of_system() } else { unmapped() });
        let db = small(&dir, &fs).memtable_bytes(if is_space { 1 << 20 } else { 4096 }).open().unwrap();
        fs.set(move |event| match is_hit(event) {
            true if panics => panic!("planted"),
            true => NO_SPACE,
            false => Answer::Go,
        });
        let (written, error) = fill_up(what, &db, 0);
        let is_refused = matches!(error, Error::ReadOnly { .. });
        assert!(if panics { is_refused } else { is_the_cause(&error, NO_SPACE) }, "{what}: {error}");
        assert!(written > 100 || !is_space, "{written}");
        check(what, &db, written);
    }
}

#[test]
fn a_load_that_waits_for_level_0_gets_the_error_of_the_compaction_without_space() {
    // Catches a bulk load that waits until the disk has space, and blocks all writers.
    let (dir, fs) = (TempDir::new().unwrap(), unmapped());
    let db = small(&dir, &fs).open().unwrap();
    fs.answer_where(NO_SPACE, |event| event.is(Op::Write, ".sst") && on_compaction_thread());
    let error = {
        let db = db.clone();
        in_time("a load", move || {
            loop {
                if let Err(error) = db.ingest([("a", "1"), ("z", "1")]) {
                    return error;
                }
            }
        })
    };
    assert!(is_the_cause(&error, NO_SPACE), "{error}");
    fs.clear();
    while let Err(error) = db.insert("b", "2") {
        assert!(is_the_cause(&error, NO_SPACE), "{error}");
    }
    db.wait_for_compactions().ok();
    assert_eq!(db.iter().map(Result::unwrap).count(), 3);
}

fn on_log_thread() -> bool {
    thread::current().name() == Some("mini-engine-log")
}

/// Whether no work for which a write might wait is running, except the held operation.
type Settles = fn(&Metrics) -> bool;

fn is_flushed(metrics: &Metrics) -> bool {
    metrics.flushes_running + metrics.immutable_memtables == 0
}

/// Checks that a write that would have to wait is refused and writes nothing.
fn is_not_begun(what: &str, db: &Db, batch: &WriteBatch) {
    let before = (db.snapshot().seqno(), db.metrics().writes);
    let is_begun = {
        let (db, batch) = (db.clone(), batch.clone());
        in_time(what, move || db.try_write(batch, Durability::Buffered).unwrap().is_some())
    };
    assert!(!is_begun, "{what}");
    assert_eq!((db.snapshot().seqno(), db.metrics().writes), before, "{what}");
}

#[test]
fn a_write_that_would_wait_is_not_begun_and_can_be_once_somebody_has_waited() {
    // Catches a `try_write` that waits for a flush, a compaction, a log or its space, and a wait after which the write still cannot begin.
    let held: [(&str, bool, Hits, Settles); 4] = [
        ("a flush", false, |e| e.is(Op::Create, ".sst") && !on_compaction_thread(), |m| m.logs_being_made == 0),
        (
            "a compaction",
            false,
            |e| e.is(Op::Create, ".sst") && on_compaction_thread(),
            |m| is_flushed(m) && m.logs_being_made == 0,
        ),
        ("the next log", false, |e| e.is(Op::Create, ".log"), is_flushed),
        ("space of the log", true, |e| e.is(Op::Write, ".log") && on_log_thread(), is_flushed),
    ];
    // The second field is whether the log is mapped.
    for (what, mapped, is_held, is_settled) in held {
        let dir = TempDir::new().unwrap();
        let fs = if mapped { FaultFs::of_system() } else { unmapped() };
        let bytes = if mapped { 1 << 20 } else { 4096 };
        // The database is dropped after the hold on its threads is released.
        let db = small(&dir, &fs).memtable_bytes(bytes).open().unwrap();
        let (_arrivals, go) = fs.hold_where(Answer::Go, is_held);
        let batch = |n| batch([(scattered(n), [7; 400])]);
        let begins = |n| db.try_write(batch(n), Durability::Buffered).unwrap().is_some();
        let mut n = 0;
        let is_settled = || {
            wait_while(|| !is_settled(&db.metrics()));
            true
        };
        while begins(n) || (is_settled() && begins(n)) {
            n += 1;
            assert!(n < 100_000, "{what}: nothing is waited for");
        }
        is_not_begun(what, &db, &batch(n));
        let waiting = {
            let (db, batch) = (db.clone(), batch(n));
            thread::spawn(move || db.wait_for_room(batch))
        };
        drop(go);
        in_time(what, move || waiting.join().unwrap()).unwrap();
        while !begins(n) {
            db.wait_for_room(batch(n)).unwrap();
        }
        check(what, &db, n + 1);
    }
}

#[test]
fn a_write_that_cannot_wait_is_slowed_down_as_others_are_and_not_begun_during_a_load() {
    // Catches a `try_write` that bypasses the slowdown, and a write that uses the sequence numbers of a load.
    let (dir, fs) = (TempDir::new().unwrap(), unmapped());
    // The database is dropped after the hold on its threads is released.
    let db = small(&dir, &fs).memtable_bytes(64 << 20).l0_slowdown(3).l0_stop(1000).open().unwrap();
    let (_arrivals, _go) = fs.hold_where(Answer::Go, |event| event.is(Op::Create, ".sst") && on_compaction_thread());
    let mut batch = WriteBatch::new();
    batch.insert("a", vec![7; 1 << 20]).unwrap();
    batch.insert("z", "").unwrap();
    for _ in 0..3 {
        db.write(&batch, Durability::Buffered).unwrap();
        db.flush().unwrap();
    }
    // Each write reserves the time that its bytes take at 16 MiB a second; the next write may not begin before that time has passed.
    let is_refused = || db.try_write(&batch, Durability::Buffered).unwrap().is_none();
    assert!((0..1000).any(|_| is_refused()), "no limit");
    db.wait_for_room(&batch).unwrap();
    assert!(db.try_write(&batch, Durability::Buffered).unwrap().is_some());
    let mut small = WriteBatch::new();
    small.insert("b", "").unwrap();
    let mut is_begun = true;
    let entries = [("m", "1"), ("n", "2")].into_iter().inspect(|_| {
        is_begun = db.try_write(&small, Durability::Buffered).unwrap().is_some();
    });
    db.ingest(entries).unwrap();
    assert!(!is_begun);
}
