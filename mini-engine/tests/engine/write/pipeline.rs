//! The write pipeline: several writers are between the write lock and the publication of their writes.

use crate::support::*;

/// A database whose log is already mapped, and its number of entries.
fn open_mapped(dir: &Path, fs: &FaultFs) -> (Db, usize) {
    let db = Db::builder(dir).file_system(fs.arc()).open().unwrap();
    let mut entries = 0;
    while count(&fs.take(), Op::Fill, ".log") == 0 {
        db.insert(format!("before{entries:03}"), [7; 4000]).unwrap();
        entries += 1;
    }
    (db, entries)
}

/// Such a database, with a hold on the thread named `first` when it writes its frame into the log.
fn held() -> (TempDir, FaultFs, Db, usize, Held) {
    let (dir, fs) = (TempDir::new().unwrap(), FaultFs::of_system());
    let (db, entries) = open_mapped(dir.path(), &fs);
    let held = fs.hold_where(Answer::Go, is_first);
    (dir, fs, db, entries, held)
}

/// Runs `work` on a thread named `name`.
fn spawn<'s, T: Send + 's>(
    scope: &'s thread::Scope<'s, '_>,
    name: &str,
    work: impl FnOnce() -> T + Send + 's,
) -> thread::ScopedJoinHandle<'s, T> {
    thread::Builder::new().name(name.to_owned()).spawn_scoped(scope, work).unwrap()
}

fn on_thread(name: &str) -> bool {
    std::thread::current().name() == Some(name)
}

/// Whether the thread named `first` is about to write its frame into the log.
fn is_first(event: &Event) -> bool {
    event.is(Op::Fill, ".log") && on_thread("first")
}

/// Whether an insert panics.
fn panics(db: &Db) -> bool {
    let insert = std::panic::AssertUnwindSafe(|| db.insert("a", "1"));
    std::panic::catch_unwind(insert).is_err()
}

/// Waits until a writer has written a frame: header and payload.
fn wait_for_frame(fs: &FaultFs) {
    let mut fills = 0;
    wait_while(|| {
        fills += count(&fs.take(), Op::Fill, ".log");
        fills < 2
    });
}

#[test]
fn rule_12_a_write_is_neither_visible_nor_acknowledged_before_an_earlier_one_is_whole() {
    // Catches a gap in the sequence of writes, for readers in this process and in others, for a writer, and after a kill.
    let (dir, fs, db, entries, (arrivals, go)) = held();
    let is_acknowledged = AtomicBool::new(false);
    thread::scope(|scope| {
        let first = spawn(scope, "first", || db.insert("a", "1"));
        arrivals.recv().unwrap();
        let second = spawn(scope, "second", || {
            let written = db.insert("b", "2");
            is_acknowledged.store(true, Ordering::SeqCst);
            written
        });
        wait_for_frame(&fs);
        assert_eq!((db.get("a").unwrap(), db.get("b").unwrap()), (None, None));
        assert_eq!((db.snapshot().seqno(), db.iter().count()), (entries as u64, entries));

        let reader = Db::builder(dir.path()).reader().open().unwrap();
        assert_eq!((reader.iter().count(), reader.refresh().unwrap()), (entries, entries as u64));

        let left = copy(dir.path());
        let reopened = Db::open(left.path()).unwrap();
        assert_eq!((reopened.iter().count(), reopened.snapshot().seqno()), (entries, entries as u64));
        assert!(reopened.recovery().torn.is_some() && reopened.verify().unwrap().problems.is_empty());

        assert!(!is_acknowledged.load(Ordering::SeqCst), "behind a hole");
        drop(go);
        first.join().unwrap().unwrap();
        second.join().unwrap().unwrap();
        assert_eq!((reader.refresh().unwrap(), reader.iter().count()), (entries as u64 + 2, entries + 2));
    });
    assert_eq!((db.get("b").unwrap().as_deref(), db.iter().count()), (Some(&b"2"[..]), entries + 2));
    let db = reopened(db, &dir);
    assert_eq!((db.iter().count(), db.recovery().torn.is_some()), (entries + 2, false));
}

#[test]
fn a_memtable_is_flushed_with_the_writes_that_were_under_way_when_it_was_frozen() {
    // Catches a rotation that does not wait for open frames, and one that deadlocks with writers that wait for the write lock.
    let (dir, fs, db, entries, (arrivals, go)) = held();
    thread::scope(|scope| {
        let first = spawn(scope, "first", || db.insert("a", "1"));
        arrivals.recv().unwrap();
        let second = spawn(scope, "second", || db.insert("b", "2"));
        wait_for_frame(&fs);
        let flush = spawn(scope, "flush", || db.flush());
        let third = spawn(scope, "third", || db.insert("c", "3"));
        drop(go);
        for thread in [first, second, flush, third] {
            thread.join().unwrap().unwrap();
        }
    });
    db.flush().unwrap();
    let db = reopened(db, &dir);
    assert_eq!((db.recovery().operations_replayed, db.iter().count()), (0, entries + 3));
}

