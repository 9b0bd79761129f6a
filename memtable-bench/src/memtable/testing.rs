//! Runs that were never run, for tests of what is made of them.

use super::cell::Cell;
use super::document::Measured;
use super::round::{Memory, Outcome, Sample};
use super::subjects::Subject;

const OPERATIONS: u64 = 1000;
const PAYLOAD: u64 = 64 << 20;

/// What a cell comes to if each subject takes its nanoseconds for every operation of every workload, and the tables of all take
/// so many bytes beyond key and value, by both accounts.
pub(crate) fn measured(cell: &Cell, nanos: impl Fn(Subject) -> f64, beyond: Option<f64>) -> Measured {
    let outcome = |subject: Subject| {
        let ns = (nanos(subject) * OPERATIONS as f64) as u64;
        let able = cell.workloads.iter().filter(|&&workload| subject.can(workload));
        let samples = able.map(|&workload| Sample { workload, operations: OPERATIONS, ns }).collect();
        let used = beyond.map(|beyond| PAYLOAD + (beyond * cell.shape.entries as f64) as u64);
        Outcome { samples, memory: Memory { payload: PAYLOAD, resident: used, used }, cas_failures: None }
    };
    let results: Vec<_> = cell.subjects.iter().map(|&subject| (subject, vec![Ok(outcome(subject))])).collect();
    Measured::new(cell, &results)
}
