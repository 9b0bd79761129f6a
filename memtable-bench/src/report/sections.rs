//! Which plots there are, in their order on the page.

use super::plots::{self, Bar, Plot, Series, Up};
use super::results::Results;
use crate::keys::KeySet;
use crate::results::{Figure, Overhead};
use crate::spec::Workload::{self, Delete, FrozenScan, Get, Insert, Miss, Mixed, Mixed95, Scan, Seek};
use crate::spec::{Role, Shape, Subject};
use crate::text::{grouped, name, nanos, short};

/// Plots under one heading.
#[derive(Debug)]
pub(super) struct Section {
    pub(super) title: &'static str,
    pub(super) says: String,
    pub(super) plots: Vec<Plot>,
}

/// The sections that have plots.
pub(super) fn all(results: &Results) -> Vec<Section> {
    let sections = [side_by_side(results), growth(results), threads(results), memory(results)];
    sections.into_iter().filter(|section| !section.plots.is_empty()).collect()
}

fn label(figure: &Figure) -> String {
    name(figure.subject) + if figure.workload == FrozenScan { ", frozen" } else { "" }
}

fn side_by_side(results: &Results) -> Section {
    let shape = results.headline();
    let workloads = Workload::all().iter().copied().filter(|workload| workload.of_peers() == *workload);
    Section {
        title: "Side by side",
        says: format!(
            "{}. Bars are medians, whiskers the fastest and the slowest round. Batch subjects get and insert 256 keys at a time; \
             peers have no such call and are shown at one by one.",
            shape.map_or_else(String::new, |shape| shape.to_string())
        ),
        plots: workloads.filter_map(|workload| compared(results, &shape?, workload)).collect(),
    }
}

fn compared(results: &Results, shape: &Shape, workload: Workload) -> Option<Plot> {
    let mut figures: Vec<_> = workload.family().flat_map(|workload| results.figures(shape, workload)).collect();
    figures.sort_by(|a, b| a.median().total_cmp(&b.median()));
    let best = figures.iter().find(|figure| figure.subject.role() == Role::Own)?.median();
    let bar = |figure: &&Figure| Bar {
        subject: figure.subject,
        label: label(figure),
        value: figure.median(),
        spread: figure.ns_per_operation.map(|nanos| (nanos.min, nanos.max)),
        note: format!("{} ns · {:.2}x", nanos(figure.median()), figure.median() / best),
    };
    let keys = match shape.keys {
        KeySet::Paths => "paths".into(),
        keys => format!("{} keys", name(keys)),
    };
    plots::bars(
        &format!("compared-{}", name(workload)),
        &format!("{}: {} {keys}", workload.title(), short(shape.entries)),
        "ns per operation, lower is better; 1.00x is the best of ours",
        &figures.iter().map(bar).collect::<Vec<_>>(),
    )
}

fn growth(results: &Results) -> Section {
    let keys = [(KeySet::Random, "random keys"), (KeySet::Sequential, "keys in order"), (KeySet::Paths, "paths")];
    let of_keys = |(keys, spoken)| {
        [Insert, Get, Miss, Scan, Seek].map(|workload| {
            let title = format!("{}, {spoken}", workload.title());
            let file = format!("growth-{}-{}", name(keys), name(workload));
            // A cell without peers would make a tick without most of the lines.
            let has_peers =
                |shape: &Shape| results.figures(shape, workload).iter().any(|of| of.subject.role() != Role::Own);
            let shapes: Vec<_> = results.sizes(keys).into_iter().filter(has_peers).collect();
            let ticks: Vec<_> = shapes.iter().map(|shape| (shape.entries as f64, short(shape.entries))).collect();
            let series = series(results, &shapes, workload, |shape| shape.entries as f64, Figure::median);
            plots::lines(&file, &title, "entries in the table", Up::Nanos, &ticks, &series)
        })
    };
    Section {
        title: "Cost as the table grows",
        says: "One thread. Both axes are logarithmic: a straight line upwards is a power of the size.".into(),
        plots: keys.into_iter().flat_map(of_keys).flatten().collect(),
    }
}

fn threads(results: &Results) -> Section {
    let shapes = results.threads();
    let cores = results.runs.first().map_or(1, |run| run.machine.cores);
    let entries = shapes.first().map_or(0, |shape| shape.entries);
    let plot = |workload: Workload| {
        let measured = |shape: &&Shape| !results.figures(shape, workload).is_empty();
        let shapes: Vec<_> = shapes.iter().filter(measured).copied().collect();
        let ticks: Vec<_> = shapes.iter().map(|shape| (shape.threads as f64, shape.threads.to_string())).collect();
        let rate = |figure: &Figure| 1000.0 / figure.median();
        let series = series(results, &shapes, workload, |shape| shape.threads as f64, rate);
        let title = format!("{}, all threads together", workload.title());
        plots::lines(&format!("threads-{}", name(workload)), &title, "threads", Up::Millions, &ticks, &series)
    };
    Section {
        title: "Threads",
        says: format!(
            "{} random keys. This machine has {cores} cores: with more than {cores} threads nothing can get faster; what is lost to \
             contention shows.",
            grouped(entries)
        ),
        plots: [Insert, Get, Mixed, Mixed95, Delete, Scan].into_iter().filter_map(plot).collect(),
    }
}

/// A line for each subject, and for each way it does the workload.
fn series(
    results: &Results,
    shapes: &[Shape],
    workload: Workload,
    across: fn(&Shape) -> f64,
    up: fn(&Figure) -> f64,
) -> Vec<Series> {
    let line = |subject: Subject, way: Workload| {
        let figure =
            |shape: &Shape| results.find(shape, way)?.figure(subject, way).filter(|of| of.median().is_finite());
        let points = shapes.iter().filter_map(|shape| Some((across(shape), up(figure(shape)?)))).collect();
        Series { subject, label: name(subject), points }
    };
    // A frozen table is drawn among the bars.
    let ways = || workload.family().filter(|way| *way != FrozenScan);
    let all = Subject::all().iter().flat_map(|&subject| ways().map(move |way| (subject, way)));
    // One point is no line.
    all.map(|(subject, way)| line(subject, way)).filter(|series| series.points.len() > 1).collect()
}

fn memory(results: &Results) -> Section {
    let plot = |shape: Shape| {
        let cell = results.find(&shape, Insert)?;
        let bar = |overhead: &Overhead| {
            let (subject, value) = (overhead.subject, overhead.resident?);
            let own = overhead.own_account.map_or_else(String::new, |own| format!(" · own {own:.1} B"));
            Some(Bar { subject, label: name(subject), value, spread: None, note: format!("{value:.0} B{own}") })
        };
        let mut bars: Vec<_> = cell.memory.iter().filter_map(bar).collect();
        bars.sort_by(|a, b| a.value.total_cmp(&b.value));
        let title = format!("Memory beyond key and value: {} random keys", short(shape.entries));
        plots::bars("memory", &title, "bytes an entry, lower is better; own: the table's own account", &bars)
    };
    Section {
        title: "Memory",
        says: "What an entry takes beyond the bytes of its key and value. Bars: growth of the process's resident memory while the \
               table is filled, including what allocators and half-used chunks lose. Beside them what the table itself says."
            .into(),
        plots: results.headline().and_then(plot).into_iter().collect(),
    }
}
