//! The page: one HTML file that needs no other. `page.html` is its template, with all prose.

use std::collections::BTreeMap;

use minijinja::{Environment, Value, context};
use plotters::style::RGBColor;

use super::plots::colour;
use super::results::{HEADLINES, Headline, Results};
use super::sections::Sections;
use crate::goals::{self, Goal};
use crate::patterns;
use crate::results::{CellResults, by_threads, facts, latencies, ratios_sheet};
use crate::sharing;
use crate::spec::{Subject, Workload};
use crate::text::{Sheet, grouped, name, nanos};

/// Fails only if the template is wrong.
pub(super) fn html(results: &Results, sections: &Sections) -> Result<String, minijinja::Error> {
    let mut environment = Environment::new();
    environment.add_template("page.html", include_str!("page.html"))?;
    let checks = goals::checks(&results.cells);
    let goal = |Goal { name, asks, .. }: &Goal| {
        let (verdict, outcome) = goals::outcome(name, &checks);
        context! { name, asks, verdict, outcome }
    };
    let tables = || results.cells.iter().filter(|cell| cell.shape.store.is_table());
    let engines = || results.cells.iter().filter(|cell| !cell.shape.store.is_table());
    let hex = |subject: &Subject| {
        let RGBColor(red, green, blue) = colour(*subject);
        (name(*subject), format!("#{red:02x}{green:02x}{blue:02x}"))
    };
    environment.get_template("page.html")?.render(context! {
        style => include_str!("page.css"),
        headline => results.headline().map(|shape| shape.to_string()),
        optimised => results.runs.iter().all(|run| run.optimised),
        tiles => HEADLINES.iter().filter_map(|headline| tile(results, headline)).collect::<Vec<_>>(),
        goals => goals::concerned(&results.cells).map(goal).collect::<Vec<_>>(),
        sections,
        checks => table(goals::sheet(&checks)),
        sharing => table(sharing::sheet()),
        has_tables => tables().next().is_some() || !results.patterns().is_empty(),
        has_engines => engines().next().is_some(),
        ratios => table(ratios_sheet(&results.cells)),
        facts => table(facts(engines())),
        engine_latencies => table(latencies(engines())),
        latencies => table(latencies(tables())),
        conflicts => table(conflicts(results)),
        thread_entries => grouped(results.threads().first().map_or(0, |shape| shape.entries)),
        patterns => table(patterns::sheet(results.patterns())),
        failures => results.failures(),
        runs => results.runs,
        colours => Subject::all().iter().map(hex).collect::<BTreeMap<_, _>>(),
    })
}

/// A sheet, and which of its columns are aligned to the right.
fn table(sheet: Sheet) -> Value {
    let numeric: Vec<_> = (0..sheet.head.len()).map(|column| sheet.is_numeric(column)).collect();
    context! { head => sheet.head, rows => sheet.rows, numeric }
}

fn tile(results: &Results, &(workload, batched, what): &Headline) -> Option<Value> {
    let shape = results.headline()?;
    let own = results.best_own(&shape, workload, batched)?;
    let peer = results.best_skip_list(&shape, workload)?;
    let times = format!("{:.1}", own.times_best_skip_list_peer?);
    let (own_ns, peer_ns) = (nanos(own.median()), nanos(peer.median()));
    Some(context! { times, what, own => own.subject, own_ns, peer => peer.subject, peer_ns })
}

/// How often writers met, on more than one thread.
fn conflicts(results: &Results) -> Sheet {
    let shapes = results.threads();
    let shared = shapes.iter().filter(|shape| shape.threads > 1);
    let cells = shared.filter_map(|shape| results.find(shape, Workload::Insert));
    by_threads(cells, "", CellResults::conflicts_per_million, 1)
}
