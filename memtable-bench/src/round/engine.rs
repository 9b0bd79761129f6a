//! One round of an engine: databases in directories of their own. Each workload that fills one begins with an empty directory;
//! what reads begins with a full database at rest: flushed, compacted, and read once, so that what fits is in its cache.
//!
//! Everything that an operation gives back is compared with the input, and so are the contents at the end of each database.

use std::fs;
use std::panic;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use mini_engine::Metrics;
use tempfile::TempDir;

use super::contents::{self, Contents, Op, Ops};
use super::digest::{Digest, adder, compare, of_count, of_value};
use super::input::Input;
use super::outcome::{Fact, Outcome, Request, Sample, Timeline};
use super::recorder::{Recorder, timeline};
use crate::clock::{share, timed};
use crate::engines::engine::{Done, Engine, Settings};
use crate::latency::{self, Latency};
use crate::machine::{self, Io};
use crate::spec::{Shape, Workload};

/// Records of a batch.
const BATCH: usize = 100;
/// How often memory is looked at.
const LOOK: Duration = Duration::from_millis(20);

pub(super) fn run<E: Engine>(request: &Request) -> Result<Outcome, String> {
    run_round::<E>(request).map_err(|error| error.to_string())
}

fn run_round<E: Engine>(request: &Request) -> Done<Outcome> {
    let wanted: Vec<_> = request.workloads.iter().copied().filter(|of| request.subject.can(*of)).collect();
    let input = &Input::new(&request.shape, contents::later(&request.shape, &wanted));
    let mut round = Round { request, input, places: tempfile::tempdir()?, anonymous: 0, samples: Vec::new() };
    for fill in [Workload::Put, Workload::PutBatch, Workload::SyncedPut] {
        let is_wanted = |of: &Workload| *of == fill || fill == Workload::Put && *of == Workload::Load;
        if wanted.iter().any(is_wanted) {
            round.fill::<E>(fill)?;
        }
    }
    if wanted.contains(&Workload::Replay) {
        round.replay::<E>()?;
    }
    let at_rest: Vec<_> = wanted.iter().copied().filter(|of| of.is_at_rest()).collect();
    if !at_rest.is_empty() {
        round.at_rest::<E>(&at_rest)?;
    }
    round.samples.retain(|sample| wanted.contains(&sample.workload));
    Ok(Outcome { samples: round.samples, failed: None })
}

fn check<E: Engine>(db: &E, contents: &Contents<'_>) -> Done {
    contents.check(|each| db.scan(&[], usize::MAX, each))
}

struct Round<'i> {
    request: &'i Request,
    input: &'i Input,
    /// For the directories. Removed with everything in it.
    places: TempDir,
    /// Anonymous memory before there was a database.
    anonymous: u64,
    samples: Vec<Sample>,
}

/// The system's and the engine's accounts at one time.
struct Account {
    io: Option<Io>,
    metrics: Option<Metrics>,
}

impl Account {
    fn of(db: &impl Engine) -> Self {
        Self { io: Io::now(), metrics: db.metrics() }
    }
}

