//! Headings in the documentation comments of all crates.

use std::fs;
use std::path::Path;

use crate::journeys::workspace;

/// The usual headings in rustdoc.
const HEADINGS: [&str; 4] = ["Errors", "Examples", "Panics", "Safety"];

/// Whether the line is a heading that also contains the following sentence.
fn swallows(line: &str) -> bool {
    let text = ["/// # ", "//! # "].iter().find_map(|start| line.trim_start().strip_prefix(start));
    text.and_then(|text| text.split_once(' ')).is_some_and(|(heading, _)| HEADINGS.contains(&heading))
}

fn look(dir: &Path, headings: &mut usize, wrong: &mut Vec<String>) {
    for path in fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() && !path.ends_with("target") {
            look(&path, headings, wrong);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            for line in fs::read_to_string(&path).unwrap().lines() {
                *headings += usize::from(HEADINGS.iter().any(|heading| line.ends_with(&format!("/// # {heading}"))));
                wrong.extend(swallows(line).then(|| format!("{}: {line}", path.display())));
            }
        }
    }
}

/// Catches a list of errors that is printed as a heading.
#[test]
fn headings_of_the_documentation_stand_alone_on_their_line() {
    assert!(swallows("    /// # Errors [`Error::Io`]; others.") && !swallows("/// # Errors"));
    let (mut headings, mut wrong) = (0, Vec::new());
    look(&workspace(), &mut headings, &mut wrong);
    assert!(headings > 200, "only {headings} headings were found");
    assert_eq!(wrong, [""; 0]);
}
