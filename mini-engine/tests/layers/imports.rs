//! Imports between files: read from the sources, with re-exports followed to the file that defines the name.
//!
//! A re-export (`pub use`, `pub(crate) use`) is no import: a file that imports a re-exported name depends on the file that defines it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The shipped files of a crate by their module path: `db::core::state`.
pub(crate) struct Sources(pub(crate) BTreeMap<String, String>);

/// The imports between files.
pub(crate) type Graph = BTreeMap<String, BTreeSet<String>>;

impl Sources {
    /// The sources below `src`, without code that only tests compile, and without `lib.rs`, which only re-exports names.
    pub(crate) fn read(src: &Path) -> Sources {
        let mut files = BTreeMap::new();
        collect(src, "", &mut files);
        files.remove("lib");
        Sources(files)
    }

    pub(crate) fn graph(&self) -> Graph {
        self.0.keys().map(|module| (module.clone(), self.imports(module))).collect()
    }

    /// The files that `module` depends on.
    fn imports(&self, module: &str) -> BTreeSet<String> {
        let (mut paths, _, rest) = split_uses(&self.0[module]);
        paths.extend(inline_paths(&rest));
        paths.iter().filter_map(|path| self.resolve(module, path)).filter(|used| used != module).collect()
    }

    /// The file to which `path`, as written in `module`, leads. `None` if the file is not in this crate.
    fn resolve(&self, module: &str, path: &str) -> Option<String> {
        let mut segments = path.split("::").peekable();
        let mut at = module.to_owned();
        match *segments.peek()? {
            "crate" => at = String::new(),
            "self" => {}
            "super" => {
                while segments.next_if_eq(&"super").is_some() {
                    at = parent(&at);
                }
            }
            first if self.0.contains_key(&join(&at, first)) => {}
            _ => return None,
        }
        segments.next_if(|first| ["crate", "self"].contains(first));
        for name in segments {
            let child = join(&at, name);
            if self.0.contains_key(&child) {
                at = child;
            } else if let Some(source) = self.reexport(&at, name) {
                return self.resolve(&at, &source);
            } else {
                return Some(at);
            }
        }
        Some(at)
    }

    /// The path from which `module` re-exports `name`.
    fn reexport(&self, module: &str, name: &str) -> Option<String> {
        let (_, reexports, _) = split_uses(self.0.get(module)?);
        reexports.into_iter().find(|path| path.rsplit("::").next() == Some(name))
    }
}

/// All files that `from` imports, directly or indirectly.
pub(crate) fn reached<'a>(graph: &'a Graph, from: &str) -> BTreeSet<&'a str> {
    let imports = |file: &str| graph.get(file).into_iter().flatten().map(String::as_str);
    let (mut reached, mut open) = (BTreeSet::new(), imports(from).collect::<Vec<_>>());
    while let Some(next) = open.pop() {
        if reached.insert(next) {
            open.extend(imports(next));
        }
    }
    reached
}

/// The files in cycles of imports.
pub(crate) fn in_circles(graph: &Graph) -> Vec<&str> {
    graph.keys().map(String::as_str).filter(|file| reached(graph, file).contains(file)).collect()
}

fn collect(dir: &Path, module: &str, files: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
        let name = entry.file_stem().unwrap().to_str().unwrap().to_owned();
        if is_test_only(&entry) {
            continue;
        }
        if entry.is_dir() {
            collect(&entry, &join(module, &name), files);
        } else if entry.extension().is_some_and(|extension| extension == "rs") {
            let own = if name == "mod" { module.to_owned() } else { join(module, &name) };
            files.insert(own, shipped_code(&fs::read_to_string(&entry).unwrap()));
        }
    }
}

/// Whether a file or directory contains only code for tests.
pub(crate) fn is_test_only(path: &Path) -> bool {
    let name = path.file_stem().unwrap().to_str().unwrap();
    ["tests", "model", "theory"].contains(&name) || name.starts_with("test_")
}

/// A file's code, and the part of it that only tests compile.
pub(crate) fn split_tests(text: &str) -> (&str, &str) {
    text.split_at(text.find("#[cfg(test)]\nmod tests").unwrap_or(text.len()))
}

