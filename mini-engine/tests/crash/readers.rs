//! Readers beside a writer: between any two operations of the writer on the disk, a reader opens the database or moves on.
//!
//! A process is recorded and killed at a random operation, and another one continues, a few times over. Then all of their operations are repeated on
//! a disk of their own, and readers look at that disk in between; the next operations may come between any two reads of a reader. A reader must show
//! all events that were acknowledged before it began, and a state after a number of events, as a recovery must (`oracle.rs`). For the readers, the disk
//! is mounted read-only.

use std::sync::Mutex;

use mini_engine::Snapshot;

use crate::prelude::*;
use crate::script::load;

/// The number of runs: each shape with each policy, twice.
const RUNS: u64 = 48;
/// The number of processes of a run, one after the other.
const LIVES: usize = 3;

/// The operations of one process, and its events, which begin with those that it has recovered.
struct Life {
    record: Vec<Step>,
    events: Vec<Event>,
}

/// The progress of all processes so far.
#[derive(Clone, Copy, Default)]
struct Known {
    progress: Progress,
    /// The time of the newest event, in seconds.
    time: u64,
}

impl Known {
    fn note(&mut self, word: u64) {
        Note::read(word, &mut self.progress);
        self.time = self.time.max(self.progress.begun as u64);
    }

    fn judge(self, db: &Db, events: &[Event]) -> Result<Kept, String> {
        let Progress { acknowledged, begun, .. } = self.progress;
        judge(db, events, (Kept::all(acknowledged), begun.min(events.len())), self.time)
    }
}

/// Does the same as `act`, in a database that may lack events of the script.
fn repeat(run: &mut Run, script: &Script, act: &Act, random: &mut Random) -> Result<(), Error> {
    let (place, origin) = (run.events.len() as u64 + 1, random.next());
    match act {
        Act::Keyspace(_) => match keyspace_event(&mut run.live(), &random.at(0), 1) {
            Some(event) => run.change_keyspaces(&event),
            None => Ok(()),
        },
        Act::Write { batch, .. } if matches!(batch[..], [(_, Change::Load(_))]) => {
            run.write(&load(place, origin, random), true)
        }
        Act::Write { synced, .. } | Act::Transact { synced, .. } => {
            run.write(&batch(script.shape, (place, origin), &run.live(), random), *synced)
        }
        act => run.act(act),
    }
}

fn record_lives(script: &Script, random: &mut Random) -> Result<Vec<Life>, String> {
    let (mut disk, mut lives, mut known) = (Disk::default(), Vec::<Life>::new(), Known::default());
    for acts in script.acts.chunks(script.acts.len().div_ceil(LIVES)) {
        let mem = MemFs::on(disk.clone());
        mem.record();
        let failed = |error| format!("a run on a sound disk fails: {error}");
        let opened = Run::open(script, mem.clone(), Arc::new(mem.clone()), Lie::None, known.time);
        let mut run = opened.map_err(failed)?;
        if let Some(before) = lives.last() {
            let kept = known.judge(run.db(), &before.events)?;
            run.adopt(kept.of(&before.events));
        }
        for act in acts {
            repeat(&mut run, script, act, random).map_err(failed)?;
            run.settle(|| false);
        }
        run.db.take();
        let mut record = mem.take_record();
        record.truncate(record.len() - random.index(record.len() / 2));
        for step in &record {
            match step {
                Step::Operation(operation) => disk.apply(operation).expect("possible"),
                Step::Note(word) => known.note(*word),
            }
        }
        lives.push(Life { record, events: run.events });
    }
    Ok(lives)
}

/// Repeats the operations of a run on another disk.
struct Stage {
    mem: MemFs,
    lives: Vec<Life>,
    /// The life and the step in it that is next.
    next: (usize, usize),
    /// The life with the present events.
    life: usize,
    known: Known,
}

impl Stage {
    /// Repeats the next step. Returns false if there is none.
    fn step(&mut self) -> bool {
        let Some(life) = self.lives.get(self.next.0) else { return false };
        match life.record.get(self.next.1) {
            None => {
                self.next = (self.next.0 + 1, 0);
                return true;
            }
            Some(Step::Operation(operation)) => self.mem.apply(operation).expect("possible"),
            Some(Step::Note(word)) => {
                if Note::is_begun(*word) {
                    self.life = self.next.0;
                }
                self.known.note(*word);
            }
        }
        self.next.1 += 1;
        true
    }

    /// The operations before the next one, for a message.
    fn place(&self) -> String {
        let before = self
            .lives
            .get(self.next.0)
            .map_or(&[][..], |life| &life.record[self.next.1.saturating_sub(12)..self.next.1]);
        let shown = |step: &Step| match step {
            Step::Operation(operation) => operation.to_string(),
            Step::Note(word) => format!("note {} {}", word >> 32, *word as u32),
        };
        format!("after step {:?}:\n{}", self.next, before.iter().map(shown).collect::<Vec<_>>().join("\n"))
    }
}

/// The stage, and what readers need to look at it.
struct Readers {
    stage: Arc<Mutex<Stage>>,
    fs: FaultFs,
    clock: Clock,
    /// A reader that lives as long as the database, and a snapshot of it with its contents.
    old: Option<Db>,
    snapshot: Option<(Snapshot, Map)>,
    random: Random,
    counts: Counts,
}

