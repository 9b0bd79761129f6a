//! The page: one HTML file that needs no other.

use super::book::Book;
use super::sections::Section;
use super::svg::{class, escaped, style};
use crate::goals::{self, Check, GOALS, verdict, word};
use crate::memtable::{Access, Document, Role, Shape, Subject, Workload};
use crate::numbers::{grouped, nanos};
use crate::scaling::{SHARING, Sharing, Writes};

const STYLE: &str = include_str!("page.css");

/// What the tiles at the top speak of, one by one or in batches.
const HEADLINES: [(Workload, bool, &str); 6] = [
    (Workload::Insert, false, "inserts"),
    (Workload::Insert, true, "inserts in batches"),
    (Workload::Get, false, "lookups"),
    (Workload::GetMany, true, "lookups in batches"),
    (Workload::Miss, false, "lookups that miss"),
    (Workload::Scan, false, "scans"),
];

/// What each goal asks for, in a few words.
fn asks(goal: &str) -> &'static str {
    match goal {
        "M1" => "random inserts, one by one",
        "M2" => "random inserts in batches",
        "M3" => "tables of 100K",
        "M4" => "inserts in order",
        "M5" => "lookups",
        "M6" => "scans, forward, back and frozen",
        "M7" => "two threads on two cores",
        "M8" => "memory",
        "M9" => "paths and skewed access",
        _ => "small tables, 4 and 8 threads",
    }
}

pub(super) fn html(book: &Book, sections: &[Section]) -> String {
    let checks = goals::checks(&book.cells);
    let plots = style(":root");
    [
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>fastskip beside its peers</title>\n"
            .into(),
        format!("<style>\n{plots}\n{STYLE}</style>\n</head>\n<body>\n<main>\n"),
        header(book),
        tiles(book),
        strip(&checks),
        sections.iter().map(section).collect(),
        goals_table(&checks),
        sharing(),
        meetings(book),
        context(),
        failures(book),
        provenance(book),
        "</main>\n</body>\n</html>\n".into(),
    ]
    .concat()
}

fn header(book: &Book) -> String {
    let about = book.headline().map_or_else(String::new, |shape: Shape| format!(" Headlines: {shape}."));
    let warning = if book.documents.iter().all(|run| run.optimised) {
        ""
    } else {
        "<p class=\"warning\">Not optimised: the times on this page mean nothing. Build with --release.</p>\n"
    };
    format!(
        "<header>\n<h1>fastskip beside its peers</h1>\n<p>Sorted in-memory tables, measured in turns, each round in a process of \
         its own and checked entry by entry.{}</p>\n{warning}</header>\n",
        escaped(&about)
    )
}

fn tiles(book: &Book) -> String {
    let Some(shape) = book.headline() else { return String::new() };
    let tile = |(workload, batched, name): (Workload, bool, &str)| {
        let own = book.best_own(&shape, workload, batched)?;
        let (times, ours) = (own.times_best_skip_list_peer?, own.ns_per_operation?.median);
        let peer = book.best_skip_list(&shape, workload)?;
        let theirs = peer.ns_per_operation?.median;
        Some(format!(
            "<div class=\"tile\"><div class=\"times\">{times:.1}<small>x</small></div><div class=\"what\">{name}</div>\
             <div class=\"detail\"><span>{}</span> <span>{} ns</span></div>\
             <div class=\"detail\"><span>{}</span> <span>{} ns</span></div></div>\n",
            own.subject.name(),
            nanos(ours),
            peer.subject.name(),
            nanos(theirs)
        ))
    };
    let tiles: String = HEADLINES.into_iter().filter_map(tile).collect();
    format!(
        "<section class=\"tiles\" aria-label=\"ours to the fastest skip list among the peers\">\n{tiles}</section>\n<p class=\"note\">The fastest of ours to the fastest skip list among the peers: 2x is half the time. Batches are of 256; the peer does one after the other.</p>\n"
    )
}

fn mark(met: Option<bool>) -> &'static str {
    match met {
        Some(true) => "met",
        Some(false) => "missed",
        None => "unknown",
    }
}

