//! The commands, run as a program.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::tempdir;

/// The published crate is known to crash; the tests accept that.
const MAY_FAIL: &str = "fastskip-published";

/// Runs a command line, in which no argument has a space.
fn bench(line: &str) -> Output {
    let mut bench = Command::new(env!("CARGO_BIN_EXE_memtable-bench"));
    bench.args(line.split_whitespace()).stdin(Stdio::null()).output().expect("run")
}

/// Runs `line`; returns its output.
#[track_caller]
fn done(line: &str) -> String {
    let ran = bench(line);
    assert_eq!(ran.status.code(), Some(0), "{line}: {ran:?}");
    String::from_utf8(ran.stdout).expect("text")
}

fn array<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().unwrap_or_else(|| panic!("{name} in {value}"))
}

/// One round of `line`: its output, its results, and the page of its file, which needs no other file.
fn measured(line: &str) -> (String, Value, String) {
    let directory = tempdir().expect("a directory");
    let file = directory.path().join("out.json").display().to_string();
    let printed = done(&format!("run {line} --rounds 1 --json {file}"));
    let json = serde_json::from_slice(&fs::read(&file).expect("the JSON file")).expect("JSON");
    (printed, json, page(&file))
}

/// The page that `report` makes of these files.
fn page(files: &str) -> String {
    let directory = tempdir().expect("a directory");
    let out = directory.path().join("made/here");
    let made = done(&format!("report {files} --out {} --book ../plots.html", out.display()));
    assert_eq!(Path::new(made.trim()), out.join("index.html"));
    let page = fs::read_to_string(out.join("index.html")).expect("a page");
    for outside in ["https://", "src=", "@import", "url(", "NaN", "inf\""] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert!(page.contains("<nav><a href=\"../plots.html\">") && page.contains("<svg"), "{page}");
    page
}

/// Checks that each subject of the run has a sample for each of its workloads, and a place on the page.
#[track_caller]
fn check(line: &str) -> BTreeSet<String> {
    let (printed, json, page) = measured(line);
    let mut all = BTreeSet::new();
    for cell in array(&json, "cells") {
        let mut found = BTreeSet::new();
        for round in array(cell, "rounds") {
            let subject = round["subject"].as_str().expect("a name");
            assert!(round["failed"].is_null() || subject == MAY_FAIL, "{round:?}");
            let samples = round["samples"].as_array().map_or(0, Vec::len);
            assert!(samples > 0 || subject == MAY_FAIL, "{round:?}");
            assert!(printed.contains(subject) && page.contains(subject), "{subject}: {printed}");
            found.extend(
                array(round, "samples")
                    .iter()
                    .map(|of| format!("{subject} {}", of["workload"].as_str().unwrap_or_default())),
            );
        }
        let workloads = found.iter().filter_map(|of| of.split(' ').nth(1)).collect::<BTreeSet<_>>();
        assert!(
            array(cell, "workloads").iter().all(|of| workloads.contains(of.as_str().unwrap_or_default())),
            "{cell}"
        );
        all.extend(found);
    }
    assert!(json["machine"]["cores"].as_u64() > Some(0) && json["date"].is_string() && json["rounds"] == 1, "{json}");
    all
}

#[test]
fn every_table_does_every_workload_on_every_shape() {
    // Catches a subject that loses, doubles or misplaces records, an omitted workload, a round that is lost between processes, an argument whose name
    // differs in files or processes, and a plot, table or ratio that is missing.
    check("--entries 400 --keys random,paths --threads 1,3 --access uniform,zipfian");
    let found = check("--entries 200,300 --keys descending,sequential,urls --key-len 20 --value-len 8");
    for one in
        ["memtable frozen-scan", "memtable-batch get-many", "vec sort", "hashmap miss", "btreemap insert-latency"]
    {
        assert!(found.contains(one), "{one}: {found:?}");
    }
}

#[test]
fn every_engine_does_every_workload() {
    // As above, for engines, and for cells of presets.
    let mut found = check("engines --at-most 20");
    // The number of transfers grows with the accounts.
    found.extend(check("--store engine --workloads put,transactions --entries 2,3 --threads 2"));
    for one in [
        "mini-engine replay",
        "mini-engine-tiered overwrite",
        "mini-engine-mmap scan-100",
        "memtable put",
        "log load",
        "mini-engine transactions",
    ] {
        assert!(found.contains(one), "{one}: {found:?}");
    }
}

#[test]
fn recorded_runs_can_be_drawn_and_are_checked_against_the_goals() {
    // Catches a change of the file's format, or of a name, after which the runs of the book's pages can no longer be read, and a verdict that changes.
    for (runs, goal) in
        [("blocks", "N1 fastskip insert"), ("engines", "E1 mini-engine put"), ("reads", "E5 mini-engine")]
    {
        let directory = format!("{}/results/{runs}", env!("CARGO_MANIFEST_DIR"));
        let files = fs::read_dir(directory).expect("results").flatten().map(|file| file.path().display().to_string());
        let page = page(&files.collect::<Vec<_>>().join(" "));
        assert!(page.contains(goal) && page.contains("2 cores, AMD EPYC"), "{goal}");
    }
    let text = done(&format!("report {}/results/engines-before/full.json", env!("CARGO_MANIFEST_DIR")));
    let verdict = |goal: &str| {
        let row = text.lines().find(|line| line.contains(goal)).unwrap_or_else(|| panic!("{goal}: {text}"));
        row.split('|').nth(2).map(|of| of.trim().to_owned())
    };
    for (goal, expected) in [
        ("E1 mini-engine put random 600K, rocksdb", "MISSED"),
        ("E1 mini-engine put random 3M, rocksdb", "met"),
        ("E10 mini-engine put random 600K, small-cache, memory", "met"),
    ] {
        assert_eq!(verdict(goal).as_deref(), Some(expected), "{goal}");
    }
}

#[test]
fn wrong_use_is_refused_with_2_before_anything_runs_or_is_written() {
    // Catches an empty page, a report that silently does nothing, and a long run whose file cannot be written.
    let directory = tempdir().expect("a directory");
    let at = |name: &str| directory.path().join(name).display().to_string();
    let good = format!("{}/results/instructions/sizes.json", env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(&good).expect("read");
    fs::write(at("subject"), text.replace("btreemap", "leveldb4")).expect("written");
    fs::write(at("empty"), format!("{}\"cells\":[]}}", text.split("\"cells\"").next().unwrap_or_default()))
        .expect("written");
    for (line, message) in [
        (format!("report {good} {} --out {}", at("missing"), at("out")), "cannot read"),
        (format!("report {}", at("subject")), "unknown variant `leveldb4`"),
        (format!("report {} --out {}", at("empty"), at("out")), "the files hold no measurement"),
        (format!("report {good} --out {good}"), "cannot write"),
        ("report".into(), "IN.json"),
        ("run tables --entries 10".into(), "a preset takes only"),
        ("run engines --at-most 100 --json /dev/null/out.json".into(), "cannot write"),
        ("run --rounds 0".into(), "0 is not in 1.."),
    ] {
        let ran = bench(&line);
        let said = String::from_utf8_lossy(&ran.stderr);
        assert_eq!((ran.status.code(), &*ran.stdout), (Some(2), &b""[..]), "{line}: {said}");
        assert!(said.contains(message), "{line}: {said}");
    }
    assert!(!Path::new(&at("out")).exists());
}
