//! Checks call paths: from an insert to the compare-and-swap, from a read to the block, and of requests to the server: they must be as short as the
//! book states.
//!
//! The tests check the lists in `docs/src/design.md`. Each numbered item is a file and the functions that call one another there; the last of them
//! calls the first function of the next item. A bullet below an item is another file that the item's functions call.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::ENGINE;
use crate::imports::{Graph, Sources, reached, shipped_code};

/// A file on a journey.
#[derive(Debug, PartialEq, Eq)]
struct Stop {
    file: String,
    functions: Vec<String>,
    /// Whether the file is only called, and the journey goes on from the stop above.
    is_aside: bool,
}

pub(crate) fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf()
}

/// The stops of the list below the paragraph that begins with `opening`.
fn stops(book: &str, opening: &str) -> Vec<Stop> {
    let (_, section) = book.split_once("## Two journeys").expect("the section");
    let (_, list) = section.split_once(opening).unwrap_or_else(|| panic!("no paragraph begins with {opening:?}"));
    let lines = list.lines().skip_while(|line| !line.starts_with("1."));
    lines.take_while(|line| !line.is_empty() && !line.starts_with('#')).filter_map(stop).collect()
}

/// The stop of a line, unless the line only continues the text of the line before: `` 1. `file`: `function`, `function`: why``.
fn stop(line: &str) -> Option<Stop> {
    let item = line.trim_start();
    let is_aside = item.starts_with("- ");
    let is_numbered = item.split_once(". ").is_some_and(|(number, _)| number.parse::<u32>().is_ok());
    if !is_aside && !is_numbered {
        return None;
    }
    let mut quoted = item.split('`').skip(1).step_by(2).map(str::to_owned);
    let file = quoted.next().unwrap_or_else(|| panic!("{line}: no file"));
    let names = item.split('`').nth(2).is_some_and(|between| between.starts_with(':'));
    assert!(names, "{line}: expected `file`: `function`");
    let functions = quoted.take_while(|name| name.chars().all(|c| is_name(c) || c == ':')).collect();
    Some(Stop { file, functions, is_aside })
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The part of `code` from its first brace to the matching one.
fn braced(code: &str) -> &str {
    let mut depth = 0;
    let mut ends = code.char_indices().filter(|(_, c)| {
        depth += i32::from(*c == '{') - i32::from(*c == '}');
        *c == '}' && depth == 0
    });
    &code[code.find('{').unwrap_or(0)..ends.next().map_or(code.len(), |(at, _)| at)]
}

/// The type of the `impl` block that begins with `header`: the last name outside of angle brackets.
fn self_type(header: &str) -> String {
    let mut depth = 0;
    let outside = header.split(" where ").next().unwrap().chars().filter(|c| {
        depth += i32::from(*c == '<');
        let is_outside = depth == 0;
        depth -= i32::from(*c == '>');
        is_outside
    });
    let outside: String = outside.collect();
    outside.split(|c| !is_name(c)).rfind(|name| !name.is_empty()).unwrap().to_owned()
}

/// The functions in `code` with their bodies: `Type::function` in an `impl` block, else `function`.
fn functions(code: &str) -> Vec<(String, &str)> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        let name: String = code[at + 3..].chars().take_while(|c| is_name(*c)).collect();
        let block = code[..at].rfind("\nimpl").map(|start| &code[start..]);
        let name = match block.filter(|block| braced(block).as_bytes().as_ptr_range().contains(&code[at..].as_ptr())) {
            Some(block) => format!("{}::{name}", self_type(block.split('{').next().unwrap())),
            None => name,
        };
        found.push((name, braced(&code[at..])));
    }
    found
}

/// Whether `body` calls `callee`, with generic arguments or without. Ignores the type of the callee, which a call does not show.
fn calls(body: &str, callee: &str) -> bool {
    let name = callee.rsplit("::").next().unwrap();
    let is_called = |rest: &str| rest.starts_with('(') || rest.starts_with("::<");
    body.match_indices(name).any(|(at, _)| !body[..at].ends_with(is_name) && is_called(&body[at + name.len()..]))
}

