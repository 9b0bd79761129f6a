//! The command `report`: draws the files that `--json` wrote as SVG plots and one HTML page, or prints the README's table.
//!
//! `sections` chooses the `plots` and tables -> `page` puts them together; `readme` is text alone.

mod page;
mod plots;
mod readme;
mod sections;

use std::path::{Path, PathBuf};
use std::{fs, io};

use clap::Args;

use crate::error::Error;
use crate::results::{Results, Run};
use crate::text::print;

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
    /// Print the table of the README as Markdown
    #[arg(long)]
    readme: bool,
}

/// Draws what `args` ask for.
pub(crate) fn run(args: &ReportArgs) -> Result<(), Error> {
    // A file that cannot be read or is not one of ours is wrong use: nothing has been written.
    let runs = args.files.iter().map(|file| read(file)).collect::<Result<Vec<_>, _>>()?;
    let results = Results::new(runs)?;
    match &args.out {
        Some(directory) => write(&results, directory),
        None => print(&readme::table(&results)?),
    }
}

fn read(file: &Path) -> Result<Run, String> {
    let text = fs::read_to_string(file).map_err(|error| format!("cannot read {}: {error}", file.display()))?;
    Run::parse(&text).map_err(|error| format!("{} is no result of memtable --json: {error}", file.display()))
}

fn write(results: &Results, directory: &Path) -> Result<(), Error> {
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
    let page = page::html(results, &sections).map_err(io::Error::other);
    page.and_then(|page| fs::write(&path, page)).map_err(Error::io("write", &path))?;
    print(&format!("{}\n", path.display()))
}