impl Round<'_> {
    fn shape(&self) -> &Shape {
        &self.request.shape
    }

    /// Opens the database in `dir`, which is made if it is not there.
    fn open<E: Engine>(&mut self, dir: &str, synced: bool) -> Done<E> {
        let dir = self.places.path().join(dir);
        fs::create_dir_all(&dir)?;
        let (subject, shape) = (self.request.subject, self.shape());
        let (cache_bytes, memtable_bytes) = (shape.cache_bytes(), shape.memtable_bytes());
        self.anonymous = machine::anonymous().unwrap_or_default();
        E::open(&Settings { subject, dir, cache_bytes, memtable_bytes, synced })
    }

    fn discard(&self, dir: &str) -> Done {
        Ok(fs::remove_dir_all(self.places.path().join(dir))?)
    }

    /// Fills an empty database by `workload`; by put until it is flushed, too.
    fn fill<E: Engine>(&mut self, workload: Workload) -> Done {
        let mut contents = Contents::empty(self.input);
        let ops = contents.operations(workload);
        let db: E = self.open("filled", workload == Workload::SyncedPut)?;
        let before = Account::of(&db);
        self.time(&db, workload, &ops)?;
        if workload == Workload::Put {
            let begun = Instant::now();
            db.flush()?;
            let flush = begun.elapsed();
            let put = Duration::from_nanos(self.samples.last().expect("just measured").ns);
            let facts = [self.disk_bytes(&before, ops.ops.len()), self.disk_space("filled")?];
            self.samples.push(Sample::new(Workload::Load, ops.ops.len(), put + flush));
            self.facts(facts);
        }
        check(&db, &contents)?;
        db.close()?;
        self.discard("filled")
    }

    /// Opens a copy of a database of which all is in the log.
    fn replay<E: Engine>(&mut self) -> Done {
        let mut contents = Contents::empty(self.input);
        let ops = contents.operations(Workload::Replay);
        let db: E = self.open("original", false)?;
        self.run(&db, Workload::Put, &ops)?;
        copy(&self.places.path().join("original"), &self.places.path().join("copy"))?;
        db.close()?;
        self.discard("original")?;
        self.time_open::<E>(Workload::Replay, "copy", &contents)
    }

    /// Times until the database in `dir` is open and has found a key. Replay counts the records, open itself.
    fn time_open<E: Engine>(&mut self, workload: Workload, dir: &str, contents: &Contents<'_>) -> Done {
        let operations = if workload == Workload::Open { 1 } else { self.shape().entries };
        let begun = Instant::now();
        let db: E = self.open(dir, false)?;
        let found = db.get(self.input.key(0), of_value)?;
        let time = begun.elapsed();
        found.ok_or("expected the first key, found none")?;
        self.samples.push(Sample::new(workload, operations, time));
        check(&db, contents)?;
        db.close()?;
        self.discard(dir)
    }

    /// Does what is to be done with a full database at rest.
    fn at_rest<E: Engine>(&mut self, workloads: &[Workload]) -> Done {
        let mut contents = Contents::empty(self.input);
        let fill = contents.operations(Workload::PutBatch);
        let warm_up = contents.operations(Workload::Get);
        // All of it before the database is there: what it takes is no memory of the database.
        let plan: Vec<_> = workloads.iter().map(|&of| (of, contents.operations(of))).collect();
        let db: E = self.open("at-rest", false)?;
        self.run(&db, Workload::PutBatch, &fill)?;
        db.flush()?;
        db.settle()?;
        self.run(&db, Workload::Get, &warm_up)?;
        for (workload, ops) in &plan {
            match workload {
                Workload::ReadWhileWriting => self.read_while_writing(&db, ops)?,
                Workload::Overwrite => self.overwrite(&db, ops, &warm_up)?,
                Workload::Open => {}
                _ => self.time(&db, *workload, ops)?,
            }
        }
        check(&db, &contents)?;
        db.flush()?;
        db.settle()?;
        db.close()?;
        if workloads.contains(&Workload::Open) {
            self.time_open::<E>(Workload::Open, "at-rest", &contents)?;
        }
        Ok(())
    }

    /// Measures a workload: the time, the accounts, and the most memory it took.
    fn time<E: Engine>(&mut self, db: &E, workload: Workload, ops: &Ops) -> Done {
        let before = Account::of(db);
        let (time, threads, peak) = watched(|| self.run(db, workload, ops))?;
        self.push(workload, ops.ops.len(), time, &threads);
        let (count, after) = (ops.ops.len(), Account::of(db));
        let configured = self.shape().cache_bytes() + 2 * self.shape().memtable_bytes();
        let memory = peak.map(|peak| (Fact::Memory, peak.saturating_sub(self.anonymous) as f64 / configured as f64));
        let is_write = !matches!(workload, Workload::Get | Workload::Miss);
        let calls = before.io.zip(after.io).map(|(before, now)| now.write_calls - before.write_calls);
        let calls = calls.filter(|_| is_write).map(|calls| (Fact::WriteCalls, calls as f64 / count as f64));
        let syncs = before.metrics.zip(after.metrics).map(|(before, now)| now.wal_syncs - before.wal_syncs);
        let syncs = syncs.filter(|_| workload == Workload::SyncedPut).map(|of| (Fact::Syncs, of as f64 / count as f64));
        self.facts([memory, calls, syncs]);
        Ok(())
    }

    /// Adds the sample of a workload.
    fn push(&mut self, workload: Workload, count: usize, time: Duration, threads: &[Recorder]) {
        let times: Vec<_> = threads.iter().map(|of| of.times().clone()).collect();
        let clock = latency::each(Instant::now, 0..10_000, drop);
        let (moment_ms, operations) = timeline(threads);
        let latency = Some(Latency::new(&times, &clock));
        let timeline = workload.has_stalls().then_some(Timeline { moment_ms, operations });
        self.samples.push(Sample { latency, timeline, ..Sample::new(workload, count, time) });
    }

    /// Adds facts to the last sample.
    fn facts(&mut self, facts: impl IntoIterator<Item = Option<(Fact, f64)>>) {
        let sample = self.samples.last_mut().expect("just measured");
        sample.facts.extend(facts.into_iter().flatten());
    }

    /// Does the operations, and compares what they found. A batch counts as so many operations as it has records.
    fn run<E: Engine>(&self, db: &E, workload: Workload, ops: &Ops) -> Done<(Duration, Vec<Recorder>)> {
        let threads = self.shape().threads;
        let (time, ended) = timed(threads, |thread| {
            let (mut sum, mut recorder) = (0, Recorder::start());
            let mut part = share(ops.ops.len(), threads, thread);
            while workload == Workload::PutBatch && !part.is_empty() {
                let batch = part.start..part.end.min(part.start + BATCH);
                part.start = batch.end;
                sum += of_count(batch.len());
                db.put_batch(batch.clone().map(|at| self.input.record(number(ops.ops[at]), ops.keys.get(at))))?;
                recorder.tick(batch.len() as u64);
            }
            for at in part {
                sum += self.step(db, ops.ops[at], ops.keys.get(at))?;
                recorder.tick(1);
            }
            Done::Ok((sum, recorder))
        });
        let (sums, recorders): (Vec<_>, Vec<_>) = ended.into_iter().collect::<Done<Vec<_>>>()?.into_iter().unzip();
        compare(workload, sums.into_iter().sum(), ops.expected)?;
        Ok((time, recorders))
    }

    #[inline]
    fn step<E: Engine>(&self, db: &E, op: Op, key: &[u8]) -> Done<Digest> {
        let put = |record| db.put(self.input.record(record, key)).map(|()| of_count(1));
        match op {
            Op::Get => Ok(db.get(key, of_value)?.unwrap_or_default()),
            Op::Put(record) => put(record),
            Op::Scan(most) => {
                let mut sum = 0;
                db.scan(key, most, adder(&mut sum))?;
                Ok(sum)
            }
            Op::Update(record) => Ok(db.get(key, of_value)?.unwrap_or_default() + put(record)?),
            Op::Delete => unreachable!("no workload of engines deletes"),
        }
    }

    /// One thread reads while another one stores what is there already, as fast as it can.
    fn read_while_writing<E: Engine>(&mut self, db: &E, ops: &Ops) -> Done {
        let (first, begun) = mpsc::channel();
        // Closed when everything was read, or reading has panicked.
        let (open, closed) = mpsc::channel::<()>();
        let input = self.input;
        let write = move || {
            let mut written = 0;
            for record in input.stored().rev().cycle() {
                if closed.try_recv() != Err(mpsc::TryRecvError::Empty) {
                    break;
                }
                db.put(input.record(record, input.key(record)))?;
                written += 1;
                // The reader waits for the first one only.
                let _ = first.send(());
            }
            Done::Ok(written)
        };
        let ((time, threads), written) = thread::scope(|scope| {
            let writer = scope.spawn(write);
            // A writer that fails lets it go on, too.
            let _ = begun.recv();
            drop(begun);
            let read = self.run(db, Workload::ReadWhileWriting, ops);
            drop(open);
            let written: u32 = writer.join().unwrap_or_else(|cause| panic::resume_unwind(cause))?;
            Done::Ok((read?, written))
        })?;
        self.push(Workload::ReadWhileWriting, ops.ops.len(), time, &threads);
        self.facts([Some((Fact::WriterRate, f64::from(written) / time.as_secs_f64()))]);
        Ok(())
    }

    /// Overwrites, waits until no compaction is due, and reads: the amplifications.
    fn overwrite<E: Engine>(&mut self, db: &E, ops: &Ops, reads: &Ops) -> Done {
        let before = Account::of(db);
        self.time(db, Workload::Overwrite, ops)?;
        db.flush()?;
        db.settle()?;
        let settled = Account::of(db);
        let facts = [self.disk_bytes(&before, ops.ops.len()), self.disk_space("at-rest")?];
        self.facts(facts);
        reads
            .keys
            .iter()
            .try_for_each(|key| db.get(key, |_| ())?.ok_or("a key is lost").map_err(Into::into) as Done)?;
        if let Some((settled, now)) = settled.metrics.zip(db.metrics()) {
            let blocks = (now.get_blocks - settled.get_blocks) as f64 / (now.gets - settled.gets) as f64;
            let [write, space] = [settled.write_amplification(), settled.space_amplification()];
            let read = Some((Fact::ReadAmplification, blocks));
            let [write, space] = [(Fact::WriteAmplification, write), (Fact::SpaceAmplification, space)]
                .map(|(fact, of)| of.map(|of| (fact, of)));
            self.facts([write, read, space]);
        }
        Ok(())
    }

    /// Bytes that went to the disk since `before`, for each byte of `count` records.
    fn disk_bytes(&self, before: &Account, count: usize) -> Option<(Fact, f64)> {
        let written = Io::now()?.disk_bytes - before.io?.disk_bytes;
        let stored = count as f64 * self.input.payload() as f64 / self.shape().entries as f64;
        Some((Fact::DiskBytes, written as f64 / stored))
    }

    /// Bytes on the disk for each byte of the records.
    fn disk_space(&self, dir: &str) -> Done<Option<(Fact, f64)>> {
        let bytes = machine::disk_space(&self.places.path().join(dir))?;
        Ok(bytes.map(|bytes| (Fact::DiskSpace, bytes as f64 / self.input.payload() as f64)))
    }
}

fn number(op: Op) -> usize {
    match op {
        Op::Put(record) | Op::Update(record) => record,
        Op::Get | Op::Scan(_) | Op::Delete => 0,
    }
}

/// Does `work`, and watches for the most anonymous memory meanwhile.
fn watched(work: impl FnOnce() -> Done<(Duration, Vec<Recorder>)>) -> Done<(Duration, Vec<Recorder>, Option<u64>)> {
    thread::scope(|scope| {
        // Closed when the work is done, or has panicked.
        let (open, closed) = mpsc::channel::<()>();
        let watcher = scope.spawn(move || {
            let mut peak = machine::anonymous();
            while closed.recv_timeout(LOOK) == Err(mpsc::RecvTimeoutError::Timeout) {
                peak = peak.max(machine::anonymous());
            }
            peak.max(machine::anonymous())
        });
        let done = work();
        drop(open);
        let (time, threads) = done?;
        Ok((time, threads, watcher.join().unwrap_or_default()))
    })
}

/// Copies a directory and all that is below it.
fn copy(from: &Path, to: &PathBuf) -> Done {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &to)?;
        } else {
            fs::copy(entry.path(), to)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