#[test]
fn a_synced_write_makes_all_before_it_durable_and_nothing_behind_a_hole() {
    // Catches a sync whose recorded position covers an incomplete frame: if the frame is lost, recovery reports damage.
    let (dir, fs) = (TempDir::new().unwrap(), FaultFs::of_system());
    let (db, entries) = open_mapped(dir.path(), &fs);
    let synced = |key: &str| put(&db, key, "synced", Durability::Synced);
    synced("before").unwrap();
    // After a sync of the whole log, a write is a system call and would not be held, so this adds an unsynced write.
    db.insert("between", "buffered").unwrap();
    let (arrivals, go) = fs.hold_where(Answer::Go, is_first);
    thread::scope(|scope| {
        let first = spawn(scope, "first", || synced("a"));
        arrivals.recv().unwrap();
        let second = spawn(scope, "second", || synced("b"));
        wait_for_frame(&fs);
        // No sync may begin yet, because the first frame is incomplete.
        assert_eq!(count(&fs.take(), Op::Sync, ".log"), 0);
        let left = copy(dir.path());
        assert_eq!(Db::open(left.path()).unwrap().iter().count(), entries + 2);
        drop(go);
        first.join().unwrap().unwrap();
        second.join().unwrap().unwrap();
    });
    assert_eq!(db.iter().count(), entries + 4);
    assert!((1..=2).contains(&count(&fs.take(), Op::Sync, ".log")));
}

#[test]
fn a_writer_that_panics_between_the_lock_and_the_publication_ends_the_waits_of_all_others() {
    // Catches a writer, a flush or a close that waits for ever for a frame that will never be complete.
    let (dir, fs, db, entries, (arrivals, go)) = held();
    thread::scope(|scope| {
        let first = spawn(scope, "first", || panics(&db));
        arrivals.recv().unwrap();
        let second = spawn(scope, "second", || db.insert("b", "2"));
        wait_for_frame(&fs);
        // Panics at the payload, so that the header is never written.
        fs.set(|event| if is_first(event) { panic!("a writer that dies") } else { Answer::Go });
        drop(go);
        assert!(first.join().unwrap(), "the double panics");
        assert!(matches!(second.join().unwrap(), Err(Error::ReadOnly { .. })));
    });
    assert!(matches!(db.flush(), Err(Error::ReadOnly { .. })));
    assert!(matches!(db.insert("c", "3"), Err(Error::ReadOnly { .. })));
    assert_eq!(db.iter().count(), entries);
    assert!(db.close().is_err());
    let db = Db::open(dir.path()).unwrap();
    assert_eq!(db.iter().count(), entries);
}

#[test]
fn a_writer_that_panics_ends_the_wait_of_the_holder_of_the_write_lock() {
    // Catches a failure that only threads without the write lock can see: the flush with the lock and the failed writer would wait for each other.
    let (dir, fs, db, entries, (arrivals, go)) = held();
    thread::scope(|scope| {
        let first = spawn(scope, "first", || panics(&db));
        arrivals.recv().unwrap();
        let flush = spawn(scope, "flush", || db.flush());
        // If another thread does not get the lock, the flush holds it, and waits for `first`.
        let mut others = Vec::new();
        while db.waiting_writers() == 0 {
            others.push(spawn(scope, "other", || db.insert("b", "2")));
            thread::yield_now();
        }
        // Meanwhile the flush goes to sleep.
        assert_eq!(Db::open(copy(dir.path()).path()).unwrap().iter().count(), entries);
        fs.set(|event| if is_first(event) { panic!("a writer that dies") } else { Answer::Go });
        drop(go);
        assert!(first.join().unwrap(), "the double panics");
        assert!(matches!(flush.join().unwrap(), Err(Error::ReadOnly { .. })));
        for other in others {
            assert!(matches!(other.join().unwrap(), Err(Error::ReadOnly { .. })));
        }
    });
    assert!(db.close().is_err());
}

#[test]
fn a_condition_waits_for_the_writes_that_have_begun() {
    // Catches a `compare_and_swap` that compares with a value although a newer one is not yet visible.
    let (_dir, _fs, db, _, (arrivals, go)) = held();
    thread::scope(|scope| {
        let first = spawn(scope, "first", || db.insert("a", "1"));
        arrivals.recv().unwrap();
        let swap = spawn(scope, "swap", || db.compare_and_swap("a", None, Some(b"2")));
        // If another thread does not get the lock, the swap holds it, and waits for `first`.
        let mut others = Vec::new();
        while db.waiting_writers() == 0 && others.len() < 50 {
            others.push(spawn(scope, "other", || db.insert("b", "2")));
            thread::yield_now();
        }
        drop(go);
        assert_eq!(swap.join().unwrap().unwrap().unwrap_err().current.as_deref(), Some(&b"1"[..]));
        first.join().unwrap().unwrap();
        others.into_iter().for_each(|other| other.join().unwrap().unwrap());
    });
    assert_eq!(db.get("a").unwrap().as_deref(), Some(&b"1"[..]));
}
