//! The rotation of logs: the next log is made in advance, so that writers need not wait, and any waits are counted.

use crate::support::*;

#[test]
fn a_rotation_exchanges_logs_and_waits_for_no_device() {
    // Catches a log that a writing thread creates or syncs, or that is created under the write lock.
    let (dir, fs, db) = hooked(|b| b.memtable_bytes(64 << 10).immutable_memtables(8).l0_trigger(100));
    let (on_writer, refused) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let (counter, ahead) = (on_writer.clone(), refused.clone());
    let writer = std::thread::current().id();
    fs.set(move |event| {
        let waits = matches!(event.op, Op::Create | Op::Sync | Op::SyncDir | Op::Rename);
        counter.fetch_add((waits && std::thread::current().id() == writer).into(), Ordering::SeqCst);
        match ahead.load(Ordering::SeqCst) && event.is(Op::Create, ".log") {
            true => Answer::Fail(ErrorKind::StorageFull),
            false => Answer::Go,
        }
    });
    let logs = || files(dir.path(), ".log");
    let write_until = |done: &dyn Fn() -> bool| {
        for n in 0u64.. {
            db.insert(n.to_be_bytes(), [7; 400]).unwrap();
            if done() {
                return;
            }
        }
    };
    write_until(&|| db.metrics().logs_being_made > 0 || logs().len() > 1);
    wait_while(|| db.metrics().logs_being_made > 0);
    // The next rotation uses the prepared log, although no log could be created now.
    refused.store(true, Ordering::SeqCst);
    let next = dir.path().join(logs().pop().unwrap());
    let is_used = || std::fs::read(&next).map_or(true, |bytes| bytes.iter().skip(64).any(|byte| *byte != 0));
    assert!(!is_used() && std::fs::metadata(&next).unwrap().len() > 32 << 10);
    write_until(&is_used);
    assert_eq!(on_writer.load(Ordering::SeqCst), 0);
    refused.store(false, Ordering::SeqCst);
    db.close().unwrap();
    // No prepared log is left.
    assert_eq!((logs().len(), files(dir.path(), "SPARE").len()), (1, 0));
}

#[test]
fn a_wait_for_the_next_log_is_counted_and_timed() {
    // Catches writers that wait without an effect on any counter of waits.
    let (_dir, fs, db) = hooked(|b| b.memtable_bytes(64 << 10).immutable_memtables(8).l0_trigger(100));
    let (arrivals, go) = fs.hold(Op::Create, ".log", Answer::Go);
    thread::scope(|scope| {
        let writer = scope.spawn(|| (0..400u64).try_for_each(|n| db.insert(n.to_be_bytes(), [7; 400])));
        arrivals.recv().unwrap();
        wait_while(|| db.metrics().log_waits == 0 && !writer.is_finished());
        let metrics = db.metrics();
        assert_eq!((metrics.log_waits, metrics.log_wait_time.is_zero(), metrics.stalls), (1, true, 0));
        drop(go);
        writer.join().unwrap().unwrap();
    });
    assert!(!db.metrics().log_wait_time.is_zero());
}
