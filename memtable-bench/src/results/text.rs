//! Results as text for people.

use itertools::iproduct;

use super::engines::facts;
use super::figures::{Figure, Overhead};
use super::run::{CellResults, ENGINE, Run};
use crate::spec::Subject;
use crate::text::{Sheet, name, nanos, or_dash};

const OF_TABLES: &str = "\
get-many is compared with get, frozen-scan with scan: peers have nothing of the kind.
insert-latency is the median of single inserts, which includes what reading the clock takes.
";
const OF_ENGINES: &str = "\
The settings are those in the title of each cell; nothing is compressed; blocks of 4 KiB, filters of 10 bits a key, where an engine has
them. Only synced-put syncs each write. What else a write survives differs: see the book. Reads find a database at rest, read once before.
The peer beside the best one is the best LSM tree.
";

/// Where a run comes from, and how its tables are read.
pub(crate) fn heading(run: &Run) -> String {
    let Run { machine, date, commit, .. } = run;
    let (model, commit) = (machine.model.as_deref(), commit.as_deref().unwrap_or("unknown"));
    let model = model.unwrap_or("processor unknown");
    let warning = match run.optimised {
        true => "",
        false => "NOT OPTIMISED: this build's times mean nothing; build with --release\n",
    };
    let of_benchmark = if run.benchmark == ENGINE { OF_ENGINES } else { OF_TABLES };
    format!(
        "{} cores, {model}; {date}; commit {commit}\n{warning}Medians. Time by the operations of all threads; 2.00x is twice as \
         fast as that peer.\n{of_benchmark}",
        machine.cores
    )
}

/// The results of a cell: times and ratios by workload, memory, and rounds that failed.
pub(crate) fn cell_text(cell: &CellResults) -> String {
    let mut text = format!("\n{}\n", cell.shape);
    for of_workload in cell.figures.chunk_by(|a, b| a.workload == b.workload) {
        let workload = name(of_workload[0].workload);
        let close = if cell.shape.store.is_table() { "skip list peer" } else { "LSM peer" };
        let head = [&workload, "ns/op", "min - max", close, "best peer"];
        text += &format!("\n{}", Sheet::new(head, of_workload.iter().map(row)));
    }
    let of_inserts = latencies([cell]);
    text += &if of_inserts.rows.is_empty() { String::new() } else { format!("\n{of_inserts}") };
    let beside = if cell.shape.store.is_table() { overheads(cell) } else { facts([cell]) };
    text += &format!("\n{beside}");
    for &subject in &cell.subjects {
        if let Some((failed, all, reason)) = cell.failures(subject) {
            text += &format!("\n{}: {failed} of {all} rounds failed: {reason}\n", name(subject));
        }
    }
    text
}

fn overheads(cell: &CellResults) -> Sheet {
    let head = ["bytes an entry beyond key and value", "peak of process", "own account"];
    let bytes = |bytes| or_dash(bytes, "-", |bytes: f64| format!("{bytes:.1}"));
    let row = |of: &Overhead| vec![name(of.subject), bytes(of.resident), bytes(of.own_account)];
    Sheet::new(head, cell.memory.iter().map(row))
}

fn row(figure: &Figure) -> Vec<String> {
    let times = |times| or_dash(times, "-", |times: f64| format!("{times:.2}x"));
    let (median, range) = figure.ns_per_operation.map_or(("failed".into(), String::new()), |nanos| {
        (format!("{:.1}", nanos.median), format!("{:.1} - {:.1}", nanos.min, nanos.max))
    });
    let (skip_list, peer) = (times(figure.times_best_skip_list_peer), times(figure.times_best_peer));
    vec![name(figure.subject), median, range, skip_list, peer]
}

/// The latency of single operations in these cells, in nanoseconds, and that of reading the clock.
pub(crate) fn latencies<'c>(cells: impl IntoIterator<Item = &'c CellResults>) -> Sheet {
    let row = |cell: &CellResults, workload, subject| {
        let of = cell.latency(subject, workload)?;
        let table = [name(subject), name(workload), cell.shape.brief()];
        let times = [of.p50, of.p99, of.p999, of.p9999, of.max, of.clock_p50, of.clock_p999].map(nanos);
        Some([&table[..], &times, &[format!("{:.2}x", of.tail_ratio)]].concat())
    };
    let all = cells.into_iter().flat_map(|cell| iproduct!([cell], &cell.workloads, &cell.subjects));
    let rows = all.filter_map(|(cell, workload, subject)| row(cell, *workload, *subject));
    let head = ["ns", "workload", "keys", "p50", "p99", "p99.9", "p99.99", "max"];
    Sheet::new(head.into_iter().chain(["clock p50", "clock p99.9", "p99.9 / p50"]), rows)
}

/// A row for each subject of which `figure` is known in any of the cells, which differ in their threads.
pub(crate) fn by_threads<'c>(
    cells: impl IntoIterator<Item = &'c CellResults>,
    title: &str,
    figure: impl Fn(&CellResults, Subject) -> Option<f64>,
    digits: usize,
) -> Sheet {
    let cells: Vec<_> = cells.into_iter().collect();
    let threads = cells.iter().map(|cell| format!("{} thr.", cell.shape.threads));
    let row = |&subject: &Subject| {
        let figures: Vec<_> = cells.iter().map(|cell| figure(cell, subject)).collect();
        figures.iter().any(Option::is_some).then_some(())?;
        let shown = figures.into_iter().map(|figure| or_dash(figure, "–", |figure| format!("{figure:.digits$}")));
        Some([name(subject)].into_iter().chain(shown).collect())
    };
    Sheet::new([title.to_owned()].into_iter().chain(threads), Subject::all().iter().filter_map(row))
}
