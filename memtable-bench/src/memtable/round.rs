//! One round: a fresh table of one subject, every workload once, and a check of all it gave back. Runs in a process of its
//! own, which `exchange` describes.
//!
//! Inputs are made, and results compared, while no clock runs. The contents are compared record by record with the sorted
//! input, whether or not scans are measured: so every round shows that its table is complete and sorted.

mod reads;
mod writes;

use std::mem::forget;
use std::ops::Range;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::clock::{share, timed};
use super::digest::Digest;
use super::input::Input;
use super::shape::Shape;
use super::subjects::{
    BatchedList, BatchedMemtable, CrossbeamList, Delete, FastskipList, Freeze, Get, GetMany, Insert, LockedHashMap,
    LockedTree, LockedVec, OneByOneMemtable, Ordered, PublishedList, ScanBack, Seek, ShardedTree, SklList, Subject,
    Tree,
};
use super::workload::Workload;
use crate::resident;
use crate::warm;

/// What one round came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Outcome {
    pub(crate) samples: Vec<Sample>,
    pub(crate) memory: Memory,
    /// Compare-and-swaps that failed while the table was filled, if it counts them.
    pub(crate) cas_failures: Option<u64>,
}

/// What the clock said of one workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sample {
    pub(crate) workload: Workload,
    /// Operations of all threads together: records stored, sorted or deleted, keys searched or gone to, entries read.
    pub(crate) operations: u64,
    /// The time until the last thread was done, in nanoseconds.
    pub(crate) ns: u64,
}

/// What the filled table takes, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Memory {
    /// Keys and values alone.
    pub(crate) payload: u64,
    /// By how much the peak of resident memory grew while the table was filled, where the system tells.
    pub(crate) resident: Option<u64>,
    /// What the table says it uses, if it does.
    pub(crate) used: Option<u64>,
}

impl Sample {
    /// Nanoseconds of the wall clock for each operation of all threads together.
    pub(crate) fn nanos_per_operation(&self) -> f64 {
        self.ns as f64 / self.operations as f64
    }
}

/// Runs a round of `subject`.
///
/// # Errors
/// What the table did wrong.
pub(crate) fn run(subject: Subject, shape: Shape, workloads: &[Workload]) -> Result<Outcome, String> {
    let mut round = Round::new(shape, workloads);
    match subject {
        Subject::Fastskip => round.own::<FastskipList>(),
        Subject::FastskipBatch => round.batches::<BatchedList>(),
        Subject::Memtable => round.own::<OneByOneMemtable>(),
        Subject::MemtableBatch => round.batches::<BatchedMemtable>(),
        Subject::FastskipPublished => round.one_way::<PublishedList>(),
        Subject::CrossbeamSkiplist => round.both_ways::<CrossbeamList>(),
        Subject::Skl => round.both_ways::<SklList>(),
        Subject::Treeindex => round.both_ways::<Tree>(),
        Subject::Btreemap => round.both_ways::<LockedTree>(),
        Subject::ShardedBtreemap => round.both_ways::<ShardedTree>(),
        Subject::Hashmap => round.unordered::<LockedHashMap>(),
        Subject::Vec => round.append_and_sort(),
    }?;
    Ok(Outcome { samples: round.samples, memory: round.memory, cas_failures: round.cas_failures })
}

struct Round<'a> {
    shape: Shape,
    workloads: &'a [Workload],
    input: Input,
    samples: Vec<Sample>,
    memory: Memory,
    cas_failures: Option<u64>,
}

