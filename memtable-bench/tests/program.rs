//! The commands, run as a program.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::{TempDir, tempdir};

const SUBJECTS: &str = "fastskip fastskip-batch memtable memtable-batch fastskip-published crossbeam-skiplist skl treeindex \
                        btreemap sharded-btreemap hashmap vec";
/// The published crate is known to crash: whether it does is no matter of this test.
const MAY_FAIL: &str = "fastskip-published";

/// The subjects that this build has.
fn subjects() -> Vec<&'static str> {
    SUBJECTS.split(' ').filter(|subject| *subject != "skl" || cfg!(feature = "skl")).collect()
}

fn bench(arguments: &[&str]) -> Output {
    let mut bench = Command::new(env!("CARGO_BIN_EXE_memtable-bench"));
    bench.args(arguments).stdin(Stdio::null()).output().expect("run")
}

/// Runs `arguments`; returns what was printed.
#[track_caller]
fn done(arguments: &[&str]) -> String {
    let ran = bench(arguments);
    assert_eq!((ran.status.code(), &*ran.stderr), (Some(0), &b""[..]), "{arguments:?}: {ran:?}");
    String::from_utf8(ran.stdout).expect("text")
}

#[track_caller]
fn refused(arguments: &[&str], message: &str) {
    let ran = bench(arguments);
    let said = String::from_utf8_lossy(&ran.stderr);
    assert_eq!((ran.status.code(), &*ran.stdout), (Some(2), &b""[..]), "{arguments:?}: {said}");
    assert!(said.contains(message), "{arguments:?}: {said}");
}

fn text(path: &Path) -> &str {
    path.to_str().expect("text")
}

/// Measures for one round; returns the directory of `out.json`, what was printed, and the file.
#[track_caller]
fn measured(command: &str, arguments: &[&str]) -> (TempDir, String, Value) {
    let directory = tempdir().expect("a directory");
    let out = directory.path().join("out.json");
    let printed = done(&[&[command, "--rounds", "1", "--json", text(&out)], arguments].concat());
    let json = serde_json::from_slice(&fs::read(out).expect("the JSON file")).expect("JSON");
    (directory, printed, json)
}

/// Tables of 200 to 800 entries on one and two threads.
fn small() -> TempDir {
    let subjects = "fastskip,fastskip-batch,memtable,memtable-batch,crossbeam-skiplist,btreemap,vec";
    measured("memtable", &["--entries", "200,400,800", "--threads", "1,2", "--subjects", subjects]).0
}

fn array<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().unwrap_or_else(|| panic!("{name} in {value}"))
}

fn names<'a>(values: &'a [Value], name: &str) -> Vec<&'a str> {
    values.iter().map(|value| value[name].as_str().unwrap_or_else(|| panic!("{name} in {value}"))).collect()
}

/// The workloads that a subject has to have done on 2,000 entries.
fn expected_samples(subject: &str, threads: u64) -> Vec<(&'static str, u64)> {
    let (batch, vec) = (subject.ends_with("-batch"), subject == "vec");
    let finds = !batch && !vec;
    let ordered = finds && subject != "hashmap";
    let all = [
        (true, "insert", 2000),
        (vec, "sort", 2000),
        (finds, "get", 2000),
        (batch, "get-many", 2000),
        (finds, "miss", 2000),
        (ordered, "scan", 2000 * threads),
        (ordered, "seek", 200),
        (ordered, "seek-one", 2000),
        (ordered && subject != MAY_FAIL, "reverse", 2000 * threads),
        (finds, "mixed", 2000),
        (finds, "mixed-95", 2000),
        (finds, "delete", 2000),
        (["fastskip", "memtable"].contains(&subject), "frozen-scan", 2000),
    ];
    all.into_iter().filter(|(able, ..)| *able).map(|(_, workload, operations)| (workload, operations)).collect()
}

