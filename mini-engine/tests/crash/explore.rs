//! Cuts a recorded run at every operation, and recovers.
//!
//! A run is recorded once. Every state of its disk is then made again from the record, so a cut costs one recovery instead of one run. The
//! interleaving of the engine's threads differs between runs; the cuts follow the recorded order. Everything else depends only on the seed.
//!
//! At each operation, the disk is cut several times; each time another part of the unsynced data survives. Once, the process is killed instead,
//! which leaves all data. A read-only open must show the same as the recovery after it, and change nothing. The recovered database is checked
//! and written to. It is then cut itself, at every operation of the recovery and of the writes after it.

use crate::prelude::*;

/// The kinds of crashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Crash {
    Power,
    Kill,
}

/// The amount of exploration at each operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// The number of power cuts at each operation of the run.
    pub(crate) draws: u64,
    /// One in `nested_one_in` recoveries is cut again.
    pub(crate) nested_one_in: u64,
    /// The depth to which recoveries are cut within recoveries.
    pub(crate) depth: u32,
}

pub(crate) struct Explorer {
    script: Script,
    lie: Lie,
    effort: Effort,
    /// The seed of the random draws at the places of the run. Each place has its own draws, so another interleaving of threads at one place does
    /// not change the draws at the next.
    seed: u64,
    pub(crate) counts: Counts,
}

/// The state at a crash.
struct Struck<'a> {
    disk: &'a Disk,
    events: &'a [Event],
    progress: Progress,
    /// The time of the clock, in seconds.
    time: u64,
    depth: u32,
}

/// Runs a script of `shape` and explores its crashes. Returns the counts, or a description of the failure and its place.
pub(crate) fn explore(shape: Shape, seed: u64, lie: Lie, effort: Effort) -> Result<Counts, String> {
    let script = Script::new(shape, seed);
    let mem = MemFs::default();
    mem.record();
    let failed = |error| format!("a run on a sound disk fails: {error}");
    let mut run = Run::open(&script, mem.clone(), Arc::new(mem.clone()), lie, 0).map_err(failed)?;
    for act in &script.acts {
        run.act(act).map_err(failed)?;
        run.settle(|| false);
    }
    run.db.take();
    let record = mem.take_record();
    let mut explorer = Explorer::new(script, lie, effort, seed);
    explorer.counts.note("refused transactions", run.refused > 0);
    let explored = explorer.cut_some(&record, &run.events, &|_| true);
    explored.map_err(|what| format!("{shape:?}, seed {seed}: {what}"))?;
    Ok(explorer.counts)
}

impl Explorer {
    pub(crate) fn new(script: Script, lie: Lie, effort: Effort, seed: u64) -> Explorer {
        Explorer { script, lie, effort, seed, counts: Counts::default() }
    }

    /// Cuts a record that was made on an empty disk, at the places for which `is_wanted` returns true.
    pub(crate) fn cut_some(
        &mut self,
        record: &[Step],
        events: &[Event],
        is_wanted: &dyn Fn(usize) -> bool,
    ) -> Result<(), String> {
        let random = Random(self.seed);
        self.cut_all(&Disk::default(), (record, is_wanted), events, (Progress::default(), 0), 0, &random)
    }

    /// Cuts before each wanted operation of `record` and after the last one. The record was made on `disk`, from second `begin` on.
    fn cut_all(
        &mut self,
        disk: &Disk,
        (record, is_wanted): (&[Step], &dyn Fn(usize) -> bool),
        events: &[Event],
        (mut progress, begin): (Progress, u64),
        depth: u32,
        random: &Random,
    ) -> Result<(), String> {
        let mut disk = disk.clone();
        for (at, step) in record.iter().enumerate() {
            let operation = match step {
                Step::Note(word) => {
                    Note::read(*word, &mut progress);
                    continue;
                }
                Step::Operation(operation) => operation,
            };
            if is_wanted(at) {
                let time = begin.max(progress.begun as u64);
                let struck = Struck { disk: &disk, events, progress, time, depth };
                self.cut(&struck, Some(operation), random.at(at))
                    .map_err(|what| format!("{what}\n{}", around(record, at)))?;
            }
            disk.apply(operation).expect("possible on the disk that it was recorded on");
        }
        let time = begin.max(progress.begun as u64);
        let struck = Struck { disk: &disk, events, progress, time, depth };
        self.cut(&struck, None, random.at(record.len()))
            .map_err(|what| format!("{what}\n{}", around(record, record.len())))
    }

