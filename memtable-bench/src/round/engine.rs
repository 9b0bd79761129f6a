//! One round of an engine: databases in directories of their own. A workload that fills a database begins with an empty directory. A workload that
//! reads begins with a full database at rest: flushed, compacted, and read once, so that its cache holds as much as fits. Before the first measured
//! scans, the database was scanned often and has come to rest again.
//!
//! Every result of an operation is compared with the input, and so are the contents of each database at its end.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::panic;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use mini_engine::Metrics;
use tempfile::{TempDir, tempdir};

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
/// The most copies of a directory until no file came or went meanwhile.
const TRIES: usize = 1000;

/// An open database in a directory of its own.
pub(super) struct Opened<S> {
    db: S,
    dir: TempDir,
    /// Anonymous memory before the database was opened.
    anonymous: u64,
}

impl<S: Store> Opened<S> {
    pub(super) fn close(self) -> Done<TempDir> {
        self.db.close()?;
        Ok(self.dir)
    }
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

pub(super) fn run<S: Store>(work: &Work, wanted: &[Workload]) -> Done<Vec<Sample>> {
    let mut samples = Vec::new();
    for fill in [Workload::Put, Workload::PutBatch, Workload::SyncedPut] {
        let is_wanted = |of: &Workload| *of == fill || fill == Workload::Put && *of == Workload::Load;
        if wanted.iter().any(is_wanted) {
            samples.extend(work.fill::<S>(fill)?);
        }
    }
    if wanted.contains(&Workload::Replay) {
        samples.push(work.time_open::<S>(Workload::Replay, &work.killed::<S>()?, &Contents::filled(&work.input))?);
    }
    if wanted.contains(&Workload::Transactions) {
        let transfers = Contents::filled(&work.input).operations(Workload::Transactions);
        let accounts = work.filled::<S>()?;
        samples.push(work.transactions(&accounts, &transfers)?);
        accounts.close()?;
    }
    let mut contents = Contents::filled(&work.input);
    let (warm_up, scans) = (contents.operations(Workload::Get), contents.operations(Workload::Scan10));
    // All operations are made before the database is opened, so that they do not count as its memory.
    let at_rest = wanted.iter().copied().filter(|of| of.is_at_rest());
    let plan: Vec<_> = at_rest.map(|of| (of, contents.operations(of))).collect();
    if plan.is_empty() {
        return Ok(samples);
    }
    let opened = work.filled::<S>()?;
    work.perform(&opened.db, Workload::Get, &warm_up)?;
    let first_scan = plan.iter().position(|(of, _)| of.is_scan());
    for (at, (workload, ops)) in plan.iter().enumerate() {
        if first_scan == Some(at) {
            work.scan_often(&opened, &scans, &warm_up)?;
        }
        samples.extend(match workload {
            Workload::ReadWhileWriting => Some(work.read_while_writing(&opened.db, ops)?),
            Workload::Overwrite => Some(work.overwrite(&opened, ops, &warm_up)?),
            Workload::Open => None,
            _ => Some(work.time(&opened, *workload, ops)?),
        });
    }
    work.check(&opened.db, &contents)?;
    opened.db.flush()?;
    opened.db.settle()?;
    let closed = opened.close()?;
    if wanted.contains(&Workload::Open) {
        samples.push(work.time_open::<S>(Workload::Open, &closed, &contents)?);
    }
    Ok(samples)
}

impl Work {
    fn open<S: Store>(&self, synced: bool) -> Done<Opened<S>> {
        let (dir, anonymous) = (tempdir()?, machine::anonymous().unwrap_or_default());
        Ok(Opened { db: S::open(&self.settings(dir.path(), synced))?, dir, anonymous })
    }

    /// Fills an empty database by `workload`; for put, also waits for the flush.
    pub(super) fn fill<S: Store>(&self, workload: Workload) -> Done<Vec<Sample>> {
        let ops = Contents::empty(&self.input).operations(workload);
        let opened = self.open::<S>(workload == Workload::SyncedPut)?;
        let before = Account::of(&opened.db);
        let mut samples = vec![self.time(&opened, workload, &ops)?];
        if workload == Workload::Put {
            let begun = Instant::now();
            opened.db.flush()?;
            let time = Duration::from_nanos(samples[0].ns) + begun.elapsed();
            samples.push(self.on_disk(Sample::new(Workload::Load, ops.count).timed(time), &opened, &before)?);
        }
        self.check(&opened.db, &Contents::filled(&self.input))?;
        opened.close()?;
        Ok(samples)
    }

