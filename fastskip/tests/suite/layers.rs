//! Rules for the text of sources and tests: dependencies run one way, and multi-threaded tests validate the structure.

use std::fs;
use std::path::{Path, PathBuf};

/// The layers, lowest first. A file may use the layers below its own; of its own layer, it may use only its folder.
const LAYERS: [&str; 9] = [
    "sync error tuning bounds order",
    "mem",
    "key builder",
    "node",
    "index",
    "list",
    "iter",
    "memtable skiplist",
    "test_scramble",
];

/// The files of each folder, lowest first: a file may use those before it. `mod` is the public face of the folder: it may use all of them, and none
/// of them uses it.
const FOLDERS: [(&str, &str); 9] = [
    ("sync", "atomic spin"),
    ("mem", "poison lanes budget range storage quota chunk spares arena"),
    ("node", "id write read store walk link"),
    ("index", "steps block tree descent ties prefix search estimate hint split replace neighbours test_scramble"),
    ("index/block", "header shared locked"),
    ("list", "gate counts run state stats group writer lazy"),
    ("iter", "readahead position source walk owned range cursor"),
    ("memtable", "version table op read write"),
    ("skiplist", "stamp table entry read write"),
];

/// The paths of the crate that `source` uses, from the root on, outside comments, documentation imports and tests. `own` is
/// the module path of `source`.
fn used(source: &str, own: &[String]) -> Vec<Vec<String>> {
    let source = source.split("#[cfg(test)]").next().unwrap();
    let source = source.split("#[cfg(all(test").next().unwrap();
    let mut paths = Vec::new();
    let mut for_docs = false;
    // A path in a visibility is not a use.
    let source = source.replace("(in crate::", "(in ");
    for line in source.lines().map(str::trim).filter(|line| !line.starts_with("//")) {
        if !for_docs {
            for (root, up) in [("crate::", own.len()), ("super::", 1), ("self::", 0)] {
                assert!(!line.contains("super::super"), "{line} names no path from the root");
                let from = own[..own.len() - up].to_vec();
                paths.extend(line.split(root).skip(1).flat_map(names).map(|names| [from.clone(), names].concat()));
            }
        }
        for_docs = line == "#[cfg(doc)]";
    }
    paths
}

/// The paths that `text` begins with: one, or one for each name in braces.
fn names(text: &str) -> Vec<Vec<String>> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let (path, rest) = text.split_at(text.find(|c| !is_name(c) && c != ':').unwrap_or(text.len()));
    let path: Vec<_> = path.split("::").filter(|name| !name.is_empty()).map(str::to_owned).collect();
    match rest.strip_prefix('{') {
        Some(listed) => {
            let names = listed.split(',').map(|name| name.trim().chars().take_while(|c| is_name(*c)).collect());
            names.map(|name: String| [path.clone(), vec![name]].concat()).collect()
        }
        None => vec![path],
    }
}

/// The longest prefix of `path` that is a module.
fn module(src: &Path, path: &[String]) -> Vec<String> {
    let is_module = |len: &usize| {
        let file = src.join(path[..*len].join("/"));
        file.is_dir() || file.with_extension("rs").is_file()
    };
    let len = (1..=path.len()).rev().find(is_module);
    path[..len.unwrap_or_else(|| panic!("{path:?} names no module"))].to_vec()
}

/// Whether the module `own` may use the module `other`: `own` itself, or a module below it. The face of a folder (`mod`) is above all its files.
fn may_use(own: &[String], other: &[String]) -> bool {
    let common = own.iter().zip(other).take_while(|(a, b)| a == b).count();
    let Some(mine) = own.get(common) else { return true };
    let Some(its) = other.get(common) else { return false };
    let place = |name: &String| match common {
        0 => LAYERS.iter().position(|layer| layer.split(' ').any(|file| file == name)),
        _ => {
            let folder = own[..common].join("/");
            let (_, files) = FOLDERS.iter().find(|(name, _)| *name == folder).expect("a folder with an order");
            files.split(' ').position(|file| file == name)
        }
    };
    let known =
        |name| place(name).unwrap_or_else(|| panic!("{name} of {own:?} or {other:?} has no place in the order"));
    known(mine) > known(its)
}

/// Every file below `folder`.
fn below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (folders, mut all): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    all.extend(folders.iter().flat_map(|folder| below(folder)));
    all
}

/// Catches a multi-threaded test that does not validate the structure at its end.
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
    assert!(seen >= 15, "only {seen} tests with threads were found");
}

/// Catches an import upward, sideways or from the folder that a file is in, and a file that is missing from the order.
#[test]
fn files_use_only_what_lies_below_them() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut seen = 0;
    for path in below(&src).iter().filter(|path| !path.ends_with("tests.rs") && !path.ends_with("lib.rs")) {
        let inside = path.strip_prefix(&src).unwrap().with_extension("");
        let mut own: Vec<_> = inside.iter().map(|name| name.to_str().unwrap().to_owned()).collect();
        own.pop_if(|name| name == "mod");
        for named in used(&fs::read_to_string(path).unwrap(), &own) {
            let other = module(&src, &named);
            assert!(may_use(&own, &other), "{} uses {}", own.join("/"), other.join("/"));
        }
        seen += 1;
    }
    let files = LAYERS.into_iter().chain(FOLDERS.map(|(_, files)| files)).flat_map(|files| files.split(' '));
    assert_eq!(seen, files.count(), "files, and places in the order");
}

/// Whether `code` has a let chain: a `let` condition that `&&` joins with another condition.
fn chains_let(code: &str) -> bool {
    let mut conditions = ["if let ", "while let "].into_iter().flat_map(|start| code.split(start).skip(1));
    code.contains("&& let ") || conditions.any(|rest| rest.split_once(" = ").is_some_and(|(_, rest)| goes_on(rest)))
}

/// Whether `&&` comes before the block, outside of brackets.
fn goes_on(rest: &str) -> bool {
    let mut depth = 0;
    for (at, c) in rest.char_indices() {
        match c {
            '{' if depth == 0 => return false,
            '&' if depth == 0 && rest[at..].starts_with("&& ") => return true,
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
    }
    false
}

/// Catches syntax that the compiler of `rust-version` does not support: conditions that chain `let` came with Rust 1.88.
#[test]
fn sources_keep_to_the_oldest_compiler() {
    for chained in
        ["if a && let Some(b) = c {", "if let Some(a) = b(|c| { d && e }) && f {", "while let [a] = *b && c {"]
    {
        assert!(chains_let(chained), "{chained}");
    }
    assert!(!chains_let("if let Some(a) = b.filter(|c| d && e) { f && g }"));
    for path in below(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src")) {
        let source = fs::read_to_string(&path).unwrap();
        let code: Vec<_> = source.lines().map(str::trim).filter(|line| !line.starts_with("//")).collect();
        assert!(!chains_let(&code.join(" ")), "{} chains `let`", path.display());
    }
}
