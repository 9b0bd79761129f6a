//! One round: a fresh table of one subject, every workload once, and a check of everything that the table gave back. Runs in
//! a process of its own; see `ipc`. Rounds of engines are in `engine`.
//!
//! No clock runs while inputs are made and results compared. The contents are compared record by record with the sorted
//! input, whether or not scans are measured: so every round shows that its table is complete and sorted.

mod digest;
mod engine;
mod input;
mod ops;
mod outcome;
mod recorder;

use std::iter::once;
use std::mem::forget;
use std::ops::Range;
use std::time::Instant;

use digest::{Digest, adder, of_count, of_value};
use input::{Input, Operations};
pub(crate) use outcome::{Fact, Memory, Outcome, Request, Sample, Timeline};

use crate::clock::{share, timed};
use crate::engines::{Fjall, InMemory, Lmdb, Log, Mini, Redb, Sled};
use crate::latency::{self, Latency};
use crate::machine;
use crate::spec::{Backing, Shape, Store, Subject, Workload};
use crate::tables::{
    CrossbeamList, Fastskip, LockedHashMap, LockedTree, LockedVec, PublishedList, ShardedTree, Table, Tree,
    VersionedTable,
};
use crate::text::name;

/// Runs a round. An error is what the table did wrong.
pub(crate) fn run(request: Request) -> Result<Outcome, String> {
    let subject = request.subject;
    if !request.shape.store.is_table() {
        return run_engine(&request);
    }
    let round = Round::new(request);
    match subject {
        Subject::Fastskip => round.run::<Fastskip<false>>(),
        Subject::FastskipBatch => round.run::<Fastskip<true>>(),
        Subject::Memtable => round.run::<VersionedTable<false>>(),
        Subject::MemtableBatch => round.run::<VersionedTable<true>>(),
        Subject::FastskipPublished => round.run::<PublishedList>(),
        Subject::CrossbeamSkiplist => round.run::<CrossbeamList>(),
        #[cfg(feature = "skl")]
        Subject::Skl => round.run::<crate::tables::SklList>(),
        #[cfg(not(feature = "skl"))]
        Subject::Skl => Err("skl was not built".into()),
        Subject::Treeindex => round.run::<Tree>(),
        Subject::Btreemap => round.run::<LockedTree>(),
        Subject::ShardedBtreemap => round.run::<ShardedTree>(),
        Subject::Hashmap => round.run::<LockedHashMap>(),
        Subject::Vec => round.run::<LockedVec>(),
        engine => Err(format!("{} is no table", name(engine))),
    }
}

/// The same with databases.
fn run_engine(request: &Request) -> Result<Outcome, String> {
    use Subject::{MiniEngine, MiniEngineMmap, MiniEngineVector};
    use Subject::{MiniEngineLazyLeveled, MiniEnginePartial, MiniEngineTiered};
    match request.subject {
        MiniEngine | MiniEngineMmap | MiniEngineVector => engine::run::<Mini>(request),
        MiniEngineTiered | MiniEngineLazyLeveled | MiniEnginePartial => engine::run::<Mini>(request),
        Subject::Fjall => engine::run::<Fjall>(request),
        #[cfg(feature = "rocksdb")]
        Subject::Rocksdb => engine::run::<crate::engines::Rocksdb>(request),
        #[cfg(feature = "leveldb")]
        Subject::Leveldb => engine::run::<crate::engines::Leveldb>(request),
        Subject::Lmdb => engine::run::<Lmdb>(request),
        Subject::Redb => engine::run::<Redb>(request),
        Subject::Sled => engine::run::<Sled>(request),
        Subject::Log => engine::run::<Log>(request),
        Subject::Memtable => engine::run::<InMemory<VersionedTable<false>>>(request),
        Subject::Hashmap => engine::run::<InMemory<LockedHashMap>>(request),
        Subject::Vec => engine::run::<InMemory<LockedVec>>(request),
        other => Err(format!("{} is no engine, or was not built", name(other))),
    }
}

struct Round {
    request: Request,
    input: Input,
    outcome: Outcome,
}

impl Round {
    fn new(request: Request) -> Self {
        Self { input: Input::new(&request.shape), request, outcome: Outcome::default() }
    }

    fn run<T: Table>(mut self) -> Result<Outcome, String> {
        let table = self.fill::<T>()?;
        let Request { subject, workloads, shape } = self.request.clone();
        // What is not sorted cannot be checked.
        let is_wanted = |workload: &Workload| workloads.contains(workload) || *workload == Workload::Sort;
        // What the table holds at the end.
        let mut left = 0;
        for workload in Workload::of(Store::Table).filter(|workload| is_wanted(workload) && subject.can(*workload)) {
            match workload {
                // Part of `fill`.
                Workload::Insert => {}
                Workload::FrozenScan => self.freeze_and_scan::<T>()?,
                Workload::InsertLatency => self.insert_each::<T>()?,
                Workload::Delete => {
                    self.check(&table, self.input.all())?;
                    self.measure(&table, workload)?;
                    left = shape.entries;
                }
                _ => self.measure(&table, workload)?,
            }
        }
        self.check(&table, left..self.input.all().end)?;
        // The process ends soon; taking millions of nodes apart first would only make the run longer.
        forget(table);
        // Every round needs the insert, but not every run asked for it.
        self.outcome.samples.retain(|sample| workloads.contains(&sample.workload));
        Ok(self.outcome)
    }

    /// Touches what a table will take, if asked for.
    fn prefault(&self) {
        let shape = &self.request.shape;
        if shape.backing == Backing::Touched {
            machine::prefault(shape.table_memory().try_into().unwrap_or(usize::MAX));
        }
    }

