//! What the texts of sources and tests must keep to: dependencies run one way, and tests of threads check the structure.

use std::fs;
use std::path::{Path, PathBuf};

/// Each file may use those before it, and none behind it.
const ORDER: [&str; 29] = [
    "sync",
    "poison",
    "storage",
    "tuning",
    "thread",
    "config",
    "height",
    "error",
    "bounds",
    "key",
    "gate",
    "budget",
    "stats",
    "trail",
    "arena",
    "node",
    "search",
    "list",
    "validate",
    "walk",
    "stamp",
    "versions",
    "builder",
    "cursor",
    "snapshot",
    "skiplist",
    "frozen",
    "memtable",
    "memtable_cursor",
];

/// The crate's modules that `source` names, outside comments, documentation imports and tests.
fn used(source: &str) -> Vec<String> {
    let source = source.split("#[cfg(test)]").next().unwrap();
    let source = source.split("#[cfg(all(test").next().unwrap();
    let mut names = Vec::new();
    let mut for_docs = false;
    for line in source.lines().map(str::trim).filter(|line| !line.starts_with("//")) {
        if !for_docs {
            let rest = line.split("crate::").skip(1);
            names.extend(rest.map(|rest| rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()));
        }
        for_docs = line == "#[cfg(doc)]";
    }
    names
}

/// A file by itself, or the files of a folder: those are one concept and may use each other.
fn files(path: &Path) -> Vec<PathBuf> {
    if path.is_file() {
        return vec![path.to_path_buf()];
    }
    fs::read_dir(path).unwrap().map(|file| file.unwrap().path()).collect()
}

/// Every file below `folder`.
fn below(folder: &Path) -> Vec<PathBuf> {
    let (folders, mut all): (Vec<_>, Vec<_>) = files(folder).into_iter().partition(|path| path.is_dir());
    all.extend(folders.iter().flat_map(|folder| below(folder)));
    all
}

/// Catches a test of several threads that leaves unchecked what they did to the structure.
#[test]
fn tests_with_threads_validate_in_the_end() {
    let mut seen = 0;
    for path in below(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")) {
        let source = fs::read_to_string(&path).unwrap();
        for test in source.split("#[test]").skip(1).filter(|test| test.contains("thread::s")) {
            let name = test.split("fn ").nth(1).and_then(|rest| rest.split('(').next()).unwrap();
            assert!(test.contains("validate"), "{name} in {} does not validate", path.display());
            seen += 1;
        }
    }
    assert!(seen >= 20, "only {seen} tests with threads were found");
}

/// Catches an import upward or sideways, and a file that is missing from the order.
#[test]
fn files_use_only_what_lies_below_them() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut seen = 0;
    for path in fs::read_dir(src).unwrap().map(|file| file.unwrap().path()) {
        let name = path.file_stem().unwrap().to_str().unwrap();
        if name == "lib" {
            continue;
        }
        let place = |name: &str| ORDER.iter().position(|module| *module == name);
        let own = place(name).unwrap_or_else(|| panic!("{name}.rs has no place in the order"));
        for module in files(&path).iter().flat_map(|file| used(&fs::read_to_string(file).unwrap())) {
            assert!(place(&module).is_some_and(|place| place < own), "{name} uses {module}");
        }
        seen += 1;
    }
    assert_eq!(seen, ORDER.len());
}
