//! One round of a table: makes a table, runs every workload once, and measures the table's memory.

use std::mem::forget;
use std::path::Path;

use super::contents::Contents;
use super::sample::Sample;
use super::work::Work;
use crate::allocator;
use crate::machine;
use crate::spec::{Store as Kind, Workload};
use crate::subjects::store::{Done, Store};

/// For tables below this size in bytes, the growth of the process is not meaningful.
const LEAST_RESIDENT: u64 = 8 << 20;

pub(super) fn run<S: Store>(work: &Work, wanted: &[Workload]) -> Done<Vec<Sample>> {
    let (table, sample) = work.table::<S>(Workload::Insert)?;
    let mut samples = vec![sample];
    let mut contents = Contents::filled(&work.input);
    for workload in Workload::of(Kind::Table).filter(|workload| wanted.contains(workload)) {
        match workload {
            Workload::Insert => {}
            // A frozen table takes no writes. One thread freezes and reads it, as a flush would.
            Workload::FrozenScan => {
                let (table, _) = work.table::<S>(Workload::Insert)?;
                let mut contents = Contents::filled(&work.input);
                samples.push(work.perform(&table, workload, &contents.operations(workload))?);
                work.check(&table, &contents)?;
            }
            Workload::InsertLatency => {
                let (table, sample) = work.table::<S>(workload)?;
                samples.push(sample);
                work.check(&table, &Contents::filled(&work.input))?;
                forget(table);
            }
            _ => {
                if workload == Workload::Delete {
                    work.check(&table, &contents)?;
                }
                samples.push(work.perform(&table, workload, &contents.operations(workload))?);
            }
        }
    }
    work.check(&table, &contents)?;
    // The process ends soon; freeing millions of nodes first would only make the run longer.
    forget(table);
    Ok(samples)
}

impl Work {
    /// Makes a table and stores every record. With ordered keys, each thread stores one range.
    pub(super) fn table<S: Store>(&self, workload: Workload) -> Done<(S, Sample)> {
        let ops = Contents::empty(&self.input).operations(workload);
        allocator::give_back();
        // Touches the memory that the table will take, so that its time does not include the first touch of a page.
        machine::prefault(self.shape().table_memory() as usize);
        let before = machine::reset_peak();
        let table = S::open(&self.settings(Path::new(""), false))?;
        let mut sample = self.perform(&table, workload, &ops)?;
        let grown = before.and_then(|before| Some(machine::peak()?.saturating_sub(before)));
        let (payload, entries) = (self.input.payload(), self.shape().entries as f64);
        let beyond = |bytes: u64| (bytes as f64 - payload as f64) / entries;
        sample.add("overhead", grown.filter(|_| payload >= LEAST_RESIDENT).map(beyond));
        sample.add("own-overhead", table.memory_used().map(beyond));
        sample.add("failed-cas", table.cas_failures().map(|failures| failures as f64 * 1e6 / entries));
        Ok((table, sample))
    }
}