    /// Simulates all crashes before the operation `next`.
    fn cut(&mut self, struck: &Struck<'_>, next: Option<&Operation>, mut random: Random) -> Result<(), String> {
        let draws = if struck.disk.is_durable() || struck.depth > 0 { 1 } else { self.effort.draws };
        for _ in 0..draws {
            let seed = random.next();
            let (left, losses) = struck.disk.after_power_cut(seed);
            self.counts.note_losses(losses);
            self.crash(struck, next, (&left, Crash::Power), random.at(1))
                .map_err(|what| format!("power cut {seed}: {what}"))?;
        }
        if struck.depth > 0 && !random.one_in(4) {
            return Ok(());
        }
        self.crash(struck, next, (struck.disk, Crash::Kill), random.at(1)).map_err(|what| format!("kill: {what}"))
    }

    fn crash(
        &mut self,
        struck: &Struck<'_>,
        next: Option<&Operation>,
        (left, crash): (&Disk, Crash),
        random: Random,
    ) -> Result<(), String> {
        self.counts.note("points", true);
        self.counts.note("kills", crash == Crash::Kill);
        self.counts.note("nested", struck.depth > 0);
        let on = |thread: &str| next.is_some_and(|next| next.thread().contains(thread));
        self.counts.note("cut flushes", on("flush"));
        self.counts.note("cut compactions", on("compact"));
        self.counts.note(format!("cut compactions {}", self.script.policy), on("compact"));
        self.recover(struck, (left, crash), random)
    }

    /// Opens the database after a crash, checks it, goes on with it, and perhaps cuts the recovery and the new writes again.
    fn recover(
        &mut self,
        struck: &Struck<'_>,
        (left, crash): (&Disk, Crash),
        mut random: Random,
    ) -> Result<(), String> {
        let Progress { begun, acknowledged, durable } = struck.progress;
        let mem = MemFs::on(left.clone());
        mem.record();
        let recycled = has_recycled_log(&mem, left);
        let least = if crash == Crash::Power { durable } else { Kept::all(acknowledged) };
        let seen =
            look(left, struck.events, (least, begun), struck.time).map_err(|what| format!("read-only: {what}"))?;
        let opened = Run::open(&self.script, mem.clone(), Arc::new(mem.clone()), self.lie, struck.time);
        let mut run = opened.map_err(|error| format!("it does not open any more: {error}"))?;
        let found = judge(run.db(), struck.events, (least, begun), struck.time)?;
        if seen != (!run.db().recovery().created).then_some(found) {
            return Err(format!("a read-only open showed {seen:?}, recovery {found:?}"));
        }
        check_kept(&run, left)?;
        let kept = found.of(struck.events);
        self.note_report(&run, found.batches < last_batch(&struck.events[..acknowledged]));
        self.counts.note_entries(&entries_after(&kept), run.time);
        self.counts.note_lifetimes(&kept, run.time);
        self.counts.note_keyspaces(struck.events, struck.progress, found);
        let torn = run.db().recovery().torn.is_some();
        self.counts.note("recycled", recycled);
        self.counts.note("recycled torn", recycled && torn);
        let torn_kill = torn && crash == Crash::Kill && struck.depth == 0;
        self.counts.note("torn fills", torn_kill && begun > acknowledged);
        self.counts.note("torn kills", torn_kill && begun == acknowledged);
        // After a power cut all data on the disk is synced, so recovery finds the same data however often it is cut. After a kill, only data
        // that was synced before is safe until the open has returned.
        let sure = match crash {
            Crash::Power => Kept::all(kept.len()),
            Crash::Kill => Kept {
                batches: durable.batches.min(found.batches),
                // Creations and drops that may be lost have no existing batch behind them.
                keyspaces: found.with_keyspaces(durable.keyspaces).of(struck.events).len(),
            },
        };
        let progress = Progress { begun: kept.len(), acknowledged: kept.len(), durable: sure };
        run.adopt(kept);
        self.go_on(&mut run, &mut random)?;
        run.db.take();
        if struck.depth >= self.effort.depth || !random.one_in(self.effort.nested_one_in) {
            return Ok(());
        }
        let record = mem.take_record();
        let at = (progress, struck.time);
        let nested = self.cut_all(left, (&record, &|_| true), &run.events, at, struck.depth + 1, &random);
        nested.map_err(|what| format!("{what}\nin the recovery from a {crash:?} crash after {:?}", struck.progress))
    }

