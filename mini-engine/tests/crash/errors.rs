//! One error at every operation of whole runs: writes, flushes, compactions, closes and recoveries. The caller goes on as long as writes are
//! accepted. An error must surface, unless the failed operation was not needed or is tried again. Each run is recorded, and crashes are simulated
//! at its end and at earlier places.

use crate::prelude::*;
use proof::disk::Failure;

const EFFORT: Effort = Effort { draws: 1, nested_one_in: 1, depth: 0 };
const SHAPES: [Shape; 3] = [Shape::Flushes, Shape::Logs, Shape::Reopens];
/// The first seed, which gives the first shape its policy. Each shape has another one.
const SEED: u64 = 6;

/// A run with errors.
struct Ended {
    run: Run,
    errors: Vec<Error>,
    /// A write has failed, so the database accepts no more writes.
    read_only: bool,
}

impl Ended {
    fn note<T>(&mut self, result: Result<T, Error>) -> Option<T> {
        result.map_err(|error| self.errors.push(error)).ok()
    }

    /// Opens the database, more than once if needed: a single error affects only one try.
    fn open(&mut self) {
        for _ in 0..2 {
            if self.run.db.is_none() {
                let opened = self.run.reopen();
                self.note(opened);
            }
        }
        assert!(self.run.db.is_some(), "two opens in a row fail: {:?}", self.errors);
    }

    /// The states that reads may show: all acknowledged events, and none that had not begun.
    fn bounds(&self) -> (Kept, usize) {
        let Progress { begun, acknowledged, .. } = self.run.progress;
        (Kept::all(acknowledged), begun)
    }

    /// Makes the last failure of a worker surface.
    fn surface(&mut self) {
        let is_busy = |db: &Db| {
            let metrics = db.metrics();
            metrics.flushes_running + metrics.compactions_running + metrics.logs_being_made > 0
        };
        wait_while(|| is_busy(self.run.db()));
        let last = self.run.db().persist(Durability::Buffered);
        self.note(last);
    }

    fn act(&mut self, act: &Act) {
        let acted = self.run.act(act);
        let failed = self.note(acted).is_none();
        self.open();
        // The failed write may also be the second transaction of an act.
        let is_lost = self.run.progress.acknowledged < self.run.events.len();
        if failed && is_lost && matches!(act, Act::Write { .. } | Act::Transact { .. } | Act::Keyspace(_)) {
            self.read_only = true;
            if self.run.db().persist(Durability::Buffered).is_ok() {
                // Space was missing, for instance for the next log. The event is in no file, and is written at the next try.
                self.run.events.pop();
                self.read_only = false;
                return self.act(act);
            }
            let refused = self.run.db().insert("key0", "after a failure");
            assert!(matches!(refused, Err(Error::ReadOnly { .. })), "{refused:?} after {:?}", self.errors);
        }
    }
}

/// Whether the engine may go on after this failure without an error to its caller.
fn is_harmless(failure: &Failure, fault: Fault) -> bool {
    let event = &failure.event;
    let pointer = event.name().contains("MANIFEST") || event.name().contains("CURRENT");
    match failure.thread.as_str() {
        // A step that fails for lack of space is repeated with the space of the reserve.
        _ if fault != Fault::Device || event.op == Op::Remove || event.name() == "RESERVE" => true,
        // Without the note of a close, the next open writes everything anew.
        _ if event.name() == "CLOSED" => true,
        // A failed truncation of a log's spare space, at its end or after a failed write: the log keeps the space.
        "mini-engine-log" if event.op == Op::Truncate => event.name().ends_with(".log"),
        // The reuse of an obsolete log's space: without it the next log gets a new file.
        "mini-engine-flush" if event.name().ends_with(".log") => matches!(event.op, Op::Rename | Op::Truncate),
        "mini-engine-compact" => !matches!(event.op, Op::Sync | Op::SyncDir) && !pointer,
        _ => false,
    }
}

/// Runs `script` and continues after errors, but then no longer waits for the workers. At the end it reads everything; reads may fail too, but
/// never return wrong data.
fn run(script: &Script, mem: &MemFs, faults: &FaultFs, has_failed: impl Fn() -> bool) -> Ended {
    mem.record();
    let run = Run::closed(script, mem.clone(), faults.arc(), Lie::None);
    let mut ended = Ended { run, errors: Vec::new(), read_only: false };
    ended.open();
    for act in &script.acts {
        if ended.read_only && !matches!(act, Act::RefuseTables(_)) {
            continue;
        }
        ended.act(act);
        ended.run.settle(&has_failed);
    }
    match judge(ended.run.db(), &ended.run.events, ended.bounds(), ended.run.time) {
        Err(what) if what.contains("injected") => {}
        judged => drop(judged.unwrap_or_else(|what| panic!("read after {:?}: {what}", ended.errors))),
    }
    ended
}

/// The places of simulated crashes in a run with an error, besides its end.
#[derive(Clone, Copy)]
enum Places {
    /// A few random places.
    Few,
    /// The operations after a failed sync.
    AfterSync,
}

impl Places {
    fn of(self, record: &[Step], seed: u64) -> Vec<usize> {
        let mut random = Random(seed);
        let in_vain =
            |step: &Step| matches!(step, Step::Operation(operation) if operation.to_string().ends_with("in vain"));
        match (self, record.iter().position(in_vain)) {
            (Places::AfterSync, Some(at)) => (at + 1..at + 16).collect(),
            (Places::AfterSync, None) => Vec::new(),
            (Places::Few, _) => (0..3).map(|_| random.below(record.len() as u64) as usize).collect(),
        }
    }
}

