//! The tables in which people read results, on the terminal and on the page.

use clap::ValueEnum;
use itertools::iproduct;

use super::cell::{CellResults, Figure};
use super::run::Run;
use crate::round::Fact;
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
    or_dash(ratio, "–", |ratio| format!("{ratio:.2}x"))
}

/// Where a run comes from, and how its tables are read.
pub(crate) fn heading(run: &Run) -> String {
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
    let of_benchmark = if run.is_of_engines() { OF_ENGINES } else { OF_TABLES };
    format!(
        "{} cores, {model}; {date}; commit {commit}\n{warning}{peers}Medians. Time by the operations of all threads; 2.00x is twice \
         as fast as that peer.\n{of_benchmark}",
        machine.cores
    )
}

/// The results of a cell: times and ratios by workload, latencies, what was taken beside time, and rounds that failed.
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
    let failed = cell.subjects.iter().filter_map(|&subject| {
        let (failed, all, reason) = results.failures(subject)?;
        Some(format!("\n{}: {failed} of {all} rounds failed: {reason}\n", name(subject)))
    });
    format!("\n{}\n{}", cell.shape, sheets.chain(failed).collect::<String>())
}

/// The latency of single operations in these cells, in nanoseconds, and that of reading the clock.
pub(crate) fn latencies<'c>(cells: impl IntoIterator<Item = &'c CellResults>) -> Sheet {
    let row = |(results, &workload, &subject): (&CellResults, &Workload, &Subject)| {
        let of = results.latency(subject, workload)?;
        let names = [name(subject), name(workload), results.cell.shape.brief()];
        let times = [of.p50, of.p99, of.p999, of.p9999, of.max, of.clock_p50, of.clock_p999].map(nanos);
        Some([&names[..], &times, &[format!("{:.2}x", of.tail_ratio)]].concat())
    };
    let of_cell = |of: &'c CellResults| iproduct!([of], &of.cell.workloads, &of.cell.subjects);
    let head = ["ns", "workload", "keys", "p50", "p99", "p99.9", "p99.99", "max"];
    let rows = cells.into_iter().flat_map(of_cell).filter_map(row);
    Sheet::new(head.into_iter().chain(["clock p50", "clock p99.9", "p99.9 / p50"]), rows)
}

/// What each subject took beside time in these cells: a row for each workload, a column for each fact that is known.
pub(crate) fn facts<'c>(cells: impl IntoIterator<Item = &'c CellResults>) -> Sheet {
    let of_cell = |of: &'c CellResults| iproduct!([of], &of.cell.workloads, &of.cell.subjects);
    let known = |(of, &workload, &subject): (&'c CellResults, _, _)| {
        let facts: Vec<_> = Fact::value_variants().iter().map(|&fact| of.fact(subject, workload, fact)).collect();
        let names = [name(subject), name(workload), of.cell.shape.brief()];
        facts.iter().any(Option::is_some).then_some((names, facts))
    };
    let all: Vec<_> = cells.into_iter().flat_map(of_cell).filter_map(known).collect();
    let columns: Vec<_> = Fact::value_variants().iter().enumerate().collect();
    let columns = columns.into_iter().filter(|(at, _)| all.iter().any(|(_, facts)| facts[*at].is_some()));
    let (columns, heads): (Vec<_>, Vec<_>) = columns.map(|(at, fact)| (at, name(*fact))).unzip();
    let row = |(names, facts): &([String; 3], Vec<Option<f64>>)| {
        let shown = columns.iter().map(|&at| or_dash(facts[at], "–", |fact| format!("{fact:.2}")));
        names.iter().cloned().chain(shown).collect()
    };
    let head = ["beside time", "workload", "keys"].map(String::from);
    Sheet::new(head.into_iter().chain(heads), all.iter().map(row))
}

/// Every workload of our engine, and how many times as fast it is as each peer, in these cells.
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
