//! The command `memtable`, run as a program.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

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
    bench.arg("memtable").args(arguments).stdin(Stdio::null()).output().expect("run")
}

/// Runs the bench for one round; returns what it printed and wrote.
#[track_caller]
fn run(directory: &Path, arguments: &[&str]) -> (String, Value) {
    let out = directory.join("out.json");
    let out = out.to_str().expect("text");
    let ran = bench(&[&["--rounds", "1", "--json", out], arguments].concat());
    assert_eq!((ran.status.code(), &*ran.stderr), (Some(0), &b""[..]), "{ran:?}");
    let json = fs::read(out).expect("the JSON file");
    (String::from_utf8(ran.stdout).expect("text"), serde_json::from_slice(&json).expect("JSON"))
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
        let samples = array(round, "samples").iter();
        let samples: Vec<_> = samples
            .map(|of| (of["workload"].as_str().expect("a name"), of["operations"].as_u64().expect("a count")))
            .collect();
        assert_eq!(samples, expected_samples(subject, threads), "{round}");
        assert!(array(round, "samples").iter().all(|sample| sample["ns"].as_u64() > Some(0)), "{round}");
        assert!(round["memory"]["payload"].as_u64() > Some(2000 * 100), "{round}");
    }
}

#[test]
fn every_subject_runs_and_every_round_is_in_the_json() {
    // Catches a subject that loses, doubles or misplaces records, a workload left out, operations miscounted, a round that is
    // lost between processes, and a file that does not say what was measured.
    let directory = tempfile::tempdir().expect("a directory");
    let matrix =
        ["--entries", "2000", "--keys", "random,sequential,paths", "--threads", "1,3", "--access", "uniform,zipfian"];
    let (printed, json) = run(directory.path(), &matrix);
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
    let left: Vec<_> = fs::read_dir(directory.path()).expect("a directory").collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn figures_compare_with_the_best_peer() {
    // Catches ratios that do not follow from the rounds in the same file.
    let directory = tempfile::tempdir().expect("a directory");
    let subjects = ["--subjects", "memtable,crossbeam-skiplist,btreemap", "--workloads", "insert,scan"];
    let (_, json) = run(directory.path(), &[&["--entries", "2000"], &subjects[..]].concat());
    let figures = array(&json["cells"][0], "figures");
    assert_eq!(names(figures, "workload"), ["insert", "insert", "insert", "scan", "scan", "scan"]);
    for of_workload in figures.chunks(3) {
        let median = |figure: &Value| figure["ns_per_operation"]["median"].as_f64().expect("a median");
        let [ours, skip_list, tree] = [0, 1, 2].map(|index| median(&of_workload[index]));
        let close = |ratio: &Value, expected: f64| (ratio.as_f64().expect("a ratio") / expected - 1.0).abs() < 1e-9;
        assert!(close(&of_workload[0]["times_best_skip_list_peer"], skip_list / ours), "{of_workload:?}");
        assert!(close(&of_workload[0]["times_best_peer"], skip_list.min(tree) / ours), "{of_workload:?}");
    }
}

#[test]
fn presets_run_in_small_and_goals_say_what_they_came_to() {
    // Catches a preset with a cell that no process understands.
    let directory = tempfile::tempdir().expect("a directory");
    let ours = ["--at-most", "300", "--subjects", "fastskip,fastskip-batch,memtable,memtable-batch,vec"];
    for preset in ["published", "engines", "goals"] {
        let (printed, json) = run(directory.path(), &[&["--preset", preset], &ours[..]].concat());
        assert_eq!((&json["preset"], array(&json, "cells").is_empty()), (&preset.into(), false));
        assert_eq!(printed.contains("\nM10: not measured\n"), preset == "goals", "{printed}");
    }
}

#[test]
fn wrong_use_is_refused_with_2_before_anything_runs() {
    // Catches a run of hours that ends in a message, and a script that takes it for done.
    for (arguments, message) in [
        (&["--subjects", "fastskip,rocksdb"][..], "rocksdb"),
        (&["--workloads", "compact"], "compact"),
        (&["--preset", "everything"], "everything"),
        (&["--preset", "goals", "--entries", "10"], "cannot be used with"),
        (&["--rounds", "0"], "0 is not in 1.."),
        (&["--entries", "0"], "expected at least 1, found 0"),
        (&["--entries", "9000000000000M"], "do not fit in memory"),
        (&["--entries", "10,9000000000000M"], "do not fit in memory"),
        (&["--entries", "10", "--threads", "11"], "at most as many threads as entries"),
        (&["--json", "/dev/null/out.json"], "is not a directory"),
    ] {
        let ran = bench(arguments);
        let said = String::from_utf8_lossy(&ran.stderr);
        assert_eq!((ran.status.code(), &*ran.stdout), (Some(2), &b""[..]), "{arguments:?}: {said}");
        assert!(said.contains(message), "{arguments:?}: {said}");
    }
}