/// A file's code, without comments and without code that only tests compile.
pub(crate) fn shipped_code(text: &str) -> String {
    split_tests(text).0.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

/// The paths that code imports, those that it re-exports, and the other code.
fn split_uses(code: &str) -> (Vec<String>, Vec<String>, String) {
    let (mut imports, mut reexports, mut rest) = (Vec::new(), Vec::new(), String::new());
    let mut lines = code.lines();
    while let Some(line) = lines.next() {
        let (before, tree) = line.trim_start().split_once("use ").unwrap_or(("none", ""));
        let paths = match before.trim_end() {
            "" => &mut imports,
            visibility if visibility.starts_with("pub") && !visibility.contains(' ') => &mut reexports,
            _ => {
                rest.push_str(line);
                rest.push('\n');
                continue;
            }
        };
        let mut tree = tree.to_owned();
        while !tree.contains(';') {
            tree.push_str(lines.next().expect("a use statement ends"));
        }
        flatten(&tree.split(';').next().unwrap().split_whitespace().collect::<String>(), "", paths);
    }
    (imports, reexports, rest)
}

/// The paths of a `use` tree without blanks: `a::{self,b::C,D}`.
fn flatten(tree: &str, prefix: &str, paths: &mut Vec<String>) {
    let Some((head, rest)) = tree.split_once('{') else {
        let path = tree.strip_suffix("::self").unwrap_or(tree);
        let path = if path == "self" { prefix.trim_end_matches("::").to_owned() } else { format!("{prefix}{path}") };
        paths.push(path);
        return;
    };
    let (mut depth, mut start) = (0, 0);
    let inner = rest.strip_suffix('}').expect("a use tree is closed");
    for (at, c) in inner.char_indices().chain([(inner.len(), ',')]) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                if at > start {
                    flatten(&inner[start..at], &format!("{prefix}{head}"), paths);
                }
                start = at + 1;
            }
            _ => {}
        }
    }
}

/// The paths of two or more segments in code, outside of imports.
fn inline_paths(code: &str) -> Vec<String> {
    // A path in a visibility is not a use.
    let code = code.replace("(in crate::", "(");
    let is_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let words = code.split(|c: char| !is_path(c)).filter(|word| word.contains("::"));
    words.map(|word| word.trim_matches(':').to_owned()).collect()
}

fn join(module: &str, name: &str) -> String {
    if module.is_empty() { name.to_owned() } else { format!("{module}::{name}") }
}

fn parent(module: &str) -> String {
    module.rsplit_once("::").map_or(String::new(), |(parent, _)| parent.to_owned())
}

#[test]
fn planted_circles_are_found_and_nothing_else() {
    // Catches a check that always passes, by planted cycles of each kind of import. Also catches false cycles through re-exports,
    // comments, tests or other crates.
    let tests = shipped_code("// use super::A;\nfn f() {}\n#[cfg(test)]\nmod tests { use super::super::A; }");
    type Files<'a> = &'a [(&'a str, &'a str)];
    let cases: [(usize, Files<'_>); 6] = [
        (2, &[("a", "use crate::b::B;"), ("b", "fn f() { crate::a::f() }")]),
        (2, &[("m", ""), ("m::a", "use super::{b, c::C};"), ("m::b", ""), ("m::c", "use super::a::{self};")]),
        (3, &[("a", "use crate::{b, x::Y};"), ("b", "use crate::c;"), ("c", "fn f() -> crate::a::A {}"), ("x", "")]),
        (
            2,
            &[
                ("m", "mod a;\nmod b;\npub(crate) use a::A;\npub use self::b::{\n    B,\n    C,\n};"),
                ("m::a", "use super::B;"),
                ("m::b", "use crate::m::A;"),
            ],
        ),
        (2, &[("m", "mod a;\nfn f() { a::g() }"), ("m::a", "fn g() -> super::F {}")]),
        (
            0,
            &[
                ("m", "mod a;\nmod b;\npub use a::A;\npub(crate) use b::B;"),
                ("m::a", "use super::B;\nuse std::a::b;\nuse other::m;"),
                ("m::b", &tests),
            ],
        ),
    ];
    for (expected, files) in cases {
        let sources = Sources(files.iter().map(|(module, text)| ((*module).to_owned(), (*text).to_owned())).collect());
        let graph = sources.graph();
        assert_eq!(in_circles(&graph).len(), expected, "{files:?}: {graph:?}");
        assert!(expected > 0 || reached(&graph, "m::a") == BTreeSet::from(["m::b"]), "{graph:?}");
    }
}