    /// A full database at rest.
    pub(super) fn filled<S: Store>(&self) -> Done<Opened<S>> {
        let ops = Contents::empty(&self.input).operations(Workload::PutBatch);
        let opened = self.open::<S>(false)?;
        self.perform(&opened.db, Workload::PutBatch, &ops)?;
        opened.db.flush()?;
        opened.db.settle()?;
        Ok(opened)
    }

    /// The copy of a database with all its data in the log, as a kill leaves it.
    pub(super) fn killed<S: Store>(&self) -> Done<TempDir> {
        let ops = Contents::empty(&self.input).operations(Workload::Put);
        let opened = self.open::<S>(false)?;
        self.perform(&opened.db, Workload::Put, &ops)?;
        let killed = copied(opened.dir.path())?;
        opened.close()?;
        Ok(killed)
    }

    /// Times the open of the database in `dir` and the first get. For replay an operation is a record, for open it is the whole open.
    pub(super) fn time_open<S: Store>(
        &self,
        workload: Workload,
        dir: &TempDir,
        contents: &Contents<'_>,
    ) -> Done<Sample> {
        let operations = if workload == Workload::Open { 1 } else { self.shape().entries };
        let begun = Instant::now();
        let db = S::open(&self.settings(dir.path(), false))?;
        let found = db.get(self.input.keys.get(0), |_| ())?;
        let time = begun.elapsed();
        found.ok_or("expected the first key, found none")?;
        self.check(&db, contents)?;
        db.close()?;
        Ok(Sample::new(workload, operations).timed(time))
    }

    /// Moves amounts between the records. An amount is in a value's first eight bytes; after a lost update, the sum of all would differ.
    pub(super) fn transactions<S: Store>(&self, accounts: &Opened<S>, transfers: &Ops) -> Done<Sample> {
        let total = || {
            let (mut count, mut total) = (0, 0_i64);
            accounts.db.scan_all(|_, value| (count, total) = (count + 1, total.wrapping_add(amount(value))))?;
            Done::Ok((count, total))
        };
        let before = total()?;
        let sample = self.time(accounts, Workload::Transactions, transfers)?;
        let after = total()?;
        if after != before {
            return Err(format!("expected {before:?} as accounts and their sum, found {after:?}").into());
        }
        Ok(sample)
    }

    /// Lets an engine react to many scans, for instance by merging runs, before scans are measured. Then reads everything once more.
    pub(super) fn scan_often<S: Store>(&self, opened: &Opened<S>, scans: &Ops, reads: &Ops) -> Done {
        let entries = self.shape().entries;
        let enough = SCANS_BEFORE.max(entries / 20).min(entries);
        for _ in 0..enough.div_ceil(scans.count.max(1)) {
            self.perform(&opened.db, Workload::Scan10, scans)?;
        }
        opened.db.settle()?;
        self.perform(&opened.db, Workload::Get, reads)?;
        Ok(())
    }

    /// Measures a workload: its time, the counters, and its peak of memory.
    pub(super) fn time<S: Store>(&self, opened: &Opened<S>, workload: Workload, ops: &Ops) -> Done<Sample> {
        let before = Account::of(&opened.db);
        let (mut sample, peak) = watched(|| self.perform(&opened.db, workload, ops))?;
        let (count, after, shape) = (ops.count as f64, Account::of(&opened.db), self.shape());
        let configured = shape.cache_bytes() + 2 * shape.memtable_bytes();
        sample.add("memory", peak.map(|peak| peak.saturating_sub(opened.anonymous) as f64 / configured as f64));
        if !matches!(workload, Workload::Get | Workload::Miss) {
            let calls = before.io.zip(after.io).map(|(before, now)| now.write_calls - before.write_calls);
            sample.add("write-calls", calls.map(|calls| calls as f64 / count));
        }
        if workload == Workload::SyncedPut {
            let syncs = before.metrics.zip(after.metrics).map(|(before, now)| now.wal_syncs - before.wal_syncs);
            sample.add("syncs", syncs.map(|syncs| syncs as f64 / count));
        }
        Ok(sample)
    }