fn check_rounds(printed: &str, cell: &Value, threads: u64) {
    let rounds = array(cell, "rounds");
    assert_eq!(names(rounds, "subject"), subjects());
    for round in rounds {
        let subject = round["subject"].as_str().expect("a name");
        if subject == MAY_FAIL && round["failed"].is_string() {
            assert!(printed.contains("fastskip-published: 1 of 1 rounds failed: "), "{printed}");
            continue;
        }
        let sample = |of: &Value| (of["operations"].as_u64().expect("a count"), of["ns"].as_u64() > Some(0));
        let samples = array(round, "samples");
        let (operations, timed): (Vec<_>, Vec<_>) = samples.iter().map(sample).unzip();
        let samples: Vec<_> = names(samples, "workload").into_iter().zip(operations).collect();
        assert_eq!(samples, expected_samples(subject, threads), "{round}");
        assert!(!timed.contains(&false) && round["memory"]["payload"].as_u64() > Some(2000 * 100), "{round}");
    }
}

#[test]
fn every_subject_runs_and_every_round_is_in_the_json() {
    // Catches a subject that loses, doubles or misplaces records, a workload left out, operations miscounted, a round that is
    // lost between processes, and a file that does not say what was measured.
    let matrix =
        ["--entries", "2000", "--keys", "random,sequential,paths", "--threads", "1,3", "--access", "uniform,zipfian"];
    let (directory, printed, json) = measured("memtable", &matrix);
    let cells = array(&json, "cells");
    let shape = |of: &Value| ["keys", "access", "threads"].map(|name| of["shape"][name].to_string()).join(" ");
    let shapes: Vec<_> = cells.iter().map(|cell| shape(cell).replace('"', "")).collect();
    let of_keys = |keys| ["uniform 1", "uniform 3", "zipfian 1", "zipfian 3"].map(|rest| format!("{keys} {rest}"));
    assert_eq!(shapes, ["random", "sequential", "paths"].map(of_keys).concat());
    for cell in cells {
        assert_eq!(cell["shape"]["entries"], 2000);
        check_rounds(&printed, cell, cell["shape"]["threads"].as_u64().expect("a number"));
    }
    assert!(json["machine"]["cores"].as_u64() > Some(0) && json["date"].is_string(), "{json}");
    assert_eq!((&json["rounds"], &json["preset"]), (&1.into(), &Value::Null));
    assert!(subjects().iter().all(|subject| printed.contains(subject)), "{printed}");
    assert!(printed.contains("2,000 entries, paths, values of 100 bytes, 3 threads\n"), "{printed}");
    assert_eq!(fs::read_dir(directory.path()).expect("a directory").count(), 1);
}

#[test]
fn keys_memory_and_pages_of_every_kind_are_measured_under_their_names() {
    // Catches an argument that files or processes call by another name.
    let line = "--entries 300 --subjects fastskip,memtable,btreemap --keys descending,urls --backing untouched --pages huge,small";
    let (_, printed, json) = measured("memtable", &line.split(' ').collect::<Vec<_>>());
    let shape =
        |of: &Value| ["keys", "backing", "pages"].map(|name| of["shape"][name].as_str().unwrap_or("").to_owned());
    let shapes: Vec<_> = array(&json, "cells").iter().map(|cell| shape(cell).join(" ")).collect();
    let of_keys = |keys| ["huge", "small"].map(|pages| format!("{keys} untouched {pages}"));
    assert_eq!(shapes, ["descending", "urls"].map(of_keys).concat());
    assert!(
        printed.contains("300 entries, urls, values of 100 bytes, 1 thread, memory not touched before, small pages\n")
    );
}

