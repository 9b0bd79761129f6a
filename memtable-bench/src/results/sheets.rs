//! The tables in which people read results, on the terminal and on the page.

use std::slice::from_ref;

use clap::ValueEnum;
use itertools::iproduct;

use super::cell::{CellResults, Figure, failures};
use super::run::Run;
use crate::round::Percentile;
use crate::spec::{Role, Subject, Workload};
use crate::text::{Sheet, micros, name, nanos, or_dash};

const OF_TABLES: &str = "\
get-many is compared with get, frozen-scan with scan: peers have nothing of the kind.
insert-latency is the median of single inserts, which includes what reading the clock takes.
";
const OF_ENGINES: &str = "\
The settings are those in the title of each cell; nothing is compressed; blocks of 4 KiB, filters of 10 bits a key, where an engine has
them. Only synced-put syncs each write. What else a write survives differs: see the book. Reads find a database at rest, read once before.
The peer beside the best one is the best LSM tree.
";

fn times(ratio: Option<f64>) -> String {
    or_dash(ratio, |ratio| format!("{ratio:.2}x"))
}

/// The machine, the date and the commit of a run, and warnings.
pub(crate) fn origin(run: &Run) -> String {
    let Run { machine, date, commit, .. } = run;
    let (model, commit) = (machine.model.as_deref(), commit.as_deref().unwrap_or("unknown"));
    let model = model.unwrap_or("processor unknown");
    let warning = match run.optimised {
        true => "",
        false => "NOT OPTIMISED: this build's times mean nothing; build with --release\n",
    };
    let peers = match Subject::Fjall.missing_feature() {
        None => "",
        Some(_) => "Built without the peers that are crates: add --features peers to cargo's arguments\n",
    };
    let allocator = run.allocator.as_deref().unwrap_or("the system's");
    format!("{} cores, {model}; allocator {allocator}; {date}; commit {commit}\n{warning}{peers}", machine.cores)
}

/// The origin of a run, and how to read its tables.
pub(crate) fn heading(run: &Run) -> String {
    let of_benchmark = if run.is_of_engines() { OF_ENGINES } else { OF_TABLES };
    let origin = origin(run);
    format!(
        "{origin}Medians. Time by the operations of all threads; 2.00x is twice as fast as that peer.\n{of_benchmark}"
    )
}

/// The results of a cell: times and ratios by workload, latencies, costs other than time, and failed rounds.
pub(crate) fn cell_text(results: &CellResults) -> String {
    let cell = &results.cell;
    let close = if cell.shape.store.is_table() { "skip list peer" } else { "LSM peer" };
    let row = |of: &Figure| {
        let (nanos, close, best) = (of.nanos, times(of.times_close_peer), times(of.times_best_peer));
        let range = format!("{:.1} - {:.1}", nanos.min, nanos.max);
        vec![name(of.subject), format!("{:.1}", nanos.median), range, close, best]
    };
    let at = |&workload: &Workload| {
        let figure = |&subject: &Subject| {
            let failed = || vec![name(subject), "failed".into(), String::new(), "–".into(), "–".into()];
            subject.can(workload).then(|| results.figure(subject, workload).as_ref().map_or_else(failed, row))
        };
        let head = [&name(workload), "ns/op", "min - max", close, "best peer"];
        Sheet::new(head, cell.subjects.iter().filter_map(figure))
    };
    let sheets = cell.workloads.iter().map(at).chain([latencies([results]), facts([results])]);
    let sheets = sheets.filter(|sheet| !sheet.rows.is_empty()).map(|sheet| format!("\n{sheet}"));
    let failed = failures(from_ref(results)).into_iter();
    let failed = failed.map(|(subject, failed, all, reason)| {
        format!("\n{}: {failed} of {all} rounds failed: {reason}\n", name(subject))
    });
    format!("\n{}\n{}", cell.shape, sheets.chain(failed).collect::<String>())
}

/// The latency of single operations in these cells, in nanoseconds, and the latency of reading the clock.
pub(crate) fn latencies<'c>(cells: impl IntoIterator<Item = &'c CellResults>) -> Sheet {
    let show = |of, value| if of == Percentile::TailRatio { format!("{value:.2}x") } else { nanos(value) };
    medians("ns", cells, CellResults::latency, show)
}

/// The figures other than time of each subject in these cells.
pub(crate) fn facts<'c>(cells: impl IntoIterator<Item = &'c CellResults>) -> Sheet {
    medians("beside time", cells, CellResults::fact, |_, fact| format!("{fact:.2}"))
}

/// A row for each workload of a subject, and a column for each figure that any of them has.
fn medians<'c, K: ValueEnum + Copy>(
    title: &str,
    cells: impl IntoIterator<Item = &'c CellResults>,
    find: fn(&CellResults, Subject, Workload, K) -> Option<f64>,
    show: fn(K, f64) -> String,
) -> Sheet {
    let of_cell = |of: &'c CellResults| iproduct!([of], &of.cell.workloads, &of.cell.subjects);
    let known = |(of, &workload, &subject): (&'c CellResults, _, _)| {
        let figures: Vec<_> = K::value_variants().iter().map(|&key| find(of, subject, workload, key)).collect();
        let names = [name(subject), name(workload), of.cell.shape.brief()];
        figures.iter().any(Option::is_some).then_some((names, figures))
    };
    let all: Vec<_> = cells.into_iter().flat_map(of_cell).filter_map(known).collect();
    let columns = K::value_variants().iter().enumerate();
    let columns: Vec<_> = columns.filter(|(at, _)| all.iter().any(|(_, figures)| figures[*at].is_some())).collect();
    let row = |(names, figures): &([String; 3], Vec<Option<f64>>)| {
        let shown = columns.iter().map(|&(at, key)| or_dash(figures[at], |figure| show(*key, figure)));
        names.iter().cloned().chain(shown).collect()
    };
    let head = [title, "workload", "keys"].map(String::from);
    Sheet::new(head.into_iter().chain(columns.iter().map(|(_, key)| name(**key))), all.iter().map(row))
}

/// Every workload of our engine in these cells, with its speed relative to each peer.
pub(crate) fn ratios<'c>(cells: impl IntoIterator<Item = &'c CellResults>) -> Sheet {
    let cells: Vec<_> = cells.into_iter().filter(|of| !of.cell.shape.store.is_table()).collect();
    let is_peer = |subject: &Subject| matches!(subject.role(), Role::ClosePeer | Role::OtherPeer);
    let is_there = |subject: &Subject| cells.iter().any(|of| of.cell.subjects.contains(subject));
    let peers: Vec<_> = Subject::all().iter().copied().filter(|of| is_peer(of) && is_there(of)).collect();
    let row = |results: &CellResults, workload: Workload| {
        let ours = results.figure(Subject::MiniEngine, workload)?;
        let to = |&peer: &Subject| times(results.nanos(peer, workload).map(|nanos| nanos / ours.median()));
        let names = [name(workload), results.cell.shape.brief(), micros(ours.median()), times(ours.times_best_peer)];
        Some(names.into_iter().chain(peers.iter().map(to)).collect())
    };
    let rows = cells.iter().flat_map(|of| of.cell.workloads.iter().filter_map(|&workload| row(of, workload)));
    let head = ["workload", "database", "ours, µs", "best peer"].map(String::from);
    Sheet::new(head.into_iter().chain(peers.iter().copied().map(name)), rows)
}
