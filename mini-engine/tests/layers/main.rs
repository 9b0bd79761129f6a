//! Dependencies between the engine's modules run one way, down to single files; two journeys through them stay short; and links lead
//! somewhere.

mod imports;
mod journeys;
mod links;

use std::path::{Path, PathBuf};

use imports::{Sources, find_circle};

/// The layers, lowest first. A module may use those of lower layers, none beside it; the parts of one module may use each
/// other.
const LAYERS: [&[&str]; 6] = [
    &["types", "error", "options", "codec", "metrics", "random", "sync"],
    &["fs", "cache", "iter"],
    &["wal", "table"],
    &["manifest", "memtables"],
    &["compaction", "dump"],
    &["db"],
];
/// Where modules of the lowest layer may use each other: errors are what all of them return.
const BASE: usize = 0;
/// The lowest layer that may name the memtable crate.
const MEMTABLE_FROM: usize = 3;
/// The layers inside `db`. The files beside the folders, which are the handle and its builder, are above all of them.
const DB_LAYERS: [&[&str]; 4] = [&["core"], &["write", "read"], &["background", "conditional"], &["recovery", "admin"]];
/// Only files of this folder, and the program's, start threads.
const STARTS_THREADS: &str = "db::background::";

fn src() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// The library's files.
fn library() -> Sources {
    Sources::read(&src()).without(&["lib", "main", "program"])
}

fn root(module: &str) -> &str {
    module.split("::").next().unwrap()
}

fn layer_of(module: &str, layers: &[&[&str]]) -> Option<usize> {
    layers.iter().position(|layer| layer.contains(&module))
}

/// Catches an import upward or sideways, a module without a layer, and the memtable crate below the layer that owns it.
#[test]
fn modules_use_only_lower_layers() {
    let sources = library();
    let graph = sources.graph();
    assert!(graph.len() > 60, "only {} files were found", graph.len());
    for (file, imports) in &graph {
        let own = layer_of(root(file), &LAYERS).unwrap_or_else(|| panic!("{file} has no layer"));
        for used in imports.iter().filter(|used| root(used) != root(file)) {
            let lower = layer_of(root(used), &LAYERS).is_some_and(|layer| layer < own || (layer == own && own == BASE));
            assert!(lower, "{file} uses {used}");
        }
        let names_the_memtable = sources.code(file).contains("fastskip::");
        assert!(own >= MEMTABLE_FROM || !names_the_memtable, "{file} names the memtable crate");
    }
}

/// Catches a way back up inside `db`: a read that knows of threads, a core that knows of writes, recovery beside administration.
#[test]
fn folders_of_db_use_only_lower_ones() {
    let folder = |file: &str| {
        file.strip_prefix("db::").and_then(|rest| rest.split_once("::").map(|(first, _)| first.to_owned()))
    };
    let folder = |file: &str| folder(file).or_else(|| file.strip_prefix("db::").map(str::to_owned));
    let mut checked = 0;
    for (file, imports) in library().graph().iter().filter(|(file, _)| root(file) == "db") {
        let own = folder(file).and_then(|folder| layer_of(&folder, &DB_LAYERS)).unwrap_or(DB_LAYERS.len());
        for used in imports.iter().filter(|used| root(used) == "db" && folder(used) != folder(file)) {
            let layer = folder(used).and_then(|folder| layer_of(&folder, &DB_LAYERS)).unwrap_or(DB_LAYERS.len());
            let handle_of_builder = (file.as_str(), used.as_str()) == ("db::builder", "db");
            assert!(layer < own || handle_of_builder, "{file} uses {used}");
            checked += 1;
        }
    }
    assert!(checked > 30, "only {checked} imports were found");
}

/// Catches files that can only be understood together: a circle of imports anywhere in the library.
#[test]
fn no_files_import_each_other_in_a_circle() {
    let graph = library().graph();
    let imports: usize = graph.values().map(|imports| imports.len()).sum();
    println!("{} files, {imports} imports between them", graph.len());
    for module in ["db", "table", "wal"] {
        let files = graph.keys().filter(|file| root(file) == module).count();
        println!("{module}: {files} files");
        assert!(files > 5, "only {files} files of {module} were found");
    }
    assert_eq!(find_circle(&graph), None);
}

/// Catches a program that reaches past the library's public face.
#[test]
fn the_program_uses_the_public_library_only() {
    let all = Sources::read(&src());
    for file in all.modules().filter(|file| root(file) == "program") {
        let code = all.code(file);
        let reaches_past = LAYERS.concat().iter().any(|module| code.contains(&format!("crate::{module}")));
        assert!(!reaches_past, "{file}");
    }
}

/// Catches a dependency of the program alone that a user of the library would have to compile.
#[test]
fn the_library_does_without_the_programs_dependencies() {
    let manifest = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml")).unwrap();
    let optional = |line: &&str| line.contains("optional = true");
    let names: Vec<&str> = manifest.lines().filter(optional).filter_map(|line| line.split(' ').next()).collect();
    let of_the_program = [
        "bytes",
        "clap",
        "clap_complete",
        "hdrhistogram",
        "indicatif",
        "mio",
        "serde_json",
        "redis-protocol",
        "signal-hook",
        "tracing-subscriber",
    ];
    assert_eq!(names, of_the_program);
    let library = library();
    for file in library.modules() {
        let used = names.iter().find(|name| library.code(file).contains(&format!("{}::", name.replace('-', "_"))));
        assert_eq!(used, None, "{file}");
    }
}

/// Catches threads that nobody joins at the end.
#[test]
fn only_the_workers_are_threads() {
    let all = Sources::read(&src());
    for file in all.modules() {
        let starts = ["thread::spawn", "thread::Builder"].iter().any(|start| all.code(file).contains(start));
        let allowed = file.starts_with(STARTS_THREADS) || root(file) == "program";
        assert!(!starts || allowed, "{file} starts a thread");
    }
}
