//! Runs the operations of a workload on a subject, each thread its share, and compares what is read with what is expected. No clock runs while
//! operations are generated or contents compared.

use std::ops::Range;
use std::panic;
use std::path::Path;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use super::contents::{Contents, Op, Ops, bytes, length};
use super::input::Input;
use super::sample::{Recorder, Request, Sample, latency};
use crate::spec::{Shape, Workload, name};
use crate::subjects::store::{Done, Settings, Store};

/// The records of an engine's batch, and the operations of a table's batch.
const BATCH: usize = 100;
const TABLE_BATCH: usize = 256;

pub(super) struct Work {
    pub(super) request: Request,
    pub(super) input: Input,
}

/// What a thread has read: a sum of lengths or of bytes; and how many transactions it has begun.
#[derive(Default)]
struct Tally {
    sum: u64,
    tries: u64,
}

impl Work {
    pub(super) fn shape(&self) -> &Shape {
        &self.request.shape
    }

    pub(super) fn settings(&self, dir: &Path, synced: bool) -> Settings {
        Settings { subject: self.request.subject, shape: *self.shape(), dir: dir.to_owned(), synced }
    }

    /// Runs the operations, and times them.
    pub(super) fn perform<S: Store>(&self, db: &S, workload: Workload, ops: &Ops) -> Done<Sample> {
        let alone = matches!(workload, Workload::Sort | Workload::FrozenScan);
        let threads = if alone { 1 } else { self.shape().threads };
        let (time, ended) = timed(threads, |thread| {
            let (mut tally, mut recorder) = (Tally::default(), Recorder::start());
            self.share(db, workload, ops, share(ops.ops.len(), threads, thread), &mut tally, &mut recorder)?;
            Done::Ok((tally, recorder))
        });
        let (tallies, recorders): (Vec<_>, Vec<_>) = ended.into_iter().collect::<Done<Vec<_>>>()?.into_iter().unzip();
        let times = if workload.is_done_by_each() { threads } else { 1 };
        let (found, expected) = (tallies.iter().map(|of| of.sum).sum::<u64>(), ops.expected * times as u64);
        if found != expected {
            let unit = if workload == Workload::ScanBytes { "the sum of all bytes" } else { "bytes read" };
            return Err(format!("{}: expected {expected} as {unit}, found {found}", name(workload)).into());
        }
        let mut sample = Sample::new(workload, ops.count * times).timed(time);
        if workload == Workload::InsertLatency || !self.shape().store.is_table() && !ops.ops.is_empty() {
            sample.latency = latency(&recorders);
        }
        let tries = tallies.iter().map(|of| of.tries).sum::<u64>() as f64 / ops.count.max(1) as f64;
        sample.add("tries", Some(tries).filter(|tries| *tries > 0.0));
        Ok(sample)
    }

    /// Runs the operations at `part`. Each kind of workload has a loop of its own. A table's loop reads no clock, except to time single inserts.
    fn share<S: Store>(
        &self,
        db: &S,
        workload: Workload,
        ops: &Ops,
        part: Range<usize>,
        tally: &mut Tally,
        recorder: &mut Recorder,
    ) -> Done {
        let is_batched = self.request.subject.is_batched();
        let sum = &mut tally.sum;
        match workload {
            Workload::Sort => db.sort()?,
            Workload::Scan => db.scan_all(|key, value| *sum += length(key, value))?,
            Workload::ScanBytes => db.scan_all(|key, value| *sum += bytes(key, value))?,
            Workload::Reverse => db.scan_back(|key, value| *sum += length(key, value))?,
            Workload::FrozenScan => db.freeze_and_scan(|key, value| *sum += length(key, value))?,
            Workload::GetMany => {
                for batch in batches(part, TABLE_BATCH) {
                    let keys: Vec<_> = batch.map(|at| ops.keys.get(at)).collect();
                    db.get_many(&keys, |value| *sum += value.len() as u64)?;
                }
            }
            _ if is_batched || workload == Workload::PutBatch => {
                for batch in batches(part, if is_batched { TABLE_BATCH } else { BATCH }) {
                    db.put_batch(batch.map(|at| self.input.record(number(ops.ops[at]), ops.keys.get(at))))?;
                    recorder.tick();
                }
            }
            Workload::InsertLatency => {
                for at in part {
                    recorder.time(|| self.step(db, ops, at, tally))?;
                }
            }
            _ if self.shape().store.is_table() => {
                for at in part {
                    self.step(db, ops, at, tally)?;
                }
            }
            _ => {
                for at in part {
                    self.step(db, ops, at, tally)?;
                    recorder.tick();
                }
            }
        }
        Ok(())
    }