/// Whether one of `askers` in `code` calls `callee`, directly or through other functions of the file.
fn asks(code: &str, askers: &[String], callee: &str) -> bool {
    let functions = functions(code);
    let (mut open, mut others): (Vec<_>, Vec<_>) = functions.into_iter().partition(|(name, _)| askers.contains(name));
    while let Some((_, body)) = open.pop() {
        if calls(body, callee) {
            return true;
        }
        let (called, left) = others.into_iter().partition(|(name, _)| calls(body, name));
        open.extend::<Vec<_>>(called);
        others = left;
    }
    false
}

/// The faults of a journey whose last function calls `end`. `code` gives the code of a file.
fn faults(stops: &[Stop], end: &str, code: impl Fn(&str) -> String) -> Vec<String> {
    let mut faults = Vec::new();
    let mut check = |file: &str, caller: &str, callee: &str| {
        if !functions(&code(file)).iter().any(|(name, body)| name == caller && calls(body, callee)) {
            faults.push(format!("{file}: {caller} does not call {callee}"));
        }
    };
    let (asides, way): (Vec<_>, Vec<_>) = stops.iter().enumerate().partition(|(_, stop)| stop.is_aside);
    for (index, (_, stop)) in way.iter().enumerate() {
        let next = way.get(index + 1).map_or(end, |(_, next)| &next.functions[0]);
        let mut callees = stop.functions[1..].iter().map(String::as_str).chain([next]);
        stop.functions.iter().for_each(|caller| check(&stop.file, caller, callees.next().unwrap()));
    }
    for (at, aside) in asides {
        let (_, above) = way.iter().rfind(|(way_at, _)| *way_at < at).expect("an item above");
        let asked = &aside.functions[0];
        let between = stops[..at].iter().rev().take_while(|stop| stop.is_aside);
        if !between.chain([*above]).any(|asker| asks(&code(&asker.file), &asker.functions, asked)) {
            faults.push(format!("{}: nothing on the way calls {asked}", above.file));
        }
        if !functions(&code(&aside.file)).iter().any(|(name, _)| name == asked) {
            faults.push(format!("{} has no function {asked}", aside.file));
        }
    }
    faults
}

/// The module of a file below `root`.
fn module(file: &str, root: &str) -> Option<String> {
    let path = file.strip_prefix(root)?.strip_suffix(".rs")?;
    Some(path.strip_suffix("/mod").unwrap_or(path).replace('/', "::"))
}

/// Pairs of stops of which the later one imports the earlier one, directly or indirectly.
fn ways_back(stops: &[Stop], root: &str, graph: &Graph) -> Vec<(String, String)> {
    let modules: Vec<String> = stops.iter().filter_map(|stop| module(&stop.file, root)).collect();
    let pairs =
        modules.iter().enumerate().flat_map(|(at, later)| modules[..at].iter().map(move |earlier| (later, earlier)));
    let backs = pairs.filter(|(later, earlier)| later == earlier || reached(graph, later).contains(&earlier[..]));
    backs.map(|(later, earlier)| (later.clone(), earlier.clone())).collect()
}

/// The most files on the direct path of a journey, and with the files that are only called.
const MOST_OF_SPINE: usize = 9;
const MOST_FILES: usize = 12;

/// The stops of a list of the book, whose last function calls `end`.
fn checked_stops(opening: &str, end: &str) -> Vec<Stop> {
    let book = std::fs::read_to_string(workspace().join("docs/src/design.md")).unwrap();
    let stops = stops(&book, opening);
    let code = |file: &str| {
        let text = std::fs::read_to_string(workspace().join(file));
        shipped_code(&text.unwrap_or_else(|error| panic!("{file}: {error}")))
    };
    assert_eq!(faults(&stops, end, code), Vec::<String>::new());
    stops
}

