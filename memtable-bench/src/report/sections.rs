//! Which plots there are, in their order on the page.

use super::bars::{self, Bar};
use super::book::{Book, median};
use super::lines::{self, Axes, Series, Up};
use super::svg::Plot;
use crate::keys::KeySet;
use crate::memtable::{Access, Figure, Overhead, Role, Shape, Subject, Workload};
use crate::numbers::{grouped, nanos, short};

/// Plots under one heading.
#[derive(Debug)]
pub(super) struct Section {
    pub(super) title: &'static str,
    pub(super) says: String,
    pub(super) plots: Vec<Plot>,
}

/// Those that have plots.
pub(super) fn all(book: &Book) -> Vec<Section> {
    let sections = [side_by_side(book), growth(book), threads(book), memory(book)];
    sections.into_iter().filter(|section| !section.plots.is_empty()).collect()
}

/// What a workload is called in a title.
fn spoken(workload: Workload) -> &'static str {
    match workload {
        Workload::Insert => "Insert",
        Workload::Sort => "Sort",
        Workload::Get | Workload::GetMany => "Get",
        Workload::Miss => "Get of absent keys",
        Workload::Scan | Workload::FrozenScan => "Scan, an entry",
        Workload::Reverse => "Scan from the end, an entry",
        Workload::Seek => "Seek and read 100",
        Workload::SeekOne => "Seek and read one",
        Workload::Mixed => "Half reads, half writes",
        Workload::Mixed95 => "95 % reads, 5 % writes",
        Workload::Delete => "Delete",
    }
}

fn of_keys(keys: KeySet) -> &'static str {
    match keys {
        KeySet::Random => "random keys",
        KeySet::Sequential => "keys in order",
        KeySet::Paths => "paths",
    }
}

/// A workload, and what ours does of the same kind.
fn family(workload: Workload) -> impl Iterator<Item = Workload> {
    Workload::ALL.into_iter().filter(move |other| other.of_peers() == workload)
}

fn label(figure: &Figure) -> String {
    match figure.workload {
        Workload::FrozenScan => format!("{}, frozen", figure.subject.name()),
        _ => figure.subject.name().into(),
    }
}

/// The figures of a family at a shape, the fastest first.
fn figures(book: &Book, shape: &Shape, workload: Workload) -> Vec<Figure> {
    let mut figures: Vec<Figure> =
        family(workload).flat_map(|workload| book.figures(shape, workload)).cloned().collect();
    figures.sort_by(|a, b| median(a).total_cmp(&median(b)));
    figures
}

fn side_by_side(book: &Book) -> Section {
    let shape = book.headline();
    let workloads = Workload::ALL.into_iter().filter(|workload| workload.of_peers() == *workload);
    let plot = |workload| shape.and_then(|shape| compared(book, &shape, workload));
    Section {
        title: "Side by side",
        says: shape.map_or_else(String::new, |shape| {
            format!(
                "{shape}. Bars are medians, whiskers the fastest and the slowest round. Batch subjects get and insert 256 keys \
                 at a time; peers have no such call and are shown at one by one."
            )
        }),
        plots: workloads.filter_map(plot).collect(),
    }
}

fn compared(book: &Book, shape: &Shape, workload: Workload) -> Option<Plot> {
    let figures = figures(book, shape, workload);
    let best = figures.iter().filter(|figure| figure.subject.role() == Role::Own).map(median).next()?;
    let bar = |figure: &Figure| {
        let (median, times) = (median(figure), median(figure) / best);
        Bar {
            subject: figure.subject,
            label: label(figure),
            value: median,
            spread: figure.ns_per_operation.map(|nanos| (nanos.min, nanos.max)),
            note: format!("{} ns · {times:.2}x", nanos(median)),
        }
    };
    let bars: Vec<_> = figures.iter().map(bar).collect();
    let title = format!("{}: {} {}", spoken(workload), short(shape.entries), of_keys(shape.keys));
    bars::plot(
        &format!("compared-{}", workload.name()),
        &title,
        "ns per operation, lower is better; 1.00x is the best of ours",
        &bars,
    )
}

fn growth(book: &Book) -> Section {
    let workloads = [Workload::Insert, Workload::Get, Workload::Miss, Workload::Scan, Workload::Seek];
    let keys = [KeySet::Random, KeySet::Sequential, KeySet::Paths];
    let plots = keys.into_iter().flat_map(|keys| workloads.map(|workload| by_size(book, keys, workload)));
    Section {
        title: "Cost as the table grows",
        says: "One thread. Both axes are logarithmic: a straight line upwards is a power of the size.".into(),
        plots: plots.flatten().collect(),
    }
}

