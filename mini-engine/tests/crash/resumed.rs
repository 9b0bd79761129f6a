//! Sessions of which each goes on with the logs of the one before: kills and power cuts at every operation, and at the operations of the process that
//! comes after.

use crate::prelude::*;

const SESSIONS: u64 = 6;
/// The session that ends without a close, so that the note of the one before is stale.
const UNCLOSED: u64 = 3;
/// The session that ends with a log in the file of an earlier one.
const RECYCLED: u64 = 1;
/// The number of crashes at one place.
const DRAWS: u64 = 3;

fn open(mem: &MemFs) -> Db {
    Db::builder("/db").file_system(Arc::new(mem.clone())).open().unwrap()
}

/// Write `n`: inserts key `n`, and overwrites or removes key `n - 3`, or neither.
fn put(db: &Db, n: u64, durability: Durability) {
    let mut batch = WriteBatch::new();
    batch.insert(format!("{n:03}"), vec![n as u8; 300]).unwrap();
    match (n % 3, n.saturating_sub(3)) {
        (0, old) => batch.insert(format!("{old:03}"), vec![n as u8; 300]).unwrap(),
        (1, old) if n > 3 => batch.remove(format!("{old:03}")).unwrap(),
        _ => {}
    }
    db.write(batch, durability).unwrap();
}

/// The number of writes that `db` shows; they must be the first ones.
fn count(db: &Db) -> u64 {
    let found: Vec<_> = db.iter().map(Result::unwrap).collect();
    let number = |key: &[u8]| str::from_utf8(key).unwrap().parse::<u64>().unwrap();
    let count = found.last().map_or(0, |(key, _)| number(key) + 1);
    let is_changed = |n: u64, by: u64| n % 3 == by && n + 3 < count;
    let shown = (0..count).filter(|&n| !is_changed(n, 1)).map(|n| (n, if is_changed(n, 0) { n + 3 } else { n }));
    assert!(found.iter().map(|(key, value)| (number(key), u64::from(value[0]))).eq(shown), "{found:?}");
    count
}

/// Repeats the operations of `record` before a reader that was opened early, and one that is new at each.
fn read_beside(record: &[Step]) {
    let (stage, mut early, mut durable, mut seen) = (MemFs::default(), None::<Db>, 0, 0);
    for step in record {
        match step {
            Step::Note(count) => durable = *count,
            Step::Operation(operation) => stage.apply(operation).unwrap(),
        }
        let new = Db::builder("/db").file_system(Arc::new(stage.clone())).reader().open();
        match (&early, new) {
            (None, Err(Error::NotADatabase { .. })) => assert_eq!(durable, 0),
            (None, new) => early = Some(new.unwrap()),
            (Some(early), new) => {
                early.refresh().unwrap();
                let found = count(early);
                assert_eq!((found, found >= durable.max(seen)), (count(&new.unwrap()), true), "{step:?}");
                seen = found;
            }
        }
    }
    assert_eq!(seen, durable);
}

/// Crashes at every operation of `record`, which began on `disk` with `durable` keys, and continues.
fn crash(mut disk: Disk, record: &[Step], mut durable: u64, depth: u64, random: &mut Random, crashes: &mut u64) {
    for (at, step) in record.iter().enumerate() {
        match step {
            Step::Note(count) => durable = *count,
            Step::Operation(operation) => disk.apply(operation).unwrap(),
        }
        for draw in 0..DRAWS {
            // Of the later processes only some operations are taken.
            if depth > 0 && !random.one_in(30) {
                continue;
            }
            let left = if draw == 0 { disk.clone() } else { disk.after_power_cut(random.next()).0 };
            let mem = MemFs::on(left.clone());
            mem.record();
            let db = open(&mem);
            let found = count(&db);
            assert!(found >= durable, "depth {depth}, operation {at}: {found} keys of {durable}\n{record:?}");
            // What an open shows is durable.
            mem.note(found);
            put(&db, found, Durability::Synced);
            mem.note(found + 1);
            put(&db, found + 1, Durability::Buffered);
            if random.one_in(2) {
                drop(db);
            } else {
                db.close().unwrap();
                mem.note(found + 2);
            }
            *crashes += 1;
            if depth < 2 {
                crash(left, &mem.take_record(), durable, depth + 1, random, crashes);
            }
        }
    }
}

#[test]
fn a_crash_loses_no_synced_write_of_sessions_that_go_on() {
    // Catches a note of a close that is used although the files were changed since or are not durable, and logs that are removed too early.
    let mut random = Random(crate::points::seed());
    let mem = MemFs::default();
    mem.record();
    let mut written = 0;
    for session in 0..SESSIONS {
        let (before, db) = (mem.syncs(), open(&mem));
        // The last of these flushes leaves a log in a file that has frames of an earlier one behind its end.
        for flush in 0..if session == RECYCLED { 3 } else { 0 } {
            for _ in 0..if flush == 2 { 1 } else { 8 } {
                put(&db, written, Durability::Synced);
                written += 1;
            }
            db.flush().unwrap();
        }
        assert_eq!(db.metrics().wal_recycled > 0, session == RECYCLED);
        put(&db, written, Durability::Buffered);
        put(&db, written + 1, Durability::Synced);
        mem.note(written + 2);
        put(&db, written + 2, Durability::Buffered);
        written += 3;
        if session + 1 == SESSIONS {
            // The logs of earlier sessions are removed.
            db.flush().unwrap();
        }
        if session == UNCLOSED {
            drop(db);
        } else {
            db.close().unwrap();
            mem.note(written);
        }
        let goes_on = ![0, RECYCLED, RECYCLED + 1, UNCLOSED + 1, SESSIONS - 1].contains(&session);
        assert!(!goes_on || mem.syncs() - before <= 4, "session {session} wrote its files anew");
    }
    let (record, mut crashes) = (mem.take_record(), 0);
    read_beside(&record);
    crash(Disk::default(), &record, 0, 0, &mut random, &mut crashes);
    assert!(crashes > 800, "{crashes}");
}
