//! What recovery makes of logs that are cut or missing.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use mini_engine::fs::{Fault, FaultFs, FileSystem, Repeat, StdFs};
use mini_engine::{Db, Durability, Error, WriteBatch};

use crate::scratch::TempDir;
use crate::support::hook::{Answer, Event, HookFs, Op, files, position};
use crate::support::{batch, copy, cut, keys, the_file, three_logs};

#[test]
fn writes_in_several_logs_come_back_in_order() {
    // Catches logs replayed by directory order, and a log number that skips one.
    let dir = TempDir::new().unwrap();
    three_logs(dir.path(), "");
    let db = Db::open(dir.path()).unwrap();
    assert_eq!(keys(&db), ["a", "b", "c", "d"]);
    let report = db.recovery();
    assert_eq!(
        (report.logs_replayed, report.batches_replayed, report.operations_replayed, report.last_seqno),
        (3, 4, 4, 4)
    );
    assert_eq!((&report.torn, report.set_aside.len()), (&None, 0));
}

#[test]
fn rule_2_a_log_cut_at_any_byte_keeps_its_whole_frames_and_no_part_of_another() {
    // Catches half a batch replayed, and a whole one before the tear dropped with it.
    let original = TempDir::new().unwrap();
    let db = Db::open(original.path()).unwrap();
    let log = the_file(original.path(), ".log");
    let mut ends = vec![fs::metadata(&log).unwrap().len()];
    for n in 0..3 {
        let halves = ["a", "b"].map(|half| (format!("{half}{n}"), "value"));
        db.write(batch(halves), Durability::Buffered).unwrap();
        ends.push(fs::metadata(&log).unwrap().len());
    }
    drop(db);
    let mut torn = 0;
    for len in ends[0]..=ends[3] {
        let dir = copy(original.path());
        let log = the_file(dir.path(), ".log");
        cut(&log, ends[3] - len);
        let whole = ends.iter().filter(|end| **end <= len).count() - 1;
        // A rest of zeros is room that was not used: a frame cut behind a checksum's first byte may look so.
        let rest = fs::read(&log).unwrap().split_off(ends[whole] as usize);
        let is_torn = rest.iter().any(|byte| *byte != 0);
        let db = Db::open(dir.path()).unwrap();
        let found = keys(&db);
        assert_eq!(found.len(), whole * 2, "{len} bytes: {found:?}");
        assert_eq!(db.recovery().torn.is_some(), is_torn, "{len} bytes");
        torn += usize::from(is_torn);
        assert_eq!(db.snapshot().seqno(), whole as u64 * 2);
        // The next write takes the number of the one that was lost.
        db.insert("next", "").unwrap();
        drop(db);
        let db = Db::open(dir.path()).unwrap();
        assert_eq!(keys(&db).len(), whole * 2 + 1, "{len} bytes");
        assert_eq!(db.recovery().torn, None);
    }
    assert!(torn > 100, "{torn} logs were torn");
}

#[test]
fn rule_2_past_an_accepted_stop_later_logs_are_set_aside() {
    // Catches "c" and "d" replayed without the "b" that came before them.
    let dir = TempDir::new().unwrap();
    let logs = three_logs(dir.path(), "");
    cut(&logs[0], 8);
    let db = Db::open(dir.path()).unwrap();
    assert_eq!(keys(&db), ["a"]);
    let report = db.recovery();
    let torn = report.torn.as_ref().expect("a torn tail");
    assert_eq!(torn.log, logs[0]);
    let mut aside = vec![logs[0].with_extension("log.tail.aside")];
    aside.extend(logs[1..].iter().map(|log| log.with_extension("log.aside")));
    assert_eq!(report.set_aside, aside);
    db.insert("e", "5").unwrap();
    drop(db);
    // They stay, and stay out of it.
    let db = Db::open(dir.path()).unwrap();
    assert_eq!(keys(&db), ["a", "e"]);
    assert!(aside.iter().all(|path| path.exists()));
}

