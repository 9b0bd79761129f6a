//! One round: a fresh table of one subject, every workload once, and a check of everything that the table gave back. Runs in
//! a process of its own; see `ipc`.
//!
//! No clock runs while inputs are made and results compared. The contents are compared record by record with the sorted
//! input, whether or not scans are measured: so every round shows that its table is complete and sorted.

mod digest;
mod input;
mod outcome;

use std::iter::once;
use std::mem::forget;
use std::ops::Range;

use digest::{Digest, adder, of_count, of_value};
use input::{Input, Operations};
pub(crate) use outcome::{Memory, Outcome, Request, Sample};

use crate::clock::{share, timed};
use crate::machine;
use crate::spec::{Backing, Shape, Subject, Workload};
use crate::tables::{
    CrossbeamList, Fastskip, LockedHashMap, LockedTree, LockedVec, PublishedList, ShardedTree, Table, Tree,
    VersionedTable,
};
use crate::text::name;

/// Runs a round.
///
/// # Errors
/// What the table did wrong.
pub(crate) fn run(request: Request) -> Result<Outcome, String> {
    let subject = request.subject;
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
    }
}

struct Round {
    subject: Subject,
    shape: Shape,
    workloads: Vec<Workload>,
    input: Input,
    outcome: Outcome,
}

impl Round {
    fn new(Request { subject, workloads, shape }: Request) -> Self {
        Self { subject, shape, workloads, input: Input::new(&shape), outcome: Outcome::default() }
    }

    fn run<T: Table>(mut self) -> Result<Outcome, String> {
        let table = self.fill::<T>()?;
        // What the table holds at the end.
        let mut left = 0;
        for &workload in Workload::all() {
            // What is not sorted cannot be checked.
            let wanted = self.workloads.contains(&workload) || workload == Workload::Sort;
            if wanted && self.subject.can(workload) {
                self.measure(&table, workload)?;
                left = if workload == Workload::Delete { self.shape.entries } else { left };
            }
        }
        self.check(&table, left..self.input.all().end)?;
        // The process ends soon; taking millions of nodes apart first would only make the run longer.
        forget(table);
        // Every round needs the insert, but not every run asked for it.
        self.outcome.samples.retain(|sample| self.workloads.contains(&sample.workload));
        Ok(self.outcome)
    }

    fn measure<T: Table>(&mut self, table: &T, workload: Workload) -> Result<(), String> {
        let Shape { entries, threads, .. } = self.shape;
        match workload {
            // Part of `fill`.
            Workload::Insert => Ok(()),
            Workload::Sort => {
                self.time(workload, 1, entries, |_, _, _| table.sort());
                Ok(())
            }
            Workload::Scan => self.read_all(workload, threads, |sum| table.scan(adder(sum))),
            Workload::Reverse => self.read_all(workload, threads, |sum| table.scan_back(adder(sum))),
            Workload::FrozenScan => {
                // Fills another table, since a frozen one takes no writes. One thread freezes and reads it, as a flush would.
                let (table, samples) = (T::new(&self.shape), self.outcome.samples.len());
                self.insert(&table)?;
                self.outcome.samples.truncate(samples);
                self.read_all(workload, 1, |sum| table.freeze_and_scan(adder(sum)))?;
                self.check(&table, self.input.stored())?;
                forget(table);
                Ok(())
            }
            by_key => self.operate(table, by_key),
        }
    }