    /// One thread reads while another one overwrites records with equal ones, as fast as it can.
    fn read_while_writing<S: Store>(&self, db: &S, ops: &Ops) -> Done<Sample> {
        let (first, begun) = mpsc::channel();
        // Closed when all reads are done, or a read has panicked.
        let (open, closed) = mpsc::channel::<()>();
        let write = move || {
            let mut written = 0;
            for record in self.input.stored().rev().cycle() {
                if closed.try_recv() != Err(mpsc::TryRecvError::Empty) {
                    break;
                }
                db.put(self.input.record(record, self.input.keys.get(record)))?;
                written += 1;
                // The reader waits for the first write only.
                let _ = first.send(());
            }
            Done::Ok(written)
        };
        let (mut sample, written) = thread::scope(|scope| {
            let writer = scope.spawn(write);
            // If the writer fails, the reader goes on, too.
            let _ = begun.recv();
            drop(begun);
            let read = self.perform(db, Workload::ReadWhileWriting, ops);
            drop(open);
            let written: u32 = writer.join().unwrap_or_else(|cause| panic::resume_unwind(cause))?;
            Done::Ok((read?, written))
        })?;
        sample.add("writer-rate", Some(f64::from(written) * 1e9 / sample.ns as f64));
        Ok(sample)
    }

    /// Measures the amplifications: overwrites, waits until no compaction is due, and reads.
    fn overwrite<S: Store>(&self, opened: &Opened<S>, ops: &Ops, reads: &Ops) -> Done<Sample> {
        let (db, before) = (&opened.db, Account::of(&opened.db));
        let sample = self.time(opened, Workload::Overwrite, ops)?;
        db.flush()?;
        db.settle()?;
        let mut sample = self.on_disk(sample, opened, &before)?;
        let settled = db.metrics();
        reads
            .keys
            .iter()
            .try_for_each(|key| db.get(key, |_| ())?.ok_or("a key is lost").map_err(Into::into) as Done)?;
        if let Some((settled, now)) = settled.zip(db.metrics()) {
            let blocks = (now.get_blocks - settled.get_blocks) as f64 / (now.gets - settled.gets) as f64;
            let stalls = before.metrics.map(|before| (settled.stalls - before.stalls) as f64);
            sample.add("stalls", stalls);
            sample.add("write-amplification", settled.write_amplification());
            sample.add("read-amplification", Some(blocks));
            sample.add("space-amplification", settled.space_amplification());
        }
        Ok(sample)
    }

    /// Adds the bytes that went to the disk since `before` for each byte written, and those on the disk for each byte of the records.
    fn on_disk<S: Store>(&self, mut sample: Sample, opened: &Opened<S>, before: &Account) -> Done<Sample> {
        let payload = self.input.payload() as f64;
        let stored = sample.operations as f64 * payload / self.shape().entries as f64;
        let written = Io::now().zip(before.io).map(|(now, before)| now.disk_bytes - before.disk_bytes);
        sample.add("disk-bytes", written.map(|written| written as f64 / stored));
        let bytes = machine::disk_space(opened.dir.path())?;
        sample.add("disk-space", bytes.map(|bytes| bytes as f64 / payload));
        Ok(sample)
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

/// A copy of a directory and everything below it, as a kill would leave it. The engine that has the directory open may flush or compact meanwhile: a
/// copy would then have the manifest of before and lack the log that it names. So it is made again until no file came or went.
pub(super) fn copied(from: &Path) -> Done<TempDir> {
    for _ in 0..TRIES {
        let (to, before) = (tempdir()?, names(from)?);
        copy(from, to.path())?;
        if names(from)? == before {
            return Ok(to);
        }
    }
    Err(format!("{}: files came and went during each of {TRIES} copies", from.display()).into())
}

/// The paths of all files below a directory.
fn names(of: &Path) -> io::Result<BTreeSet<PathBuf>> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(of)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            found.append(&mut names(&entry.path())?);
        } else {
            found.insert(entry.path());
        }
    }
    Ok(found)
}

fn copy(from: &Path, to: &Path) -> Done {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            fs::create_dir(&to)?;
            copy(&entry.path(), &to)?;
        } else if let Err(error) = fs::copy(entry.path(), to)
            && error.kind() != io::ErrorKind::NotFound
        {
            return Err(error.into());
        }
    }
    Ok(())
}
