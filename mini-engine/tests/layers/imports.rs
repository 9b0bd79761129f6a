//! Which file imports which: read from the sources, with re-exports followed to the file that defines the name.
//!
//! A re-export (`pub use`, `pub(crate) use`) is a signpost and no import: it makes the importer depend on the file behind it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The shipped files of a crate by their module path: `db::core::state`.
pub(crate) struct Sources(BTreeMap<String, String>);

/// The imports between files.
pub(crate) type Graph = BTreeMap<String, BTreeSet<String>>;

impl Sources {
    /// The sources below `src`, without what only tests compile.
    pub(crate) fn read(src: &Path) -> Sources {
        let mut files = BTreeMap::new();
        collect(src, "", &mut files);
        Sources(files)
    }

    /// These sources without the modules of `roots`.
    pub(crate) fn without(mut self, roots: &[&str]) -> Sources {
        self.0.retain(|module, _| !roots.contains(&module.split("::").next().unwrap()));
        self
    }

    /// Sources made up by a test.
    pub(crate) fn of(files: &[(&str, &str)]) -> Sources {
        Sources(files.iter().map(|(module, text)| ((*module).to_owned(), (*text).to_owned())).collect())
    }

    pub(crate) fn code(&self, module: &str) -> &str {
        &self.0[module]
    }

    pub(crate) fn modules(&self) -> impl Iterator<Item = &String> {
        self.0.keys()
    }

    pub(crate) fn graph(&self) -> Graph {
        self.0.keys().map(|module| (module.clone(), self.imports(module))).collect()
    }

    /// The files that `module` depends on.
    fn imports(&self, module: &str) -> BTreeSet<String> {
        let mut paths = Vec::new();
        let rest = split_uses(&self.0[module], |reexports, tree| {
            if !reexports {
                flatten(&tree, "", &mut paths);
            }
        });
        paths.extend(inline_paths(&rest));
        paths.iter().filter_map(|path| self.resolve(module, path)).filter(|used| used != module).collect()
    }

    /// The file that `path`, as it stands in `module`, leads to. `None` for what is not of this crate.
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
        let mut paths = Vec::new();
        split_uses(self.0.get(module)?, |reexports, tree| {
            if reexports {
                flatten(&tree, "", &mut paths);
            }
        });
        paths.into_iter().find(|path| path.rsplit("::").next() == Some(name))
    }
}

/// A circle of imports: each file imports the next, the last one the first.
pub(crate) fn find_circle(graph: &Graph) -> Option<Vec<String>> {
    let mut done = BTreeSet::new();
    graph.keys().find_map(|start| visit(graph, start, &mut Vec::new(), &mut done))
}

fn visit(graph: &Graph, at: &str, way: &mut Vec<String>, done: &mut BTreeSet<String>) -> Option<Vec<String>> {
    if let Some(from) = way.iter().position(|seen| seen == at) {
        return Some(way[from..].to_vec());
    }
    if done.contains(at) {
        return None;
    }
    way.push(at.to_owned());
    let found = graph.get(at).into_iter().flatten().find_map(|next| visit(graph, next, way, done));
    way.pop();
    done.insert(at.to_owned());
    found
}

/// Whether imports lead from `from` to `to`.
pub(crate) fn leads_to(graph: &Graph, from: &str, to: &str) -> bool {
    let mut seen = BTreeSet::from([from]);
    let mut open = vec![from];
    while let Some(at) = open.pop() {
        for next in graph.get(at).into_iter().flatten() {
            if next == to {
                return true;
            }
            if seen.insert(next) {
                open.push(next);
            }
        }
    }
    false
}

fn collect(dir: &Path, module: &str, files: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
        let name = entry.file_stem().unwrap().to_str().unwrap().to_owned();
        if ["tests", "model", "theory"].contains(&&*name) || name.starts_with("test_") {
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

/// A file's code, without comments and what only tests compile.
pub(crate) fn shipped_code(text: &str) -> String {
    let shipped = text.split("#[cfg(test)]\nmod tests").next().unwrap();
    shipped.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

/// Hands each `use` statement to `found`, with whether it re-exports. Returns the other code.
fn split_uses(code: &str, mut found: impl FnMut(bool, String)) -> String {
    let mut rest = String::new();
    let mut lines = code.lines();
    while let Some(line) = lines.next() {
        let start = line.trim_start();
        let (visibility, tree) = match start.strip_prefix("use ") {
            Some(tree) => ("", tree),
            None => match start.split_once(" use ") {
                Some((visibility, tree)) if visibility.starts_with("pub") => (visibility, tree),
                _ => {
                    rest.push_str(line);
                    rest.push('\n');
                    continue;
                }
            },
        };
        let mut tree = tree.to_owned();
        while !tree.contains(';') {
            tree.push_str(lines.next().expect("a use statement ends"));
        }
        found(!visibility.is_empty(), tree.split(';').next().unwrap().split_whitespace().collect());
    }
    rest
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

/// The paths of two segments or more that stand in code.
fn inline_paths(code: &str) -> Vec<String> {
    // Visibility names no use.
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

/// Catches a check that passes whatever is there: circles planted in each way in which files can import each other.
#[test]
fn planted_circles_are_found() {
    let circle = |files: &[(&str, &str)]| find_circle(&Sources::of(files).graph()).map(|circle| circle.len());
    let crates = [("a", "use crate::b::B;"), ("b", "fn f() { crate::a::f() }")];
    assert_eq!(circle(&crates), Some(2));
    let supers = [("m", ""), ("m::a", "use super::{b, c::C};"), ("m::b", ""), ("m::c", "use super::a::{self};")];
    assert_eq!(circle(&supers), Some(2));
    let three = [("a", "use crate::{b, x::Y};"), ("b", "use crate::c;"), ("c", "fn f() -> crate::a::A {}"), ("x", "")];
    assert_eq!(circle(&three), Some(3));
    let through_a_signpost = [
        ("m", "mod a;\nmod b;\npub(crate) use a::A;\npub use self::b::{\n    B,\n    C,\n};"),
        ("m::a", "use super::B;"),
        ("m::b", "use crate::m::A;"),
    ];
    assert_eq!(circle(&through_a_signpost), Some(2));
    let parent_and_child = [("m", "mod a;\nfn f() { a::g() }"), ("m::a", "fn g() -> super::F {}")];
    assert_eq!(circle(&parent_and_child), Some(2));
}

/// Catches a check that takes signposts, comments, tests or other crates for circles.
#[test]
fn what_is_no_circle_passes() {
    let files = [
        ("m", "mod a;\nmod b;\npub use a::A;\npub(crate) use b::B;"),
        ("m::a", "use super::B;\nuse std::a::b;\nuse other::m;"),
        ("m::b", &*shipped_code("// use super::A;\nfn f() {}\n#[cfg(test)]\nmod tests { use super::super::A; }")),
    ];
    let graph = Sources::of(&files).graph();
    assert_eq!(find_circle(&graph), None);
    assert!(leads_to(&graph, "m::a", "m::b") && !leads_to(&graph, "m::b", "m::a"));
}
