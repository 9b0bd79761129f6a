//! Does the operations of a workload on a subject, each thread its share, and compares what they found with what they must find.
//! No clock runs while operations are made and contents compared.

use std::ops::Range;
use std::path::Path;

use super::contents::{Contents, Op, Ops};
use super::digest::{Digest, adder, compare, of_count, of_value};
use super::input::Input;
use super::outcome::{Request, Sample, Timeline};
use super::recorder::{Recorder, timeline};
use crate::clock::{share, timed};
use crate::latency::Latency;
use crate::spec::{Shape, Workload};
use crate::subjects::store::{Done, Settings, Store};

/// Records of a batch in an engine, and operations of one in a table.
const BATCH: usize = 100;
const TABLE_BATCH: usize = 256;
/// Readings of the clock that show what it costs.
const CLOCK_READINGS: usize = 10_000;

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

    /// Does the operations, and times them.
    pub(super) fn perform<S: Store>(&self, db: &S, workload: Workload, ops: &Ops) -> Done<Sample> {
        let alone = matches!(workload, Workload::Sort | Workload::FrozenScan);
        let threads = if alone { 1 } else { self.shape().threads };
        let (time, ended) = timed(threads, |thread| {
            let (mut sum, mut recorder) = (0, Recorder::start());
            self.share(db, workload, ops, share(ops.ops.len(), threads, thread), &mut sum, &mut recorder)?;
            Done::Ok((sum, recorder))
        });
        let (sums, recorders): (Vec<_>, Vec<_>) = ended.into_iter().collect::<Done<Vec<_>>>()?.into_iter().unzip();
        // Scans read everything in each thread.
        let times = if matches!(workload, Workload::Scan | Workload::Reverse) { threads } else { 1 };
        compare(workload, sums.into_iter().sum(), ops.expected * times as Digest)?;
        let mut sample = Sample::new(workload, ops.count * times, time);
        if workload == Workload::InsertLatency || !self.shape().store.is_table() {
            let mut clock = Recorder::start();
            (0..CLOCK_READINGS).for_each(|_| clock.time(|| ()));
            let times: Vec<_> = recorders.iter().map(|of| of.times().clone()).collect();
            sample.latency = Some(Latency::new(&times, clock.times()));
            let (moment_ms, operations) = timeline(&recorders);
            sample.timeline = workload.has_stalls().then_some(Timeline { moment_ms, operations });
        }
        Ok(sample)
    }

    /// Does the operations at `part`. Each kind of workload has a loop of its own. A table's loop reads no clock, unless it is to time
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
                    *sum += recorder.time(|| self.step(db, ops, at))?;
                }
            }
            _ if self.shape().store.is_table() => {
                for at in part {
                    *sum += self.step(db, ops, at)?;
                }
            }
            _ => {
                for at in part {
                    *sum += self.step(db, ops, at)?;
                    recorder.tick(1);
                }
            }
        }
        Ok(())
    }

    #[inline]
    fn step<S: Store>(&self, db: &S, ops: &Ops, at: usize) -> Done<Digest> {
        let key = ops.keys.get(at);
        let put = |record| db.put(self.input.record(record, key)).map(|()| of_count(1));
        match ops.ops[at] {
            Op::Get => Ok(db.get(key, of_value)?.unwrap_or_default()),
            Op::Put(record) => put(record),
            Op::Scan(most) => {
                let mut sum = 0;
                db.scan(key, most, adder(&mut sum))?;
                Ok(sum)
            }
            Op::Update(record) => Ok(db.get(key, of_value)?.unwrap_or_default() + put(record)?),
            // Newer than all that was stored.
            Op::Delete => Ok(of_count(usize::from(db.delete(key, (self.input.all().end + at) as u64)?))),
        }
    }

    /// Compares everything in the subject with what has to be there, record by record, whether or not scans are measured: so every
    /// round shows that its subject is complete and sorted.
    pub(super) fn check<S: Store>(&self, db: &S, contents: &Contents<'_>) -> Done {
        // What is not sorted cannot be checked.
        db.sort()?;
        contents.check(|each| db.scan_all(each))
    }
}

/// The parts of `range` of so many each, in order.
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
