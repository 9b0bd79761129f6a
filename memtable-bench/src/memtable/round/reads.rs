//! The workloads that leave the table as it is.

use super::super::clock::{share, timed};
use super::super::digest::Digest;
use super::super::input::Lookups;
use super::super::subjects::{Freeze, Get, GetMany, Ordered, Seek};
use super::super::workload::Workload;
use super::{Round, compare};

/// Entries that a seek reads.
const SEEK_READS: usize = 100;
/// Keys to a seek: each of them reads a hundred entries.
const KEYS_PER_SEEK: usize = 10;

impl Round<'_> {
    pub(super) fn look_up<T: Get>(&mut self, table: &T) -> Result<(), String> {
        let find = |key: &[u8]| table.get(key, Digest::of_value).unwrap_or_default();
        if self.wants(Workload::Get) {
            self.each_key(Workload::Get, &self.input.lookups(), find)?;
        }
        if self.wants(Workload::Miss) {
            self.each_key(Workload::Miss, &self.input.misses(), find)?;
        }
        Ok(())
    }

    pub(super) fn look_up_many<T: GetMany>(&mut self, table: &T) -> Result<(), String> {
        if !self.wants(Workload::GetMany) {
            return Ok(());
        }
        let lookups = self.input.lookups();
        let threads = self.shape.threads;
        let (time, found) = timed(threads, |thread| {
            let mut sum = Digest::default();
            let keys = share(lookups.keys.len(), threads, thread).map(|index| lookups.keys.get(index));
            table.get_many(keys, |value| sum += Digest::of_value(value));
            sum
        });
        compare(Workload::GetMany, found.into_iter().sum(), lookups.expected)?;
        self.record(Workload::GetMany, lookups.keys.len() as u64, time);
        Ok(())
    }

    pub(super) fn read_in_order<T: Seek>(&mut self, table: &T) -> Result<(), String> {
        self.scan(Workload::Scan, || scanned(table))?;
        let seek = |key: &[u8], most| {
            let mut sum = Digest::default();
            table.seek(key, most, |key, value| sum += Digest::of_entry(key, value));
            sum
        };
        if self.wants(Workload::Seek) {
            let seeks = (self.shape.entries / KEYS_PER_SEEK).max(1);
            self.each_key(Workload::Seek, &self.input.seeks(seeks, SEEK_READS), |key| seek(key, SEEK_READS))?;
        }
        if self.wants(Workload::SeekOne) {
            self.each_key(Workload::SeekOne, &self.input.seeks(self.shape.entries, 1), |key| seek(key, 1))?;
        }
        Ok(())
    }

    /// Does `find` with each key, shared between the threads.
    fn each_key(
        &mut self,
        workload: Workload,
        lookups: &Lookups,
        find: impl Fn(&[u8]) -> Digest + Sync,
    ) -> Result<(), String> {
        let Lookups { keys, expected } = lookups;
        let threads = self.shape.threads;
        let (time, found) = timed(threads, |thread| {
            share(keys.len(), threads, thread).map(|index| find(keys.get(index))).sum::<Digest>()
        });
        compare(workload, found.into_iter().sum(), *expected)?;
        self.record(workload, keys.len() as u64, time);
        Ok(())
    }

    /// Lets each thread read all entries.
    pub(super) fn scan(&mut self, workload: Workload, read: impl Fn() -> Digest + Sync) -> Result<(), String> {
        if !self.wants(workload) {
            return Ok(());
        }
        let (time, read) = timed(self.shape.threads, |_| read());
        let expected = self.input.entries_digest();
        read.iter().try_for_each(|&read| compare(workload, read, expected))?;
        self.record(workload, read.iter().map(|read| read.count).sum(), time);
        Ok(())
    }

    /// Fills another table, since a frozen one takes no writes; one thread freezes and reads it, as one flush would.
    pub(super) fn frozen_scan<T: Freeze>(&mut self) -> Result<(), String> {
        if !self.wants(Workload::FrozenScan) {
            return Ok(());
        }
        let table = T::new(&self.shape);
        self.insert(&table)?;
        let (time, read) = timed(1, |_| {
            let mut sum = Digest::default();
            table.freeze_and_scan(|key, value| sum += Digest::of_entry(key, value));
            sum
        });
        let expected = self.input.entries_digest();
        read.iter().try_for_each(|&read| compare(Workload::FrozenScan, read, expected))?;
        self.record(Workload::FrozenScan, expected.count, time);
        self.finish(table, self.input.stored())
    }
}

fn scanned<T: Ordered>(table: &T) -> Digest {
    let mut sum = Digest::default();
    table.scan(|key, value| sum += Digest::of_entry(key, value));
    sum
}
