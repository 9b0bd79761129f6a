//! The command `scaling`: what few cores can show of many. Writes to shared cache lines by reading the sources; then, by
//! measuring, time and failed compare-and-swaps on more and more threads, and memory.

use clap::Args;

use crate::error::Error;
use crate::machine;
use crate::measure::{judge, measure};
use crate::plan::{Plan, RunArgs, parse_count};
use crate::results::{CellResults, Run, by_threads};
use crate::sharing;
use crate::spec::{Cell, KeySet, Shape, Workload};
use crate::text::{name, print};

const THREADS: [usize; 5] = [1, 2, 4, 8, 16];
const WORKLOADS: [Workload; 3] = [Workload::Insert, Workload::Get, Workload::GetMany];

/// Show what scales: shared-line writes an operation, time and failed CAS on 1 to 16 threads, memory
#[derive(Debug, Args)]
pub(crate) struct ScalingArgs {
    /// Keys to store; 100K and 3M are numbers
    #[arg(long, value_parser = parse_count, default_value = "1M", value_name = "N")]
    entries: usize,
    #[command(flatten)]
    run: RunArgs,
}

/// Measures, and prints everything.
pub(crate) fn run(args: &ScalingArgs) -> Result<(), Error> {
    let subjects = &args.run.subjects;
    let able = |workload: &Workload| subjects.is_empty() || subjects.iter().any(|subject| subject.can(*workload));
    let workloads: Vec<_> = WORKLOADS.into_iter().filter(able).collect();
    let shape = Shape::new(KeySet::Random, args.entries);
    let cells = THREADS.map(|threads| Cell::new(Shape { threads, ..shape }, subjects, &workloads)).to_vec();
    let plan = Plan::of_cells(Some("scaling".into()), cells, &args.run, machine::memory_available())?;
    print(&format!("{}\n{}\n", sharing::EXPLANATION, sharing::sheet()))?;
    let run = measure(&plan)?;
    print(&summary(&run))?;
    judge(&run)
}

/// Throughput and failed CAS on each number of threads, as text.
fn summary(run: &Run) -> String {
    let cores = run.machine.cores;
    let mut text = format!("\nMillions of operations a second; more than {cores} threads share {cores} cores here.\n");
    for workload in WORKLOADS {
        let rate = |cell: &CellResults, subject| cell.nanos(subject, workload).map(|nanos| 1000.0 / nanos);
        text += &format!("\n{}", by_threads(&run.cells, &name(workload), rate, 2));
    }
    text += "\nLinks that changed between a writer's read and its CAS, for a million inserts: by another thread,\n\
             or by an earlier entry of the same batch.\n\n";
    text + &by_threads(&run.cells, "failed CAS", CellResults::conflicts_per_million, 1).to_string()
}