#[test]
fn figures_compare_with_the_best_peer() {
    // Catches ratios that do not follow from the rounds in the same file, on the screen or in the README's table.
    let subjects = ["--subjects", "memtable,crossbeam-skiplist,btreemap,vec", "--workloads", "insert,scan"];
    let (directory, _, json) = measured("memtable", &[&["--entries", "2000"], &subjects[..]].concat());
    let table = done(&["report", "--readme", text(&directory.path().join("out.json"))]);
    assert!(table.starts_with("| ns per operation | memtable | crossbeam-skiplist | btreemap |"), "{table}");
    for (workload, row) in [("insert", "| insert |"), ("scan", "| scan, an entry |")] {
        let figure = |subject: &&str| {
            let of = |figure: &&Value| figure["workload"] == workload && figure["subject"] == *subject;
            array(&json["cells"][0], "figures").iter().find(of).expect("a figure")
        };
        let figures = ["memtable", "crossbeam-skiplist", "btreemap"].each_ref().map(figure);
        let [ours, list, tree] = figures.map(|of| of["ns_per_operation"]["median"].as_f64().expect("a median"));
        let close = |ratio: &Value, expected: f64| (ratio.as_f64().expect("a ratio") / expected - 1.0).abs() < 1e-9;
        assert!(close(&figures[0]["times_best_skip_list_peer"], list / ours), "{json}");
        assert!(close(&figures[0]["times_best_peer"], list.min(tree) / ours), "{json}");
        let row = table.lines().find(|line| line.starts_with(row)).expect("a row");
        assert!(row.ends_with(&format!("| **{:.1}x** |", list / ours)), "{row}");
    }
    let source = "2,000 entries, random keys of 16 bytes, values of 100 bytes, 1 thread; medians of 1 rounds";
    assert!(table.contains(source) && table.contains("NOT OPTIMISED") == cfg!(debug_assertions), "{table}");
}

#[test]
fn presets_run_in_small_and_goals_say_what_they_came_to() {
    // Catches a preset with a cell that no process understands, and counts that are in no file or on no page.
    let ours = ["--at-most", "300", "--subjects", "fastskip,fastskip-batch,memtable,memtable-batch,vec"];
    for preset in ["published", "engines", "goals", "patterns"] {
        let (directory, printed, json) = measured("memtable", &[&["--preset", preset], &ours[..]].concat());
        assert_eq!((&json["preset"], array(&json, "cells").is_empty()), (&preset.into(), preset == "patterns"));
        assert_eq!(printed.contains("\nN9: not measured\n"), preset == "goals", "{printed}");
        if preset == "patterns" {
            let costs = array(&json, "patterns");
            assert!(costs.iter().all(|cost| cost["mended"]["nodes"].as_f64() >= Some(1.0)), "{json}");
            let out = directory.path().join("page");
            done(&["report", text(&directory.path().join("out.json")), "--out", text(&out)]);
            let page = fs::read_to_string(out.join("index.html")).expect("a page");
            assert_eq!(page.matches("<td>trailing-zeros</td>").count(), costs.len() / 10);
            assert!(printed.contains("interleaved-runs") && printed.contains("tables of 300\n"), "{printed}");
        }
    }
}

