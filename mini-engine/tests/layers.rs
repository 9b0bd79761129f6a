//! Dependencies between the engine's modules run one way.

use std::fs;
use std::path::{Path, PathBuf};

/// The layers, lowest first. A module may use those of lower layers, none beside it; the parts of one module may use each
/// other.
const LAYERS: [&[&str]; 6] = [
    &["types", "error", "options", "codec", "metrics"],
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
/// Inside `db` only `worker` starts threads.
const STARTS_THREADS: &str = "worker.rs";

fn src() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

fn layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&module))
}

fn sources(path: &Path) -> Vec<PathBuf> {
    if path.is_file() {
        return vec![path.to_path_buf()];
    }
    let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|entry| sources(&entry)).collect()
}

/// A file's code, without comments and what only tests compile.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    let shipped = text.split("#[cfg(test)]\nmod tests").next().unwrap();
    shipped.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

fn is_test(path: &Path) -> bool {
    let name = |part: &std::ffi::OsStr| part.to_string_lossy().into_owned();
    path.iter()
        .map(name)
        .any(|part| part == "tests" || part == "tests.rs" || part == "model.rs" || part.starts_with("test_"))
}

fn modules_used(code: &str) -> impl Iterator<Item = String> + '_ {
    let word = |rest: &str| rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    code.split("crate::").skip(1).map(word).filter(|name| layer(name).is_some())
}

/// Catches an import upward or sideways, a module without a layer, and the memtable crate below the layer that owns it.
#[test]
fn modules_use_only_lower_layers() {
    let mut checked = 0;
    for entry in fs::read_dir(src()).unwrap().map(|entry| entry.unwrap().path()) {
        let module = entry.file_stem().unwrap().to_str().unwrap();
        if ["lib", "main", "program"].contains(&module) {
            continue;
        }
        let own = layer(module).unwrap_or_else(|| panic!("{module} has no layer"));
        for file in sources(&entry).iter().filter(|file| !is_test(file.strip_prefix(src()).unwrap())) {
            let code = code(file);
            for used in modules_used(&code).filter(|used| used != module) {
                let lower = layer(&used).is_some_and(|layer| layer < own || (layer == own && own == BASE));
                assert!(lower, "{} uses {used}", file.display());
            }
            assert!(
                own >= MEMTABLE_FROM || !code.contains("fastskip::"),
                "{} names the memtable crate",
                file.display()
            );
            checked += 1;
        }
    }
    assert!(checked > 30, "only {checked} files were found");
}

/// Catches a program that reaches past the library's public face.
#[test]
fn the_program_uses_the_public_library_only() {
    for file in sources(&src().join("program")).iter().filter(|file| !is_test(file.strip_prefix(src()).unwrap())) {
        assert_eq!(modules_used(&code(file)).next(), None, "{}", file.display());
    }
}

/// Catches threads that nobody joins at the end.
#[test]
fn only_the_worker_starts_threads() {
    for file in sources(&src()).iter().filter(|file| !is_test(file.strip_prefix(src()).unwrap())) {
        let starts = ["thread::spawn", "thread::Builder"].iter().any(|start| code(file).contains(start));
        let allowed = file.ends_with(STARTS_THREADS) || file.starts_with(src().join("program"));
        assert!(!starts || allowed, "{} starts a thread", file.display());
    }
}
