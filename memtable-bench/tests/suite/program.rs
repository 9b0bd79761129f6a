//! The commands, run as a program.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::{TempDir, tempdir};

const PEERS: bool = cfg!(feature = "peers");
/// The published crate is known to crash; this test accepts that.
const MAY_FAIL: &str = "fastskip-published";

/// The tables of this build, with the workloads of each; tables that find single keys also time single inserts.
fn tables() -> Vec<(&'static str, String)> {
    let find = "insert get miss mixed mixed-95 delete insert-latency";
    let forward = "insert get miss scan seek seek-one mixed mixed-95 delete insert-latency";
    let ordered = forward.replace("seek-one", "seek-one reverse");
    let ends = ordered.replace("seek seek-one ", "");
    let frozen = ordered.replace("delete", "delete frozen-scan");
    let all = [
        (true, "fastskip", &*frozen),
        (true, "fastskip-batch", "insert get-many"),
        (true, "memtable", &frozen),
        (true, "memtable-batch", "insert get-many"),
        (PEERS, MAY_FAIL, forward),
        (PEERS, "crossbeam-skiplist", &ordered),
        (cfg!(feature = "skl"), "skl", &ordered),
        (PEERS, "treeindex", &ordered),
        (PEERS, "masstree", &ends),
        (true, "btreemap", &ordered),
        (true, "sharded-btreemap", &ordered),
        (true, "hashmap", find),
        (true, "vec", "insert sort"),
    ];
    all.into_iter().filter(|of| of.0).map(|(_, subject, able)| (subject, able.to_owned())).collect()
}

/// The engines of this build, with the workloads of each in a full run.
fn engines() -> Vec<(&'static str, String)> {
    let tree = "put load put-batch synced-put get miss scan-10 scan-100 scan-10k read-while-writing overwrite \
                ycsb-a ycsb-b ycsb-c ycsb-d ycsb-e ycsb-f open";
    let lsm = tree.replace("open", "replay open");
    let write = "put load put-batch synced-put";
    let all = [
        (true, "memtable", "put get miss"),
        (true, "hashmap", "put get miss"),
        (true, "vec", "put"),
        (true, "mini-engine", &*lsm),
        (true, "mini-engine-mmap", "get miss scan-10 scan-100 scan-10k"),
        (true, "mini-engine-vector", write),
        (true, "mini-engine-tiered", "overwrite"),
        (true, "mini-engine-lazy-leveled", "overwrite"),
        (true, "mini-engine-partial", "overwrite"),
        (PEERS, "fjall", &lsm),
        (cfg!(feature = "rocksdb"), "rocksdb", &lsm),
        (cfg!(feature = "leveldb"), "leveldb", &lsm),
        (PEERS, "lmdb", tree),
        (PEERS, "redb", tree),
        (PEERS, "sled", tree),
        (true, "log", write),
    ];
    all.into_iter().filter(|of| of.0).map(|(_, subject, able)| (subject, able.to_owned())).collect()
}

/// Runs a command line, in which no argument has a space.
fn bench(line: &str) -> Output {
    let mut bench = Command::new(env!("CARGO_BIN_EXE_memtable-bench"));
    bench.args(line.split_whitespace()).stdin(Stdio::null()).output().expect("run")
}

/// Runs `line`; returns its output.
#[track_caller]
fn done(line: &str) -> String {
    let ran = bench(line);
    assert_eq!((ran.status.code(), &*ran.stderr), (Some(0), &b""[..]), "{line}: {ran:?}");
    String::from_utf8(ran.stdout).expect("text")
}

/// The written file and the output of one round of `line`.
struct Measured {
    directory: TempDir,
    file: String,
    printed: String,
    json: Value,
}

#[track_caller]
fn measured(line: &str) -> Measured {
    let directory = tempdir().expect("a directory");
    let file = directory.path().join("out.json").display().to_string();
    let printed = done(&format!("{line} --rounds 1 --json {file}"));
    let json = serde_json::from_slice(&fs::read(&file).expect("the JSON file")).expect("JSON");
    Measured { directory, file, printed, json }
}

