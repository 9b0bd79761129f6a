//! Imports of the bench go in one direction: commands use rounds and results, which use the names of subjects and workloads.

use std::path::Path;

#[path = "../../../mini-engine/tests/layers/imports.rs"]
mod imports;

use imports::{Graph, Sources, in_circles};

/// A file may import files of the lines above its own, but no other file of its line.
const LAYERS: [&str; 8] = [
    "allocator error",
    "text",
    "spec",
    "machine subjects",
    "round",
    "presets ipc results",
    "plan goals",
    "measure report transactions",
];

fn graph() -> Graph {
    let mut graph = Sources::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src")).graph();
    graph.remove("main");
    graph
}

/// The folder or file below `src` that contains a module.
fn part(module: &str) -> &str {
    module.split("::").next().unwrap_or_default()
}

fn layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.split(' ').any(|name| name == part(module)))
}

#[test]
fn imports_lead_to_lower_layers_only() {
    // Catches results that import plots, a round that imports goals, and a file without a layer.
    for (module, imports) in graph().iter().filter(|(module, _)| !module.is_empty()) {
        let own = layer(module);
        assert!(own.is_some(), "{module} is in no layer");
        for other in imports.iter().filter(|other| part(other) != part(module)) {
            assert!(layer(other) < own, "{module} imports {other}");
        }
    }
}

#[test]
fn no_files_use_each_other_in_a_circle() {
    // Catches an import upward, which makes two files depend on each other.
    let graph = graph();
    for (module, other) in [("measure", "ipc"), ("spec::cell", "spec::shape"), ("round::work", "subjects::store")] {
        assert!(graph[module].contains(other), "{module}: {:?}", graph[module]);
    }
    assert_eq!(in_circles(&graph), <[&str; 0]>::default());
}