#[test]
fn a_log_that_was_made_ahead_is_not_set_aside() {
    // Catches an empty file kept for people after each power cut, and one with damaged frames that is not kept.
    for damaged in [false, true] {
        let dir = TempDir::new().unwrap();
        let logs = three_logs(dir.path(), "");
        cut(&logs[1], 8);
        let mut last = fs::read(&logs[2]).unwrap();
        last[56..].fill(0);
        last[60] = u8::from(damaged);
        fs::write(&logs[2], last).unwrap();
        let db = Db::open(dir.path()).unwrap();
        assert_eq!(keys(&db), ["a", "b"]);
        assert_eq!(db.recovery().set_aside.len(), 1 + usize::from(damaged));
        assert_eq!(files(dir.path(), ".log").iter().filter(|name| name.ends_with(".log")).count(), 1);
    }
}

#[test]
fn rule_2_past_an_accepted_stop_the_rest_of_the_log_is_set_aside_too() {
    // Catches whole frames behind a hole that are cut off and gone: a flipped bit in what was synced last looks the same.
    let dir = TempDir::new().unwrap();
    let logs = three_logs(dir.path(), "");
    let mut bytes = fs::read(&logs[0]).unwrap();
    // In the frame of "a"; that of "b" is whole.
    bytes[90] ^= 1;
    fs::write(&logs[0], &bytes).unwrap();
    let db = Db::open(dir.path()).unwrap();
    assert!(keys(&db).is_empty());
    let torn = db.recovery().torn.clone().expect("a torn tail");
    assert_eq!((torn.offset, torn.dropped_bytes), (56, bytes.len() as u64 - 56));
    // Under a name of its own, header and frames at their places, so that they can be checked.
    let aside = logs[0].with_extension("log.tail.aside");
    assert_eq!(db.recovery().set_aside[0], aside);
    assert_eq!(fs::read(&aside).unwrap(), bytes);
    db.insert("e", "5").unwrap();
    drop(db);
    let db = Db::open(dir.path()).unwrap();
    assert_eq!((keys(&db), db.recovery().findings().len()), (vec!["e".to_owned()], 0));
    assert!(aside.exists());
}

#[test]
fn rule_2_a_tail_that_cannot_be_set_aside_is_not_cut_off() {
    // Catches a copy that fails, or is not durable, while the cut goes on.
    let original = TempDir::new().unwrap();
    let logs = three_logs(original.path(), "");
    cut(&logs[0], 8);
    let before = files(original.path(), "");
    for op in [Op::Create, Op::Write, Op::Sync] {
        let (dir, hook) = (copy(original.path()), HookFs::new());
        let full = move |event: &Event| event.is(op, ".tail.aside");
        hook.answer_where(Answer::Fail(ErrorKind::StorageFull), move |event| full(event));
        let error = Db::builder(dir.path()).file_system(hook.arc()).open().unwrap_err();
        assert!(matches!(&error, Error::Io { path, .. } if path.ends_with("000001.log.tail.aside")), "{error}");
        assert_eq!(files(dir.path(), ""), before, "{op:?}");
        assert_eq!(keys(&Db::open(dir.path()).unwrap()), ["a"]);
    }
}

#[test]
fn rule_2_a_tear_before_a_recorded_sync_is_corruption_in_every_log() {
    // Catches synced writes that are dropped as a torn tail without a word.
    for (synced, torn) in [("b", 0), ("c", 0), ("c", 1)] {
        let dir = TempDir::new().unwrap();
        let logs = three_logs(dir.path(), synced);
        cut(&logs[torn], 8);
        let error = Db::open(dir.path()).unwrap_err();
        assert!(matches!(&error, Error::Corruption { file, .. } if *file == logs[torn]), "{synced} {torn}: {error}");
        // Nothing was changed.
        let left = [".log", ".aside", ".sst"].map(|part| files(dir.path(), part).len());
        assert_eq!(left, [3, 0, 0], "{synced} {torn}");
    }
    // A sync is known from the frames behind it. Nothing was written after "d", so its sync left no record.
    let dir = TempDir::new().unwrap();
    let logs = three_logs(dir.path(), "d");
    cut(&logs[0], 8);
    assert_eq!(Db::open(dir.path()).unwrap().recovery().set_aside.len(), 3);
}

