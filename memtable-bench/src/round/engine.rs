//! One round of an engine: databases in directories of their own. A workload that fills a database begins with an empty directory. A workload that
//! reads begins with a full database at rest: flushed, compacted, and read once, so that its cache holds as much as fits. Before the first measured
//! scans, the database was scanned often and has come to rest again.
//!
//! Every result of an operation is compared with the input, and so are the contents of each database at its end.

use std::fs;
use std::io;
use std::panic;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use mini_engine::Metrics;
use tempfile::TempDir;

use super::contents::{Contents, Ops};
use super::sample::Sample;
use super::work::Work;
use crate::machine::{self, Io};
use crate::spec::Workload;
use crate::subjects::store::{Done, Store, amount};

/// The interval between measurements of memory.
const LOOK: Duration = Duration::from_millis(20);
/// The least scans before the first measured one, or one for each entry of a smaller database. Scans of a small database cause no work in an engine,
/// and `SCANS_BEFORE` of them could take longer than a round's time limit on a loaded machine.
const SCANS_BEFORE: usize = 20_000;

pub(super) fn run<S: Store>(work: &Work<'_>, wanted: &[Workload]) -> Done<Vec<Sample>> {
    let mut round = Round { work, places: tempfile::tempdir()?, anonymous: 0, samples: Vec::new() };
    for fill in [Workload::Put, Workload::PutBatch, Workload::SyncedPut] {
        let is_wanted = |of: &Workload| *of == fill || fill == Workload::Put && *of == Workload::Load;
        if wanted.iter().any(is_wanted) {
            round.fill::<S>(fill)?;
        }
    }
    if wanted.contains(&Workload::Replay) {
        round.replay::<S>()?;
    }
    if wanted.contains(&Workload::Transactions) {
        round.transactions::<S>()?;
    }
    let at_rest: Vec<_> = wanted.iter().copied().filter(|of| of.is_at_rest()).collect();
    if !at_rest.is_empty() {
        round.at_rest::<S>(&at_rest)?;
    }
    Ok(round.samples)
}

struct Round<'w> {
    work: &'w Work<'w>,
    /// The parent of the directories; removed with everything in it.
    places: TempDir,
    /// Anonymous memory before the database was opened.
    anonymous: u64,
    samples: Vec<Sample>,
}

/// The counters of the system and of the engine at one time.
struct Account {
    io: Option<Io>,
    metrics: Option<Metrics>,
}

impl Account {
    fn of(db: &impl Store) -> Self {
        Self { io: Io::now(), metrics: db.metrics() }
    }
}

