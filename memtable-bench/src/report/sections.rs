//! The sections of the page, in their order: the plots and the table of each, and what is said above them.

use itertools::iproduct;
use serde::Serialize;

use super::plots::{self, Bar, Plot, Series};
use crate::results::{CellResults, Figure, Results, facts, latencies, ratios};
use crate::round::Fact;
use crate::spec::Workload::{self, Delete, FrozenScan, Get, Insert, Miss, Mixed, Mixed95, Scan, Seek};
use crate::spec::{KeySet, Role, Shape, Store, Subject};
use crate::text::{Sheet, micros, name, nanos, short};

/// A section with neither plots nor rows is left out.
#[derive(Debug, Serialize)]
pub(super) struct Section {
    title: &'static str,
    says: String,
    pub(super) plots: Vec<Plot>,
    sheet: Sheet,
}

pub(super) fn all(results: &Results) -> Vec<Section> {
    let cores = results.runs[0].machine.cores;
    let (shape, threads) = (results.headline(), results.threads());
    let shape = shape.map_or_else(String::new, |shape| format!("{shape}. "));
    let threads = threads.first().map_or(0, |shape| shape.entries);
    let plots = |title, says: String, plots| Section { title, says, plots, sheet: Sheet::default() };
    let sheet = |title, says: &str, sheet| Section { title, says: says.into(), plots: Vec::new(), sheet };
    let all = [
        plots(
            "Side by side",
            format!(
                "{shape}Bars are medians, whiskers the fastest and the slowest round. Batch subjects get and insert 256 keys at a \
                 time; peers have no such call and are shown at one by one."
            ),
            side_by_side(results),
        ),
        plots(
            "Cost as the table grows",
            "One thread. A straight line upwards is a power of the size.".into(),
            growth(results),
        ),
        plots(
            "Threads",
            format!(
                "{} random keys. This machine has {cores} cores: with more than {cores} threads nothing can get faster; what is lost \
                 to contention shows.",
                short(threads)
            ),
            of_threads(results),
        ),
        plots(
            "Memory",
            "What an entry takes beyond the bytes of its key and value. Bars: growth of the process's resident memory while the table \
             is filled, including what allocators and half-used chunks lose. Beside them what the table itself says."
                .into(),
            memory(results).into_iter().collect(),
        ),
        plots(
            "Engines side by side",
            "Each workload where most engines did it. Bars are medians, whiskers the fastest and the slowest round. Nothing is \
             compressed, and no write is synced unless the workload says so; what a write survives differs, as the book says. Grey \
             bars are no engines: tables without a log, and a log without a table."
                .into(),
            engines(results),
        ),
        plots(
            "Stalls",
            "How many operations were done in each moment of the first round.".into(),
            stalls(results),
        ),
        sheet(
            "mini-engine and each peer",
            "How many times as fast it is: 2x is half the time.",
            ratios(&results.cells),
        ),
        sheet(
            "What was taken beside time",
            "Medians. Of tables, bytes for each entry beyond its key and value: by the growth of the process (overhead) and by the \
             table's own account (own-overhead); and how often writers met (failed-cas): links that changed between a writer's read \
             and its compare-and-swap, by another thread or by an earlier entry of the same batch, for a million inserts. Of \
             engines, write-calls: system calls that write, for each operation. Disk-bytes: what went to the disk for each byte \
             stored, the log included. Disk-space: bytes on the disk for each byte that is there. Memory: the most anonymous \
             memory, divided by cache and two memtables. Writer-rate: writes a second by the second thread. The others are \
             mini-engine's own account.",
            facts(&results.cells),
        ),
        sheet(
            "How long single operations take",
            "Percentiles in ns, medians over the rounds. Single inserts into tables are timed one by one; beside them what the clock \
             alone takes, which is part of every time here. In engines the clock is read once an operation, and a batch is one \
             operation.",
            latencies(&results.cells),
        ),
    ];
    all.into_iter().filter(|section| !section.plots.is_empty() || !section.sheet.rows.is_empty()).collect()
}

fn bar(figure: &Figure, note: String) -> Bar {
    let label = name(figure.subject) + if figure.workload == FrozenScan { ", frozen" } else { "" };
    let spread = Some((figure.nanos.min, figure.nanos.max));
    Bar { subject: figure.subject, label, value: figure.median(), spread, note }
}

fn side_by_side(results: &Results) -> Vec<Plot> {
    let Some(shape) = results.headline() else { return Vec::new() };
    let plot = |workload: Workload| {
        let mut figures: Vec<_> = workload.family().flat_map(|workload| results.figures(&shape, workload)).collect();
        figures.sort_by(|a, b| a.median().total_cmp(&b.median()));
        let best = figures.iter().find(|figure| figure.subject.role() == Role::Own)?.median();
        let note = |of: &Figure| format!("{} ns · {:.2}x", nanos(of.median()), of.median() / best);
        plots::bars(
            &format!("compared-{}", name(workload)),
            &format!("{}: {} random keys", workload.title(), short(shape.entries)),
            "ns per operation, lower is better; 1.00x is the best of ours",
            &figures.iter().map(|figure| bar(figure, note(figure))).collect::<Vec<_>>(),
        )
    };
    let workloads = Workload::of(Store::Table).filter(|workload| workload.of_peers() == *workload);
    workloads.filter_map(plot).collect()
}