    /// Adds up in the subject's callback: a returned sum would cost as much as a part of the operation.
    #[inline(always)]
    fn step<S: Store>(&self, db: &S, ops: &Ops, at: usize, Tally { sum, tries }: &mut Tally) -> Done {
        let key = ops.keys.get(at);
        let mut read = || db.get(key, |value| *sum += value.len() as u64);
        match ops.ops[at] {
            Op::Get => drop(read()?),
            Op::Put(record) => db.put(self.input.record(record, key))?,
            Op::Scan(most) => db.scan(key, most, |key, value| *sum += length(key, value))?,
            Op::Update(record) => {
                read()?;
                db.put(self.input.record(record, key))?;
            }
            // The sequence number is newer than all stored ones.
            Op::Delete => {
                if !db.delete(key, (self.input.keys.len() + at) as u64)? {
                    return Err("it did not find a key to delete".into());
                }
            }
            Op::Transfer(to) => *tries += db.transfer(key, self.input.keys.get(to))?,
        }
        Ok(())
    }

    /// Compares the whole subject with the expected contents, record by record, even if no scan is measured, and then some lookups if it has them. So
    /// every round shows that its subject is complete and sorted.
    pub(super) fn check<S: Store>(&self, db: &S, contents: &Contents<'_>) -> Done {
        // Only sorted results can be checked.
        db.sort()?;
        contents.check(|each| db.scan_all(each))?;
        for (key, value) in contents.some().filter(|_| self.request.subject.can(Workload::Get)) {
            if db.get(key, |found| found == value)? != Some(true) {
                return Err("expected the newest value of a key, found another or none".into());
            }
        }
        Ok(())
    }
}

/// Runs `work` on all threads. Returns the time from the first thread's begin to the last one's end, and each thread's
/// result. The threads wait for each other first, so the time does not include their start. Panics if a thread panics.
fn timed<R: Send>(threads: usize, work: impl Fn(usize) -> R + Sync) -> (Duration, Vec<R>) {
    let (gate, work) = (&Barrier::new(threads), &work);
    let run = move |thread| {
        gate.wait();
        let begun = Instant::now();
        let made = work(thread);
        (begun, Instant::now(), made)
    };
    let ended: Vec<_> = thread::scope(|scope| {
        let handles: Vec<_> = (0..threads).map(|thread| scope.spawn(move || run(thread))).collect();
        handles.into_iter().map(|of| of.join().unwrap_or_else(|cause| panic::resume_unwind(cause))).collect()
    });
    let (first, last) = (ended.iter().map(|end| end.0).min(), ended.iter().map(|end| end.1).max());
    let time = first.zip(last).map_or(Duration::ZERO, |(first, last)| last - first);
    (time, ended.into_iter().map(|(.., made)| made).collect())
}

/// The part of `0..len` for one of `threads`: a contiguous range. The lengths of parts differ by at most one.
fn share(len: usize, threads: usize, thread: usize) -> Range<usize> {
    len * thread / threads..len * (thread + 1) / threads
}

/// The parts of `range` of `len` each, in order.
fn batches(range: Range<usize>, len: usize) -> impl Iterator<Item = Range<usize>> {
    range.clone().step_by(len).map(move |start| start..range.end.min(start + len))
}

/// The number of the record that an operation writes.
fn number(op: Op) -> usize {
    if let Op::Put(record) | Op::Update(record) = op { record } else { 0 }
}
