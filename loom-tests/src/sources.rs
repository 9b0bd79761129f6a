//! The orderings that the sources name, read from their text.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::atomic::Ordering;

/// Where the sources lie.
const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../fastskip/src");

/// Name and ordering of every `ord("name", Ordering::Such)`.
///
/// # Panics
/// If the sources cannot be read, or such a call names its ordering in another way.
#[must_use]
pub fn sites() -> BTreeSet<(String, String)> {
    let mut sites = BTreeSet::new();
    let mut folders = vec![Path::new(SOURCES).to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("the sources lie beside this crate") {
            let path = entry.expect("a readable folder").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let source = fs::read_to_string(&path).expect("a source is text");
                sites.extend(source.split("ord(\"").skip(1).map(site));
            }
        }
    }
    sites
}

/// The site that a call names, given the text from behind its first quote on.
fn site(call: &str) -> (String, String) {
    let (name, rest) = call.split_once('"').expect("a closing quote");
    let ordering = rest.trim_start_matches(|c: char| c == ',' || c.is_whitespace());
    let ordering = ordering.strip_prefix("Ordering::").expect("an ordering by its name, in the call");
    let end = ordering.find(|c: char| !c.is_alphanumeric()).expect("more behind the ordering");
    (name.to_owned(), ordering[..end].to_owned())
}

/// The ordering of this name.
#[must_use]
pub fn ordering(name: &str) -> Option<Ordering> {
    use Ordering::{AcqRel, Acquire, Relaxed, Release};
    [Relaxed, Acquire, Release, AcqRel].into_iter().find(|ordering| format!("{ordering:?}") == name)
}
