//! The workloads that change a filled table.

use std::iter::once;

use super::super::clock::{share, timed};
use super::super::digest::Digest;
use super::super::input::Mix;
use super::super::subjects::{Delete, Get};
use super::super::workload::Workload;
use super::{Round, compare};

impl Round<'_> {
    /// Reads and writes by turns, `reads` of a hundred operations being reads.
    pub(super) fn mixed<T: Get>(&mut self, table: &T, workload: Workload, reads: u64) -> Result<(), String> {
        if !self.wants(workload) {
            return Ok(());
        }
        let mix = self.input.mix(reads);
        let threads = self.shape.threads;
        let (time, done) =
            timed(threads, |thread| self.operate(table, &mix, share(mix.records.len(), threads, thread)));
        let (found, stored) =
            done.into_iter().fold((Digest::default(), 0), |sum, done| (sum.0 + done.0, sum.1 + done.1));
        compare(workload, found, mix.expected)?;
        let writes = self.input.all().end - mix.first_write;
        if stored != writes {
            return Err(format!("{}: expected {writes} records to be stored, found {stored}", workload.name()));
        }
        self.record(workload, mix.records.len() as u64, time);
        Ok(())
    }

    /// What the reads found, and how many writes the table took.
    fn operate<T: Get>(&self, table: &T, mix: &Mix, operations: std::ops::Range<usize>) -> (Digest, usize) {
        let (mut found, mut stored) = (Digest::default(), 0);
        for operation in operations {
            let (key, record) = (mix.keys.get(operation), mix.records[operation]);
            if record < mix.first_write {
                found += table.get(key, Digest::of_value).unwrap_or_default();
            } else {
                stored += table.insert(once(self.input.record(record, key)));
            }
        }
        (found, stored)
    }

    pub(super) fn delete<T: Delete>(&mut self, table: &T) -> Result<(), String> {
        let keys = self.input.shuffled();
        let threads = self.shape.threads;
        let first_seqno = self.input.all().end;
        let delete = |index: &usize| table.delete(keys.get(*index), (first_seqno + index) as u64);
        let (time, deleted) = timed(threads, |thread| share(keys.len(), threads, thread).filter(delete).count());
        let (expected, deleted) = (keys.len(), deleted.into_iter().sum::<usize>());
        if deleted != expected {
            return Err(format!("delete: expected {expected} keys to be there, found {deleted}"));
        }
        self.record(Workload::Delete, deleted as u64, time);
        Ok(())
    }
}
