//! Dependencies between the crate's files run one way.

use std::fs;
use std::path::{Path, PathBuf};

/// Each file may use those before it, and none behind it.
const ORDER: [&str; 27] = [
    "sync",
    "storage",
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
