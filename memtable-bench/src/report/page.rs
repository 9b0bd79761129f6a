//! The page: one HTML file that needs no other. `page.html` is its template.

use minijinja::{Environment, context};

use super::plots::colour;
use super::results::{HEADLINES, Results};
use super::sections::Section;
use crate::goals::{self, Check, GOALS};
use crate::results::{CellResults, Run, by_threads};
use crate::sharing;
use crate::sheet::Sheet;
use crate::spec::{Subject, Workload};
use crate::text::{grouped, name, nanos};

const TEMPLATE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");

/// # Errors
/// What is wrong with the template.
pub(super) fn html(results: &Results, sections: &[Section]) -> Result<String, minijinja::Error> {
    let mut environment = Environment::new();
    environment.add_template("page.html", TEMPLATE)?;
    let checks = goals::checks(&results.cells);
    let goal = |(name, asks): &(&str, &str)| {
        let verdict = goals::word(goals::verdict(name, &checks));
        context! { name, asks, verdict, outcome => goals::outcome(name, &checks) }
    };
    let run = |run: &Run| {
        let (commit, preset) = (&run.commit, &run.preset);
        context! { date => run.date, machine => run.machine, commit, preset, rounds => run.rounds, cells => run.cells.len() }
    };
    let plot = |svg: &str| svg.replace(" xmlns=\"http://www.w3.org/2000/svg\"", "");
    let section = |section: &Section| {
        let plots: Vec<_> = section.plots.iter().map(|of| plot(&of.svg)).collect();
        context! { title => section.title, says => section.says, plots }
    };
    let failure = |(subject, failed, ran, reason): (Subject, usize, usize, &str)| {
        format!("{}: {failed} of {ran} rounds failed; the first with: {reason}", name(subject))
    };
    let hex = |subject: &Subject| {
        (name(*subject), format!("#{:02x}{:02x}{:02x}", colour(*subject).0, colour(*subject).1, colour(*subject).2))
    };
    environment.get_template("page.html")?.render(context! {
        style => STYLE,
        headline => results.headline().map(|shape| shape.to_string()),
        optimised => results.runs.iter().all(|run| run.optimised),
        tiles => tiles(results),
        goals => GOALS.iter().map(goal).collect::<Vec<_>>(),
        sections => sections.iter().map(section).collect::<Vec<_>>(),
        checks => table(every_check(&checks)),
        sharing => table(sharing::sheet()),
        conflicts => table(conflicts(results)),
        conflict_entries => grouped(results.threads().first().map_or(0, |shape| shape.entries)),
        rocksdb => table(rocksdb()),
        failures => results.failures().into_iter().map(failure).collect::<Vec<_>>(),
        runs => results.runs.iter().map(run).collect::<Vec<_>>(),
        colours => Subject::all().iter().map(hex).collect::<std::collections::BTreeMap<_, _>>(),
    })
}

/// The checks of all goals in one table.
fn every_check(checks: &[Check]) -> Sheet {
    let mut sheet = goals::sheet(checks);
    sheet.head.insert(0, "goal".into());
    sheet.rows.iter_mut().zip(checks).for_each(|(row, check)| row.insert(0, check.goal.into()));
    sheet
}

/// A sheet, and which of its columns are aligned to the right.
fn table(sheet: Sheet) -> minijinja::Value {
    let numeric: Vec<_> = (0..sheet.head.len()).map(|column| sheet.is_numeric(column)).collect();
    context! { head => sheet.head, rows => sheet.rows, numeric }
}

fn tiles(results: &Results) -> Vec<minijinja::Value> {
    let Some(shape) = results.headline() else { return Vec::new() };
    let tile = |(workload, batched, what): &(Workload, bool, &str)| {
        let own = results.best_own(&shape, *workload, *batched)?;
        let peer = results.best_skip_list(&shape, *workload)?;
        let (own_name, peer_name) = (name(own.subject), name(peer.subject));
        let times = format!("{:.1}", own.times_best_skip_list_peer?);
        let (own_ns, peer_ns) = (nanos(own.median()), nanos(peer.median()));
        Some(context! { times, what, own => own_name, own_ns, peer => peer_name, peer_ns })
    };
    HEADLINES.iter().filter_map(tile).collect()
}

/// How often writers met, on more than one thread.
fn conflicts(results: &Results) -> Sheet {
    let shapes = results.threads();
    let shared = shapes.iter().filter(|shape| shape.threads > 1);
    let cells = shared.filter_map(|shape| results.find(shape, Workload::Insert));
    by_threads(cells, "", CellResults::conflicts_per_million, 1)
}

/// RocksDB's list is no crate. Its figures are not of this run, so they are in no plot and no ratio.
fn rocksdb() -> Sheet {
    let of = ["insert random 100K", "insert random 3M", "insert in order 3M", "get random 3M", "scan 3M"];
    let mut sheet = Sheet::new(of.into_iter().chain(["insert random 3M, 2 threads"]));
    sheet.rows = vec![["550", "2,920", "81", "4,520", "215", "1,360"].map(Into::into).to_vec()];
    sheet
}
