//! The page: one HTML file that needs no other. `page.html` is its template.

use minijinja::{Environment, context};
use plotters::style::RGBColor;

use super::plots::colour;
use super::results::{HEADLINES, Results};
use super::sections::Section;
use crate::goals::{self, GOALS, Goal};
use crate::patterns;
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
    let goal = |Goal { name, asks, .. }: &Goal| {
        let verdict = goals::word(goals::verdict(name, &checks));
        context! { name, asks, verdict, outcome => goals::outcome(name, &checks) }
    };
    let run = |run: &Run| {
        let (commit, preset) = (&run.commit, &run.preset);
        context! { date => run.date, machine => run.machine, commit, preset, rounds => run.rounds, cells => run.cells.len() }
    };
    let failure = |(subject, failed, ran, reason): (Subject, usize, usize, &str)| {
        format!("{}: {failed} of {ran} rounds failed; the first with: {reason}", name(subject))
    };
    let hex = |subject: &Subject| {
        let RGBColor(red, green, blue) = colour(*subject);
        (name(*subject), format!("#{red:02x}{green:02x}{blue:02x}"))
    };
    environment.get_template("page.html")?.render(context! {
        style => STYLE,
        headline => results.headline().map(|shape| shape.to_string()),
        optimised => results.runs.iter().all(|run| run.optimised),
        tiles => tiles(results),
        goals => GOALS.iter().map(goal).collect::<Vec<_>>(),
        sections,
        checks => table(goals::sheet(&checks)),
        sharing => table(sharing::sheet()),
        conflicts => table(conflicts(results)),
        conflict_entries => grouped(results.threads().first().map_or(0, |shape| shape.entries)),
        patterns => table(patterns::sheet(results.patterns())),
        failures => results.failures().into_iter().map(failure).collect::<Vec<_>>(),
        runs => results.runs.iter().map(run).collect::<Vec<_>>(),
        colours => Subject::all().iter().map(hex).collect::<std::collections::BTreeMap<_, _>>(),
    })
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