#[test]
fn rule_2_whole_frames_missing_at_the_end_of_an_older_log_are_noticed() {
    // Catches a log cut exactly between two frames: it ends cleanly, and only the next log's numbers show the loss.
    for synced in ["", "b"] {
        let dir = TempDir::new().unwrap();
        let logs = three_logs(dir.path(), synced);
        // Two frames of one length in the first log, one in the second.
        let len = |log: usize| fs::metadata(&logs[log]).unwrap().len();
        cut(&logs[0], len(0) - len(1));
        match (synced, Db::open(dir.path())) {
            ("", Ok(db)) => {
                assert_eq!(keys(&db), ["a"]);
                assert_eq!(db.recovery().torn.as_ref().map(|torn| torn.dropped_bytes), Some(0));
                assert_eq!(db.recovery().set_aside.len(), 2);
            }
            ("b", Err(error)) => {
                assert!(matches!(&error, Error::Corruption { file, .. } if *file == logs[0]), "{error}")
            }
            (_, result) => panic!("{synced:?}: {:?}", result.map(|db| keys(&db))),
        }
    }
}

#[test]
fn rule_2_a_recorded_sync_speaks_for_every_log_before_the_stop() {
    // Catches the loss of synced frames blamed on the empty log behind them, of which no sync is recorded.
    for synced in ["", "a"] {
        let dir = TempDir::new().unwrap();
        let logs = three_logs(dir.path(), synced);
        // Two frames of one length after the header in the first log, one in the second. Only "d" is left.
        let len = |log: usize| fs::metadata(&logs[log]).unwrap().len();
        let frame = len(0) - len(1);
        cut(&logs[0], 2 * frame);
        cut(&logs[1], frame);
        match (synced, Db::open(dir.path())) {
            ("", Ok(db)) => assert_eq!((keys(&db).len(), db.recovery().set_aside.len()), (0, 1)),
            ("a", Err(error)) => {
                assert!(matches!(&error, Error::Corruption { file, .. } if *file == logs[0]), "{error}")
            }
            (_, result) => panic!("{synced:?}: {:?}", result.map(|db| keys(&db))),
        }
    }
}

#[test]
fn rule_3_a_torn_tail_is_cut_and_synced_before_the_next_log_is_created() {
    // Catches a tear left in front of newer logs: their synced writes would make it look like corruption.
    let dir = TempDir::new().unwrap();
    let logs = three_logs(dir.path(), "");
    cut(&logs[1], 8);
    let hook = HookFs::new();
    let db = Db::builder(dir.path()).file_system(hook.arc()).open().unwrap();
    let events = hook.take();
    let torn = logs[1].file_name().unwrap().to_str().unwrap();
    // The tail is kept before it can be gone.
    let kept = position(&events, 0, Op::Sync, ".log.tail.aside");
    let kept = position(&events, kept, Op::SyncDir, "");
    let truncated = position(&events, kept, Op::Truncate, torn);
    // Of the file that keeps the tail an older end is cut off before.
    assert_eq!(Some(truncated), events.iter().position(|event| event.op == Op::Truncate && event.name == torn));
    let synced = position(&events, truncated, Op::Sync, torn);
    let aside = position(&events, synced, Op::RenameTo, ".log.aside");
    let named = position(&events, aside, Op::SyncDir, "");
    // Tables sync the directory as well, and those after it.
    assert!(named < position(&events, 0, Op::Create, ".sst"));
    assert!(named < position(&events, kept, Op::Create, ".log"));
    assert!(named < position(&events, 0, Op::Write, "MANIFEST"));
    assert_eq!(keys(&db), ["a", "b"]);
}