impl Round<'_> {
    /// Opens the database in `dir`, or creates it.
    fn open<S: Store>(&mut self, dir: &str, synced: bool) -> Done<S> {
        let dir = self.places.path().join(dir);
        fs::create_dir_all(&dir)?;
        self.anonymous = machine::anonymous().unwrap_or_default();
        S::open(&self.work.settings(&dir, synced))
    }

    fn discard(&self, dir: &str) -> Done {
        Ok(fs::remove_dir_all(self.places.path().join(dir))?)
    }

    /// Fills an empty database by `workload`; for put, also waits for the flush.
    fn fill<S: Store>(&mut self, workload: Workload) -> Done {
        let mut contents = Contents::empty(self.work.input);
        let ops = contents.operations(workload);
        let db: S = self.open("filled", workload == Workload::SyncedPut)?;
        let before = Account::of(&db);
        self.time(&db, workload, &ops)?;
        if workload == Workload::Put {
            let begun = Instant::now();
            db.flush()?;
            let flush = begun.elapsed();
            let put = Duration::from_nanos(self.samples.last().expect("just measured").ns);
            let facts =
                [("disk-bytes", self.disk_bytes(&before, ops.count)), ("disk-space", self.disk_space("filled")?)];
            self.samples.push(Sample::new(Workload::Load, ops.count).timed(put + flush));
            self.facts(facts);
        }
        self.work.check(&db, &contents)?;
        db.close()?;
        self.discard("filled")
    }

    /// Moves amounts between the records of a database at rest. An amount is in a value's first eight bytes; after a lost update, the sum of all
    /// would differ.
    fn transactions<S: Store>(&mut self) -> Done {
        let mut contents = Contents::empty(self.work.input);
        let (fill, ops) = (contents.operations(Workload::PutBatch), contents.operations(Workload::Transactions));
        let db: S = self.open("accounts", false)?;
        self.work.perform(&db, Workload::PutBatch, &fill)?;
        db.flush()?;
        db.settle()?;
        let total = || {
            let (mut accounts, mut total) = (0, 0_i64);
            db.scan_all(|_, value| (accounts, total) = (accounts + 1, total.wrapping_add(amount(value))))?;
            Done::Ok((accounts, total))
        };
        let before = total()?;
        self.time(&db, Workload::Transactions, &ops)?;
        let after = total()?;
        if after != before {
            return Err(format!("expected {before:?} as accounts and their sum, found {after:?}").into());
        }
        db.close()?;
        self.discard("accounts")
    }

    /// Opens a copy of a database with all its data in the log.
    fn replay<S: Store>(&mut self) -> Done {
        let mut contents = Contents::empty(self.work.input);
        let ops = contents.operations(Workload::Replay);
        let db: S = self.open("original", false)?;
        self.work.perform(&db, Workload::Put, &ops)?;
        copy(&self.places.path().join("original"), &self.places.path().join("copy"))?;
        db.close()?;
        self.discard("original")?;
        self.time_open::<S>(Workload::Replay, "copy", &contents)
    }

    /// Times the open of the database in `dir` and the first get. For replay an operation is a record, for open it is the whole open.
    fn time_open<S: Store>(&mut self, workload: Workload, dir: &str, contents: &Contents<'_>) -> Done {
        let operations = if workload == Workload::Open { 1 } else { self.work.shape().entries };
        let begun = Instant::now();
        let db: S = self.open(dir, false)?;
        let found = db.get(self.work.input.keys.get(0), |_| ())?;
        let time = begun.elapsed();
        found.ok_or("expected the first key, found none")?;
        self.samples.push(Sample::new(workload, operations).timed(time));
        self.work.check(&db, contents)?;
        db.close()?;
        self.discard(dir)
    }

    /// Runs the workloads that need a full database at rest.
    fn at_rest<S: Store>(&mut self, workloads: &[Workload]) -> Done {
        let mut contents = Contents::empty(self.work.input);
        let fill = contents.operations(Workload::PutBatch);
        let warm_up = contents.operations(Workload::Get);
        let scans = contents.operations(Workload::Scan10);
        // All operations are made before the database is opened, so that they do not count as its memory.
        let plan: Vec<_> = workloads.iter().map(|&of| (of, contents.operations(of))).collect();
        let db: S = self.open("at-rest", false)?;
        self.work.perform(&db, Workload::PutBatch, &fill)?;
        db.flush()?;
        db.settle()?;
        self.work.perform(&db, Workload::Get, &warm_up)?;
        let first_scan = plan.iter().position(|(of, _)| of.is_scan());
        for (at, (workload, ops)) in plan.iter().enumerate() {
            if first_scan == Some(at) {
                self.scan_often(&db, &scans, &warm_up)?;
            }
            match workload {
                Workload::ReadWhileWriting => self.read_while_writing(&db, ops)?,
                Workload::Overwrite => self.overwrite(&db, ops, &warm_up)?,
                Workload::Open => {}
                _ => self.time(&db, *workload, ops)?,
            }
        }
        self.work.check(&db, &contents)?;
        db.flush()?;
        db.settle()?;
        db.close()?;
        if workloads.contains(&Workload::Open) {
            self.time_open::<S>(Workload::Open, "at-rest", &contents)?;
        }
        Ok(())
    }

    /// Lets an engine react to many scans, for instance by merging runs, before scans are measured. Then reads everything once more.
    fn scan_often<S: Store>(&mut self, db: &S, scans: &Ops, reads: &Ops) -> Done {
        let entries = self.work.shape().entries;
        let enough = SCANS_BEFORE.max(entries / 20).min(entries);
        for _ in 0..enough.div_ceil(scans.count.max(1)) {
            self.work.perform(db, Workload::Scan10, scans)?;
        }
        db.settle()?;
        self.work.perform(db, Workload::Get, reads)?;
        Ok(())
    }

    /// Measures a workload: its time, the counters, and its peak of memory.
    fn time<S: Store>(&mut self, db: &S, workload: Workload, ops: &Ops) -> Done {
        let before = Account::of(db);
        let (sample, peak) = watched(|| self.work.perform(db, workload, ops))?;
        self.samples.push(sample);
        let (count, after, shape) = (ops.count as f64, Account::of(db), self.work.shape());
        let configured = shape.cache_bytes() + 2 * shape.memtable_bytes();
        let memory = peak.map(|peak| peak.saturating_sub(self.anonymous) as f64 / configured as f64);
        let calls = before.io.zip(after.io).map(|(before, now)| (now.write_calls - before.write_calls) as f64 / count);
        let syncs =
            before.metrics.zip(after.metrics).map(|(before, now)| (now.wal_syncs - before.wal_syncs) as f64 / count);
        let is_write = !matches!(workload, Workload::Get | Workload::Miss);
        let of_syncs = workload == Workload::SyncedPut;
        self.facts([
            ("memory", memory),
            ("write-calls", calls.filter(|_| is_write)),
            ("syncs", syncs.filter(|_| of_syncs)),
        ]);
        Ok(())
    }

    /// Adds facts to the last sample.
    fn facts<const N: usize>(&mut self, facts: [(&str, Option<f64>); N]) {
        let sample = self.samples.last_mut().expect("just measured");
        facts.into_iter().for_each(|(name, fact)| sample.add(name, fact));
    }

    /// One thread reads while another one overwrites records with equal ones, as fast as it can.
    fn read_while_writing<S: Store>(&mut self, db: &S, ops: &Ops) -> Done {
        let (first, begun) = mpsc::channel();
        // Closed when all reads are done, or a read has panicked.
        let (open, closed) = mpsc::channel::<()>();
        let input = self.work.input;
        let write = move || {
            let mut written = 0;
            for record in input.stored().rev().cycle() {
                if closed.try_recv() != Err(mpsc::TryRecvError::Empty) {
                    break;
                }
                db.put(input.record(record, input.keys.get(record)))?;
                written += 1;
                // The reader waits for the first write only.
                let _ = first.send(());
            }
            Done::Ok(written)
        };
        let (sample, written) = thread::scope(|scope| {
            let writer = scope.spawn(write);
            // If the writer fails, the reader goes on, too.
            let _ = begun.recv();
            drop(begun);
            let read = self.work.perform(db, Workload::ReadWhileWriting, ops);
            drop(open);
            let written: u32 = writer.join().unwrap_or_else(|cause| panic::resume_unwind(cause))?;
            Done::Ok((read?, written))
        })?;
        let rate = f64::from(written) * 1e9 / sample.ns as f64;
        self.samples.push(sample);
        self.facts([("writer-rate", Some(rate))]);
        Ok(())
    }

    /// Measures the amplifications: overwrites, waits until no compaction is due, and reads.
    fn overwrite<S: Store>(&mut self, db: &S, ops: &Ops, reads: &Ops) -> Done {
        let before = Account::of(db);
        self.time(db, Workload::Overwrite, ops)?;
        db.flush()?;
        db.settle()?;
        let settled = Account::of(db);
        let facts = [("disk-bytes", self.disk_bytes(&before, ops.count)), ("disk-space", self.disk_space("at-rest")?)];
        self.facts(facts);
        reads
            .keys
            .iter()
            .try_for_each(|key| db.get(key, |_| ())?.ok_or("a key is lost").map_err(Into::into) as Done)?;
        if let Some((settled, now)) = settled.metrics.zip(db.metrics()) {
            let blocks = (now.get_blocks - settled.get_blocks) as f64 / (now.gets - settled.gets) as f64;
            self.facts([
                ("write-amplification", settled.write_amplification()),
                ("read-amplification", Some(blocks)),
                ("space-amplification", settled.space_amplification()),
            ]);
        }
        Ok(())
    }

    /// Bytes that went to the disk since `before`, for each byte of `count` records.
    fn disk_bytes(&self, before: &Account, count: usize) -> Option<f64> {
        let written = Io::now()?.disk_bytes - before.io?.disk_bytes;
        let stored = count as f64 * self.work.input.payload() as f64 / self.work.shape().entries as f64;
        Some(written as f64 / stored)
    }

    /// Bytes on the disk for each byte of the records.
    fn disk_space(&self, dir: &str) -> Done<Option<f64>> {
        let bytes = machine::disk_space(&self.places.path().join(dir))?;
        Ok(bytes.map(|bytes| bytes as f64 / self.work.input.payload() as f64))
    }
}

/// Runs `work`, and measures the peak of anonymous memory meanwhile.
fn watched<R>(work: impl FnOnce() -> Done<R>) -> Done<(R, Option<u64>)> {
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
        Ok((done?, watcher.join().unwrap_or_default()))
    })
}

/// Copies a directory and everything below it, as a kill would leave it. The engine that has the directory open may remove or rename a file
/// meanwhile, such as the log that it prepares for later. If the copy lacks a needed file, the check of the copy fails.
fn copy(from: &Path, to: &PathBuf) -> Done {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &to)?;
        } else if let Err(error) = fs::copy(entry.path(), to)
            && error.kind() != io::ErrorKind::NotFound
        {
            return Err(error.into());
        }
    }
    Ok(())
}
