//! The files of the bench use each other in one direction.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The code of each module but its tests, by its path from the crate's root.
type Sources = BTreeMap<String, String>;

/// Adds the sources below `folder`, the files of `module`.
fn add(sources: &mut Sources, folder: &Path, module: &str) {
    for path in fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path()) {
        let name = path.file_stem().and_then(|name| name.to_str()).expect("text");
        let inner = format!("{module}{}{name}", if module.is_empty() { "" } else { "::" });
        if path.is_dir() {
            add(sources, &path, &inner);
        } else if path.extension().is_some_and(|rs| rs == "rs") && !["main", "tests"].contains(&name) {
            let source = fs::read_to_string(&path).expect("a source");
            sources.insert(if name == "mod" { module.to_owned() } else { inner }, source);
        }
    }
}

/// The paths that `text`, what comes behind `crate::` or the like, names: one, or each of a group in braces.
fn named(text: &str) -> Vec<String> {
    let path: String = text.chars().take_while(|c| c.is_alphanumeric() || "_:".contains(*c)).collect();
    let Some(group) = text[path.len()..].strip_prefix('{') else { return vec![path] };
    let items = group.split('}').next().unwrap_or_default().split(',');
    items.flat_map(|item| named(item.trim())).map(|item| format!("{path}{item}")).collect()
}

/// The modules that the code of `module` names.
fn used(sources: &Sources, module: &str) -> BTreeSet<String> {
    let tests =
        ["mod ", "pub(crate) mod ", "pub(super) mod "].map(|of| sources[module].find(&format!("#[cfg(test)]\n{of}")));
    let code = &sources[module][..tests.into_iter().flatten().min().unwrap_or(sources[module].len())];
    let code: String = code.lines().filter(|line| !line.trim().starts_with("//")).collect::<Vec<_>>().join("\n");
    let parent = module.rsplit_once("::").map_or("", |(parent, _)| parent);
    let bases = [("crate::", ""), ("super::", parent), ("pub(crate) use ", module), ("\nuse ", module)];
    let path = |base: &str, path: String| {
        let mut path = if base.is_empty() { path } else { format!("{base}::{path}") };
        // The longest prefix that is a file: the rest are items in it.
        while !sources.contains_key(&path) && !path.is_empty() {
            path = path.rsplit_once("::").map_or(String::new(), |(prefix, _)| prefix.into());
        }
        path
    };
    let of =
        |(keyword, base)| code.split(keyword).skip(1).flat_map(named).map(move |of| path(base, of)).collect::<Vec<_>>();
    bases.into_iter().flat_map(of).filter(|path| !path.is_empty() && path != module).collect()
}

/// What is left when files that use no other are taken away again and again: circles, and what uses them.
fn circles(sources: &Sources) -> Vec<String> {
    let mut graph: BTreeMap<_, _> = sources.keys().map(|module| (module.clone(), used(sources, module))).collect();
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
    // Catches an import upward, which makes two files one that nobody can read alone, and a check that passes whatever is used.
    let mut sources = Sources::new();
    add(&mut sources, &Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), "");
    for (module, other) in
        [("measure", "ipc"), ("goals", "goals::table"), ("spec::cell", "spec::shape"), ("tables::maps", "spec")]
    {
        assert!(used(&sources, module).contains(other), "{module}");
    }
    assert_eq!(circles(&sources), [] as [String; 0]);
    let source = |module: &str, source: &str| (module.to_owned(), source.to_owned());
    let circle = [source("a", "use crate::{c, b::X};"), source("b", "fn f() { crate::a::g() }"), source("c", "")];
    assert_eq!(circles(&Sources::from(circle)), ["a", "b"]);
    let folder = [source("a", "mod b;\npub(crate) use b::B;"), source("a::b", "use super::A;")];
    assert_eq!(circles(&Sources::from(folder)), ["a", "a::b"]);
}
