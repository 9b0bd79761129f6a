//! The commands, run as a program.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::{TempDir, tempdir};

/// The engines' peers that need no feature, and all else that takes part among engines.
const ENGINES: &str = "memtable hashmap vec mini-engine mini-engine-mmap mini-engine-vector mini-engine-tiered \
                       mini-engine-lazy-leveled mini-engine-partial fjall lmdb redb sled log";
const SUBJECTS: &str = "fastskip fastskip-batch memtable memtable-batch fastskip-published crossbeam-skiplist skl treeindex \
                        btreemap sharded-btreemap hashmap vec";
/// The published crate is known to crash: whether it does is no matter of this test.
const MAY_FAIL: &str = "fastskip-published";

/// The subjects that this build has.
fn subjects() -> Vec<&'static str> {
    SUBJECTS.split(' ').filter(|subject| *subject != "skl" || cfg!(feature = "skl")).collect()
}

/// Runs a command line, in which no argument has a space.
fn bench(line: &str) -> Output {
    let mut bench = Command::new(env!("CARGO_BIN_EXE_memtable-bench"));
    bench.args(line.split_whitespace()).stdin(Stdio::null()).output().expect("run")
}

/// Runs `line`; returns what was printed.
#[track_caller]
fn done(line: &str) -> String {
    let ran = bench(line);
    assert_eq!((ran.status.code(), &*ran.stderr), (Some(0), &b""[..]), "{line}: {ran:?}");
    String::from_utf8(ran.stdout).expect("text")
}

/// What one round of `line` wrote and printed.
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

/// Tables of 200 to 800 entries on one and two threads.
fn small() -> Measured {
    let subjects = "fastskip,fastskip-batch,memtable,memtable-batch,crossbeam-skiplist,btreemap,vec";
    measured(&format!("memtable --entries 200,400,800 --threads 1,2 --subjects {subjects}"))
}

fn array<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().unwrap_or_else(|| panic!("{name} in {value}"))
}

/// The workloads that a subject has to have done; those that find single keys also time single inserts.
fn expected_workloads(subject: &str) -> &'static str {
    match subject {
        "vec" => "insert sort",
        "fastskip-batch" | "memtable-batch" => "insert get-many",
        "hashmap" => "insert get miss mixed mixed-95 delete",
        "fastskip-published" => "insert get miss scan seek seek-one mixed mixed-95 delete",
        "fastskip" | "memtable" => "insert get miss scan seek seek-one reverse mixed mixed-95 delete frozen-scan",
        _ => "insert get miss scan seek seek-one reverse mixed mixed-95 delete",
    }
}

fn check_round(round: &Value, subject: &str, shape: &Value, printed: &str) {
    assert_eq!(round["subject"], subject);
    if subject == MAY_FAIL && round["failed"].is_string() {
        assert!(printed.contains("fastskip-published: 1 of 1 rounds failed: "), "{printed}");
        return;
    }
    let number = |of: &Value, name: &str| of[name].as_u64().unwrap_or_else(|| panic!("{name} in {of}"));
    let (entries, threads) = (number(shape, "entries"), number(shape, "threads"));
    let is_single = !subject.ends_with("-batch") && subject != "vec";
    let mut workloads = expected_workloads(subject).split(' ').chain(is_single.then_some("insert-latency"));
    for sample in array(round, "samples") {
        let workload = sample["workload"].as_str().expect("a name");
        let operations = match workload {
            "scan" | "reverse" => entries * threads,
            "seek" => entries / 10,
            _ => entries,
        };
        assert_eq!((Some(workload), number(sample, "operations")), (workloads.next(), operations), "{round}");
        assert!(number(sample, "ns") > 0, "{round}");
    }
    assert_eq!(workloads.next(), None, "{round}");
    let latency = |of: &str| round["latency"][of].as_f64();
    assert_eq!(latency("max") > Some(0.0) && latency("p50") <= latency("max"), is_single, "{round}");
    assert!(number(&round["memory"], "payload") > entries * number(shape, "value_len"), "{round}");
}