/// The page of results, which contains every plot and needs no other file, and the names of the plot files beside it.
#[track_caller]
fn page_of(files: &str) -> (String, Vec<String>) {
    let directory = tempdir().expect("a directory");
    let out = directory.path().join("made/here");
    let made = done(&format!("report {files} --out {} --book ../plots.html", out.display()));
    assert_eq!(Path::new(made.trim()), out.join("index.html"));
    let page = fs::read_to_string(out.join("index.html")).expect("a page");
    check_tags(&page);
    assert!(page.contains("<nav><a href=\"../plots.html\">"), "no way back to the book");
    for outside in ["http://", "https://", "src=", "@import", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
    let mut plots = Vec::new();
    for path in fs::read_dir(&out).expect("a directory").flatten().map(|file| file.path()) {
        if path.extension().is_some_and(|of| of == "svg") {
            let svg = fs::read_to_string(&path).expect("a plot");
            check_tags(&svg);
            assert!(svg.starts_with("<svg ") && svg.contains(" xmlns="), "{path:?}");
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{path:?}");
            plots.push(path.file_stem().expect("a name").display().to_string());
        }
    }
    assert_eq!(page.matches("<svg").count(), plots.len());
    (page, plots)
}

/// Checks that `text` contains all parts of `said`, which are separated by `|`.
#[track_caller]
fn check_says(text: &str, said: &str) {
    said.split('|').for_each(|said| assert!(text.contains(said), "{said}: {text}"));
}

/// Tables of 200 to 800 entries on one and two threads.
fn small() -> Measured {
    let peer = if PEERS { ",crossbeam-skiplist" } else { "" };
    let subjects = format!("fastskip,fastskip-batch,memtable,memtable-batch,btreemap,vec{peer}");
    measured(&format!("memtable --entries 200,400,800 --threads 1,2 --subjects {subjects}"))
}

fn array<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().unwrap_or_else(|| panic!("{name} in {value}"))
}

fn check_round(round: &Value, subject: &str, able: &str, shape: &Value, printed: &str) {
    assert_eq!(round["subject"], subject);
    if subject == MAY_FAIL && round["failed"].is_string() {
        assert!(printed.contains("fastskip-published: 1 of 1 rounds failed: "), "{printed}");
        return;
    }
    let number = |of: &Value, name: &str| of[name].as_u64().unwrap_or_else(|| panic!("{name} in {of}"));
    let (entries, threads) = (number(shape, "entries"), number(shape, "threads"));
    let done: Vec<_> =
        array(round, "samples").iter().map(|sample| sample["workload"].as_str().expect("a name")).collect();
    assert_eq!(done.join(" "), able, "{subject}");
    for (sample, workload) in array(round, "samples").iter().zip(done) {
        let operations = match workload {
            "scan" | "reverse" => entries * threads,
            "seek" => entries.div_ceil(10),
            _ => entries,
        };
        assert!(number(sample, "operations") == operations && number(sample, "ns") > 0, "{sample}");
        let latency = |of: &str| sample["latency"][of].as_f64();
        let is_timed = latency("max") > Some(0.0) && latency("p50") <= latency("max");
        assert_eq!(is_timed, workload == "insert-latency", "{sample}");
    }
}

#[test]
fn every_subject_runs_on_every_shape_and_every_round_is_in_the_json() {
    // Catches a subject that loses, doubles or misplaces records, an omitted workload, miscounted operations, a round that is
    // lost between processes, an argument whose name differs in files or processes, and a file that does not describe the
    // measurement.
    for (line, cells, fields, last, title) in [
        (
            "--entries 2000 --keys random,sequential,paths --threads 1,3 --access uniform,zipfian",
            12,
            ["keys", "threads", "access"],
            "\"paths\" 3 \"zipfian\"",
            "2,000 entries, paths, values of 100 bytes, 3 threads, zipfian access\n",
        ),
        (
            "--entries 300 --keys descending,urls",
            2,
            ["keys", "threads", "value_len"],
            "\"urls\" 1 100",
            "300 entries, urls, values of 100 bytes, 1 thread\n",
        ),
    ] {
        let Measured { directory, printed, json, .. } = measured(&format!("memtable {line}"));
        assert_eq!(array(&json, "cells").len(), cells);
        for cell in array(&json, "cells") {
            assert_eq!(array(cell, "rounds").len(), tables().len());
            for (round, (subject, able)) in array(cell, "rounds").iter().zip(tables()) {
                check_round(round, subject, &able, &cell["shape"], &printed);
                assert!(printed.contains(subject), "{printed}");
            }
        }
        assert_eq!(fields.map(|field| json["cells"][cells - 1]["shape"][field].to_string()).join(" "), last);
        assert!(json["machine"]["cores"].as_u64() > Some(0) && json["date"].is_string(), "{json}");
        assert_eq!((&json["rounds"], &json["preset"]), (&1.into(), &Value::Null));
        check_says(&printed, &format!("{title}|own-overhead  failed-cas|p99.9 / p50|skip list peer"));
        assert_eq!(printed.contains("add --features peers"), !PEERS);
        assert_eq!(fs::read_dir(directory.path()).expect("a directory").count(), 1);
    }
}