/// Checks that errors name the failed operation and file, that existing data can still be read, and that every durable write survives.
fn check(script: &Script, mut ended: Ended, places: Places, context: &str) {
    for error in &ended.errors {
        let says_what_and_where = error.to_string().contains("injected") && error.to_string().contains('/');
        let is_typed = matches!(error, Error::Io { .. } | Error::ReadOnly { .. });
        assert!(is_typed && says_what_and_where, "{context}: {error}");
    }
    judge(ended.run.db(), &ended.run.events, ended.bounds(), ended.run.time)
        .unwrap_or_else(|what| panic!("{context}: read after {:?}: {what}", ended.errors));
    ended.run.db.take();
    let record = ended.run.mem.take_record();
    let places = places.of(&record, record.len() as u64);
    let mut explorer = Explorer::new(script.clone(), Lie::None, EFFORT, ended.run.progress.begun as u64);
    let struck = explorer.cut_some(&record, &ended.run.events, &|at| places.contains(&at));
    struck.unwrap_or_else(|what| panic!("{context}: {what}, after {:?}", ended.errors));
}

/// [`at_each`] runs one in `STEP` of its cases, unless all are requested. Not a multiple of the number of faults, so that each fault has its turn.
const STEP: usize = 4;

/// Runs every script with every fault at each of the operations that `count` counts, armed by `arm`. Returns the numbers of runs and of errors.
fn at_each(count: impl Fn(&FaultFs) -> u64, arm: impl Fn(&FaultFs, u64, Fault), faults: &[Fault]) -> (u64, u64) {
    let (mut runs, mut failed, mut recycled) = (0, 0, 0);
    let step = step(STEP);
    for (number, (shape, seed)) in SHAPES.into_iter().zip(SEED..).enumerate() {
        let script = Script::new(shape, seed);
        // The last error of a worker is lost with the handle.
        let is_dropped = script.acts.iter().any(|act| matches!(act, Act::Reopen { close: false }));
        let mem = MemFs::default();
        let sound = FaultFs::new(Arc::new(mem.clone())).unmapped();
        let sound_run = run(&script, &mem, &sound, || false);
        assert!(sound_run.errors.is_empty());
        recycled += sound_run.run.mem.take_record().iter().filter(|step| is_recycling(step)).count();
        let cases = (0..count(&sound)).flat_map(|index| faults.iter().map(move |fault| (index, *fault)));
        for (index, fault) in cases.skip(number % step).step_by(step) {
            let mem = MemFs::default();
            let fs = FaultFs::new(Arc::new(mem.clone())).unmapped();
            arm(&fs, index, fault);
            let mut ended = run(&script, &mem, &fs, || count(&fs) > index);
            // The interleaving of workers and the caller varies, so the run may have ended before the fault struck.
            fs.heal();
            ended.surface();
            failed += u64::from(!ended.errors.is_empty());
            for failure in fs.failures() {
                let goes = is_dropped && failure.thread.starts_with("mini-engine");
                let surfaced = goes || is_harmless(&failure, fault) || !ended.errors.is_empty();
                assert!(surfaced, "{shape:?}, operation {index}, {fault:?}, {failure:?}: no error");
            }
            check(&script, ended, Places::Few, &format!("{shape:?}, operation {index}, {fault:?}"));
            runs += 1;
        }
    }
    assert!(recycled > 0, "no log took over the file of another one");
    println!("{runs} runs, {failed} met an error");
    (runs * step as u64, failed * step as u64)
}

/// Whether a log gets the file of another one.
fn is_recycling(step: &Step) -> bool {
    matches!(step, Step::Operation(operation) if operation.to_string().starts_with("rename /db/SPARE to "))
}

#[test]
fn an_error_of_any_change_loses_nothing_promised_not_even_to_a_power_cut_after_it() {
    // Catches an ignored result, and a failed step that counts as done.
    let faults = [Fault::Device, Fault::StorageFull, Fault::ShortWrite];
    let (runs, failed) =
        at_each(FaultFs::mutations, |fs, index, fault| fs.fail_mutation(index, fault, Repeat::Once), &faults);
    assert!(runs > 500 && failed > 200, "{runs} runs, {failed} met an error");
}

#[test]
fn an_error_of_any_read_loses_nothing() {
    // Catches an unreadable file that is taken for an empty or an absent one.
    let (runs, failed) =
        at_each(FaultFs::reads, |fs, index, fault| fs.fail_read(index, fault, Repeat::Once), &[Fault::Device]);
    assert!(runs > 100 && failed > 50, "{runs} runs, {failed} met an error");
}

#[test]
fn rule_7_a_failed_sync_whose_bytes_no_later_sync_saves_loses_nothing_promised() {
    // Catches a failed sync that is repeated, and a recovery that goes on with data that is only in the page cache.
    let (mut runs, mut failed) = (0, 0);
    // The offset differs between shapes, so that they do not all skip the same cases.
    let step = step(3) as u64;
    for (number, (shape, seed)) in crate::script::SHAPES.into_iter().zip(SEED..).enumerate() {
        let script = Script::new(shape, seed);
        let mem = MemFs::default();
        run(&script, &mem, &FaultFs::new(Arc::new(mem.clone())).unmapped(), || false);
        for index in (number as u64 % step..mem.syncs()).step_by(step as usize) {
            let mem = MemFs::default();
            mem.fail_sync(index);
            let ended = run(&script, &mem, &FaultFs::new(Arc::new(mem.clone())).unmapped(), || mem.syncs() > index);
            failed += u64::from(!ended.errors.is_empty());
            check(&script, ended, Places::AfterSync, &format!("{shape:?}, sync {index}"));
            runs += 1;
        }
    }
    println!("{runs} runs, {failed} met an error");
    assert!(runs * step > 100 && failed * step > 80, "{runs} runs, {failed} met an error");
}