fn check(opening: &str, end: &str) {
    let stops = checked_stops(opening, end);
    let files = |stops: &[Stop]| stops.iter().map(|stop| stop.file.clone()).collect::<BTreeSet<_>>().len();
    let all = files(&stops);
    let spine: Vec<Stop> = stops.into_iter().filter(|stop| !stop.is_aside).collect();
    println!("{opening}: {} files, and {} asked beside them", spine.len(), all - files(&spine));
    assert!(all > 4 && all <= MOST_FILES && spine.len() <= MOST_OF_SPINE, "{all} files");
    assert_eq!(files(&spine), spine.len(), "a file is left and entered again");
    let memtable = Sources::read(&workspace().join("fastskip/src"));
    for (root, sources) in [("mini-engine/src/", ENGINE.sources()), ("fastskip/src/", memtable)] {
        assert_eq!(ways_back(&spine, root, &sources.graph()), [], "ways back up");
    }
}

#[test]
fn the_journeys_are_as_the_book_draws_them_and_short() {
    // Catches a longer path of writes or of reads, and a book whose path differs from the sources.
    check("An insert", "compare_exchange");
    check("A read", "read_exact_at");
}

#[test]
fn requests_go_the_way_that_the_book_draws() {
    // Catches a second way of a request, beside the one that people read about, and a way that becomes longer.
    let files = |lists: &[(&str, &str)]| {
        let stops = lists.iter().flat_map(|(opening, end)| checked_stops(opening, end));
        stops.map(|stop| stop.file).collect::<BTreeSet<_>>()
    };
    let alone = files(&[("A GET of a server", "run")]);
    let mut grouped =
        files(&[("A SET in a group", "send"), ("A task proposes", "client_write_ff"), ("When a majority has", "run")]);
    // The files with which both begin.
    grouped.extend(alone.iter().filter(|file| file.contains("/net/") || file.ends_with("session/mod.rs")).cloned());
    // And the session's part for groups. Each ends in the file of the command.
    assert!(alone.len() < 7 && grouped.len() + 1 < 12, "{alone:?} {grouped:?}");
}

/// Catches a check that accepts any text of the book.
#[test]
fn a_wrong_drawing_is_noticed() {
    let book = "## Two journeys\n\nA way:\n\n1. `a.rs`: `f`, `A::g`: first.\n   Text `x`.\n   - `c.rs`: `ask`: aside.\n2. `b.rs`: `B::h`: last.\n\nEnd";
    let stops = stops(book, "A way");
    let shape: Vec<_> = stops.iter().map(|stop| (&*stop.file, stop.functions.len(), stop.is_aside)).collect();
    assert_eq!(shape, [("a.rs", 2, false), ("c.rs", 1, true), ("b.rs", 1, false)]);
    let right = [
        ("a.rs", "fn f() { g() }\nimpl A { fn g() { i(); if x { c.h() } } fn i() { ask() } }"),
        ("b.rs", "fn i() {}\nimpl<'a, T: Into<A>> X for B<'a, T> where T: Y { fn h<U>() { cas() } }"),
        ("c.rs", "fn ask() {}"),
    ];
    let found = |file: &str, code: &str| {
        let of =
            |name: &str| if name == file { code } else { right.iter().find(|(right, _)| *right == name).unwrap().1 };
        faults(&stops, "cas", |name| of(name).to_owned()).len()
    };
    assert_eq!(found("a.rs", "fn f() { g() }\nimpl A { fn g() { ask(); h() } }"), 0);
    let wrong = [
        ("a.rs", "fn f() { ask(); gg() }\nimpl A { fn g() { h() } }"),
        ("a.rs", "fn f() { g() }\nimpl A { fn g() { h() } }"),
        ("a.rs", "fn f() { g() } fn g() { ask(); h() }"),
        ("a.rs", "fn f() { g() }\nimpl From<A> for C { fn g() { ask(); h() } }"),
        ("b.rs", "\nimpl B { fn h() {} fn other() { cas() } }"),
        ("b.rs", "\nimpl B { fn h() {} }\nfn h() { cas() }"),
        ("c.rs", "fn asks() {}"),
        ("c.rs", "\nimpl C { fn ask() {} }"),
    ];
    wrong.iter().for_each(|(file, code)| assert_eq!(found(file, code), 1, "{file}: {code}"));
    let import = |from: &str, to: &str| Graph::from([(from.to_owned(), BTreeSet::from([to.to_owned()]))]);
    assert_eq!(ways_back(&stops, "", &import("a", "b")), []);
    assert_eq!(ways_back(&stops, "", &import("b", "a")).len(), 1);
}
