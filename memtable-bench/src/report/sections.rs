//! The plots, in their order on the page.

use std::collections::BTreeMap;

use itertools::{Itertools, iproduct};

use super::plots::{self, Bar, Plot, Series};
use crate::results::{CellResults, Figure, Results};
use crate::round::Fact;
use crate::spec::Workload::{self, Delete, FrozenScan, Get, Insert, Miss, Mixed, Mixed95, Scan, Seek};
use crate::spec::{KeySet, Role, Shape, Store, Subject};
use crate::text::{micros, name, nanos, short};

/// The plots of each section of the page, by the section's name in the page's template.
pub(super) type Sections = BTreeMap<&'static str, Vec<Plot>>;

pub(super) fn all(results: &Results) -> Sections {
    [
        ("side_by_side", side_by_side(results)),
        ("growth", growth(results)),
        ("threads", threads(results)),
        ("memory", memory(results).into_iter().collect()),
        ("engines", engines(results)),
        ("stalls", stalls(results)),
    ]
    .into()
}

/// Bars of figures, each with its time and the ratio of that time to the time of `unit`.
fn bars(
    [file, title, explanation]: [&str; 3],
    figures: &[Figure],
    unit: Option<f64>,
    time: fn(f64) -> String,
) -> Option<Plot> {
    let bar = |figure: &Figure| {
        let label = name(figure.subject) + if figure.workload == FrozenScan { ", frozen" } else { "" };
        let times = unit.map_or_else(String::new, |unit| format!(" · {:.2}x", figure.median() / unit));
        let (value, note) = (figure.median(), time(figure.median()) + &times);
        Bar { subject: figure.subject, label, value, spread: Some((figure.nanos.min, figure.nanos.max)), note }
    };
    plots::bars(file, title, explanation, &figures.iter().map(bar).collect::<Vec<_>>())
}

fn side_by_side(results: &Results) -> Vec<Plot> {
    let Some(shape) = results.headline() else { return Vec::new() };
    let plot = |workload: Workload| {
        let figures = workload.family().flat_map(|workload| results.figures(&shape, workload));
        let figures = figures.sorted_by(|a, b| a.median().total_cmp(&b.median())).collect::<Vec<_>>();
        let best = figures.iter().find(|figure| figure.subject.role() == Role::Own)?.median();
        let file = format!("compared-{}", name(workload));
        let title = format!("{}: {} random keys", workload.title(), short(shape.entries));
        let texts = [&file, &title, "ns per operation, lower is better; 1.00x is the best of ours"];
        bars(texts, &figures, Some(best), |ns| nanos(ns) + " ns")
    };
    let workloads = Workload::of(Store::Table).filter(|workload| workload.of_peers() == *workload);
    workloads.filter_map(plot).collect()
}

fn growth(results: &Results) -> Vec<Plot> {
    let keys = [(KeySet::Random, "random keys"), (KeySet::Sequential, "keys in order"), (KeySet::Paths, "paths")];
    let plot = |((keys, spoken), workload): ((KeySet, &str), Workload)| {
        // A cell without peers would add a tick at which most lines have no point.
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

fn threads(results: &Results) -> Vec<Plot> {
    let shapes = results.threads();
    let plot = |workload: Workload| {
        let (file, title) =
            (format!("threads-{}", name(workload)), format!("{}, all threads together", workload.title()));
        let texts = [&file, &title, "million operations a second, higher is better", "threads"];
        curves(results, &shapes, workload, texts, |shape| shape.threads, |figure| 1000.0 / figure.median())
    };
    [Insert, Get, Mixed, Mixed95, Delete, Scan].into_iter().filter_map(plot).collect()
}

/// A line for each subject and each variant of the workload, over the measured shapes.
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
    // The bars already show frozen tables.
    let ways: Vec<_> = workload.family().filter(|way| *way != FrozenScan).collect();
    let all = iproduct!(Subject::all(), ways).map(line);
    // A line needs two points.
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

/// The best cell of engines for `workload`: prefers random keys and one thread, then the most entries.
fn of_engines(results: &Results, workload: Workload) -> Option<&CellResults> {
    let is_usual = |shape: &Shape| shape.keys == KeySet::Random && shape.threads == 1;
    let shown = |of: &CellResults| (is_usual(&of.cell.shape), of.figures_at(workload).count(), of.cell.shape.entries);
    let cells = results.cells.iter().filter(|of| !of.cell.shape.store.is_table());
    cells.filter(|of| of.figures_at(workload).count() > 0).max_by_key(|of| shown(of))
}

fn engines(results: &Results) -> Vec<Plot> {
    let plot = |workload: Workload| {
        let of = of_engines(results, workload)?;
        let figures: Vec<_> = of.figures_at(workload).sorted_by(|a, b| a.median().total_cmp(&b.median())).collect();
        let (file, title) =
            (format!("engine-{}", name(workload)), format!("{}: {}", workload.title(), of.cell.shape.brief()));
        let texts = [&file, &title, "time per operation, lower is better; 1.00x is mini-engine"];
        bars(texts, &figures, of.nanos(Subject::MiniEngine, workload), |ns| micros(ns) + " µs")
    };
    Workload::of(Store::Engine).filter_map(plot).collect()
}

/// Operations a second over time, for workloads that may wait for flushes and compactions.
fn stalls(results: &Results) -> Vec<Plot> {
    let plot = |workload: Workload| {
        let of = of_engines(results, workload)?;
        let line = |&subject: &Subject| {
            let timeline = of.timeline(subject, workload)?;
            let seconds = timeline.moment_ms as f64 / 1e3;
            // A step for each moment, so that even a round of a single moment is visible.
            let step = |(at, &operations): (usize, &u64)| {
                [at, at + 1].map(|edge| (edge as f64 * seconds, operations as f64 / seconds))
            };
            Some((subject, timeline.operations.iter().enumerate().flat_map(step).collect()))
        };
        let series: Vec<Series> = of.cell.subjects.iter().filter_map(line).collect();
        let title = format!("{}: {}", workload.title(), of.cell.shape.brief());
        plots::timelines(&format!("stalls-{}", name(workload)), &title, &series)
    };
    Workload::of(Store::Engine).filter(|workload| workload.has_stalls()).filter_map(plot).collect()
}