/// Checks that every tag is closed in its order.
#[track_caller]
fn check_tags(markup: &str) {
    let mut open: Vec<&str> = Vec::new();
    for tag in markup.split('<').skip(1) {
        let (tag, _) = tag.split_once('>').unwrap_or_else(|| panic!("no end of <{tag}"));
        let name = tag.split_whitespace().next().unwrap_or_default().trim_end_matches('/');
        if let Some(closed) = name.strip_prefix('/') {
            assert_eq!(open.pop(), Some(closed), "{tag}");
        } else if !tag.ends_with('/') && !name.starts_with('!') && !["meta", "br"].contains(&name) {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn the_page_holds_every_plot_and_needs_no_other_file() {
    // Catches a page that is empty, broken, or blank where the network is missing, and a table without a ratio to peers.
    let directory = small();
    let (file, out) = (directory.path().join("out.json"), directory.path().join("made/here"));
    let printed = done(&["report", text(&file), "--out", text(&out)]);
    assert_eq!(printed.trim(), text(&out.join("index.html")));
    let page = fs::read_to_string(out.join("index.html")).expect("a page");
    check_tags(&page);
    for outside in ["http://", "https://", "src=", "@import", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
    let mut plots = 0;
    for file in fs::read_dir(&out).expect("a directory").flatten().filter(|file| file.file_name() != "index.html") {
        let svg = fs::read_to_string(file.path()).expect("a plot");
        check_tags(&svg);
        assert!(svg.starts_with("<svg ") && svg.contains(" xmlns="), "{file:?}");
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{file:?}");
        plots += 1;
    }
    assert_eq!(page.matches("<svg").count(), plots);
    for name in ["compared-insert", "growth-random-get", "threads-mixed"] {
        assert!(out.join(format!("{name}.svg")).is_file(), "{name}");
    }
    for name in page.split("var(").skip(1).filter_map(|rest| rest.split(')').next()) {
        assert!(page.contains(&format!("{name}: ")), "{name}");
    }
    let said =
        ["<b>N9</b>", "<td>N9</td>", "not measured", "InlineSkipList", "How often writers met", "memtable-batch"];
    assert!(said.iter().all(|said| page.contains(said)));
    assert_eq!(page.contains("Not optimised"), cfg!(debug_assertions));
    let table = done(&["report", "--readme", text(&file)]);
    assert!(["| get, 256 at a time |", "| delete |", "800 entries, random keys"].iter().all(|row| table.contains(row)));
}

#[test]
fn scaling_prints_what_is_shared_and_how_threads_fare() {
    // Catches a table of sources that does not belong to the run, and a run that `report` cannot read.
    let subjects = "memtable,memtable-batch,crossbeam-skiplist";
    let (directory, printed, _) = measured("scaling", &["--entries", "500", "--subjects", subjects]);
    let expected =
        ["insert, hot", "seed of heights and length", "16 thr.", "Millions of operations a second", "failed CAS"];
    assert!(expected.iter().all(|said| printed.contains(said)), "{printed}");
    done(&["report", "--readme", text(&directory.path().join("out.json"))]);
}

#[test]
fn wrong_use_is_refused_with_2_before_anything_runs_or_is_written() {
    // Catches a page about nothing, a report that silently does nothing, and hours of measuring towards a file that cannot
    // be written. What else `memtable` refuses is tested beside its plan.
    let directory = small();
    let at = |name: &str| text(&directory.path().join(name)).to_owned();
    let file = |name: &str, bytes: &[u8]| {
        fs::write(at(name), bytes).expect("written");
        at(name)
    };
    let (good, out) = (at("out.json"), at("out"));
    let good_text = fs::read_to_string(&good).expect("read");
    let spoilt = |name: &str, from: &str, to: &str| file(name, good_text.replace(from, to).as_bytes());
    let empty = format!("{}\"cells\":[]}}", good_text.split("\"cells\"").next().unwrap_or_default());
    for (wrong, message) in [
        (at("missing.json"), "cannot read"),
        (at(""), "cannot read"),
        (file("binary.json", &[0xff, 0xfe, 0]), "cannot read"),
        (file("half.json", &good_text.as_bytes()[..good_text.len() / 2]), "EOF"),
        (file("other.json", b"{\"benchmark\": 7}"), "is no result of memtable --json: invalid type"),
        (file("list.json", b"[]"), "is no result"),
        (spoilt("subject.json", "btreemap", "rocksdb"), "unknown variant `rocksdb`"),
        (spoilt("text.json", "\"entries\":200", "\"entries\":\"many\""), "invalid type"),
    ] {
        // Behind a file that is right: all are read before anything is written.
        refused(&["report", &good, &wrong, "--out", &out], message);
        assert!(!Path::new(&out).exists(), "{wrong}");
    }
    for (line, message) in [
        (&["report", &file("empty.json", empty.as_bytes()), "--out", &out][..], "the files hold no measurement"),
        (&["report", &good], "--out"),
        (&["report", "--readme"], "IN.json"),
        (&["report", &good, "--readme", "--out", "x"], "cannot be used with"),
        (&["report", &good, "--out", &good], "it is not a directory"),
        (&["scaling", "--entries", "10"], "at most as many threads as entries"),
        (&["scaling", "--subjects", "rocksdb"], "rocksdb"),
        (&["scaling", "--json", "/dev/null/out.json"], "is not a directory"),
        (&["memtable", "--preset", "everything"], "everything"),
        (&["memtable", "--entries", "10,9000000000000M"], "do not fit in memory"),
        (&["memtable", "--json", "/dev/null/out.json"], "is not a directory"),
    ] {
        refused(line, message);
    }
}
