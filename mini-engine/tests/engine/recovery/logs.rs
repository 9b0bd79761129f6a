//! Recovery from logs that are cut or missing.

use crate::support::*;

/// A database in three logs: "a" and "b" in the first, "c" in the second, "d" in the third, no table. The write of each key in `synced` is followed
/// by a sync. Returns the logs' paths, oldest first. The logs end with their last frames, without preallocated space.
fn three_logs(dir: &Path, synced: &str) -> Vec<PathBuf> {
    let hook = unmapped();
    let db = Db::builder(dir).file_system(hook.arc()).immutable_memtables(4).open().unwrap();
    hook.fail(Op::Create, ".sst", ErrorKind::StorageFull);
    for key in ["a", "b", "c", "d"] {
        put(&db, key, "value", if synced.contains(key) { Durability::Synced } else { Durability::Buffered }).unwrap();
        if key == "b" || key == "c" {
            db.flush().unwrap_err();
        }
    }
    drop(db);
    let logs: Vec<PathBuf> = paths(dir, ".log");
    assert_eq!(logs.len(), 3);
    logs.iter().for_each(|log| cut_space(log));
    logs
}

/// Cuts off the zeros behind the last frame.
fn cut_space(log: &Path) {
    let mut bytes = fs::read(log).unwrap();
    let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    bytes.truncate(used.next_multiple_of(8));
    fs::write(log, bytes).unwrap();
}

/// The damage to a log.
#[derive(Clone, Copy, Debug)]
enum Harm {
    /// Cuts the given number of bytes off the end: fewer than a frame has.
    Cut(u64),
    /// Cuts the given number of whole frames off the end.
    CutFrames(u64),
    Removed,
    Emptied,
    Zeroed,
    /// The log as it was made in advance, without frames, and with this byte behind its header.
    MadeAhead(u8),
}

fn harm(log: &Path, harm: Harm, frame: u64) {
    let bytes = fs::read(log).unwrap();
    match harm {
        Harm::Cut(bytes) => cut(log, bytes),
        Harm::CutFrames(frames) => cut(log, frames * frame),
        Harm::Removed => fs::remove_file(log).unwrap(),
        Harm::Emptied => fs::write(log, "").unwrap(),
        Harm::Zeroed => fs::write(log, vec![0; bytes.len()]).unwrap(),
        Harm::MadeAhead(byte) => fs::write(log, [&bytes[..56], &[0; 4], &[byte], &[0; 200]].concat()).unwrap(),
    }
}