#[test]
fn every_engine_does_every_workload_and_the_page_shows_it() {
    // Catches an engine that loses or misplaces records, an omitted workload, a goal without a figure or a verdict, and plots,
    // ratios and costs that are missing in the file or on the page.
    let Measured { directory: _directory, file, printed, json } = measured("engine --at-most 150");
    assert_eq!((&json["benchmark"], &json["preset"]), (&"engine".into(), &"engine".into()));
    for (subject, able) in engines() {
        let rounds = array(&json, "cells").iter().flat_map(|cell| array(cell, "rounds"));
        let rounds: Vec<_> = rounds.filter(|of| of["subject"] == subject).collect();
        assert!(rounds.iter().all(|round| round["failed"].is_null()), "{rounds:?}");
        let done = rounds.iter().flat_map(|round| array(round, "samples"));
        let done: BTreeSet<_> = done.filter_map(|of| of["workload"].as_str()).collect();
        assert_eq!(done, able.split_whitespace().collect::<BTreeSet<_>>(), "{subject}");
    }
    let said = "a database with a cache of 128 MiB, memtables of 64 MiB|nothing is compressed|ours, µs|ycsb-e|write-amplification\
                |\nE1: |E10   met|mini-engine open, random 150: itself";
    check_says(&printed, said);
    assert!(!printed.contains("\nN1: "), "{printed}");
    let (page, plots) = page_of(&file);
    for name in ["engine-put", "engine-ycsb-a", "engine-open", "stalls-put", "stalls-overwrite"] {
        assert!(plots.iter().any(|plot| plot == name), "{name}");
    }
    let said = "Engines side by side|Stalls|mini-engine and each peer|beside time|<b>E7</b>|How long single operations\
                |<title>mini-engine beside its peers</title>|<h1>mini-engine beside its peers</h1>";
    check_says(&page, said);
    assert!(!page.contains("<b>N1</b>"));
}

#[test]
fn presets_run_in_small_and_goals_say_what_they_came_to() {
    // Catches a preset with a cell that the round's process cannot parse, and a lost goal.
    let ours = "--at-most 300 --subjects fastskip,fastskip-batch,memtable,memtable-batch,vec";
    let Measured { printed, json, .. } = measured(&format!("memtable --preset goals {ours}"));
    assert_eq!(json["preset"], "goals");
    let goals = printed.lines().filter_map(|line| line.split_once(": ")).filter(|(name, _)| name.starts_with('N'));
    let goals: Vec<_> = goals.map(|(name, _)| name).filter(|name| name.len() < 4).collect();
    assert_eq!(goals.join(" "), "N1 N2 N3 N4 N5 N6 N7 N8 N9 N11", "{printed}");
    assert!(printed.contains("\nN9: not measured\n"), "{printed}");
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
    // Catches a page that is empty, broken, or blank without a network, and a README table without a ratio.
    let Measured { directory: _directory, file, .. } = small();
    let (page, plots) = page_of(&file);
    let headline = if PEERS { "compared-insert" } else { "growth-random-insert" };
    for name in [headline, "growth-random-get", "threads-mixed"] {
        assert!(plots.iter().any(|plot| plot == name), "{name}");
    }
    for name in page.split("var(").skip(1).filter_map(|rest| rest.split(')').next()) {
        assert!(page.contains(&format!("{name}: ")), "{name}");
    }
    let said = "<h1>fastskip beside its peers</h1>|<b>N9</b>|<td>N9</td>|not measured|failed-cas|memtable-batch|How long single operations take";
    check_says(&page, said);
    assert_eq!(page.contains("Not optimised"), cfg!(debug_assertions));
    if !PEERS {
        return refused(&format!("report --readme {file}"), "a skip list among the peers; found none");
    }
    let table = done(&format!("report --readme {file}"));
    let head = "| ns per operation | fastskip | memtable | crossbeam-skiplist | btreemap | fastest of ours to crossbeam-skiplist |\n";
    for said in
        [head, "| get, 256 at a time |", "x** |\n", "800 entries, random keys of 16 bytes", "medians of 1 rounds"]
    {
        assert!(table.contains(said), "{said}: {table}");
    }
    assert_eq!(table.contains("NOT OPTIMISED"), cfg!(debug_assertions));
}