/// The verdict, and by how much the worst check is better or worse than asked for.
fn came_to(goal: &str, met: Option<bool>, checks: &[Check]) -> String {
    let margins = checks.iter().filter(|check| check.goal == goal).filter_map(Check::margin);
    match (met, margins.min_by(f64::total_cmp)) {
        (Some(true), Some(margin)) => format!("met, by {margin:.0} % or more"),
        (Some(false), Some(margin)) => format!("missed, by up to {:.0} %", -margin),
        _ => word(met).into(),
    }
}

fn strip(checks: &[Check]) -> String {
    let goal = |goal: &&str| {
        let met = verdict(goal, checks);
        format!(
            "<a href=\"#goals\" class=\"goal {}\"><b>{goal}</b> {}<span>{}</span></a>\n",
            mark(met),
            asks(goal),
            came_to(goal, met, checks)
        )
    };
    let goals: String = GOALS.iter().map(goal).collect();
    format!("<section class=\"strip\">\n<h2>Goals</h2>\n<div class=\"goals\">\n{goals}</div>\n</section>\n")
}

fn section(section: &Section) -> String {
    let figure = |plot: &super::svg::Plot| format!("<figure>\n{}</figure>\n", plot.inline());
    let plots: String = section.plots.iter().map(figure).collect();
    let (title, says) = (section.title, escaped(&section.says));
    format!("<section>\n<h2>{title}</h2>\n<p>{says}</p>\n<div class=\"plots\">\n{plots}</div>\n</section>\n")
}

fn goals_table(checks: &[Check]) -> String {
    let row = |check: &Check| {
        let met = check.is_met();
        let measured = check.measured.map_or_else(|| "–".into(), |measured| check.unit.show(measured));
        let margin = check.margin().map_or_else(|| "–".into(), |margin| format!("{margin:+.0} %"));
        format!(
            "<tr><td>{}</td><td>{}</td><td class=\"n\">{measured}</td><td class=\"n\">{}</td><td class=\"n\">{margin}</td>\
             <td><span class=\"badge {}\">{}</span></td></tr>\n",
            check.goal,
            escaped(&check.what),
            check.wanted(),
            mark(met),
            word(met)
        )
    };
    let rows: String = checks.iter().map(row).collect();
    format!(
        "<section id=\"goals\">\n<h2>Every goal, check by check</h2>\n<p>A goal is met if all its checks are. The margin is what is \
         measured against what is asked for: above zero is better. Ratios on paths and skewed access may lie 20 % below \
         those on random keys.</p>\n<div class=\"scroll\"><table>\n<thead><tr><th>goal</th><th>what</th>\
         <th class=\"n\">measured</th><th class=\"n\">asked for</th><th class=\"n\">margin</th><th></th></tr></thead>\n\
         <tbody>\n{rows}</tbody>\n</table></div>\n</section>\n"
    )
}

fn sharing() -> String {
    let cells = |writes: Option<Writes>| match writes {
        Some(Writes { hot, among_entries }) => {
            format!("<td class=\"n\">{hot:.1}</td><td class=\"n\">{among_entries:.1}</td>")
        }
        None => "<td class=\"n\">–</td><td class=\"n\">–</td>".into(),
    };
    let row = |Sharing { subject, insert, get, because }: Sharing| {
        format!(
            "<tr><td><i class=\"dot {}\"></i>{}</td>{}{}<td>{}</td></tr>\n",
            class(subject),
            subject.name(),
            cells(Some(insert)),
            cells(get),
            escaped(because)
        )
    };
    let rows: String = SHARING.into_iter().map(row).collect();
    format!(
        "<section>\n<h2>What many cores would feel</h2>\n<p>Writes to shared cache lines in one operation, read from the sources. \
         A hot line is written by every operation, wherever its key is, so those writes come one after the other on any number \
         of cores. On lines among the entries two threads meet only when their keys are neighbours.</p>\n\
         <div class=\"scroll\"><table>\n<thead><tr><th></th><th class=\"n\">insert, hot</th><th class=\"n\">among entries</th>\
         <th class=\"n\">get, hot</th><th class=\"n\">among entries</th><th>which</th></tr></thead>\n\
         <tbody>\n{rows}</tbody>\n</table></div>\n</section>\n"
    )
}

