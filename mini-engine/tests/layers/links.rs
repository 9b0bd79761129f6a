//! Checks that links of the book, of the READMEs and of other pages have a target: a file or a heading. Links of the book stay within it, and those
//! of a package within the package and the book.
//!
//! `mdbook` copies only `docs/src`, so a link to a file outside works only in the repository.

use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::journeys::workspace;

/// The directories with pages outside of the book: the repository, and the published packages.
const PACKAGES: [&str; 7] = [
    "",
    "fastskip",
    "mini-engine",
    "mini-engine/server",
    "mini-engine/program",
    "mini-engine/raft",
    "mini-engine/cluster",
];

/// The targets of all links in `page` to this repository: `](TARGET)` in Markdown, `href="TARGET"` in a generated page.
fn targets(page: &str) -> Vec<&str> {
    let of =
        |start, end| page.split(start).skip(1).filter_map(move |rest| rest.split_once(end)).map(|(target, _)| target);
    of("](", ')').chain(of("href=\"", '"')).filter(|target| !target.contains("://")).collect()
}

/// The fault of a link from `page` to `target`.
fn broken(page: &Path, target: &str, book: &Path) -> Option<&'static str> {
    let (file, heading) = target.split_once('#').unwrap_or((target, ""));
    let path = if file.is_empty() { page.to_path_buf() } else { resolved(&page.with_file_name(file)) };
    if page.starts_with(book) && !path.starts_with(book) {
        return Some("leads out of the book");
    }
    // `.ci/packages` replaces links from packages to the book.
    let (home, in_book) = (page.parent().unwrap(), path.starts_with(book));
    let is_packaged = || path == page || ["src", "examples"].iter().any(|part| path.starts_with(home.join(part)));
    if !page.starts_with(book) && home != workspace() && !in_book && !is_packaged() {
        return Some("leads out of the package");
    }
    // All pages of the book are in one directory; `docs/build` makes others below it, which may link to themselves.
    if in_book && path != page && path.parent() != Some(book) {
        return Some("is not made by `mdbook` alone");
    }
    // `mdbook` makes `page.html` from `page.md`, and the pages that `docs/build` makes link to `page.html`.
    let path = if in_book && !path.exists() { path.with_extension("md") } else { path };
    if !path.exists() {
        return Some("there is no such file");
    }
    let text = fs::read_to_string(path).unwrap_or_default();
    let has_heading =
        || text.lines().any(|line| anchor(line) == heading || line.contains(&format!("id=\"{heading}\"")));
    if heading.is_empty() || has_heading() { None } else { Some("there is no such heading") }
}

/// The path without `..`, resolved without the file system.
fn resolved(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |path, part| match part {
        Component::ParentDir => path.parent().unwrap().to_path_buf(),
        part => path.join(part),
    })
}

/// The anchor of a heading, as `mdbook` and code hosts make it.
fn anchor(line: &str) -> String {
    let Some(title) = line.starts_with('#').then(|| line.trim_start_matches('#').trim()) else { return String::new() };
    let kept = title.chars().filter(|c| c.is_alphanumeric() || " _-".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

#[test]
fn every_link_leads_to_a_file_and_the_books_links_stay_in_the_book() {
    // Catches links to a renamed page, to a reworded heading, and to a file that a built book or a package lacks.
    let book = workspace().join("docs/src");
    let entries =
        |directory: &Path| fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
    let mut pages: Vec<_> = PACKAGES.iter().flat_map(|package| entries(&workspace().join(package))).collect();
    for path in entries(&book) {
        pages.extend(if path.is_dir() { entries(&path) } else { vec![path] });
    }
    pages.retain(|page| page.extension().is_some_and(|extension| extension == "md" || extension == "html"));
    let (mut links, mut wrong) = (0, Vec::new());
    for page in &pages {
        for target in targets(&fs::read_to_string(page).unwrap()) {
            links += 1;
            wrong.extend(broken(page, target, &book).map(|why| format!("{}: {target}: {why}", page.display())));
        }
    }
    assert!(links > 50, "only {links} links were found");
    assert_eq!(wrong, [""; 0]);
    let page = book.join("design.md");
    assert_eq!(broken(&page, "absent.md", &book), Some("there is no such file"));
    assert_eq!(broken(&page, "results.md#absent", &book), Some("there is no such heading"));
    assert_eq!(broken(&page, "engines/index.html", &book), Some("is not made by `mdbook` alone"));
    let readme = workspace().join("mini-engine/README.md");
    assert_eq!(broken(&readme, "../CONTRIBUTING.md", &book), Some("leads out of the package"));
}

#[test]
fn every_path_that_a_newcomer_is_sent_to_exists() {
    // Catches a moved file whose old path is still on the page that describes the layout of the code.
    let mut paths = 0;
    for page in ["CONTRIBUTING.md", "docs/src/map.md"] {
        let text = fs::read_to_string(workspace().join(page)).unwrap();
        // The text outside of code blocks, whose commands and drawings are not paths.
        let outside: String = text.split("```").step_by(2).collect();
        let quoted = outside.split('`').skip(1).step_by(2);
        for path in quoted.filter(|quoted| quoted.contains('/') && !quoted.contains([' ', '*'])) {
            let places = ["", "mini-engine/src"].map(|place| workspace().join(place).join(path));
            assert!(places.iter().any(|place| place.exists()), "{page}: {path}");
            paths += 1;
        }
    }
    assert!(paths > 20, "only {paths} paths were found");
}
