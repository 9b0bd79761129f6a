//! The command `report`: results as Markdown, or as one HTML page with plots that needs no other file.

use std::fs;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use itertools::Itertools;

use crate::goals;
use crate::plots::{self, Series};
use crate::results::{CellResults, Run, Spread};
use crate::sheet::{self, figure};
use crate::spec::{Role, Shape, Subject, Workload, name, short};

/// Print results as Markdown tables, with every goal that they measure; or write them with plots to a page
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Files that `run --json` wrote
    #[arg(required = true, value_name = "IN.json")]
    files: Vec<PathBuf>,
    /// Write the page, index.html, to this directory, which is made if it is not there
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Begin the page with a link to the book, of which it is a part
    #[arg(long, value_name = "URL", requires = "out")]
    book: Option<String>,
}

pub(crate) fn run(args: &ReportArgs) -> Result<(), String> {
    let runs = args.files.iter().map(|file| Run::read(file)).collect::<Result<Vec<_>, _>>()?;
    let cells: Vec<_> = runs.iter().flat_map(|run| run.cells.iter().cloned()).collect();
    if cells.is_empty() {
        return Err("the files hold no measurement".into());
    }
    let origins = runs.iter().map(Run::origin).format("\n");
    let text = cells.iter().map(sheet::cell).chain([sheet::titled("Goals", goals::sheet(&cells))]).format("");
    let Some(directory) = &args.out else {
        print!("{origins}\n{text}");
        return Ok(());
    };
    let link = |url: &String| format!("<nav><a href=\"{url}\">Back to the book</a></nav>\n");
    let page = format!(
        "{HEAD}{}<h1>Beside the peers</h1>\n<pre>{}</pre>\n<p>{EXPLAINED}</p>\n{}<pre>{}</pre></html>\n",
        args.book.as_ref().map_or_else(String::new, link),
        escaped(&origins.to_string()),
        figures(&cells),
        escaped(&text.to_string())
    );
    let path = directory.join("index.html");
    let written = fs::create_dir_all(directory).and_then(|()| fs::write(&path, page));
    written.map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    println!("{}", path.display());
    Ok(())
}

/// Escapes `text` for HTML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

const HEAD: &str = "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
<title>Beside the peers</title>\n<style>body { font: 16px/1.5 sans-serif; max-width: 1100px; margin: auto; padding: 1em } pre { overflow-x: auto } \
svg { max-width: 100% } i { display: block; background: #999; height: 1em } .own { background: #55f } td { padding: 0 1em 0 0; white-space: nowrap } \
td:nth-child(2) { width: 60% }</style>\n";
const EXPLAINED: &str = "Rely only on ratios within one run: a time on its own depends on the machine. Bars are medians; behind them are the fastest \
and the slowest round. In tables, overhead is what an entry takes beyond its key and value, by the growth of the process or by the table's own account; \
failed-cas counts, for a million inserts, links that changed between a writer's read and its compare-and-swap. Of engines, write-calls are system calls for \
each operation; disk-bytes went to the disk for each byte stored; disk-space is there for each byte that is there; memory is the most anonymous memory, \
divided by cache and two memtables. p50 to max are the latencies of single operations in ns, with the clock's own cost beside.";

/// For each workload bars of the cell with the most subjects, and lines over the sizes and the threads of cells that are alike otherwise.
fn figures(cells: &[CellResults]) -> String {
    let of = |&workload: &Workload| {
        let shown = |of: &&CellResults| (of.cell.shape.threads == 1, of.ranking(workload).len(), of.cell.shape.entries);
        let widest = cells.iter().filter(|of| !of.ranking(workload).is_empty()).max_by_key(shown);
        let bars = widest.map(|results| bars(results, workload));
        let sizes = curves(cells, workload, "entries", |shape| &mut shape.entries);
        let threads = curves(cells, workload, "threads", |shape| &mut shape.threads);
        bars.into_iter().chain(sizes.into_iter().chain(threads).flatten())
    };
    Workload::value_variants().iter().flat_map(of).collect()
}

/// Bars from zero, so that their lengths show ratios.
fn bars(results: &CellResults, workload: Workload) -> String {
    let ranking = results.ranking(workload);
    let longest = ranking.last().map_or(0.0, |(_, times)| times.median).max(f64::MIN_POSITIVE);
    let bar = |(subject, times): &(Subject, Spread)| {
        let [median, min, max] = [times.median, times.min, times.max].map(figure);
        let class = if is_own(*subject) { "own" } else { "" };
        let width = times.median * 100.0 / longest;
        format!(
            "<tr><td>{}</td><td><i class=\"{class}\" style=\"width: {width:.1}%\"></i></td><td>{median} ({min} to {max})</td></tr>\n",
            name(*subject)
        )
    };
    let rows = ranking.iter().map(bar).format("");
    format!("<h2>{}: {}, ns per operation</h2>\n<table>{rows}</table>\n", name(workload), results.cell.shape)
}

fn is_own(subject: Subject) -> bool {
    subject.role() == Role::Own
}

/// A plot for each set of cells that differ only in the number that `across` finds in their shapes.
fn curves(
    cells: &[CellResults],
    workload: Workload,
    unit: &str,
    across: fn(&mut Shape) -> &mut usize,
) -> Vec<Option<String>> {
    let value = |mut shape: Shape| *across(&mut shape);
    let rest = |mut shape: Shape| {
        *across(&mut shape) = 1;
        shape
    };
    let kinds: Vec<_> = cells.iter().map(|of| rest(of.cell.shape)).collect();
    let is_first = |&(at, kind): &(usize, &Shape)| !kinds[..at].contains(kind);
    let plot = |(_, kind): (usize, &Shape)| {
        let alike = cells.iter().filter(|of| rest(of.cell.shape) == *kind && of.ranking(workload).len() > 1);
        let alike: Vec<_> =
            alike.sorted_by_key(|of| value(of.cell.shape)).dedup_by(|a, b| a.cell.shape == b.cell.shape).collect();
        let line = |&subject: &Subject| -> Series {
            let point = |of: &&CellResults| Some((value(of.cell.shape) as f64, of.nanos(subject, workload)?));
            (name(subject), is_own(subject), alike.iter().filter_map(point).collect())
        };
        let lines: Vec<_> =
            Subject::value_variants().iter().map(line).filter(|(.., points)| points.len() > 1).collect();
        plots::lines(&format!("{}: {}, ns per operation by {unit}", name(workload), name(kind.keys)), &lines)
    };
    kinds.iter().enumerate().filter(is_first).map(plot).collect()
}

/// A mark on an axis.
pub(crate) fn mark(value: f64) -> String {
    if value >= 1000.0 && value % 1000.0 == 0.0 { short(value as usize) } else { figure(value) }
}
