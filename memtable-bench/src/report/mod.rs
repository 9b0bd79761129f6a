//! The command `report`: draws the files that `--json` wrote as SVG plots and one HTML page, or prints the README's table.
//!
//! `book` finds what was measured -> `lines` and `bars` draw with `svg` -> `page` puts them together; `readme` is text alone.

mod bars;
mod book;
mod lines;
mod page;
mod readme;
mod sections;
mod svg;

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;

use book::Book;

use crate::failure::Failure;
use crate::memtable::Document;
use crate::output::print;

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
pub(crate) fn run(args: &ReportArgs) -> Result<(), Failure> {
    let documents = args.files.iter().map(|file| read(file)).collect::<Result<Vec<_>, _>>()?;
    let book = Book::new(documents)?;
    match &args.out {
        Some(directory) => write(&book, directory),
        None => print(&readme::table(&book)?),
    }
}

/// # Errors
/// A file that cannot be read, or is not one of ours, is wrong use: nothing has been written.
fn read(file: &Path) -> Result<Document, String> {
    let text = fs::read_to_string(file).map_err(|error| format!("cannot read {}: {error}", file.display()))?;
    Document::parse(&text).map_err(|error| format!("{} is no result of memtable --json: {error}", file.display()))
}

fn write(book: &Book, directory: &Path) -> Result<(), Failure> {
    if directory.exists() && !directory.is_dir() {
        return Err(Failure::Usage(format!("cannot write to {}: it is not a directory", directory.display())));
    }
    let io = |action, path: &Path| {
        let place = path.display().to_string();
        move |source| Failure::Io { action, place, source }
    };
    fs::create_dir_all(directory).map_err(io("make", directory))?;
    let sections = sections::all(book);
    for plot in sections.iter().flat_map(|section| &section.plots) {
        let path = directory.join(format!("{}.svg", plot.name));
        fs::write(&path, plot.standalone()).map_err(io("write", &path))?;
    }
    let path = directory.join("index.html");
    fs::write(&path, page::html(book, &sections)).map_err(io("write", &path))?;
    print(&format!("{}\n", path.display()))
}