/// The result of an open of damaged logs.
enum Made {
    /// The readable keys, and the logs (or their tails) that are set aside.
    Keys(&'static str, &'static [&'static str]),
    /// The open is refused because of damage to this log, and changes nothing.
    Refused(usize),
}

#[test]
fn rules_2_and_11_harmed_logs_keep_a_first_part_of_the_history_or_are_refused() {
    use Harm::{Cut, CutFrames, Emptied, MadeAhead, Removed, Zeroed};
    use Made::{Keys, Refused};
    type Case = (&'static str, &'static str, &'static [(usize, Harm)], Made);
    // Each case has the defect that it catches, the keys whose writes were synced, the damage to each log, and the result.
    let cases: [Case; 19] = [
        ("logs replayed by directory order, or one skipped", "", &[], Keys("abcd", &[])),
        ("c and d without the b before them", "", &[(0, Cut(8))], Keys("a", &["0 tail", "1", "2"])),
        ("an empty file kept after each power cut", "", &[(1, Cut(8)), (2, MadeAhead(0))], Keys("ab", &["1 tail"])),
        ("damaged frames not kept", "", &[(1, Cut(8)), (2, MadeAhead(1))], Keys("ab", &["1 tail", "2"])),
        ("synced writes dropped as a tail", "b", &[(0, Cut(8))], Refused(0)),
        ("a sync of a later log overlooked", "c", &[(0, Cut(8))], Refused(0)),
        ("a sync of the torn log overlooked", "c", &[(1, Cut(8))], Refused(1)),
        // A sync is recorded in later frames. There is no frame after "d", so its sync left no record.
        ("a sync without a record", "d", &[(0, Cut(8))], Keys("a", &["0 tail", "1", "2"])),
        ("a clean end between two frames", "", &[(0, CutFrames(1))], Keys("a", &["1", "2"])),
        ("a clean end before a sync", "b", &[(0, CutFrames(1))], Refused(0)),
        ("only the last log is left", "", &[(0, CutFrames(2)), (1, CutFrames(1))], Keys("", &["2"])),
        ("the loss blamed on the empty log", "a", &[(0, CutFrames(2)), (1, CutFrames(1))], Refused(0)),
        ("d right after b as if c had never been", "", &[(1, Removed)], Keys("ab", &["2"])),
        ("a gap before a sync", "c", &[(1, Removed)], Refused(0)),
        ("frames that do not follow what tables hold", "", &[(0, Removed)], Refused(0)),
        ("the manifest's log taken for one that never began", "", &[(0, Emptied)], Refused(0)),
        ("the same of one that was wiped out", "", &[(0, Zeroed)], Refused(0)),
        ("a torn last log", "", &[(2, Cut(8))], Keys("abc", &["2 tail"])),
        ("a lost last log", "", &[(2, Removed)], Keys("abc", &[])),
    ];
    for (defect, synced, harms, made) in cases {
        let dir = TempDir::new().unwrap();
        let logs = three_logs(dir.path(), synced);
        // Two frames of one length in the first log, one in the second.
        let len = |log: usize| fs::metadata(&logs[log]).unwrap().len();
        let frame = len(0) - len(1);
        harms.iter().for_each(|(log, what)| harm(&logs[*log], *what, frame));
        let before = files(dir.path(), "");
        match (Db::open(dir.path()), made) {
            (Ok(db), Keys(expected, aside)) => {
                assert_eq!(keys(&db).concat(), expected, "{defect}");
                let kept = |log: &str, kind: &str| logs[log.parse::<usize>().unwrap()].with_extension(kind);
                let kept = |name: &&str| match name.split_once(" tail") {
                    Some((log, _)) => kept(log, "log.tail.aside"),
                    None => kept(name, "log.aside"),
                };
                let aside: Vec<PathBuf> = aside.iter().map(kept).collect();
                assert_eq!(db.recovery().set_aside, aside, "{defect}");
                let is_torn = !aside.is_empty() || harms.iter().any(|(_, harm)| matches!(harm, Cut(_)));
                assert_eq!(db.recovery().torn.is_some(), is_torn, "{defect}: {}", db.recovery());
                assert_eq!(db.recovery().last_seqno, expected.len() as u64, "{defect}");
                // The files set aside stay, and later opens do not replay them.
                db.insert("e", "5").unwrap();
                let db = reopened(db, &dir);
                assert_eq!(keys(&db).concat(), format!("{expected}e"), "{defect}");
                assert!(aside.iter().all(|path| path.exists()), "{defect}");
            }
            (Err(Error::Corruption { file, .. }), Refused(log)) => {
                assert_eq!(file, logs[log], "{defect}");
                assert_eq!(files(dir.path(), ""), before, "{defect}");
            }
            (opened, _) => panic!("{defect}: {:?}", opened.map(|db| (keys(&db), db.recovery().findings()))),
        }
    }
}

#[test]
fn rule_2_past_an_accepted_stop_the_rest_of_the_log_is_set_aside_too() {
    // Catches whole frames behind a hole that are cut off and lost: a flipped bit in the last synced data looks the same.
    let dir = TempDir::new().unwrap();
    let logs = three_logs(dir.path(), "");
    // Damages the frame of "a"; the frame of "b" is whole.
    flip(&logs[0], 90);
    let bytes = fs::read(&logs[0]).unwrap();
    let db = Db::open(dir.path()).unwrap();
    assert!(keys(&db).is_empty());
    let torn = db.recovery().torn.clone().expect("a torn tail");
    assert_eq!((torn.offset, torn.dropped_bytes), (56, bytes.len() as u64 - 56));
    // The tail is in a separate file, with the header and the frames at their offsets, so that they can be checked.
    let aside = logs[0].with_extension("log.tail.aside");
    assert_eq!(db.recovery().set_aside[0], aside);
    assert_eq!(fs::read(&aside).unwrap(), bytes);
    db.insert("e", "5").unwrap();
    let db = reopened(db, &dir);
    assert_eq!((keys(&db), db.recovery().findings().len()), (vec!["e".to_owned()], 0));
    assert!(aside.exists());
}

#[test]
fn rule_2_a_tail_that_cannot_be_set_aside_is_not_cut_off() {
    // Catches a truncation after a copy of the tail that failed or is not durable.
    let original = TempDir::new().unwrap();
    let logs = three_logs(original.path(), "");
    cut(&logs[0], 8);
    let mut before = files(original.path(), "");
    before.retain(|name| name != "RESERVE");
    for op in [Op::Create, Op::Write, Op::Sync] {
        let (dir, hook) = (copy(original.path()), unmapped());
        let full = move |event: &Event| event.is(op, ".tail.aside");
        hook.answer_where(Answer::Fail(ErrorKind::StorageFull), move |event| full(event));
        let error = Db::builder(dir.path()).file_system(hook.arc()).open().unwrap_err();
        assert!(matches!(&error, Error::Io { path, .. } if path.ends_with("000001.log.tail.aside")), "{error}");
        assert_eq!(files(dir.path(), ""), before, "{op:?}");
        assert_eq!(keys(&Db::open(dir.path()).unwrap()), ["a"]);
    }
}

#[test]
fn rule_3_a_torn_tail_is_cut_and_synced_before_the_next_log_is_created() {
    // Catches a tear that stays in front of newer logs, whose synced writes would make it look like corruption.
    let (dir, hook) = (TempDir::new().unwrap(), unmapped());
    let logs = three_logs(dir.path(), "");
    cut(&logs[1], 8);
    let db = Db::builder(dir.path()).file_system(hook.arc()).open().unwrap();
    let events = hook.take();
    let torn = logs[1].file_name().unwrap().to_str().unwrap();
    // The copy of the tail is durable before the truncation.
    let kept = [(Op::Sync, ".log.tail.aside"), (Op::SyncDir, ""), (Op::Truncate, torn), (Op::Sync, torn)];
    let steps = in_order(&events, &[&kept[..], &[(Op::RenameTo, ".log.aside"), (Op::SyncDir, "")]].concat());
    // The file for the tail is first truncated, to remove an older tail.
    assert_eq!(Some(steps[2]), events.iter().position(|event| event.op == Op::Truncate && event.name() == torn));
    // Tables and the next log sync the directory too, so the last sync in `steps` must come before their creation.
    let next = [position(&events, 0, Op::Create, ".sst"), position(&events, steps[1], Op::Create, ".log")];
    assert!(
        next.into_iter().chain([position(&events, 0, Op::Write, "MANIFEST")]).all(|at| steps[5] < at),
        "{events:?}"
    );
    assert_eq!(keys(&db), ["a", "b"]);
}

#[test]
fn rule_3_an_end_at_any_operation_of_that_finds_the_same_history_again() {
    // Catches later logs that are not set aside because an earlier open had already cut the tail. Also catches logs that an edit makes obsolete,
    // so that they are deleted before they are set aside.
    let original = TempDir::new().unwrap();
    let logs = three_logs(original.path(), "");
    cut(&logs[0], 8);
    let open = |dir: &Path, fs: &FaultFs| Db::builder(dir).file_system(fs.arc()).open();
    for (index, dir) in failed_opens(original.path(), open) {
        let db = Db::open(dir.path()).unwrap_or_else(|error| panic!("operation {index}: {error}"));
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

fn open_long_log(dir: &Path, hook: &FaultFs) -> Result<Db, Error> {
    let builder = Db::builder(dir).memtable_bytes(16 << 20).table_file_bytes(64 << 20).file_system(hook.arc());
    // No compaction changes level 0 after the replay.
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
    // Catches halves in the wrong order, a lost half, and entries behind a damaged frame that the other thread got before the damage was found.
    let original = TempDir::new().unwrap();
    long_log(original.path());
    let (dir, hook) = (copy(original.path()), unmapped());
    let db = open_long_log(dir.path(), &hook).unwrap();
    check_long_log(&db, 12);
    drop(db);
    check_long_log(&open_long_log(dir.path(), &unmapped()).unwrap(), 12);
    // A part of the last batch is missing.
    let dir = copy(original.path());
    let log = the_file(dir.path(), ".log");
    let bytes = fs::read(&log).unwrap();
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    fs::write(&log, &bytes[..end - 1000]).unwrap();
    let db = open_long_log(dir.path(), &unmapped()).unwrap();
    assert!(db.recovery().torn.is_some());
    check_long_log(&db, 11);
}

#[test]
fn of_halves_of_a_memtable_none_is_left_by_an_open_that_fails() {
    // Catches a table of the other thread that is never removed: each try to open a database on a full disk would take more space.
    let original = TempDir::new().unwrap();
    long_log(original.path());
    let whole = files(original.path(), "");
    let before: Vec<String> = whole.iter().filter(|name| *name != "RESERVE").cloned().collect();
    for op in [Op::Create, Op::Write, Op::Sync] {
        for fails in [1, 2] {
            let (dir, hook) = (copy(original.path()), unmapped());
            // The names of the tables in the order of their creation. Table number `fails` and all later tables fail.
            let names = Mutex::new(Vec::new());
            hook.set(move |event| {
                if !event.name().ends_with(".sst") {
                    return Answer::Go;
                }
                let mut names = names.lock().unwrap();
                if !names.iter().any(|name| name == event.name()) {
                    names.push(event.name().to_owned());
                }
                let is_nth = names.iter().position(|name| *name == event.name()) >= Some(fails - 1);
                if event.op == op && is_nth { Answer::Fail(ErrorKind::StorageFull) } else { Answer::Go }
            });
            let error = open_long_log(dir.path(), &hook).unwrap_err();
            assert!(matches!(&error, Error::Io { path, .. } if path.extension().unwrap() == "sst"), "{error}");
            assert_eq!(files(dir.path(), ""), before, "{op:?} {fails}");
            check_long_log(&open_long_log(dir.path(), &unmapped()).unwrap(), 12);
        }
    }
    // Damages a synced frame behind the entries that were passed to the other thread; the next frame proves the sync.
    let dir = copy(original.path());
    let log = the_file(dir.path(), ".log");
    flip(&log, 10 * 1_008_000);
    let error = open_long_log(dir.path(), &unmapped()).unwrap_err();
    assert!(matches!(&error, Error::Corruption { file, .. } if *file == log), "{error}");
    assert_eq!(files(dir.path(), ""), whole);
}

#[test]
fn an_open_has_no_space_of_logs_to_read_and_syncs_five_times_or_after_a_close_twice() {
    // Catches a log that ends with a memtable's length of zeros, which the next open must read, and an unnecessary sync.
    for (closes, later) in [(true, 0), (false, 0), (true, 3), (false, 3)] {
        let (dir, hook) = (TempDir::new().unwrap(), unmapped());
        let db = Db::builder(dir.path()).file_system(hook.arc()).memtable_bytes(256 << 10).open().unwrap();
        fill(&db, 0..400, [7; 400]);
        db.flush().unwrap();
        let len = || fs::metadata(paths(dir.path(), ".log").last().unwrap()).unwrap().len();
        assert!(len() > 100_000, "no space was made ahead");
        fill(&db, 400..400 + later, [7; 400]);
        if closes {
            db.close().unwrap()
        } else {
            drop(db)
        }
        assert!(if later == 0 { len() == 56 } else { len() < 2_000 }, "{} bytes of a header and {later} frames", len());
        hook.take();
        let db = Db::builder(dir.path()).file_system(hook.arc()).open().unwrap();
        let events = hook.take();
        let syncs = (count(&events, Op::Sync, ""), count(&events, Op::SyncDir, ""));
        assert!(later > 0 || syncs == if closes { (1, 1) } else { (3, 2) }, "{events:?}");
        assert_eq!(db.iter().map(Result::unwrap).count() as u64, 400 + later);
    }
}