    /// Makes and fills a table.
    fn fill<T: Table>(&mut self) -> Result<T, String> {
        self.prefault();
        let before = machine::reset_peak();
        let table = T::new(&self.request.shape);
        self.insert(&table)?;
        let resident = before.and_then(|before| Some(machine::peak()?.saturating_sub(before)));
        self.outcome.memory = Memory { payload: self.input.payload(), resident, used: table.memory_used() };
        self.outcome.cas_failures = table.cas_failures();
        Ok(table)
    }

    /// Stores every record. Keys in order go to as many ranges as there are threads.
    fn insert<T: Table>(&mut self, table: &T) -> Result<(), String> {
        let Shape { entries, threads, .. } = self.request.shape;
        self.time(Workload::Insert, threads, entries, of_count(entries), |input, thread, sum| {
            *sum = of_count(table.insert(input.records(share(entries, threads, thread))));
        })
        .map(drop)
    }

    /// Fills another table and times each insert by itself; then as many readings of the clock with nothing between them.
    fn insert_each<T: Table>(&mut self) -> Result<(), String> {
        let shape @ Shape { entries, threads, .. } = self.request.shape;
        self.prefault();
        let table = T::new(&shape);
        let inserts =
            self.time(Workload::InsertLatency, threads, entries, of_count(entries), |input, thread, sum| {
                let records = input.records(share(entries, threads, thread));
                latency::each(Instant::now, records, |record| *sum += of_count(table.insert(once(record))))
            })?;
        let clock = latency::each(Instant::now, 0..entries, drop);
        self.outcome.latency = Some(Latency::new(&inserts, &clock));
        self.check(&table, self.input.stored())?;
        forget(table);
        Ok(())
    }

    /// Fills another table, since a frozen one takes no writes. One thread freezes and reads it, as a flush would.
    fn freeze_and_scan<T: Table>(&mut self) -> Result<(), String> {
        let (table, samples) = (T::new(&self.request.shape), self.outcome.samples.len());
        self.insert(&table)?;
        self.outcome.samples.truncate(samples);
        let (stored, expected) = (self.input.stored(), self.input.entries_digest());
        self.time(Workload::FrozenScan, 1, stored.len(), expected, |_, _, sum| table.freeze_and_scan(adder(sum)))?;
        self.check(&table, stored)
    }

    /// Does a workload on the filled table. Each workload has a loop of its own: only the mixed ones choose between operations
    /// while the clock runs.
    fn measure<T: Table>(&mut self, table: &T, workload: Workload) -> Result<(), String> {
        let threads = if workload == Workload::Sort { 1 } else { self.request.shape.threads };
        let first_new = self.input.all().end;
        let Operations { count, keys, records, expected } = self.input.operations(workload, threads);
        let key = |operation| keys.get(operation);
        let most = input::seek_reads(workload);
        self.time(workload, threads, count, expected, |input, thread, sum| {
            let part = share(keys.len(), threads, thread);
            match workload {
                Workload::Sort => table.sort(),
                Workload::Scan => table.scan(adder(sum)),
                Workload::Reverse => table.scan_back(adder(sum)),
                Workload::Seek | Workload::SeekOne => part.for_each(|at| table.seek(key(at), most, adder(sum))),
                Workload::GetMany => table.get_many(part.map(key), |value| *sum += of_value(value)),
                Workload::Mixed | Workload::Mixed95 => part.for_each(|at| {
                    *sum += match records[at] {
                        stored if stored < first_new => table.get(key(at), of_value).unwrap_or_default(),
                        new => of_count(table.insert(once(input.record(new, key(at))))),
                    }
                }),
                Workload::Delete => {
                    *sum = of_count(part.filter(|at| table.delete(key(*at), (first_new + at) as u64)).count());
                }
                _ => *sum = part.filter_map(|at| table.get(key(at), of_value)).sum(),
            }
        })
        .map(drop)
    }

    /// Runs `work` in each thread, keeps the time, and compares what the threads added up. Returns what each made.
    fn time<R: Send>(
        &mut self,
        workload: Workload,
        threads: usize,
        operations: usize,
        expected: Digest,
        work: impl Fn(&Input, usize, &mut Digest) -> R + Sync,
    ) -> Result<Vec<R>, String> {
        let (time, ended) = timed(threads, |thread| {
            let mut sum = 0;
            (work(&self.input, thread, &mut sum), sum)
        });
        let (made, sums): (_, Vec<_>) = ended.into_iter().unzip();
        // No round lasts 584 years.
        let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.outcome.samples.push(Sample { workload, operations: operations as u64, ns, ..Sample::default() });
        let found = sums.into_iter().sum();
        if found == expected {
            return Ok(made);
        }
        let (workload, expected, found) = (name(workload), digest::count(expected), digest::count(found));
        Err(format!("{workload}: expected {expected} right values, found {found}, not all of them right"))
    }

    /// Compares everything in the table with the sorted records at `range`.
    fn check<T: Table>(&self, table: &T, range: Range<usize>) -> Result<(), String> {
        let order = self.input.sorted(range);
        let mut sorted = self.input.records(order.iter().copied()).map(|record| (record.key, record.value));
        let (mut right, mut yielded) = (0, 0);
        table.scan(|key, value| {
            yielded += 1;
            right += usize::from(sorted.next() == Some((key, value)));
        });
        let expected = order.len();
        if (right, yielded) == (expected, expected) {
            return Ok(());
        }
        Err(format!("expected {expected} entries in order, found {yielded}, of which {right} are where they must be"))
    }
}

#[cfg(test)]
mod tests;
