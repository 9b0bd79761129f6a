//! The named orderings of the sources, parsed from their text.

use std::fs;
use std::path::Path;
use std::sync::atomic::Ordering;

/// Where the sources lie.
const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../fastskip/src");
/// The file of the engine that names its orderings too.
const OF_ENGINE: (&str, &str) = ("mini-engine/src/epoch.rs", include_str!("../../mini-engine/src/epoch.rs"));

/// An `ord("name", Ordering::Such)` of the sources.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Site {
    /// The name.
    pub name: String,
    /// The ordering.
    pub ordering: String,
    /// The file, from the folder of the sources on.
    pub file: String,
}

/// Every named ordering, each once.
///
/// # Panics
/// If the sources cannot be read, or a call names its ordering in another way.
#[must_use]
pub fn sites() -> Vec<Site> {
    let named = |(file, source): &(String, String)| {
        let calls = source.split("ord(\"").skip(1).map(call);
        calls.map(|(name, ordering, _)| Site { name, ordering, file: file.clone() }).collect::<Vec<_>>()
    };
    let mut sites: Vec<_> = files().iter().flat_map(named).collect();
    sites.sort();
    sites.dedup();
    sites
}

/// The file and the ordering of every access without a name, with one entry for each access.
///
/// # Panics
/// Like [`sites`].
#[must_use]
pub fn bare() -> Vec<(String, String)> {
    let mut bare = Vec::new();
    for (file, source) in files() {
        // The text after each name, without the name's own ordering.
        let (first, calls) = source.split_once("ord(\"").unwrap_or((&source, ""));
        let rests = calls.split("ord(\"").filter(|text| !text.is_empty()).map(|text| call(text).2);
        for text in [first].into_iter().chain(rests) {
            let found = text.split("Ordering::").skip(1).map(word).filter(|name| is_atomic(name));
            bare.extend(found.map(|name| (file.clone(), name.to_owned())));
        }
    }
    bare
}

/// Every source as it ships, by its path: without comments and without tests.
fn files() -> Vec<(String, String)> {
    let mut files = Vec::new();
    let mut folders = vec![Path::new(SOURCES).to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("the sources lie beside this crate") {
            let path = entry.expect("a readable folder").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            if path.ends_with("tests.rs") {
                continue;
            }
            let source = fs::read_to_string(&path).expect("a source is text");
            let file = path.strip_prefix(SOURCES).expect("below the sources").to_string_lossy().replace('\\', "/");
            files.push((file, shipped(&source)));
        }
    }
    let (file, source) = OF_ENGINE;
    files.push((file.to_owned(), shipped(source)));
    files
}

/// The source without comments and tests.
fn shipped(source: &str) -> String {
    let shipped = source.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    shipped.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

/// Parses a call from the text behind its first quote. Returns its name, its ordering, and the text behind the ordering.
fn call(text: &str) -> (String, String, &str) {
    let (name, rest) = text.split_once('"').expect("a closing quote");
    let rest = rest.trim_start_matches(|c: char| c == ',' || c.is_whitespace());
    let rest = rest.strip_prefix("Ordering::").expect("an ordering by its name, in the call");
    let ordering = word(rest);
    (name.to_owned(), ordering.to_owned(), &rest[ordering.len()..])
}

/// The name that `text` begins with.
fn word(text: &str) -> &str {
    &text[..text.find(|c: char| !c.is_alphanumeric()).unwrap_or(text.len())]
}

fn is_atomic(name: &str) -> bool {
    name == "SeqCst" || ordering(name).is_some()
}

/// The ordering of this name.
#[must_use]
pub fn ordering(name: &str) -> Option<Ordering> {
    use Ordering::{AcqRel, Acquire, Relaxed, Release};
    [Relaxed, Acquire, Release, AcqRel].into_iter().find(|ordering| format!("{ordering:?}") == name)
}
