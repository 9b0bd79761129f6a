//! Runs the operations of a workload on a subject, each thread its share, and compares the results with the expected ones. No clock runs while
//! operations are generated or contents compared.

use std::ops::Range;
use std::panic;
use std::path::Path;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use super::contents::{Contents, Op, Ops};
use super::digest::{Digest, adder, compare, of_count, of_value};
use super::input::Input;
use super::latency::{Recorder, latency, timeline};
use super::outcome::{Request, Sample};
use crate::spec::{Shape, Workload};
use crate::subjects::store::{Done, Settings, Store};

/// The records of an engine's batch, and the operations of a table's batch.
const BATCH: usize = 100;
const TABLE_BATCH: usize = 256;

pub(super) struct Work<'i> {
    pub(super) request: &'i Request,
    pub(super) input: &'i Input,
}

impl Work<'_> {
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
            let (mut sum, mut recorder) = (0, Recorder::start());
            self.share(db, workload, ops, share(ops.ops.len(), threads, thread), &mut sum, &mut recorder)?;
            Done::Ok((sum, recorder))
        });
        let (sums, recorders): (Vec<_>, Vec<_>) = ended.into_iter().collect::<Done<Vec<_>>>()?.into_iter().unzip();
        // In scans, each thread reads everything.
        let times = if matches!(workload, Workload::Scan | Workload::Reverse) { threads } else { 1 };
        compare(workload, sums.into_iter().sum(), ops.expected * times as Digest)?;
        let mut sample = Sample::new(workload, ops.count * times, time);
        if workload == Workload::InsertLatency || !self.shape().store.is_table() {
            sample.latency = latency(&recorders, &Recorder::of_the_clock());
            sample.timeline = workload.has_stalls().then(|| timeline(&recorders));
        }
        Ok(sample)
    }

    /// Runs the operations at `part`. Each kind of workload has a loop of its own. A table's loop reads no clock, except to time
    /// single inserts.
    fn share<S: Store>(
        &self,
        db: &S,
        workload: Workload,
        ops: &Ops,
        part: Range<usize>,
        sum: &mut Digest,
        recorder: &mut Recorder,
    ) -> Done {
        let is_batched = self.request.subject.is_batched();
        match workload {
            Workload::Sort => db.sort()?,
            Workload::Scan => db.scan_all(adder(sum))?,
            Workload::Reverse => db.scan_back(adder(sum))?,
            Workload::FrozenScan => db.freeze_and_scan(adder(sum))?,
            Workload::GetMany => {
                for batch in batches(part, TABLE_BATCH) {
                    let keys: Vec<_> = batch.map(|at| ops.keys.get(at)).collect();
                    db.get_many(&keys, |value| *sum += of_value(value))?;
                }
            }
            _ if is_batched || workload == Workload::PutBatch => {
                for batch in batches(part, if is_batched { TABLE_BATCH } else { BATCH }) {
                    let records = batch.clone().map(|at| self.input.record(number(ops.ops[at]), ops.keys.get(at)));
                    db.put_batch(records)?;
                    *sum += of_count(batch.len());
                    recorder.tick(batch.len() as u64);
                }
            }
            Workload::InsertLatency => {
                for at in part {
                    recorder.time(Instant::now, || self.step(db, ops, at, sum))?;
                }
            }
            _ if self.shape().store.is_table() => {
                for at in part {
                    self.step(db, ops, at, sum)?;
                }
            }
            _ => {
                for at in part {
                    self.step(db, ops, at, sum)?;
                    recorder.tick(1);
                }
            }
        }
        Ok(())
    }

    /// Adds the found bytes to `sum` in the subject's callback: a returned sum would cost as much as a part of the operation.
    #[inline(always)]
    fn step<S: Store>(&self, db: &S, ops: &Ops, at: usize, sum: &mut Digest) -> Done {
        let key = ops.keys.get(at);
        let mut read = || db.get(key, |value| *sum += of_value(value));
        match ops.ops[at] {
            Op::Get => drop(read()?),
            Op::Put(record) => self.put(db, record, key, sum)?,
            Op::Scan(most) => db.scan(key, most, adder(sum))?,
            Op::Update(record) => {
                read()?;
                self.put(db, record, key, sum)?;
            }
            // The sequence number is newer than all stored ones.
            Op::Delete => *sum += of_count(usize::from(db.delete(key, (self.input.all().end + at) as u64)?)),
        }
        Ok(())
    }

    #[inline(always)]
    fn put<S: Store>(&self, db: &S, record: usize, key: &[u8], sum: &mut Digest) -> Done {
        *sum += of_count(1);
        db.put(self.input.record(record, key))
    }

    /// Compares the whole subject with the expected contents, record by record, even if no scan is measured. So every round shows
    /// that its subject is complete and sorted.
    pub(super) fn check<S: Store>(&self, db: &S, contents: &Contents<'_>) -> Done {
        // Only sorted results can be checked.
        db.sort()?;
        contents.check(|each| db.scan_all(each))
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
    let bound = |thread: usize| (len as u128 * thread as u128 / threads as u128) as usize;
    bound(thread)..bound(thread + 1)
}

/// The parts of `range` of `len` each, in order.
fn batches(range: Range<usize>, len: usize) -> impl Iterator<Item = Range<usize>> {
    range.clone().step_by(len).map(move |start| start..range.end.min(start + len))
}

/// The number of the record that an operation writes.
fn number(op: Op) -> usize {
    match op {
        Op::Put(record) | Op::Update(record) => record,
        Op::Get | Op::Scan(_) | Op::Delete => 0,
    }
}