/// How often writers met: a row for each number of threads that was measured.
fn meetings(book: &Book) -> String {
    let own: Vec<_> = Subject::ALL.into_iter().filter(|subject| subject.role() == Role::Own).collect();
    let row = |shape: &Shape| {
        let cell = book.find(shape, Workload::Insert)?;
        let failures: Vec<_> = own.iter().map(|&subject| cell.cas_failures_per_insert(subject)).collect();
        let show = |each: &Option<f64>| each.map_or_else(|| "–".into(), |each| format!("{:.1}", each * 1e6));
        let cells: String = failures.iter().map(|each| format!("<td class=\"n\">{}</td>", show(each))).collect();
        let known = failures.iter().any(Option::is_some);
        known.then(|| format!("<tr><td>{} threads</td>{cells}</tr>\n", shape.threads))
    };
    let shapes = book.threads(Access::Uniform);
    let rows: String = shapes.iter().filter(|shape| shape.threads > 1).filter_map(row).collect();
    if rows.is_empty() {
        return String::new();
    }
    let names: String = own.iter().map(|subject| format!("<th class=\"n\">{}</th>", subject.name())).collect();
    let entries = grouped(shapes.first().map_or(0, |shape| shape.entries));
    format!(
        "<section>\n<h2>How often writers met</h2>\n<p>Links that changed between a writer's look and its \
         compare-and-swap: by another thread, or by an earlier entry of the same batch. For a million inserts of random \
         keys into a table of {entries}, in the mean over all rounds.</p>\n<div class=\"scroll\"><table>\n<thead><tr><th></th>{names}</tr></thead>\n<tbody>\n{rows}</tbody>\n\
         </table></div>\n</section>\n"
    )
}

/// RocksDB's list is no crate. Its figures are not of this run, so they are in no plot and no ratio.
fn context() -> String {
    "<section>\n<h2>For context: RocksDB's InlineSkipList</h2>\n<p>Measured apart, as a C++ program on another 2-core x86-64 machine \
     (head of 2026-08, 16-byte keys, 100-byte values): in no plot, ratio or goal of this page. ns per operation.</p>\n\
     <div class=\"scroll\"><table>\n<thead><tr><th class=\"n\">insert random 100K</th><th class=\"n\">insert random 3M</th>\
     <th class=\"n\">insert in order 3M</th><th class=\"n\">get random 3M</th><th class=\"n\">scan 3M</th>\
     <th class=\"n\">insert random 3M, 2 threads</th></tr></thead>\n<tbody><tr><td class=\"n\">550</td>\
     <td class=\"n\">2,920</td><td class=\"n\">81</td><td class=\"n\">4,520</td><td class=\"n\">215</td>\
     <td class=\"n\">1,360</td></tr></tbody>\n</table></div>\n</section>\n"
        .into()
}

fn failures(book: &Book) -> String {
    let item = |(subject, failed, ran, reason): (Subject, usize, usize, &str)| {
        format!("<li>{}: {failed} of {ran} rounds failed; the first with: {}</li>\n", subject.name(), escaped(reason))
    };
    let items: String = book.failures().into_iter().map(item).collect();
    if items.is_empty() {
        return String::new();
    }
    format!(
        "<section>\n<h2>Rounds that failed</h2>\n<p>They have no part in any figure.</p>\n<ul>\n{items}</ul>\n</section>\n"
    )
}

fn provenance(book: &Book) -> String {
    let item = |run: &Document| {
        let model = escaped(run.machine.model.as_deref().unwrap_or("unknown processor"));
        let commit = escaped(run.commit.as_deref().unwrap_or("unknown"));
        let preset =
            run.preset.as_deref().map_or_else(|| "no preset".into(), |preset| format!("preset {}", escaped(preset)));
        format!(
            "<li>{}: {} cores, {model}, {} {}; commit <code>{commit}</code>; {preset}, {} cells, {} rounds</li>\n",
            escaped(&run.date),
            run.machine.cores,
            escaped(&run.machine.os),
            escaped(&run.machine.architecture),
            run.cells.len(),
            run.rounds
        )
    };
    let items: String = book.documents.iter().map(item).collect();
    format!(
        "<footer>\n<h2>Where this comes from</h2>\n<ul>\n{items}</ul>\n<p>A time is context; a ratio within one run is a result. \
         Repeat it with <code>cargo run --release -p memtable-bench -- memtable --preset full --json full.json</code> and \
         <code>memtable-bench report full.json --out DIR</code>.</p>\n</footer>\n"
    )
}