impl Readers {
    fn stage(&self) -> std::sync::MutexGuard<'_, Stage> {
        self.stage.lock().expect("no panic")
    }

    fn open(&self) -> Result<Option<Db>, String> {
        let builder = Db::builder(DIR).file_system(self.fs.arc()).time_source(self.clock.source());
        match builder.reader().open() {
            Ok(db) => Ok(Some(db)),
            Err(Error::NotADatabase { .. }) => Ok(None),
            Err(error) => Err(format!("a reader does not open: {error}")),
        }
    }

    /// Runs `read`, and checks the reader that results. The state must be one between the beginning and the end of `read`. The expiries of entries are
    /// judged at the present time, whatever the moment.
    fn check(&self, read: impl FnOnce() -> Result<Option<Db>, String>) -> Result<(), String> {
        let before = self.stage().known.progress;
        let db = read()?;
        let (events, known, place) = {
            let stage = self.stage();
            (stage.lives[stage.life].events.clone(), stage.known, stage.place())
        };
        self.clock.set(second(known.time));
        let progress = Progress { acknowledged: before.acknowledged, ..known.progress };
        match db {
            Some(db) => {
                Known { progress, ..known }.judge(&db, &events).map(drop).map_err(|what| format!("{what}\n{place}"))
            }
            None if before.acknowledged > 0 => Err(format!("no database\n{place}")),
            None => Ok(()),
        }
    }

    /// Looks at the disk, perhaps by a new reader, perhaps by the old one.
    fn look(&mut self) -> Result<(), String> {
        if self.random.one_in(3) {
            self.check(|| self.open()).map_err(|what| format!("a new reader: {what}"))?;
        }
        let Some(old) = self.old.clone() else {
            self.old = self.open()?;
            return Ok(());
        };
        if self.random.one_in(2) {
            let tables = |db: &Db| db.metrics().levels.iter().map(|level| level.tables).sum::<u64>();
            let before = (old.snapshot().seqno(), tables(&old));
            let refresh = || old.refresh().map(|_| Some(old.clone())).map_err(|error| format!("it fails: {error}"));
            self.check(refresh).map_err(|what| format!("a refresh: {what}"))?;
            self.counts.note("new writes", before.0 < old.snapshot().seqno());
            self.counts.note("new tables", before.1 != tables(&old));
        }
        if let Some((snapshot, before)) = &self.snapshot {
            check_unchanged(snapshot, before)?;
        }
        if self.random.one_in(20) {
            let snapshot = old.snapshot();
            self.snapshot = Some((snapshot.clone(), contents(&snapshot)?));
        }
        Ok(())
    }
}

fn contents(snapshot: &Snapshot) -> Result<Map, String> {
    let entries = snapshot.iter().map(|entry| entry.map(|(key, value)| (key.to_vec(), value.to_vec())));
    entries.collect::<Result<Map, Error>>().map_err(|error| format!("a snapshot: {error}"))
}

fn check_unchanged(snapshot: &Snapshot, before: &Map) -> Result<(), String> {
    if contents(snapshot)? != *before {
        return Err("a snapshot has changed".to_owned());
    }
    for key in (0..crate::script::KEYS).map(crate::script::key) {
        let found = snapshot.get(&key).map_err(|error| format!("a snapshot: {error}"))?;
        if found.as_deref() != before.get(&key).map(|value| &value[..]) {
            return Err("a get of a snapshot differs from its scan".to_owned());
        }
    }
    Ok(())
}

/// Repeats a run before readers. The writer makes a step between two looks, and, one time in `pace`, fewer than `burst` steps before a read of a
/// reader.
fn read_beside(shape: Shape, seed: u64, (pace, burst): (u64, u64)) -> Result<Counts, String> {
    let mut random = Random(seed);
    let lives = record_lives(&Script::new(shape, seed), &mut random)?;
    let mem = MemFs::default();
    let fs = FaultFs::new(Arc::new(mem.clone()));
    fs.mount_read_only();
    let stage = Stage { mem, lives, next: (0, 0), life: 0, known: Known::default() };
    let stage = Arc::new(Mutex::new(stage));
    let (meanwhile, draws) = (stage.clone(), Mutex::new(random.clone()));
    fs.before_reads(move || {
        let mut draws = draws.lock().expect("no panic");
        let steps = if draws.one_in(pace) { draws.below(burst) } else { 0 };
        let mut stage = meanwhile.lock().expect("no panic");
        for _ in 0..steps {
            stage.step();
        }
    });
    let (clock, counts) = (Clock::at(second(0)), Counts::default());
    let mut readers = Readers { stage, fs: fs.clone(), clock, old: None, snapshot: None, random, counts };
    while readers.stage().step() {
        readers.look()?;
    }
    match fs.mutations() {
        0 => Ok(readers.counts),
        changes => Err(format!("readers have tried {changes} changes")),
    }
}

#[test]
fn between_any_two_operations_of_a_writer_a_reader_sees_all_acknowledged_writes_and_no_part_of_one() {
    // Catches a reader that misses a log or a table because it reads the files in the wrong order, takes frames of a recycled log, mixes two moments,
    // or cannot read a file that the writer has removed; a snapshot that follows the reader; and a reader that changes files.
    let seed = crate::points::seed();
    let mut sum = Counts::default();
    for run in 0..RUNS {
        let shape = SHAPES[run as usize % SHAPES.len()];
        // A writer that stands still while a reader reads, one as fast as the reader, and two that flush logs between two reads.
        let pace = [(u64::MAX, 1), (1, 3), (40, 100), (100, 300)][run as usize / SHAPES.len() % 4];
        let counts = read_beside(shape, seed.wrapping_add(run), pace);
        sum.add(&counts.unwrap_or_else(|what| panic!("CRASH_SEED={seed}, run {run}, {shape:?}: {what}")));
    }
    assert!(sum.of("new writes") > 0 && sum.of("new tables") > 0, "{sum:?}");
}
