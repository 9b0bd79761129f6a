//! The command `report`: draws the files that `--json` wrote as SVG plots and one HTML page that needs no other file, or prints the
//! README's table.
//!
//! `sections` chooses the `plots`, and `page.html` puts them and the tables together. `readme` makes only text.

mod plots;
mod readme;
mod sections;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use clap::Args;
use minijinja::{Environment, Value, context};

use crate::error::Error;
use crate::goals::{self, Goal};
use crate::results::{Results, Run, facts, failures, latencies, ratios};
use crate::spec::Subject;
use crate::text::{grouped, name, nanos, print};
use readme::{HEADLINES, Headline};
use sections::Sections;

/// Draw results: SVG plots and one HTML page, or the README's table
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("what").args(["out", "readme"]).required(true))]
pub(crate) struct ReportArgs {
    /// Files that --json wrote. Where two have measured the same, the first counts
    #[arg(required = true, value_name = "IN.json")]
    files: Vec<PathBuf>,
    /// Write the page, index.html, and each plot beside it to this directory, which is made if it is not there
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Begin the page with a link to the book, of which it is a part
    #[arg(long, value_name = "URL", requires = "out")]
    book: Option<String>,
    /// Print the table of the README as Markdown
    #[arg(long)]
    readme: bool,
}

/// Makes the output that `args` request.
pub(crate) fn run(args: &ReportArgs) -> Result<(), Error> {
    // An unreadable or foreign file is a wrong argument: nothing has been written yet.
    let runs = args.files.iter().map(|file| read(file)).collect::<Result<Vec<_>, _>>()?;
    let results = Results::new(runs)?;
    match &args.out {
        Some(directory) => write(&results, directory, args.book.as_deref()),
        None => print(&readme::table(&results)?),
    }
}

fn read(file: &Path) -> Result<Run, String> {
    let text = fs::read_to_string(file).map_err(|error| format!("cannot read {}: {error}", file.display()))?;
    Run::parse(&text).map_err(|error| format!("{} is no result of memtable --json: {error}", file.display()))
}

fn write(results: &Results, directory: &Path, book: Option<&str>) -> Result<(), Error> {
    if directory.exists() && !directory.is_dir() {
        return Err(format!("cannot write to {}: it is not a directory", directory.display()).into());
    }
    fs::create_dir_all(directory).map_err(Error::io("make", directory))?;
    let sections = sections::all(results);
    for plot in sections.values().flatten() {
        let path = directory.join(format!("{}.svg", plot.name));
        fs::write(&path, &plot.svg).map_err(Error::io("write", &path))?;
    }
    let path = directory.join("index.html");
    let page = html(results, &sections, book).map_err(io::Error::other);
    page.and_then(|page| fs::write(&path, page)).map_err(Error::io("write", &path))?;
    print(&format!("{}\n", path.display()))
}

/// Fails only if the template is wrong.
fn html(results: &Results, sections: &Sections, book: Option<&str>) -> Result<String, minijinja::Error> {
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
        book,
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
        failures => failures(&results.cells),
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
