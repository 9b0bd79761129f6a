//! One round of a table: a fresh table, every workload once, and a check of everything that the table gave back.
//!
//! No clock runs while inputs are made and results compared. The contents are compared record by record with the sorted
//! input, whether or not scans are measured: so every round shows that its table is complete and sorted.

use std::iter::once;
use std::mem::forget;
use std::time::Instant;

use super::contents::{self, Contents, Op};
use super::digest::{Digest, adder, compare, of_count, of_value};
use super::input::Input;
use super::outcome::{Fact, Outcome, Request, Sample};
use crate::clock::{share, timed};
use crate::latency::{self, Latency};
use crate::machine;
use crate::spec::{Shape, Store, Workload};
use crate::tables::Table;

/// The growth of a process says nothing of tables below this size, in bytes.
const LEAST_RESIDENT: u64 = 8 << 20;

pub(super) fn run<T: Table>(request: &Request) -> Result<Outcome, String> {
    let Request { subject, workloads, shape } = request;
    let input = Input::new(shape, contents::later(shape, workloads));
    let mut round = Round { input: &input, shape: *shape, samples: Vec::new() };
    let mut contents = Contents::filled(&input);
    let table = round.fill::<T>()?;
    // What is not sorted cannot be checked.
    let is_wanted = |workload: &Workload| workloads.contains(workload) || *workload == Workload::Sort;
    for workload in Workload::of(Store::Table).filter(|workload| is_wanted(workload) && subject.can(*workload)) {
        match workload {
            // Part of `fill`.
            Workload::Insert => {}
            Workload::FrozenScan => round.freeze_and_scan::<T>()?,
            Workload::InsertLatency => round.insert_each::<T>()?,
            _ => {
                if workload == Workload::Delete {
                    check(&table, &contents)?;
                }
                round.measure(&table, workload, &mut contents)?;
            }
        }
    }
    check(&table, &contents)?;
    // The process ends soon; taking millions of nodes apart first would only make the run longer.
    forget(table);
    // Every round needs the insert, but not every run asked for it.
    round.samples.retain(|sample| workloads.contains(&sample.workload));
    Ok(Outcome { samples: round.samples, failed: None })
}

fn check<T: Table>(table: &T, contents: &Contents<'_>) -> Result<(), String> {
    contents.check(|each| {
        table.scan(each);
        Ok(())
    })
}

struct Round<'i> {
    input: &'i Input,
    shape: Shape,
    samples: Vec<Sample>,
}

impl Round<'_> {
    /// Touches what a table will take: its first touch of a page is no part of its time.
    fn prefault(&self) {
        machine::prefault(self.shape.table_memory().try_into().unwrap_or(usize::MAX));
    }

    /// Makes and fills a table, and adds what it takes to the sample of the insert.
    fn fill<T: Table>(&mut self) -> Result<T, String> {
        self.prefault();
        let before = machine::reset_peak();
        let table = T::new(&self.shape);
        self.insert(&table)?;
        let grown = before.and_then(|before| Some(machine::peak()?.saturating_sub(before)));
        let (payload, entries) = (self.input.payload(), self.shape.entries as f64);
        let beyond = |bytes: u64| (bytes as f64 - payload as f64) / entries;
        let facts = [
            (Fact::Overhead, grown.filter(|_| payload >= LEAST_RESIDENT).map(beyond)),
            (Fact::OwnOverhead, table.memory_used().map(beyond)),
            (Fact::FailedCas, table.cas_failures().map(|failures| failures as f64 * 1e6 / entries)),
        ];
        let sample = self.samples.last_mut().expect("just measured");
        sample.facts = facts.into_iter().filter_map(|(fact, value)| Some((fact, value?))).collect();
        Ok(table)
    }

    /// Stores every record. Keys in order go to as many ranges as there are threads.
    fn insert<T: Table>(&mut self, table: &T) -> Result<(), String> {
        let Shape { entries, threads, .. } = self.shape;
        self.time(Workload::Insert, threads, entries, of_count(entries), |input, thread, sum| {
            *sum = of_count(table.insert(input.records(share(entries, threads, thread))));
        })
        .map(drop)
    }

    /// Fills another table and times each insert by itself; then as many readings of the clock with nothing between them.
    fn insert_each<T: Table>(&mut self) -> Result<(), String> {
        let Shape { entries, threads, .. } = self.shape;
        self.prefault();
        let table = T::new(&self.shape);
        let inserts =
            self.time(Workload::InsertLatency, threads, entries, of_count(entries), |input, thread, sum| {
                let records = input.records(share(entries, threads, thread));
                latency::each(Instant::now, records, |record| *sum += of_count(table.insert(once(record))))
            })?;
        let clock = latency::each(Instant::now, 0..entries, drop);
        self.samples.last_mut().expect("just measured").latency = Some(Latency::new(&inserts, &clock));
        check(&table, &Contents::filled(self.input))?;
        forget(table);
        Ok(())
    }

    /// Fills another table, since a frozen one takes no writes. One thread freezes and reads it, as a flush would.
    fn freeze_and_scan<T: Table>(&mut self) -> Result<(), String> {
        let (table, samples) = (T::new(&self.shape), self.samples.len());
        self.insert(&table)?;
        self.samples.truncate(samples);
        let contents = Contents::filled(self.input);
        let (count, expected) = (self.shape.entries, contents.digest());
        self.time(Workload::FrozenScan, 1, count, expected, |_, _, sum| table.freeze_and_scan(adder(sum)))?;
        check(&table, &contents)
    }

    /// Does a workload on the filled table. Each workload has a loop of its own: only the mixed ones choose between operations
    /// while the clock runs.
    fn measure<T: Table>(&mut self, table: &T, workload: Workload, contents: &mut Contents<'_>) -> Result<(), String> {
        let Shape { entries, threads, .. } = self.shape;
        let whole = || (entries * threads, contents.digest() * threads as Digest);
        let (threads, (count, expected), (ops, keys)) = match workload {
            Workload::Sort => (1, (entries, 0), Default::default()),
            // Each thread reads everything.
            Workload::Scan | Workload::Reverse => (threads, whole(), Default::default()),
            _ => {
                let made = contents.operations(workload);
                (threads, (made.ops.len(), made.expected), (made.ops, made.keys))
            }
        };
        let (key, most, newest) = (|at| keys.get(at), contents::scanned(workload), self.input.all().end);
        self.time(workload, threads, count, expected, |input, thread, sum| {
            let part = share(keys.len(), threads, thread);
            match workload {
                Workload::Sort => table.sort(),
                Workload::Scan => table.scan(adder(sum)),
                Workload::Reverse => table.scan_back(adder(sum)),
                Workload::Seek | Workload::SeekOne => part.for_each(|at| table.seek(key(at), most, adder(sum))),
                Workload::GetMany => table.get_many(part.map(key), |value| *sum += of_value(value)),
                Workload::Mixed | Workload::Mixed95 => part.for_each(|at| {
                    *sum += match ops[at] {
                        Op::Put(new) => of_count(table.insert(once(input.record(new, key(at))))),
                        _ => table.get(key(at), of_value).unwrap_or_default(),
                    }
                }),
                Workload::Delete => {
                    *sum = of_count(part.filter(|at| table.delete(key(*at), (newest + at) as u64)).count());
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
            (work(self.input, thread, &mut sum), sum)
        });
        let (made, sums): (_, Vec<_>) = ended.into_iter().unzip();
        self.samples.push(Sample::new(workload, operations, time));
        compare(workload, sums.into_iter().sum(), expected)?;
        Ok(made)
    }
}

#[cfg(test)]
mod tests;
