//! One round: a fresh table of one subject, every workload once, and a check of all it gave back. Runs in a process of its
//! own, which `exchange` describes.
//!
//! Inputs are made, and results compared, while no clock runs. A scan is compared record by record with the sorted input,
//! whether or not scans are measured: so every round shows that its table is complete and sorted.

use std::mem::forget;
use std::time::{Duration, Instant};

use super::clock::{share, timed};
use super::input::{Digest, Input};
use super::plan::Shape;
use super::subjects::{
    BatchedMemtable, CrossbeamList, FastskipList, Insert, LockedTree, LockedVec, OneByOneMemtable, PublishedList,
    ScanBack, Search, Subject,
};
use super::workload::Workload;
use crate::keys::Keys;

/// What the clock said of one workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sample {
    pub(crate) workload: Workload,
    /// Operations of all threads together: records stored or sorted, keys searched, entries read.
    pub(crate) operations: u64,
    /// The time until the last thread was done.
    pub(crate) time: Duration,
}

impl Sample {
    /// Nanoseconds of the wall clock for each operation of all threads together.
    pub(crate) fn nanos_per_operation(&self) -> f64 {
        self.time.as_nanos() as f64 / self.operations as f64
    }
}

/// Runs a round of `subject`.
///
/// # Errors
/// What the table did wrong.
pub(crate) fn run(subject: Subject, shape: Shape, workloads: &[Workload]) -> Result<Vec<Sample>, String> {
    let mut round = Round { shape, workloads, input: Input::new(shape.keys, shape.entries), samples: Vec::new() };
    match subject {
        Subject::Fastskip => round.read_both_ways::<FastskipList>(),
        Subject::Memtable => round.read_both_ways::<OneByOneMemtable>(),
        Subject::MemtableBatch => round.read_both_ways::<BatchedMemtable>(),
        Subject::FastskipPublished => round.read_forward::<PublishedList>(),
        Subject::CrossbeamSkiplist => round.read_both_ways::<CrossbeamList>(),
        Subject::Btreemap => round.read_both_ways::<LockedTree>(),
        Subject::Vec => round.append_and_sort(),
    }?;
    Ok(round.samples)
}

struct Round<'a> {
    shape: Shape,
    workloads: &'a [Workload],
    input: Input,
    samples: Vec<Sample>,
}

impl Round<'_> {
    fn read_both_ways<T: ScanBack>(&mut self) -> Result<(), String> {
        let table = self.search::<T>()?;
        self.scan(Workload::Reverse, || {
            let mut sum = Digest::default();
            table.scan_back(|key, value| sum += Digest::of_entry(key, value));
            sum
        })?;
        self.finish(table)
    }

    fn read_forward<T: Search>(&mut self) -> Result<(), String> {
        let table = self.search::<T>()?;
        self.finish(table)
    }

    fn append_and_sort(&mut self) -> Result<(), String> {
        let mut table = self.insert::<LockedVec>()?;
        let begun = Instant::now();
        table.sort();
        self.record(Workload::Sort, self.input.len() as u64, begun.elapsed());
        self.check(|each| table.scan(each))?;
        forget(table);
        Ok(())
    }

    /// Makes and fills a table.
    fn insert<T: Insert>(&mut self) -> Result<T, String> {
        let threads = self.shape.threads;
        let table = T::new(threads);
        let part = |thread| self.input.records(share(self.input.len(), threads, thread));
        let (time, stored) = timed(threads, |thread| table.insert(part(thread)));
        let stored: usize = stored.into_iter().sum();
        if stored != self.input.len() {
            return Err(format!("insert: expected {} records to be stored, found {stored}", self.input.len()));
        }
        self.record(Workload::Insert, stored as u64, time);
        Ok(table)
    }

    /// Makes a table, fills it, and does with it what every searchable table can do.
    fn search<T: Search>(&mut self) -> Result<T, String> {
        let table = self.insert::<T>()?;
        if self.wants(Workload::Get) {
            self.look_up(&table, Workload::Get, &self.input.lookups(), self.input.values_digest())?;
        }
        if self.wants(Workload::Miss) {
            self.look_up(&table, Workload::Miss, &self.shape.keys.absent(self.input.len()), Digest::default())?;
        }
        self.scan(Workload::Scan, || {
            let mut sum = Digest::default();
            table.scan(|key, value| sum += Digest::of_entry(key, value));
            sum
        })?;
        Ok(table)
    }

    /// Searches `keys`, shared between the threads.
    fn look_up<T: Search>(
        &mut self,
        table: &T,
        workload: Workload,
        keys: &Keys,
        expected: Digest,
    ) -> Result<(), String> {
        let threads = self.shape.threads;
        let (time, found) = timed(threads, |thread| {
            let part = share(keys.len(), threads, thread);
            part.filter_map(|index| table.get(keys.get(index), Digest::of_value)).sum::<Digest>()
        });
        compare(workload, found.into_iter().sum(), expected)?;
        self.record(workload, keys.len() as u64, time);
        Ok(())
    }

    /// Lets each thread read all entries.
    fn scan(&mut self, workload: Workload, read: impl Fn() -> Digest + Sync) -> Result<(), String> {
        if !self.wants(workload) {
            return Ok(());
        }
        let (time, read) = timed(self.shape.threads, |_| read());
        let expected = self.input.entries_digest();
        read.iter().try_for_each(|&read| compare(workload, read, expected))?;
        self.record(workload, read.iter().map(|read| read.count).sum(), time);
        Ok(())
    }

    fn finish<T: Search>(&self, table: T) -> Result<(), String> {
        self.check(|each| table.scan(each))?;
        // The process ends now; taking millions of nodes apart first would only make the whole run longer.
        forget(table);
        Ok(())
    }

    /// Compares all that `scan` yields with the sorted input.
    fn check(&self, scan: impl FnOnce(&mut dyn FnMut(&[u8], &[u8]))) -> Result<(), String> {
        let mut sorted = self.input.sorted();
        let (mut right, mut yielded) = (0, 0);
        scan(&mut |key, value| {
            yielded += 1;
            right += usize::from(sorted.next() == Some((key, value)));
        });
        let expected = self.input.len();
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
            self.samples.push(Sample { workload, operations, time });
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