#[test]
fn every_subject_runs_on_every_shape_and_every_round_is_in_the_json() {
    // Catches a subject that loses, doubles or misplaces records, a workload left out, operations miscounted, a round that is
    // lost between processes, an argument that files or processes call by another name, and a file that does not say what was
    // measured.
    for (line, cells, fields, last, title) in [
        (
            "--entries 2000 --keys random,sequential,paths --threads 1,3 --access uniform,zipfian",
            12,
            ["keys", "threads", "access"],
            "\"paths\" 3 \"zipfian\"",
            "2,000 entries, paths, values of 100 bytes, 3 threads, zipfian access\n",
        ),
        (
            "--entries 300 --keys descending,urls --backing untouched --pages huge,small",
            4,
            ["keys", "backing", "pages"],
            "\"urls\" \"untouched\" \"small\"",
            "300 entries, urls, values of 100 bytes, 1 thread, memory not touched before, small pages\n",
        ),
    ] {
        let Measured { directory, printed, json, .. } = measured(&format!("memtable {line}"));
        assert_eq!(array(&json, "cells").len(), cells);
        for cell in array(&json, "cells") {
            assert_eq!(array(cell, "rounds").len(), subjects().len());
            for (round, subject) in array(cell, "rounds").iter().zip(subjects()) {
                check_round(round, subject, &cell["shape"], &printed);
                assert!(printed.contains(subject), "{printed}");
            }
        }
        assert_eq!(fields.map(|field| json["cells"][cells - 1]["shape"][field].to_string()).join(" "), last);
        assert!(json["machine"]["cores"].as_u64() > Some(0) && json["date"].is_string(), "{json}");
        assert_eq!((&json["rounds"], &json["preset"]), (&1.into(), &Value::Null));
        assert!(printed.contains(title), "{printed}");
        assert_eq!(fs::read_dir(directory.path()).expect("a directory").count(), 1);
    }
}

/// The workloads that an engine has to have done in a run of everything.
fn expected_of_engine(subject: &str) -> &'static str {
    match subject {
        "memtable" | "hashmap" => "put get miss",
        "vec" => "put",
        "mini-engine-mmap" => "get miss scan-10 scan-100 scan-10k",
        "mini-engine-vector" | "log" => "put load put-batch synced-put",
        "mini-engine-tiered" | "mini-engine-lazy-leveled" | "mini-engine-partial" => "overwrite",
        "mini-engine" | "fjall" | "rocksdb" | "leveldb" => concat!(
            "put load put-batch synced-put get miss scan-10 scan-100 scan-10k read-while-writing overwrite ",
            "ycsb-a ycsb-b ycsb-c ycsb-d ycsb-e ycsb-f replay open"
        ),
        _ => concat!(
            "put load put-batch synced-put get miss scan-10 scan-100 scan-10k read-while-writing overwrite ",
            "ycsb-a ycsb-b ycsb-c ycsb-d ycsb-e ycsb-f open"
        ),
    }
}

#[test]
fn every_engine_does_every_workload_and_the_page_shows_it() {
    // Catches an engine that loses or misplaces records, a workload left out, a goal without a figure or a verdict, and plots,
    // ratios and costs that are in no file or on no page.
    let Measured { directory, file, printed, json } = measured("engine --at-most 150");
    assert_eq!((&json["benchmark"], &json["preset"]), (&"engine".into(), &"engine".into()));
    let features = [("rocksdb", cfg!(feature = "rocksdb")), ("leveldb", cfg!(feature = "leveldb"))];
    let built = features.into_iter().filter_map(|(subject, is_built)| is_built.then_some(subject));
    for subject in ENGINES.split(' ').chain(built) {
        let of_subject = |cell: &Value| {
            array(cell, "rounds").iter().filter(|of| of["subject"] == subject).cloned().collect::<Vec<_>>()
        };
        let rounds: Vec<_> = array(&json, "cells").iter().flat_map(of_subject).collect();
        assert!(rounds.iter().all(|round| round["failed"].is_null()), "{rounds:?}");
        let done: Vec<_> = rounds.iter().flat_map(|round| array(round, "samples")).map(|of| &of["workload"]).collect();
        assert!(
            expected_of_engine(subject).split(' ').all(|workload| done.contains(&&workload.into())),
            "{subject}: {done:?}"
        );
        assert!(
            done.iter().all(|workload| expected_of_engine(subject).contains(workload.as_str().unwrap_or("?"))),
            "{done:?}"
        );
    }
    for said in [
        "a database with a cache of 128 MiB, memtables of 64 MiB",
        "nothing is compressed",
        "ours, µs",
        "ycsb-e",
        "write-amplification",
        "\nE1: ",
        "E10   met",
        "mini-engine open, random 150: itself",
    ] {
        assert!(printed.contains(said), "{said}: {printed}");
    }
    assert!(!printed.contains("\nN1: "), "{printed}");
    let out = directory.path().join("report");
    done(&format!("report {file} --out {}", out.display()));
    let page = fs::read_to_string(out.join("index.html")).expect("a page");
    check_tags(&page);
    for name in ["engine-put", "engine-ycsb-a", "engine-open", "stalls-put", "stalls-overwrite"] {
        let svg = fs::read_to_string(out.join(format!("{name}.svg"))).expect(name);
        check_tags(&svg);
        assert!(svg.contains("mini-engine") && !svg.contains("NaN") && !svg.contains("inf"), "{name}");
    }
    for said in [
        "Engines side by side",
        "Stalls",
        "mini-engine and each peer",
        "beside time",
        "<b>E7</b>",
        "How long single operations",
        "<title>mini-engine beside its peers</title>",
        "<h1>mini-engine beside its peers</h1>",
    ] {
        assert!(page.contains(said), "{said}");
    }
    assert!(!page.contains("InlineSkipList") && !page.contains("<b>N1</b>"));
}