#[test]
fn rule_3_an_end_at_any_operation_of_that_finds_the_same_history_again() {
    // Catches logs that are set aside after the tail was cut but not when the tail is found cut already, and the other
    // way round: logs that an edit makes obsolete, and so deleted, before they were set aside.
    let original = TempDir::new().unwrap();
    let logs = three_logs(original.path(), "");
    cut(&logs[0], 8);
    let open = |dir: &TempDir, fs: Arc<dyn FileSystem>| Db::builder(dir.path()).file_system(fs).open();
    let faults = FaultFs::new(Arc::new(StdFs));
    let dir = copy(original.path());
    drop(open(&dir, Arc::new(faults.clone())).unwrap());
    let count = faults.mutations();
    assert!(count > 15, "only {count} operations");
    for index in 0..count {
        let dir = copy(original.path());
        let faults = FaultFs::new(Arc::new(StdFs));
        faults.fail_mutation(index, Fault::Device, Repeat::FromThenOn);
        drop(open(&dir, Arc::new(faults)));
        let db = open(&dir, Arc::new(StdFs)).unwrap_or_else(|error| panic!("operation {index}: {error}"));
        assert_eq!(keys(&db), ["a"], "operation {index}");
        let tail = [logs[0].with_extension("log.tail.aside")];
        let later = logs[1..].iter().map(|log| log.with_extension("log.aside"));
        let names: Vec<String> = tail.into_iter().chain(later).map(name_of).collect();
        assert_eq!(files(dir.path(), ".aside"), names, "operation {index}");
        assert_eq!(files(dir.path(), ".sst").len(), db.metrics().levels[0].tables as usize, "operation {index}");
    }
}

fn name_of(path: PathBuf) -> String {
    path.file_name().unwrap().to_str().unwrap().to_owned()
}

#[test]
fn rule_11_a_missing_log_in_the_middle_is_a_gap_in_the_numbers() {
    // Catches "d" replayed right after "b" as if "c" had never been.
    for synced in ["", "c"] {
        let dir = TempDir::new().unwrap();
        let logs = three_logs(dir.path(), synced);
        fs::remove_file(&logs[1]).unwrap();
        match (synced, Db::open(dir.path())) {
            ("", Ok(db)) => {
                assert_eq!(keys(&db), ["a", "b"]);
                assert_eq!(db.recovery().set_aside, [logs[2].with_extension("log.aside")]);
            }
            ("c", Err(error)) => assert!(matches!(error, Error::Corruption { .. }), "{error}"),
            (_, result) => panic!("{synced:?}: {:?}", result.map(|db| keys(&db))),
        }
    }
}

#[test]
fn rule_11_a_log_that_lost_its_beginning_is_corruption() {
    // Catches the oldest log replaced by one whose frames do not follow what tables hold.
    let dir = TempDir::new().unwrap();
    let logs = three_logs(dir.path(), "");
    let manifest_log = logs[0].clone();
    fs::remove_file(&manifest_log).unwrap();
    let error = Db::open(dir.path()).unwrap_err();
    assert!(matches!(&error, Error::Corruption { file, .. } if *file == manifest_log), "{error}");
}

#[test]
fn a_log_that_was_being_created_is_empty_and_not_torn() {
    // Catches a crash between creating a log and writing its header reported as a loss.
    for bytes in [0, 1, 39] {
        let dir = TempDir::new().unwrap();
        let db = Db::open(dir.path()).unwrap();
        db.insert("a", "1").unwrap();
        drop(db);
        let header = fs::read(the_file(dir.path(), ".log")).unwrap()[..bytes].to_vec();
        fs::write(dir.path().join("000700.log"), header).unwrap();
        let db = Db::open(dir.path()).unwrap();
        assert_eq!(keys(&db), ["a"]);
        assert_eq!((&db.recovery().torn, db.recovery().set_aside.len()), (&None, 0), "{bytes} bytes");
    }
}

/// A database whose log takes more than half a memtable of 16 MiB: twelve batches, the last one synced twice.
fn long_log(dir: &Path) {
    let db = Db::builder(dir).open().unwrap();
    for n in 0..12u32 {
        let mut batch = WriteBatch::new();
        for key in 0..100 {
            batch.insert(format!("{key:02}"), vec![n as u8; 10_000]).unwrap();
        }
        batch.insert(format!("batch {n:02}"), "").unwrap();
        db.write(batch, if n >= 10 { Durability::Synced } else { Durability::Buffered }).unwrap();
    }
}

