//! The files of the bench use each other in one direction.

use std::path::Path;

#[expect(dead_code, reason = "the engine's test of the same kind asks more")]
#[path = "../../../mini-engine/tests/layers/imports.rs"]
mod imports;

use imports::{Sources, find_circle};

#[test]
fn no_files_use_each_other_in_a_circle() {
    // Catches an import upward, which makes two files one that nobody can read alone.
    let graph = Sources::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src")).without(&["main"]).graph();
    for (module, other) in [("measure", "ipc"), ("spec::cell", "spec::shape"), ("round::work", "subjects::store")] {
        assert!(graph[module].contains(other), "{module}: {:?}", graph[module]);
    }
    assert_eq!(find_circle(&graph), None);
}
