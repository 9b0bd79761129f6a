//! Writers that wait for each other: for the write lock, and for a shared sync.

use crate::support::*;

const WRITERS: usize = 6;

fn halves(n: usize) -> WriteBatch {
    batch(["a", "b"].map(|half| (format!("key{n}{half}"), format!("value{n}"))))
}

/// Lets `WRITERS` threads write. All of them wait while the first one's write to the log is held. `answer` is the hook's answer to the writes to
/// the log from the second on. Returns the results of the threads.
fn contend(db: &Db, fs: &FaultFs, durability: Durability, answer: Answer) -> Vec<Result<u64, Error>> {
    let (arrivals, go) = fs.hold(Op::Write, ".log", Answer::Go);
    fs.take();
    thread::scope(|scope| {
        let mut writers = vec![scope.spawn(|| db.write(halves(0), durability))];
        arrivals.recv().unwrap();
        writers.extend((1..WRITERS).map(|n| scope.spawn(move || db.write(halves(n), durability))));
        wait_while(|| db.waiting_writers() < WRITERS - 1);
        fs.answer_where(answer, move |event| event.is(Op::Write, ".log"));
        drop(go);
        writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    })
}

#[test]
fn writers_that_wait_for_each_other_each_get_their_own_outcome() {
    // Catches a writer that gets another writer's result, a write that is lost behind a held one, and a wrong count.
    let (dir, fs) = (TempDir::new().unwrap(), unmapped());
    let open = || Db::builder(dir.path()).file_system(fs.arc()).open().unwrap();
    let db = open();
    let outcomes = contend(&db, &fs, Durability::Synced, Answer::Go);
    let events = fs.take();
    assert_eq!(count(&events, Op::Write, ".log"), WRITERS, "{events:?}");
    assert!((1..=WRITERS).contains(&count(&events, Op::Sync, ".log")), "{events:?}");
    let metrics = db.metrics();
    assert_eq!((metrics.wal_writes, metrics.writes), (WRITERS as u64, 2 * WRITERS as u64));
    assert_eq!(db.waiting_writers(), 0);
    let mut seqnos: Vec<u64> = outcomes.into_iter().map(Result::unwrap).collect();
    assert_eq!(seqnos[0], 2);
    seqnos.sort_unstable();
    assert!(seqnos.iter().copied().eq((1..=WRITERS as u64).map(|n| 2 * n)), "{seqnos:?}");
    for _ in 0..2 {
        assert_eq!(db.iter().map(Result::unwrap).count(), 2 * WRITERS);
    }
    drop(db);
    let db = open();
    assert_eq!(db.recovery().batches_replayed, WRITERS as u64);
    for n in 0..WRITERS {
        assert_eq!(db.get(format!("key{n}b")).unwrap().as_deref(), Some(format!("value{n}").as_bytes()));
    }
}

#[test]
fn rule_7_a_failed_append_reaches_each_writer_that_waits_and_shows_nothing() {
    // Catches a writer that waits for ever, a refused writer that gets a success, and a refused write that is visible.
    let (_dir, fs, db) = hooked(|b| b);
    let outcomes = contend(&db, &fs, Durability::Buffered, Answer::Fail(ErrorKind::Other));
    assert!(outcomes[0].is_ok());
    let is_failed = |outcome: &&Result<u64, Error>| matches!(outcome, Err(Error::Io { op: "append to", .. }));
    let is_refused = |outcome: &&Result<u64, Error>| matches!(outcome, Err(Error::ReadOnly { .. }));
    let counts = (outcomes.iter().filter(is_failed).count(), outcomes.iter().filter(is_refused).count());
    assert_eq!(counts, (1, WRITERS - 2), "{outcomes:?}");
    assert!(matches!(db.insert("later", ""), Err(Error::ReadOnly { .. })));
    assert_eq!((db.iter().count(), db.snapshot().seqno(), db.waiting_writers()), (2, 2, 0));
}

#[test]
fn log_compression_makes_logs_shorter_and_changes_nothing_else() {
    // Catches a compression option without effect, and a reopen with another setting that cannot read the log.
    let mut lengths = Vec::new();
    for compress in [false, true] {
        let dir = TempDir::new().unwrap();
        let open = |compress: bool| Db::builder(dir.path()).log_compression(compress).open().unwrap();
        let db = open(compress);
        for n in 0..50 {
            db.insert(format!("key{n}"), format!("{n} and ").repeat(200)).unwrap();
            db.insert(format!("small{n}"), "below the limit").unwrap();
        }
        drop(db);
        let log = dir.path().join(&files(dir.path(), ".log")[0]);
        let frames = std::fs::read(log).unwrap();
        lengths.push(frames.iter().rposition(|&byte| byte != 0).unwrap());
        let db = open(!compress);
        assert_eq!(db.recovery().operations_replayed, 100);
        for n in 0..50 {
            assert_eq!(db.get(format!("key{n}")).unwrap().as_deref(), Some(format!("{n} and ").repeat(200).as_bytes()));
            assert!(db.contains_key(format!("small{n}")).unwrap());
        }
    }
    assert!(lengths[1] * 4 < lengths[0], "{lengths:?}");
}

#[test]
fn one_sync_serves_the_writers_that_wait_for_it() {
    // Catches a sync for each writer, and an acknowledgement before the sync that covers it.
    let (_dir, fs, db) = hooked(|b| b.memtable_bytes(64 << 10));
    let returned = AtomicUsize::new(0);
    // The first sync waits until all others have appended.
    let (_arrivals, go) = fs.hold(Op::Sync, ".log", Answer::Go);
    fs.take();
    thread::scope(|scope| {
        for n in 0..WRITERS {
            let db = db.clone();
            let returned = &returned;
            scope.spawn(move || {
                db.write(halves(n), Durability::Synced).unwrap();
                returned.fetch_add(1, Ordering::SeqCst);
            });
        }
        wait_while(|| db.snapshot().seqno() < 2 * WRITERS as u64);
        assert_eq!(returned.load(Ordering::SeqCst), 0, "acknowledged while the first sync is under way");
        drop(go);
    });
    // The first sync, and one more for all writers that came during it.
    let syncs = count(&fs.take(), Op::Sync, ".log");
    assert!((1..=2).contains(&syncs), "{syncs} syncs for {WRITERS} writers");
}
