//! The files of the bench use each other in one direction.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Each module, by its path from the crate's root, with the modules that its code names. Tests do not count.
type Graph = BTreeMap<String, BTreeSet<String>>;

/// Adds the sources below `folder`, the files of `module`.
fn add(sources: &mut BTreeMap<String, String>, folder: &Path, module: &str) {
    for path in fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path()) {
        let name = path.file_stem().and_then(|name| name.to_str()).expect("text");
        let inner = if module.is_empty() { name.to_owned() } else { format!("{module}::{name}") };
        if path.is_dir() {
            add(sources, &path, &inner);
        } else if path.extension().is_some_and(|rs| rs == "rs") && !["main", "tests"].contains(&name) {
            let module = if name == "mod" { module.to_owned() } else { inner };
            sources.insert(module, fs::read_to_string(&path).expect("a source"));
        }
    }
}

/// The paths that `text`, what comes behind `crate::` or the like, names: one, or each of a group in braces.
fn named(text: &str) -> Vec<String> {
    let path: String = text.chars().take_while(|c| c.is_alphanumeric() || "_:".contains(*c)).collect();
    match text[path.len()..].strip_prefix('{') {
        None => vec![path],
        Some(group) => {
            let items = group.split('}').next().unwrap_or_default().split(',');
            items.flat_map(|item| named(item.trim())).map(|item| format!("{path}{item}")).collect()
        }
    }
}

fn graph(sources: &BTreeMap<String, String>) -> Graph {
    let of = |(module, source): (&String, &String)| {
        let code = source.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
        let code = code.split("#[cfg(test)]\npub(crate) mod ").next().unwrap_or_default();
        let code: String = code.lines().filter(|line| !line.trim().starts_with("//")).collect::<Vec<_>>().join("\n");
        let parent = module.rsplit_once("::").map_or("", |(parent, _)| parent);
        let bases = [("crate::", ""), ("super::", parent), ("pub(crate) use ", module), ("\nuse ", module)];
        let mut used = BTreeSet::new();
        for (keyword, base) in bases {
            for path in code.split(keyword).skip(1).flat_map(named) {
                let mut path = if base.is_empty() { path } else { format!("{base}::{path}") };
                // The longest prefix that is a file: the rest are items in it.
                while !sources.contains_key(&path) && !path.is_empty() {
                    path = path.rsplit_once("::").map_or(String::new(), |(prefix, _)| prefix.into());
                }
                used.insert(path);
            }
        }
        used.retain(|path| !path.is_empty() && path != module);
        (module.clone(), used)
    };
    sources.iter().map(of).collect()
}

/// What is left when files that use no other are taken away again and again: circles, and what uses them.
fn circles(mut graph: Graph) -> Vec<String> {
    loop {
        let done: Vec<_> = graph.iter().filter(|(_, used)| used.is_empty()).map(|(module, _)| module.clone()).collect();
        if done.is_empty() {
            return graph.into_keys().collect();
        }
        done.iter().for_each(|module| drop(graph.remove(module)));
        graph.values_mut().for_each(|used| used.retain(|module| !done.contains(module)));
    }
}

#[test]
fn no_files_use_each_other_in_a_circle() {
    // Catches an import upward, which makes two files one that nobody can read alone.
    let mut sources = BTreeMap::new();
    add(&mut sources, &Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), "");
    let graph = graph(&sources);
    assert!(graph["measure"].contains("ipc") && graph["goals"].contains("goals::table"), "{graph:?}");
    assert!(graph["spec::cell"].contains("spec::shape") && graph["tables::maps"].contains("spec"), "{graph:?}");
    assert_eq!(circles(graph), [] as [String; 0]);
}

#[test]
fn a_circle_is_found() {
    // Catches a check that passes whatever the files use.
    let source = |module: &str, source: &str| (module.to_owned(), source.to_owned());
    let circle = [source("a", "use crate::{c, b::X};"), source("b", "fn f() { crate::a::g() }"), source("c", "")];
    assert_eq!(circles(graph(&BTreeMap::from(circle))), ["a", "b"]);
    let folder = [source("a", "mod b;\npub(crate) use b::B;"), source("a::b", "use super::A;")];
    assert_eq!(circles(graph(&BTreeMap::from(folder))), ["a", "a::b"]);
}