/// What kinds of tables do, one workload after the other.
impl Round<'_> {
    fn own<T: Get + Seek + ScanBack + Delete + Freeze>(&mut self) -> Result<(), String> {
        self.both_ways::<T>()?;
        self.frozen_scan::<T>()
    }

    fn both_ways<T: Get + Seek + ScanBack + Delete>(&mut self) -> Result<(), String> {
        let table = self.fill::<T>()?;
        self.look_up(&table)?;
        self.read_in_order(&table)?;
        self.scan(Workload::Reverse, || {
            let mut sum = Digest::default();
            table.scan_back(|key, value| sum += Digest::of_entry(key, value));
            sum
        })?;
        self.write(table)
    }

    fn one_way<T: Get + Seek + Delete>(&mut self) -> Result<(), String> {
        let table = self.fill::<T>()?;
        self.look_up(&table)?;
        self.read_in_order(&table)?;
        self.write(table)
    }

    fn unordered<T: Get + Ordered + Delete>(&mut self) -> Result<(), String> {
        let table = self.fill::<T>()?;
        self.look_up(&table)?;
        self.write(table)
    }

    fn batches<T: GetMany + Ordered>(&mut self) -> Result<(), String> {
        let table = self.fill::<T>()?;
        self.look_up_many(&table)?;
        self.finish(table, self.input.all())
    }

    fn append_and_sort(&mut self) -> Result<(), String> {
        let mut table = self.fill::<LockedVec>()?;
        let begun = Instant::now();
        table.sort();
        self.record(Workload::Sort, self.shape.entries as u64, begun.elapsed());
        self.finish(table, self.input.all())
    }

    /// Writes by turns and deletes, then the end of the table.
    fn write<T: Get + Ordered + Delete>(&mut self, table: T) -> Result<(), String> {
        self.mixed(&table, Workload::Mixed, 50)?;
        self.mixed(&table, Workload::Mixed95, 95)?;
        if self.wants(Workload::Delete) {
            self.check(&table, self.input.all())?;
            self.delete(&table)?;
            return self.finish(table, self.shape.entries..self.input.all().end);
        }
        self.finish(table, self.input.all())
    }
}

/// What all workloads have in common.
impl<'a> Round<'a> {
    fn new(shape: Shape, workloads: &'a [Workload]) -> Self {
        let input = Input::new(&shape);
        Self { shape, workloads, input, samples: Vec::new(), memory: Memory::default(), cas_failures: None }
    }

    /// Makes and fills a table.
    fn fill<T: Insert>(&mut self) -> Result<T, String> {
        warm::touch(self.shape.table_memory().try_into().unwrap_or(usize::MAX));
        let before = resident::start();
        let table = T::new(&self.shape);
        let time = self.insert(&table)?;
        let grown = |before: u64| Some(resident::peak()?.saturating_sub(before));
        self.memory =
            Memory { payload: self.input.payload(), resident: before.and_then(grown), used: table.memory_used() };
        self.cas_failures = table.cas_failures();
        self.record(Workload::Insert, self.shape.entries as u64, time);
        Ok(table)
    }

    /// Stores every record, shared between the threads: keys in order go to as many ranges as there are threads.
    fn insert<T: Insert>(&self, table: &T) -> Result<Duration, String> {
        let Shape { entries, threads, .. } = self.shape;
        let (time, stored) = timed(threads, |thread| table.insert(self.input.records(share(entries, threads, thread))));
        let stored: usize = stored.into_iter().sum();
        if stored != entries {
            return Err(format!("insert: expected {entries} records to be stored, found {stored}"));
        }
        Ok(time)
    }

    fn finish<T: Ordered>(&self, table: T, left: Range<usize>) -> Result<(), String> {
        self.check(&table, left)?;
        // The process ends soon; taking millions of nodes apart first would only make the whole run longer.
        forget(table);
        Ok(())
    }

    /// Compares all that the table has with the sorted records at `range`.
    fn check<T: Ordered>(&self, table: &T, range: Range<usize>) -> Result<(), String> {
        let order = self.input.sorted(range);
        let mut sorted = order.iter().map(|&index| self.input.entry(index));
        let (mut right, mut yielded) = (0, 0);
        table.scan(|key, value| {
            yielded += 1;
            right += usize::from(sorted.next() == Some((key, value)));
        });
        let expected = order.len();
        if (right, yielded) != (expected, expected) {
            return Err(format!(
                "expected {expected} entries in order, found {yielded}, of which {right} are where they must be"
            ));
        }
        Ok(())
    }

    fn wants(&self, workload: Workload) -> bool {
        self.workloads.contains(&workload)
    }

    fn record(&mut self, workload: Workload, operations: u64, time: Duration) {
        if self.wants(workload) {
            // No round lasts 584 years.
            let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
            self.samples.push(Sample { workload, operations, ns });
        }
    }
}

fn compare(workload: Workload, found: Digest, expected: Digest) -> Result<(), String> {
    if found == expected {
        return Ok(());
    }
    let (workload, expected, found) = (workload.name(), expected.count, found.count);
    Err(format!("{workload}: expected {expected} right values, found {found}, not all of them right"))
}

#[cfg(test)]
mod tests;