    /// Does a workload in which each operation has a key.
    fn operate<T: Table>(&mut self, table: &T, workload: Workload) -> Result<(), String> {
        let first_new = self.input.all().end;
        let Operations { keys, records, expected } = self.input.operations(workload);
        let key = |operation| keys.get(operation);
        match workload {
            Workload::GetMany => self.divide(workload, keys.len(), expected, |_, part, sum| {
                table.get_many(part.map(key), |value| *sum += of_value(value));
            }),
            Workload::Seek | Workload::SeekOne => {
                let most = input::seek_reads(workload);
                self.divide(workload, keys.len(), expected, |_, part, sum| {
                    part.for_each(|operation| table.seek(key(operation), most, adder(sum)));
                })
            }
            Workload::Mixed | Workload::Mixed95 => self.divide(workload, keys.len(), expected, |input, part, sum| {
                for operation in part {
                    let (key, record) = (key(operation), records[operation]);
                    *sum += if record < first_new {
                        table.get(key, of_value).unwrap_or_default()
                    } else {
                        of_count(table.insert(once(input.record(record, key))))
                    };
                }
            }),
            Workload::Delete => {
                self.check(table, self.input.all())?;
                self.divide(workload, keys.len(), expected, |_, part, sum| {
                    let delete = |operation: &usize| table.delete(key(*operation), (first_new + operation) as u64);
                    *sum = of_count(part.filter(delete).count());
                })
            }
            _ => self.divide(workload, keys.len(), expected, |_, part, sum| {
                *sum = part.filter_map(|operation| table.get(key(operation), of_value)).sum();
            }),
        }
    }

    /// Makes and fills a table.
    fn fill<T: Table>(&mut self) -> Result<T, String> {
        if self.shape.backing == Backing::Touched {
            machine::prefault(self.shape.table_memory().try_into().unwrap_or(usize::MAX));
        }
        let before = machine::reset_peak();
        let table = T::new(&self.shape);
        self.insert(&table)?;
        let resident = before.and_then(|before| Some(machine::peak()?.saturating_sub(before)));
        self.outcome.memory = Memory { payload: self.input.payload(), resident, used: table.memory_used() };
        self.outcome.cas_failures = table.cas_failures();
        Ok(table)
    }

    /// Stores every record. Keys in order go to as many ranges as there are threads.
    fn insert<T: Table>(&mut self, table: &T) -> Result<(), String> {
        let entries = self.shape.entries;
        self.divide(Workload::Insert, entries, of_count(entries), |input, part, sum| {
            *sum = of_count(table.insert(input.records(part)));
        })
    }

    /// Divides `len` operations between the threads, which add up what they found or stored.
    fn divide(
        &mut self,
        workload: Workload,
        len: usize,
        expected: Digest,
        work: impl Fn(&Input, Range<usize>, &mut Digest) + Sync,
    ) -> Result<(), String> {
        let threads = self.shape.threads;
        let found =
            self.time(workload, threads, len, |input, thread, sum| work(input, share(len, threads, thread), sum));
        compare(workload, found.into_iter().sum(), expected)
    }

    /// Lets each of the threads read all entries.
    fn read_all(
        &mut self,
        workload: Workload,
        threads: usize,
        read: impl Fn(&mut Digest) + Sync,
    ) -> Result<(), String> {
        let sums = self.time(workload, threads, self.shape.entries * threads, |_, _, sum| read(sum));
        let expected = self.input.entries_digest();
        sums.into_iter().try_for_each(|sum| compare(workload, sum, expected))
    }

    /// Runs `work` in each thread, and keeps the time. Returns what each thread added up.
    fn time(
        &mut self,
        workload: Workload,
        threads: usize,
        operations: usize,
        work: impl Fn(&Input, usize, &mut Digest) + Sync,
    ) -> Vec<Digest> {
        let (time, sums) = timed(threads, |thread| {
            let mut sum = 0;
            work(&self.input, thread, &mut sum);
            sum
        });
        // No round lasts 584 years.
        let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.outcome.samples.push(Sample { workload, operations: operations as u64, ns });
        sums
    }

    /// Compares everything in the table with the sorted records at `range`.
    fn check<T: Table>(&self, table: &T, range: Range<usize>) -> Result<(), String> {
        let order = self.input.sorted(range);
        let mut sorted = order.iter().map(|&index| self.input.entry(index));
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

fn compare(workload: Workload, found: Digest, expected: Digest) -> Result<(), String> {
    if found == expected {
        return Ok(());
    }
    let (workload, expected, found) = (name(workload), digest::count(expected), digest::count(found));
    Err(format!("{workload}: expected {expected} right values, found {found}, not all of them right"))
}

#[cfg(test)]
mod tests;