    /// Writes to a recovered database, and checks it again.
    fn go_on(&self, run: &mut Run, random: &mut Random) -> Result<(), String> {
        let goes_on = |error| format!("it takes no more writes: {error}");
        for synced in [false, true, false] {
            if let Some(event) = keyspace_event(&mut run.live(), &random.at(0), 6) {
                run.change_keyspaces(&event).map_err(goes_on)?;
            }
            let (number, origin) = (run.events.len() as u64 + 1, random.next());
            let batch = batch(self.script.shape, (number, origin), &run.live(), random);
            run.write(&batch, synced).map_err(goes_on)?;
        }
        run.settle(|| false);
        let all = run.events.len();
        judge(run.db(), &run.events, (Kept::all(all), all), run.time).map(drop)
    }

    fn note_report(&mut self, run: &Run, shortened: bool) {
        let report = run.db().recovery();
        let levels = run.db().metrics().levels;
        let below = || levels.iter().skip(1);
        for (name, is_met) in [
            ("torn tails", report.torn.is_some()),
            ("torn manifests", report.manifest_tail_dropped),
            ("set aside", !report.set_aside.is_empty()),
            ("orphans", report.orphans_removed > 0),
            ("shortened", shortened),
            ("below level 0", below().any(|level| level.tables > 0)),
            ("several runs", below().any(|level| level.runs > 1)),
            ("narrowed", levels.iter().any(|level| level.narrowed > 0)),
            ("range tombstones", levels.iter().any(|level| level.range_tombstones > 0)),
        ] {
            self.counts.note(name, is_met);
        }
    }
}

/// Checks the contents of `left` with a read-only open, which must not change `left`; `None` if there is no database yet.
fn look(left: &Disk, events: &[Event], range: (Kept, usize), time: u64) -> Result<Option<Kept>, String> {
    let mem = MemFs::on(left.clone());
    mem.record();
    let fs = FaultFs::new(Arc::new(mem.clone()));
    fs.mount_read_only();
    let builder = Db::builder(DIR).file_system(fs.arc()).time_source(Clock::at(second(time)).source());
    let found = match builder.read_only(true).open() {
        Ok(db) => Some(judge(&db, events, range, time)?),
        Err(Error::NotADatabase { .. }) => None,
        Err(error) => return Err(format!("it does not open any more: {error}")),
    };
    match (fs.mutations(), mem.take_record().len()) {
        (0, 0) => Ok(found),
        (tried, done) => Err(format!("{tried} changes were tried, {done} made")),
    }
}

/// Whether a log is in the reused file of another log.
fn has_recycled_log(mem: &MemFs, left: &Disk) -> bool {
    let names = mem.read_dir(Path::new(DIR)).unwrap_or_default();
    let logs = names.iter().filter(|name| name.to_string_lossy().ends_with(".log"));
    logs.filter_map(|name| left.read(&Path::new(DIR).join(name)).ok()).any(is_recycled)
}

/// Whether the header of a log names the previous log of the file.
fn is_recycled(log: &[u8]) -> bool {
    log.get(32..40).is_some_and(|number| number != [0; 8])
}

/// Checks that the bytes that recovery cut off a log are in a separate file, byte for byte (rule 2).
fn check_kept(run: &Run, left: &Disk) -> Result<(), String> {
    let Some(torn) = run.db().recovery().torn.as_ref().filter(|torn| torn.dropped_bytes > 0) else { return Ok(()) };
    let (disk, aside) = (run.mem.disk(), torn.log.with_extension("log.tail.aside"));
    let kept = disk.read(&aside).map_err(|error| format!("{}: {error}", aside.display()))?;
    let torn_log = left.read(&torn.log).map_err(|error| format!("{}: {error}", torn.log.display()))?;
    let from = torn.offset as usize;
    match kept.get(from..) == torn_log.get(from..from + torn.dropped_bytes as usize) {
        true => Ok(()),
        false => Err(format!("{} is not what was cut off from {torn:?}", aside.display())),
    }
}

/// The operations before and after a cut.
fn around(record: &[Step], at: usize) -> String {
    let first = at.saturating_sub(30);
    let show = |(index, step): (usize, &Step)| {
        let mark = if index == at { "-- crash --\n" } else { "" };
        match step {
            Step::Operation(operation) => format!("{mark}{index} {operation} [{}]", operation.thread()),
            Step::Note(word) => format!("{mark}{index} note {} {}", word >> 32, *word as u32),
        }
    };
    let lines: Vec<String> = record.iter().enumerate().take(at + 3).skip(first).map(show).collect();
    lines.join("\n")
}