fn by_size(book: &Book, keys: KeySet, workload: Workload) -> Option<Plot> {
    let shapes = book.sizes(keys);
    let shapes: Vec<_> = shapes.iter().filter(|shape| has_peers(book, shape, workload)).collect();
    let series = series(book, &shapes, workload, |shape| shape.entries as f64, median);
    let ticks = shapes.iter().map(|shape| (shape.entries as f64, short(shape.entries))).collect();
    let title = format!("{}, {}", spoken(workload), of_keys(keys));
    let axes = Axes { title: &title, across: "entries in the table", up: Up::LogNanos, ticks };
    lines::plot(&format!("growth-{}-{}", keys.name(), workload.name()), &axes, &series)
}

/// A cell of ours alone would make a tick without most of the lines.
fn has_peers(book: &Book, shape: &Shape, workload: Workload) -> bool {
    book.figures(shape, workload).iter().any(|figure| figure.subject.role() != Role::Own)
}

/// A line for each subject, and for each way it does the workload.
fn series(
    book: &Book,
    shapes: &[&Shape],
    workload: Workload,
    across: fn(&Shape) -> f64,
    up: fn(&Figure) -> f64,
) -> Vec<Series> {
    let mut all = Vec::new();
    for subject in Subject::ALL {
        for way in family(workload) {
            let figure =
                |shape: &Shape| book.find(shape, way)?.figure(subject, way).filter(|figure| median(figure).is_finite());
            let known: Vec<_> = shapes.iter().filter_map(|shape| Some((*shape, figure(shape)?))).collect();
            let points: Vec<_> = known.iter().map(|(shape, figure)| (across(shape), up(figure))).collect();
            // One point is no line; a frozen table is drawn among the bars.
            if points.len() > 1 && way != Workload::FrozenScan {
                all.push(Series {
                    subject,
                    label: known.first().map(|(_, figure)| label(figure)).unwrap_or_default(),
                    points,
                });
            }
        }
    }
    all
}

fn threads(book: &Book) -> Section {
    let workloads =
        [Workload::Insert, Workload::Get, Workload::Mixed, Workload::Mixed95, Workload::Delete, Workload::Scan];
    let shapes = book.threads(Access::Uniform);
    let cores = book.documents.first().map_or(1, |document| document.machine.cores);
    let entries = shapes.first().map_or(0, |shape| shape.entries);
    Section {
        title: "Threads",
        says: format!(
            "{} random keys. This machine has {cores} cores: beyond {cores} threads nothing can get faster, and only what it \
             loses to contention shows.",
            grouped(entries)
        ),
        plots: workloads.into_iter().filter_map(|workload| by_threads(book, &shapes, workload)).collect(),
    }
}

fn by_threads(book: &Book, shapes: &[Shape], workload: Workload) -> Option<Plot> {
    let shapes: Vec<_> = shapes.iter().filter(|shape| !book.figures(shape, workload).is_empty()).collect();
    let series = series(book, &shapes, workload, |shape| shape.threads as f64, |figure| 1000.0 / median(figure));
    let ticks = shapes.iter().map(|shape| (shape.threads as f64, shape.threads.to_string())).collect();
    let title = format!("{}, all threads together", spoken(workload));
    let axes = Axes { title: &title, across: "threads", up: Up::LinearMillions, ticks };
    lines::plot(&format!("threads-{}", workload.name()), &axes, &series)
}

fn memory(book: &Book) -> Section {
    let cell = book.headline().and_then(|shape| book.find(&shape, Workload::Insert));
    let says = "What an entry takes beyond the bytes of its key and value. Bars: growth of the process's resident memory while the \
                table is filled, so what allocators and half-used chunks lose counts. Beside them what the table itself says."
        .into();
    let plot = cell.and_then(|cell| {
        let bar = |overhead: &Overhead| {
            let resident = overhead.resident?;
            let own = overhead.own_account.map_or_else(String::new, |own| format!(" · own {own:.1} B"));
            let (subject, label) = (overhead.subject, overhead.subject.name().into());
            Some(Bar { subject, label, value: resident, spread: None, note: format!("{resident:.0} B{own}") })
        };
        let mut bars: Vec<_> = cell.memory.iter().filter_map(bar).collect();
        bars.sort_by(|a, b| a.value.total_cmp(&b.value));
        let title = format!("Memory beyond key and value: {} random keys", short(cell.shape.entries));
        bars::plot("memory", &title, "bytes an entry, lower is better; own: the table's own account", &bars)
    });
    Section { title: "Memory", says, plots: plot.into_iter().collect() }
}
