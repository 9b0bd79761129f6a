//! Crashes at every operation of a checkpoint, and after it.
//!
//! The database that is copied must recover as from any crash. Its copy must be a whole database in the state after some number of batches, or no
//! database at all; once the call has returned, it must be whole.

use crate::prelude::*;

const COPY: &str = "/copies/copy";
const POINTER: &str = "/copies/copy/CURRENT";
/// The note in a record that marks the return of the checkpoint.
const RETURNED: u64 = u64::MAX;
const ROUNDS: usize = 6;
const DRAWS: u64 = 2;

/// A disk with a database before its checkpoint, and the record of the disk's later operations.
struct Recorded {
    disk: Disk,
    record: Vec<Step>,
    events: Vec<Event>,
    /// Events that were acknowledged when the checkpoint began.
    before: usize,
    script: Script,
}

/// Records a run that writes, makes a checkpoint, with links or without, and goes on writing.
fn recorded(seed: u64, links: bool, lie: Lie) -> Recorded {
    let mut script = Script::new(Shape::Flushes, seed);
    // The point where the writes end and the copy begins must not depend on random draws.
    script.acts.push(Act::Flush);
    let mem = MemFs::default();
    let fs = FaultFs::new(Arc::new(mem.clone()));
    if !links {
        fs.fail(Op::Link, "", std::io::ErrorKind::Unsupported);
    }
    let mut run = Run::open(&script, mem.clone(), Arc::new(fs), lie, 0).unwrap();
    for act in &script.acts {
        run.act(act).unwrap();
    }
    let mut random = Random(seed);
    let mut write = |run: &mut Run, synced: bool| {
        let number = run.events.len() as u64 + 1;
        run.write(&batch(Shape::Flushes, (number, seed), &run.live(), &mut random), synced).unwrap();
    };
    write(&mut run, true);
    run.settle(|| false);
    let (disk, before) = (mem.disk(), run.events.len());
    mem.record();
    run.db().checkpoint(COPY).unwrap();
    mem.note(RETURNED);
    write(&mut run, true);
    // The copy keeps the keyspaces that are dropped now.
    let mut live = run.live();
    let events = keyspace_event(&mut live, &Random(seed), 1).into_iter().chain(live.first().copied().map(Event::Drop));
    events.for_each(|event| run.change_keyspaces(&event).unwrap());
    run.db().flush().unwrap();
    run.settle(|| false);
    run.db.take();
    Recorded { disk, record: mem.take_record(), events: run.events.clone(), before, script }
}

fn open_copy(mem: &MemFs) -> Result<Db, Error> {
    Db::builder(COPY).create_if_missing(false).file_system(Arc::new(mem.clone())).open()
}

/// Counts of the outcomes of crashes during checkpoints.
#[derive(Debug, Default)]
struct Met {
    points: u64,
    whole: u64,
    none: u64,
}

impl Recorded {
    /// Checks both databases after a crash.
    fn judge(&self, left: &Disk, progress: Progress, returned: bool, met: &mut Met) -> Result<(), String> {
        met.points += 1;
        let mem = MemFs::on(left.clone());
        let all = self.events.len();
        let run = Run::open(&self.script, mem.clone(), Arc::new(mem.clone()), Lie::None, all as u64);
        let run = run.map_err(|error| format!("the source does not open any more: {error}"))?;
        judge(run.db(), &self.events, (progress.durable.max(Kept::all(self.before)), all), all as u64)?;
        let exists = |path: &str| mem.exists(Path::new(path)).map_err(|error| error.to_string());
        let has_pointer = exists(POINTER)?;
        if exists(COPY)? != has_pointer {
            return Err("the copy has its name and is not whole".to_owned());
        }
        let copy = open_copy(&mem);
        if !has_pointer {
            self.check_leftover(&mem, run.db()).map_err(|what| format!("copy, returned: {returned}: {what}"))?;
        }
        drop(run);
        match copy {
            Ok(copy) => {
                met.whole += 1;
                judge(&copy, &self.events, (Kept::all(self.before), all), TODAY)
                    .map_err(|what| format!("copy: {what}"))?;
                Ok(())
            }
            Err(Error::NotADatabase { .. } | Error::Corruption { .. }) if !returned && !has_pointer => {
                met.none += 1;
                Ok(())
            }
            Err(error) => Err(format!("copy, returned: {returned}: {error}")),
        }
    }

    /// Checks the copy of an interrupted checkpoint: it opens whole, or its error names it as incomplete. It must not stop the next checkpoint.
    fn check_leftover(&self, mem: &MemFs, db: &Db) -> Result<(), String> {
        let left = incomplete_directory(COPY);
        match Db::builder(&left).create_if_missing(false).read_only(true).file_system(Arc::new(mem.clone())).open() {
            Ok(copy) => judge(&copy, &self.events, (Kept::all(self.before), self.events.len()), TODAY).map(drop)?,
            Err(Error::NotADatabase { .. }) => {}
            Err(error) => return Err(format!("leftover: {error}")),
        }
        db.checkpoint(COPY).map_err(|error| format!("the next try: {error}"))?;
        match mem.exists(&left) {
            Ok(false) => Ok(()),
            found => Err(format!("the next try leaves a leftover: {found:?}")),
        }
    }

