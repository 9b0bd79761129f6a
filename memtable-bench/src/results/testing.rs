//! Invented results, for tests of the code that reads results.

use clap::ValueEnum;

use super::{CellResults, Run, Turn};
use crate::round::{Fact, Percentile, Sample};
use crate::spec::{Cell, Role, Subject};

/// The results of a cell in which every operation takes `nanos`. The tail ratio is a tenth of that number, and every fact a
/// sixtieth.
pub(crate) fn measured(cell: &Cell, nanos: impl Fn(Subject) -> f64) -> CellResults {
    let operations = 1000;
    let turn = |&subject: &Subject| {
        let nanos = nanos(subject);
        let ns = (nanos * operations as f64) as u64;
        let facts = || Fact::value_variants().iter().map(|&fact| (fact, nanos / 60.0)).collect();
        let latency = || [(Percentile::P50, nanos), (Percentile::TailRatio, nanos / 10.0)].into();
        let able = cell.workloads.iter().filter(|&&workload| subject.can(workload));
        let sample =
            |&workload| Sample { workload, operations, ns, latency: latency(), facts: facts(), timeline: None };
        Turn::new(1, subject, Ok(able.map(sample).collect()))
    };
    CellResults { cell: cell.clone(), rounds: cell.subjects.iter().map(turn).collect() }
}

/// A run of these cells, in which our subjects take 400 ns and all others 1200 ns.
pub(crate) fn measured_run(rounds: u32, cells: &[Cell]) -> Run {
    let nanos = |subject: Subject| if subject.role() == Role::Own { 400.0 } else { 1200.0 };
    Run { cells: cells.iter().map(|cell| measured(cell, nanos)).collect(), ..Run::new(None, rounds, false) }
}
