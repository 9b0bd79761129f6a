//! The cells of a preset by criterion, in one process: a group for each workload, and in it a bench for each subject and shape. An iteration is a whole
//! workload; criterion shows the operations a second. What fills a table or database is prepared outside the clock.

use std::env;
use std::time::Duration;

use clap::ValueEnum;
use criterion::{BenchmarkId, Criterion, Throughput};

use crate::matrix::{Matrix, cells};
use crate::round::{Request, operations, prepared};
use crate::spec::{Workload, name};

/// The entries of a run that only checks that benches work (`cargo bench -- --test`).
const TESTED: usize = 1000;

/// Runs the benches of a preset that the arguments of this process select. Panics if a result is wrong.
pub fn criterion(preset: &str) {
    // `cargo test --benches` gives no `--bench`, and criterion takes that as `--test`.
    let has = |name: &str| env::args().any(|argument| argument == name);
    let most = if has("--test") || !has("--bench") { TESTED } else { usize::MAX };
    let cells = Matrix::preset(preset).and_then(|matrices| cells(&matrices, most)).expect("a preset of this crate");
    let defaults = Criterion::default().sample_size(10).warm_up_time(Duration::from_millis(500));
    let mut criterion = defaults.measurement_time(Duration::from_secs(2)).configure_from_args();
    // Criterion makes a page for each group, so a workload is one group.
    for workload in Workload::value_variants().iter().copied() {
        let cells = cells.iter().filter(|cell| cell.workloads.contains(&workload));
        let mut cells = cells.flat_map(|cell| cell.subjects.iter().map(move |subject| (cell, *subject))).peekable();
        if cells.peek().is_none() {
            continue;
        }
        let mut group = criterion.benchmark_group(name(workload));
        for (cell, subject) in cells.filter(|(_, subject)| subject.can(workload)) {
            group.throughput(Throughput::Elements(operations(&cell.shape, workload)));
            let request = Request { subject, workloads: vec![workload], shape: cell.shape };
            // Prepared only if the arguments select the bench.
            let mut measure = None;
            group.bench_function(BenchmarkId::new(name(subject), cell.shape), |bencher| {
                let measure = measure.get_or_insert_with(|| prepared(&request).expect("a full subject"));
                bencher.iter_custom(|iterations| {
                    let times = (0..iterations).map(|_| Duration::from_nanos(measure().expect("right results").ns));
                    times.sum()
                });
            });
        }
        group.finish();
    }
    criterion.final_summary();
}
