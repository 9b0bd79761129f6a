//! Drops of keyspaces together with crashes, checkpoints and workers.

use crate::support::*;

/// Whether keyspace `name` exists, and has the key `k`.
fn has_key(db: &Db, name: &str) -> bool {
    db.keyspaces().contains(&name.to_owned()) && db.keyspace(name).unwrap().contains_key("k").unwrap()
}

#[test]
fn what_was_moved_elsewhere_before_a_drop_survives_every_power_cut_that_the_drop_survives() {
    // Catches a drop that becomes durable before earlier writes: then the entry is in neither keyspace.
    let mem = MemFs::default();
    let db = in_memory(&mem).open().unwrap();
    let (a, b) = (db.keyspace("a").unwrap(), db.keyspace("b").unwrap());
    a.insert("k", "").unwrap();
    db.persist(Durability::Synced).unwrap();
    let (mut kept, mut moved) = (0, 0);
    let states = states_during(&mem, || {
        let mut batch = WriteBatch::new();
        batch.keyspace(&b).insert("k", "").unwrap();
        db.write(batch, Durability::Buffered).unwrap();
        db.drop_keyspace("a").unwrap();
    });
    for (operation, disk) in states {
        for draw in 0..8 {
            let left = MemFs::on(disk.after_power_cut(draw).0);
            let db = in_memory(&left).open().unwrap();
            let (is_kept, is_moved) = (has_key(&db, "a"), has_key(&db, "b"));
            assert!(is_kept || is_moved, "after {operation}, draw {draw}");
            kept += u64::from(is_kept);
            moved += u64::from(!is_kept);
        }
    }
    assert!(kept > 0 && moved > 0, "{kept} cuts before the drop, {moved} after it");
}

#[test]
fn a_checkpoint_has_what_was_moved_before_a_drop_in_one_keyspace_or_the_other() {
    // Catches a copy whose list of keyspaces is newer than its entries.
    let ((_dir, fs, db), elsewhere) = (hooked(|builder| builder), TempDir::new().unwrap());
    let (a, b) = (db.keyspace("a").unwrap(), db.keyspace("b").unwrap());
    a.insert("k", "").unwrap();
    let (arrivals, go) = fs.hold(Op::Create, ".sst", Answer::Go);
    let copy = elsewhere.path().join("copy");
    thread::scope(|scope| {
        let checkpoint = scope.spawn(|| db.checkpoint(&copy));
        // The flush of the checkpoint is held.
        arrivals.recv().unwrap();
        b.insert("k", "").unwrap();
        let dropped = scope.spawn(|| db.drop_keyspace("a"));
        // The drop waits for the checkpoint, or would end within this time.
        let begun = Instant::now();
        while !dropped.is_finished() && begun.elapsed() < Duration::from_millis(300) {
            thread::yield_now();
        }
        drop(go);
        checkpoint.join().unwrap().unwrap();
        dropped.join().unwrap().unwrap();
    });
    assert!(!has_key(&db, "a") && has_key(&db, "b"));
    let copy = Db::builder(&copy).create_if_missing(false).open().unwrap();
    assert!(has_key(&copy, "a") || has_key(&copy, "b"));
}

#[test]
fn every_drop_gives_its_space_back_without_another_call() {
    // Catches a worker that finds no work during the drop of a keyspace and is not woken afterwards.
    let mem = MemFs::default();
    let db = in_memory(&mem).open().unwrap();
    let tables = || paths_on(&mem, ".sst").len();
    for n in 0..300 {
        let keyspace = db.keyspace("a").unwrap();
        keyspace.insert("k", "").unwrap();
        db.flush().unwrap();
        assert_eq!(tables(), 1, "{n}");
        db.drop_keyspace("a").unwrap();
        wait_while(|| tables() > 0);
    }
}