fn open_long_log(dir: &Path, hook: &HookFs) -> Result<Db, Error> {
    let builder = Db::builder(dir).memtable_bytes(16 << 20).table_file_bytes(64 << 20).file_system(hook.arc());
    // Level 0 stays as replay has left it.
    builder.l0_trigger(100).l0_slowdown(200).l0_stop(300).open()
}

fn check_long_log(db: &Db, batches: u8) {
    assert_eq!(keys(db).len(), 100 + usize::from(batches));
    assert!((0..100).all(|key| db.get(format!("{key:02}")).unwrap().unwrap() == [batches - 1; 10_000][..]));
    assert_eq!(db.snapshot().seqno(), u64::from(batches) * 101);
    let level_0 = &db.metrics().levels[0];
    assert_eq!((level_0.runs, level_0.tables), (2, 2));
}

#[test]
fn the_first_half_of_a_memtable_is_written_while_the_second_is_read() {
    // Catches halves in the wrong order or one of them lost, and entries behind a stop that were handed over before it was seen.
    let original = TempDir::new().unwrap();
    long_log(original.path());
    let (dir, hook) = (copy(original.path()), HookFs::new());
    let db = open_long_log(dir.path(), &hook).unwrap();
    check_long_log(&db, 12);
    drop(db);
    check_long_log(&open_long_log(dir.path(), &HookFs::new()).unwrap(), 12);
    // Of the last batch a part is missing.
    let dir = copy(original.path());
    let log = the_file(dir.path(), ".log");
    let bytes = fs::read(&log).unwrap();
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    fs::write(&log, &bytes[..end - 1000]).unwrap();
    let db = open_long_log(dir.path(), &HookFs::new()).unwrap();
    assert!(db.recovery().torn.is_some());
    check_long_log(&db, 11);
}

#[test]
fn of_halves_of_a_memtable_none_is_left_by_an_open_that_fails() {
    // Catches a table made by the other thread that nobody removes: each try to open a database on a full disk would take more of it.
    let original = TempDir::new().unwrap();
    long_log(original.path());
    let before = files(original.path(), "");
    for op in [Op::Create, Op::Write, Op::Sync] {
        for fails in [1, 2] {
            let (dir, hook) = (copy(original.path()), HookFs::new());
            // Of the tables, the one that was begun first or second.
            let names = Mutex::new(Vec::new());
            hook.set(move |event| {
                if !event.name.ends_with(".sst") {
                    return Answer::Go;
                }
                let mut names = names.lock().unwrap();
                if !names.contains(&event.name) {
                    names.push(event.name.clone());
                }
                let is_nth = names.iter().position(|name| *name == event.name) == Some(fails - 1);
                if event.op == op && is_nth { Answer::Fail(ErrorKind::StorageFull) } else { Answer::Go }
            });
            let error = open_long_log(dir.path(), &hook).unwrap_err();
            assert!(matches!(&error, Error::Io { path, .. } if path.extension().unwrap() == "sst"), "{error}");
            assert_eq!(files(dir.path(), ""), before, "{op:?} {fails}");
            check_long_log(&open_long_log(dir.path(), &HookFs::new()).unwrap(), 12);
        }
    }
    // A frame that was synced is damaged behind what was handed over, which the frame after it proves.
    let dir = copy(original.path());
    let log = the_file(dir.path(), ".log");
    let mut bytes = fs::read(&log).unwrap();
    bytes[10 * 1_008_000] ^= 1;
    fs::write(&log, &bytes).unwrap();
    let error = open_long_log(dir.path(), &HookFs::new()).unwrap_err();
    assert!(matches!(&error, Error::Corruption { file, .. } if *file == log), "{error}");
    assert_eq!(files(dir.path(), ""), before);
}
