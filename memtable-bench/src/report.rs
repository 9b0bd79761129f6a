//! The command `report`: results as Markdown, or as one HTML page with plots that needs no other file.

use std::fs;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use itertools::Itertools;

use crate::goals;
use crate::plots::{self, Bar, Series};
use crate::results::{CellResults, Run};
use crate::sheet::{self, escaped, figure};
use crate::spec::{Shape, Subject, Workload, name, short};

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
    let origins = runs.iter().map(Run::origin);
    let goals = ("Goals".to_owned(), goals::sheet(&cells));
    let sheets = cells.iter().flat_map(sheet::cell).chain((goals.1.0.len() > 1).then_some(goals));
    let Some(directory) = &args.out else {
        let texts = sheets.map(|(title, sheet)| format!("\n{title}\n\n{sheet}"));
        print!("{}\n{}", origins.format("\n"), texts.format(""));
        return Ok(());
    };
    let nav = args
        .book
        .as_ref()
        .map_or_else(String::new, |url| format!("<nav><a href=\"{url}\">Back to the book</a></nav>\n"));
    let sheets = sheets.map(|(title, sheet)| format!("<h2>{}</h2>\n{}", escaped(&title), sheet.html()));
    let page = format!(
        "{HEAD}{nav}<h1>Beside the peers</h1>\n<p>{}</p>\n<p>{EXPLAINED}</p>\n{}\n{}</html>\n",
        origins.map(|of| escaped(&of)).format("<br>"),
        figures(&cells).into_iter().flatten().format("\n"),
        sheets.format("")
    );
    let path = directory.join("index.html");
    let written = fs::create_dir_all(directory).and_then(|()| fs::write(&path, page));
    written.map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    println!("{}", path.display());
    Ok(())
}

const HEAD: &str = "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
<title>Beside the peers</title>\n<style>body { font: 16px/1.5 sans-serif; max-width: 1100px; margin: auto; padding: 1em } div { overflow-x: auto } \
svg { max-width: 100% } td { padding: 2px 12px 2px 0; white-space: nowrap; border-bottom: 1px solid #ddd } td + td { text-align: right }</style>\n";
const EXPLAINED: &str = "Rely only on ratios within one run: a time on its own depends on the machine. Bars are medians, and the ticks on them the fastest \
and the slowest round. In tables, overhead is what an entry takes beyond its key and value, by the growth of the process or by the table's own account; \
failed-cas counts, for a million inserts, links that changed between a writer's read and its compare-and-swap. Of engines, write-calls are system calls for \
each operation; disk-bytes went to the disk for each byte stored; disk-space is there for each byte that is there; memory is the most anonymous memory, \
divided by cache and two memtables. p50 to max are the latencies of single operations in ns, with the clock's own cost beside.";

/// For each workload bars of the cell with the most subjects, and lines over the sizes and the threads of cells that are alike otherwise.
fn figures(cells: &[CellResults]) -> Vec<Option<String>> {
    let of = |&workload: &Workload| {
        let shown = |of: &&CellResults| (of.cell.shape.threads == 1, of.ranking(workload).len(), of.cell.shape.entries);
        let widest = cells.iter().filter(|of| !of.ranking(workload).is_empty()).max_by_key(shown);
        let bars = widest.and_then(|results| bars(results, workload));
        let sizes = curves(cells, workload, "entries", |shape| &mut shape.entries);
        [bars].into_iter().chain(sizes).chain(curves(cells, workload, "threads", |shape| &mut shape.threads))
    };
    Workload::value_variants().iter().flat_map(of).collect()
}

fn bars(results: &CellResults, workload: Workload) -> Option<String> {
    let bar =
        |(subject, times): &(Subject, _)| Bar { label: name(*subject), is_own: plots::is_own(*subject), times: *times };
    let bars: Vec<_> = results.ranking(workload).iter().map(bar).collect();
    let title = format!("{}: {}, ns per operation", name(workload), results.cell.shape);
    plots::bars(&title, &bars)
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
            (name(subject), plots::is_own(subject), alike.iter().filter_map(point).collect())
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