#[test]
fn recorded_runs_can_be_drawn() {
    // Catches a change of the file's format, or of a name, after which the runs of the book's pages can no longer be read.
    for (runs, goal) in [("blocks", "<b>N1</b>"), ("engines", "<b>E1</b>"), ("reads", "<b>E5</b>")] {
        let directory = format!("{}/results/{runs}", env!("CARGO_MANIFEST_DIR"));
        let files = fs::read_dir(directory).expect("results").flatten().map(|file| file.path().display().to_string());
        check_says(&page_of(&files.collect::<Vec<_>>().join(" ")).0, &format!("{goal}|2 cores, AMD EPYC"));
    }
}

#[test]
fn wrong_use_is_refused_with_2_before_anything_runs_or_is_written() {
    // Catches an empty page, a report that silently does nothing, and a long run whose file cannot be written. The tests
    // of plans cover other refusals of `memtable`.
    let Measured { directory, file: good, .. } = small();
    let at = |name: &str| directory.path().join(name).display().to_string();
    let text = fs::read_to_string(&good).expect("read");
    let empty = format!("{}\"cells\":[]}}", text.split("\"cells\"").next().unwrap_or_default());
    let out = at("out");
    // Follows a valid file: all files are read before anything is written.
    for (name, bytes, message) in [
        ("missing", None, "cannot read"),
        ("binary", Some(&[0xff, 0xfe, 0][..]), "cannot read"),
        ("half", Some(&text.as_bytes()[..text.len() / 2]), "EOF"),
        (
            "subject",
            Some(text.replace("btreemap", "leveldb4").as_bytes()),
            "is no result of memtable --json: unknown variant `leveldb4`",
        ),
        ("empty", Some(empty.as_bytes()), ""),
    ] {
        bytes.into_iter().for_each(|bytes| fs::write(at(name), bytes).expect("written"));
        if !message.is_empty() {
            refused(&format!("report {good} {} --out {out}", at(name)), message);
        }
    }
    for (line, message) in [
        (format!("report {} --out {out}", at("empty")), "the files hold no measurement"),
        (format!("report {good}"), "--out"),
        ("report --readme".into(), "IN.json"),
        (format!("report {good} --readme --out x"), "cannot be used with"),
        (format!("report {good} --out {good}"), "it is not a directory"),
        ("memtable --subjects mini-engine".into(), "none of the subjects is one of tables"),
        ("engine --at-most 100 --json /dev/null/out.json".into(), "is not a directory"),
        ("memtable --entries 10,9000000000000M".into(), "do not fit in memory"),
        ("memtable --json /dev/null/out.json".into(), "is not a directory"),
    ] {
        refused(&line, message);
    }
    assert!(!Path::new(&out).exists());
}

#[track_caller]
fn refused(line: &str, message: &str) {
    let ran = bench(line);
    let said = String::from_utf8_lossy(&ran.stderr);
    assert_eq!((ran.status.code(), &*ran.stdout), (Some(2), &b""[..]), "{line}: {said}");
    assert!(said.contains(message), "{line}: {said}");
}