#[test]
fn presets_run_in_small_and_goals_say_what_they_came_to() {
    // Catches a preset with a cell that no process understands, and counts that are in no file or on no page.
    for preset in ["published", "engines", "goals", "patterns"] {
        let ours = "--at-most 300 --subjects fastskip,fastskip-batch,memtable,memtable-batch,vec";
        let Measured { directory, file, printed, json } = measured(&format!("memtable --preset {preset} {ours}"));
        assert_eq!((&json["preset"], array(&json, "cells").is_empty()), (&preset.into(), preset == "patterns"));
        assert_eq!(printed.contains("\nN9: not measured\n"), preset == "goals", "{printed}");
        if preset == "patterns" {
            let costs = array(&json, "patterns");
            assert!(costs.iter().all(|cost| cost["mended"]["nodes"].as_f64() >= Some(1.0)), "{json}");
            done(&format!("report {file} --out {}", directory.path().display()));
            let page = fs::read_to_string(directory.path().join("index.html")).expect("a page");
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
    // Catches a page that is empty, broken, or blank where the network is missing, and a README's table without a ratio.
    let Measured { directory, file, .. } = small();
    let out = directory.path().join("made/here");
    assert_eq!(Path::new(done(&format!("report {file} --out {}", out.display())).trim()), out.join("index.html"));
    let page = fs::read_to_string(out.join("index.html")).expect("a page");
    check_tags(&page);
    for outside in ["http://", "https://", "src=", "@import", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
    let files: Vec<_> = fs::read_dir(&out).expect("a directory").flatten().map(|file| file.path()).collect();
    for plot in files.iter().filter(|file| file.extension().is_some_and(|svg| svg == "svg")) {
        let svg = fs::read_to_string(plot).expect("a plot");
        check_tags(&svg);
        assert!(svg.starts_with("<svg ") && svg.contains(" xmlns="), "{plot:?}");
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{plot:?}");
    }
    assert_eq!(page.matches("<svg").count(), files.len() - 1);
    for name in ["compared-insert", "growth-random-get", "threads-mixed"] {
        assert!(out.join(format!("{name}.svg")).is_file(), "{name}");
    }
    for name in page.split("var(").skip(1).filter_map(|rest| rest.split(')').next()) {
        assert!(page.contains(&format!("{name}: ")), "{name}");
    }
    let said = "<h1>fastskip beside its peers</h1>|<b>N9</b>|<td>N9</td>|not measured|InlineSkipList|How often writers met|memtable-batch|How long single inserts take";
    for said in said.split('|') {
        assert!(page.contains(said), "{said}");
    }
    assert_eq!(page.contains("Not optimised"), cfg!(debug_assertions));
    let table = done(&format!("report --readme {file}"));
    for said in [
        "| ns per operation | fastskip | memtable | crossbeam-skiplist | btreemap | fastest of ours to crossbeam-skiplist |\n",
        "| get, 256 at a time |",
        "x** |\n",
        "800 entries, random keys of 16 bytes",
        "medians of 1 rounds",
    ] {
        assert!(table.contains(said), "{said}: {table}");
    }
    assert_eq!(table.contains("NOT OPTIMISED"), cfg!(debug_assertions));
}

#[test]
fn scaling_prints_what_is_shared_and_how_threads_fare() {
    // Catches a table of sources that does not belong to the run, and a run that `report` cannot read.
    let run = measured("scaling --entries 500 --subjects memtable,memtable-batch,crossbeam-skiplist");
    for said in ["insert, hot", "heights and length", "16 thr.", "Millions of operations a second", "failed CAS"] {
        assert!(run.printed.contains(said), "{said}: {}", run.printed);
    }
    done(&format!("report --readme {}", run.file));
}

#[test]
fn wrong_use_is_refused_with_2_before_anything_runs_or_is_written() {
    // Catches a page about nothing, a report that silently does nothing, and hours of measuring towards a file that cannot
    // be written. What else `memtable` refuses is tested beside its plan.
    let Measured { directory, file: good, .. } = small();
    let at = |name: &str| directory.path().join(name).display().to_string();
    let text = fs::read_to_string(&good).expect("read");
    let empty = format!("{}\"cells\":[]}}", text.split("\"cells\"").next().unwrap_or_default());
    let out = at("out");
    // Behind a file that is right: all are read before anything is written.
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
        ("scaling --entries 10".into(), "at most as many threads as entries"),
        ("scaling --subjects fjall".into(), "none of the subjects is one of tables"),
        ("engine --at-most 100 --json /dev/null/out.json".into(), "is not a directory"),
        ("scaling --json /dev/null/out.json".into(), "is not a directory"),
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
