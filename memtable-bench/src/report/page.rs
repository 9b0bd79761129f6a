//! The page: one HTML file that needs no other. `page.html` is its template.

use std::collections::BTreeMap;

use minijinja::{Environment, Value, context};

use super::readme::{HEADLINES, Headline};
use super::sections::Sections;
use crate::goals::{self, Goal};
use crate::results::{Results, facts, latencies, ratios};
use crate::spec::Subject;
use crate::text::{grouped, name, nanos};

/// Fails only if the template is wrong.
pub(super) fn html(results: &Results, sections: &Sections) -> Result<String, minijinja::Error> {
    let mut environment = Environment::new();
    environment.add_template("page.html", include_str!("page.html"))?;
    let checks = goals::checks(&results.cells);
    let goal = |Goal { name, asks, .. }: &Goal| {
        let (verdict, outcome) = goals::outcome(name, &checks);
        context! { name, asks, verdict, outcome }
    };
    let has = |tables| results.cells.iter().any(|of| of.cell.shape.store.is_table() == tables);
    let colour = |subject: &Subject| (name(*subject), format!("#{:06x}", subject.colour()));
    environment.get_template("page.html")?.render(context! {
        style => include_str!("page.css"),
        headline => results.headline().map(|shape| shape.to_string()),
        optimised => results.runs.iter().all(|run| run.optimised),
        tiles => HEADLINES.iter().filter_map(|headline| tile(results, headline)).collect::<Vec<_>>(),
        goals => goals::concerned(&results.cells).map(goal).collect::<Vec<_>>(),
        sections,
        thread_entries => grouped(results.threads().first().map_or(0, |shape| shape.entries)),
        ratios => ratios(&results.cells),
        facts => facts(&results.cells),
        latencies => latencies(&results.cells),
        checks => goals::sheet(&checks),
        has_tables => has(true),
        has_engines => has(false),
        failures => results.failures(),
        runs => results.runs,
        colours => Subject::all().iter().map(colour).collect::<BTreeMap<_, _>>(),
    })
}

fn tile(results: &Results, &(workload, batched, what): &Headline) -> Option<Value> {
    let shape = results.headline()?;
    let own = results.best_own(&shape, workload, batched)?;
    let peer = results.best_skip_list(&shape, workload)?;
    let times = format!("{:.1}", own.times_close_peer?);
    let (own_ns, peer_ns) = (nanos(own.median()), nanos(peer.median()));
    Some(context! { times, what, own => own.subject, own_ns, peer => peer.subject, peer_ns })
}