fn growth(results: &Results) -> Vec<Plot> {
    let keys = [(KeySet::Random, "random keys"), (KeySet::Sequential, "keys in order"), (KeySet::Paths, "paths")];
    let plot = |((keys, spoken), workload): ((KeySet, &str), Workload)| {
        // A cell without peers would make a tick without most of the lines.
        let has_peers =
            |shape: &Shape| results.figures(shape, workload).iter().any(|of| of.subject.role() != Role::Own);
        let shapes: Vec<_> = results.sizes(keys).into_iter().filter(has_peers).collect();
        let file = format!("growth-{}-{}", name(keys), name(workload));
        let title = format!("{}, {spoken}", workload.title());
        let texts = [&file, &title, "ns per operation, lower is better", "entries in the table"];
        curves(results, &shapes, workload, texts, |shape| shape.entries, Figure::median)
    };
    iproduct!(keys, [Insert, Get, Miss, Scan, Seek]).filter_map(plot).collect()
}

fn of_threads(results: &Results) -> Vec<Plot> {
    let shapes = results.threads();
    let plot = |workload: Workload| {
        let (file, title) =
            (format!("threads-{}", name(workload)), format!("{}, all threads together", workload.title()));
        let texts = [&file, &title, "million operations a second, higher is better", "threads"];
        curves(results, &shapes, workload, texts, |shape| shape.threads, |figure| 1000.0 / figure.median())
    };
    [Insert, Get, Mixed, Mixed95, Delete, Scan].into_iter().filter_map(plot).collect()
}

/// A line for each subject, and for each way it does the workload, over the shapes that were measured.
fn curves(
    results: &Results,
    shapes: &[Shape],
    workload: Workload,
    texts: [&str; 4],
    across: fn(&Shape) -> usize,
    up: fn(&Figure) -> f64,
) -> Option<Plot> {
    let shapes: Vec<_> = shapes.iter().filter(|shape| !results.figures(shape, workload).is_empty()).collect();
    let line = |(&subject, way): (&Subject, Workload)| {
        let figure = |shape: &Shape| results.find(shape, way)?.figure(subject, way);
        let point = |shape: &&Shape| Some((across(shape) as f64, up(&figure(shape)?)));
        (subject, shapes.iter().filter_map(point).collect())
    };
    // A frozen table is drawn among the bars.
    let ways: Vec<_> = workload.family().filter(|way| *way != FrozenScan).collect();
    let all = iproduct!(Subject::all(), ways).map(line);
    // One point is no line.
    let series: Vec<Series> = all.filter(|(_, points): &Series| points.len() > 1).collect();
    let ticks: Vec<_> = shapes.iter().map(|shape| (across(shape) as f64, short(across(shape)))).collect();
    plots::lines(texts, &ticks, &series)
}

fn memory(results: &Results) -> Option<Plot> {
    let shape = results.headline()?;
    let of = results.find(&shape, Insert)?;
    let bar = |&subject: &Subject| {
        let value = of.fact(subject, Insert, Fact::Overhead)?;
        let own =
            of.fact(subject, Insert, Fact::OwnOverhead).map_or_else(String::new, |own| format!(" · own {own:.1} B"));
        Some(Bar { subject, label: name(subject), value, spread: None, note: format!("{value:.0} B{own}") })
    };
    let mut bars: Vec<_> = of.cell.subjects.iter().filter_map(bar).collect();
    bars.sort_by(|a, b| a.value.total_cmp(&b.value));
    let title = format!("Memory beyond key and value: {} random keys", short(shape.entries));
    plots::bars("memory", &title, "bytes an entry, lower is better; own: the table's own account", &bars)
}

/// The cell of engines that shows most at `workload`: random keys and one thread rather than others, then the most entries.
fn of_engines(results: &Results, workload: Workload) -> Option<&CellResults> {
    let is_usual = |shape: &Shape| shape.keys == KeySet::Random && shape.threads == 1;
    let shown = |of: &CellResults| (is_usual(&of.cell.shape), of.figures_at(workload).count(), of.cell.shape.entries);
    let cells = results.cells.iter().filter(|of| !of.cell.shape.store.is_table());
    cells.filter(|of| of.figures_at(workload).count() > 0).max_by_key(|of| shown(of))
}

fn engines(results: &Results) -> Vec<Plot> {
    let plot = |workload: Workload| {
        let of = of_engines(results, workload)?;
        let mut figures: Vec<_> = of.figures_at(workload).collect();
        figures.sort_by(|a, b| a.median().total_cmp(&b.median()));
        let own = of.nanos(Subject::MiniEngine, workload);
        let note = |figure: &Figure| {
            let times = own.map_or_else(String::new, |own| format!(" · {:.2}x", figure.median() / own));
            format!("{} µs{times}", micros(figure.median()))
        };
        plots::bars(
            &format!("engine-{}", name(workload)),
            &format!("{}: {}", workload.title(), of.cell.shape.brief()),
            "time per operation, lower is better; 1.00x is mini-engine",
            &figures.iter().map(|figure| bar(figure, note(figure))).collect::<Vec<_>>(),
        )
    };
    Workload::of(Store::Engine).filter_map(plot).collect()
}

/// Operations a second over time, where they may wait for flushes and compactions.
fn stalls(results: &Results) -> Vec<Plot> {
    let plot = |workload: Workload| {
        let of = of_engines(results, workload)?;
        let line = |&subject: &Subject| {
            let timeline = of.timeline(subject, workload)?;
            let seconds = timeline.moment_ms as f64 / 1e3;
            let point = |(at, &operations): (usize, &u64)| ((at as f64 + 0.5) * seconds, operations as f64 / seconds);
            Some((subject, timeline.operations.iter().enumerate().map(point).collect()))
        };
        let series: Vec<Series> = of.cell.subjects.iter().filter_map(line).collect();
        let title = format!("{}: {}", workload.title(), of.cell.shape.brief());
        plots::timelines(&format!("stalls-{}", name(workload)), &title, &series)
    };
    Workload::of(Store::Engine).filter(|workload| workload.has_stalls()).filter_map(plot).collect()
}