    /// Cuts before each operation and after the last.
    fn cut_all(&self, seed: u64, met: &mut Met) -> Result<(), String> {
        let (mut disk, mut returned, mut random) = (self.disk.clone(), false, Random(seed));
        let before = Kept::all(self.before);
        let mut progress = Progress { begun: self.before, acknowledged: self.before, durable: before };
        for at in 0..=self.record.len() {
            let draws = (0..DRAWS).map(|_| disk.after_power_cut(random.next()).0);
            for (draw, left) in draws.chain([disk.clone()]).enumerate() {
                let step = self.record.get(at);
                self.judge(&left, progress, returned, met)
                    .map_err(|what| format!("before {at} ({step:?}), draw {draw}: {what}"))?;
            }
            match self.record.get(at) {
                Some(Step::Note(RETURNED)) => returned = true,
                Some(Step::Note(word)) => Note::read(*word, &mut progress),
                Some(Step::Operation(operation)) => disk.apply(operation).expect("possible"),
                None => {}
            }
        }
        Ok(())
    }
}

#[test]
fn a_crash_during_a_checkpoint_harms_nobody_and_leaves_a_whole_copy_or_none() {
    // Catches a copy that opens with a missing table, a pointer that is durable before its target, and a source that shares too many files.
    let (seed, mut met) = (seed(), Met::default());
    for round in 0..ROUNDS {
        let seed = seed.wrapping_add(round as u64);
        let recorded = recorded(seed, round % 2 == 0, Lie::None);
        let cut = recorded.cut_all(seed, &mut met);
        cut.unwrap_or_else(|what| panic!("CRASH_SEED={seed}, round {round}: {what}"));
    }
    println!("{met:?}");
    assert!(met.whole > 30 && met.none > 30, "{met:?}");
}

#[test]
fn a_checkpoint_on_a_disk_that_lies_is_found_out() {
    // Catches cuts that never damage a copy, and an oracle that does not check copies.
    let outcomes = (0..8).map(|seed| recorded(seed, false, Lie::Copies).cut_all(seed, &mut Met::default()));
    let verdict = outcomes.into_iter().find_map(Result::err).expect("a lie that was not found out");
    assert!(verdict.contains("copy, returned: "), "{verdict}");
}

#[test]
fn a_checkpoint_that_fails_leaves_a_whole_copy_or_none_to_a_power_cut() {
    // Catches tables of a leftover copy that are removed before its pointer is durably removed, a partial copy that stops the next try, and a
    // source that becomes read-only.
    let made = || {
        let mem = MemFs::default();
        let faults = FaultFs::new(Arc::new(mem.clone()));
        let db = Db::builder("/db").file_system(Arc::new(faults.clone())).l0_trigger(8).open().unwrap();
        for key in ["a", "b"] {
            db.insert(key, "1").unwrap();
            db.flush().unwrap();
        }
        db.close().unwrap();
        let db = Db::builder("/db").file_system(Arc::new(faults.clone())).l0_trigger(8).open().unwrap();
        (mem, faults, db)
    };
    let count = {
        let (_, faults, db) = made();
        let before = faults.mutations();
        db.checkpoint(COPY).unwrap();
        faults.mutations() - before
    };
    let (mut whole, mut none) = (0, 0);
    let faults =
        [(Fault::Device, Repeat::Once), (Fault::Device, Repeat::FromThenOn), (Fault::StorageFull, Repeat::Once)];
    for (index, (fault, repeat)) in (0..count).flat_map(|index| faults.map(|fault| (index, fault))) {
        let (mem, faults, db) = made();
        faults.fail_mutation(faults.mutations() + index, fault, repeat);
        let made = db.checkpoint(COPY);
        let context = format!("operation {index}, {fault:?}, {repeat:?}, {made:?}");
        for draw in 0..8 {
            let left = MemFs::on(mem.disk().after_power_cut(index * 8 + draw).0);
            if left.exists(Path::new(POINTER)).unwrap() {
                let copy = open_copy(&left).unwrap_or_else(|error| panic!("{context}: {error}"));
                assert_eq!(copy.iter().map(Result::unwrap).count(), 2);
                whole += 1;
            } else {
                assert!(made.is_err(), "{context}: no copy of a checkpoint that returned");
                none += 1;
            }
        }
        faults.heal();
        assert!(matches!(made, Ok(()) | Err(Error::Io { .. })), "{context}");
        if repeat == Repeat::Once {
            if made.is_err() {
                assert_eq!(mem.read_dir(Path::new("/copies")).unwrap_or_default(), [""; 0], "{context}");
                db.checkpoint(COPY).unwrap();
            }
            db.insert("c", "2").unwrap();
            assert_eq!((open_copy(&mem).unwrap().iter().count(), db.iter().count()), (2, 3), "{context}");
        }
    }
    assert!(whole > 0 && none > 0, "{whole} whole, {none} none");
}
