//! The command `scaling`: what few cores can show of many. Writes to shared cache lines by reading the sources; then, by
//! measuring, time and failed compare-and-swaps on more and more threads, and memory.

mod sharing;

use std::fmt::{self, Display};
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, value_parser};

pub(crate) use sharing::{SHARING, Sharing, Writes};

use crate::failure::Failure;
use crate::host;
use crate::keys::KeySet;
use crate::memtable::{Cell, Document, Measured, Plan, Shape, Subject, Table, Workload, judge, measure, shape};
use crate::output::print;

const THREADS: [usize; 5] = [1, 2, 4, 8, 16];
const WORKLOADS: [Workload; 3] = [Workload::Insert, Workload::Get, Workload::GetMany];

/// Show what scales: shared-line writes an operation, time and failed CAS on 1 to 16 threads, memory
#[derive(Debug, Args)]
pub(crate) struct ScalingArgs {
    /// Keys to store; 100K and 3M are numbers
    #[arg(long, value_parser = crate::memtable::parse_count, default_value = "1M", value_name = "N")]
    entries: NonZeroUsize,
    /// What to measure, separated by commas [default: all]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "NAME")]
    subjects: Vec<Subject>,
    /// How often each subject runs; fewer than 5 say little
    #[arg(long, default_value_t = 5, value_parser = value_parser!(u32).range(1..), value_name = "N")]
    rounds: u32,
    /// Write every round to this file, which `report` reads with others
    #[arg(long, value_name = "OUT")]
    json: Option<PathBuf>,
}

/// Measures, and prints all of it.
pub(crate) fn run(args: &ScalingArgs) -> Result<(), Failure> {
    let cell = |threads| {
        let shape = Shape { threads, ..shape(KeySet::Random, args.entries.get()) };
        Cell::new(shape, &args.subjects, &able(&args.subjects))
    };
    let cells = THREADS.map(cell).to_vec();
    let plan = Plan { preset: Some("scaling"), cells, rounds: args.rounds, json: args.json.clone() };
    plan.check(host::memory_available())?;
    print(&sharing::Static.to_string())?;
    let document = measure(&plan, |cell| print(&Table(cell).to_string()))?;
    print(&Threads(&document).to_string())?;
    judge(&document)
}

/// Those of the workloads that one of the named subjects can do.
fn able(subjects: &[Subject]) -> Vec<Workload> {
    let can = |workload: &Workload| subjects.is_empty() || subjects.iter().any(|subject| subject.can(*workload));
    WORKLOADS.into_iter().filter(can).collect()
}

/// Throughput and failed CAS on each number of threads, as text.
struct Threads<'a>(&'a Document);

impl Display for Threads<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cores = self.0.machine.cores;
        writeln!(f, "\nMillions of operations a second; more than {cores} threads share {cores} cores here.")?;
        for workload in WORKLOADS {
            let rate = |cell: &Measured, subject| cell.nanos(subject, workload).map(|nanos| 1000.0 / nanos);
            self.rows(workload.name(), rate, 2, f)?;
        }
        writeln!(
            f,
            "\nLinks that changed between a writer's look and its CAS, for a million inserts: by another thread,"
        )?;
        writeln!(f, "or by an earlier entry of the same batch.")?;
        let failures = |cell: &Measured, subject| cell.cas_failures_per_insert(subject).map(|each| each * 1e6);
        self.rows("failed CAS", failures, 1, f)
    }
}

impl Threads<'_> {
    /// A row for each subject of which `figure` is known in any cell.
    fn rows(
        &self,
        title: &str,
        figure: impl Fn(&Measured, Subject) -> Option<f64>,
        digits: usize,
        f: &mut fmt::Formatter<'_>,
    ) -> fmt::Result {
        write!(f, "\n{title:<20}")?;
        self.0.cells.iter().try_for_each(|cell| write!(f, " {:>11}", format!("{} thr.", cell.shape.threads)))?;
        writeln!(f)?;
        for subject in Subject::ALL {
            let figures: Vec<_> = self.0.cells.iter().map(|cell| figure(cell, subject)).collect();
            if figures.iter().any(Option::is_some) {
                write!(f, "  {:<18}", subject.name())?;
                let show =
                    |figure: Option<f64>| figure.map_or_else(|| "-".into(), |figure| format!("{figure:.digits$}"));
                figures.into_iter().try_for_each(|figure| write!(f, " {:>11}", show(figure)))?;
                writeln!(f)?;
            }
        }
        Ok(())
    }
}
