//! Results that were never measured, for tests of what is made of them.

use clap::ValueEnum;

use super::{CellResults, Run, Turn};
use crate::latency::Latency;
use crate::round::{Fact, Memory, Outcome, Sample};
use crate::spec::{Cell, Role, Subject, Workload};

/// The results of a cell in which every operation takes `nanos`; the tail ratio of inserts is a tenth of that number, and every fact
/// of engines a sixtieth.
pub(crate) fn measured(cell: &Cell, nanos: impl Fn(Subject) -> f64) -> CellResults {
    let (operations, payload) = (1000, 64 << 20);
    let outcome = |subject: Subject| {
        let ns = (nanos(subject) * operations as f64) as u64;
        let able = cell.workloads.iter().filter(|&&workload| subject.can(workload));
        let facts = || Fact::value_variants().iter().map(|&fact| (fact, nanos(subject) / 60.0)).collect();
        let samples =
            able.map(|&workload| Sample { workload, operations, ns, facts: facts(), ..Sample::default() }).collect();
        let latency = Latency { tail_ratio: nanos(subject) / 10.0, ..Latency::default() };
        let latency = cell.workloads.contains(&Workload::InsertLatency).then_some(latency);
        Outcome { samples, memory: Memory { payload, ..Memory::default() }, latency, ..Outcome::default() }
    };
    let turn = |&subject: &Subject| Turn::new(1, subject, Ok(outcome(subject)));
    CellResults::new(cell.clone(), cell.subjects.iter().map(turn).collect())
}

/// A run of these cells: ours take 400 ns, all others 1200.
pub(crate) fn measured_run(rounds: u32, cells: &[Cell]) -> Run {
    let nanos = |subject: Subject| if subject.role() == Role::Own { 400.0 } else { 1200.0 };
    Run { cells: cells.iter().map(|cell| measured(cell, nanos)).collect(), ..Run::new(None, rounds) }
}
