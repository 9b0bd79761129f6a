//! The commands `report` and `scaling`, run as a program.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn bench(arguments: &[&str]) -> Output {
    let mut bench = Command::new(env!("CARGO_BIN_EXE_memtable-bench"));
    bench.args(arguments).stdin(Stdio::null()).output().expect("run")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("text")
}

/// Runs `arguments`, which write to `out`; returns what was printed.
#[track_caller]
fn done(arguments: &[&str]) -> String {
    let ran = bench(arguments);
    assert_eq!((ran.status.code(), &*ran.stderr), (Some(0), &b""[..]), "{arguments:?}: {ran:?}");
    String::from_utf8(ran.stdout).expect("text")
}

/// Measures tables of 200 to 800 entries on one and two threads.
fn measured(out: &Path) {
    let subjects = "fastskip,fastskip-batch,memtable,memtable-batch,crossbeam-skiplist,btreemap,vec";
    let matrix = ["--entries", "200,400,800", "--threads", "1,2", "--rounds", "1", "--subjects", subjects];
    done(&[&["memtable", "--json", text(out)], &matrix[..]].concat());
}

/// The names of tags that are opened and not closed again, in their order.
fn open_tags(markup: &str) -> Vec<String> {
    let mut open = Vec::new();
    for tag in markup.split('<').skip(1) {
        let (tag, _) = tag.split_once('>').unwrap_or_else(|| panic!("no end of <{tag}"));
        let name = tag.split_whitespace().next().unwrap_or_default().trim_end_matches('/');
        if let Some(closed) = name.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(closed), "{tag}");
        } else if !tag.ends_with('/') && !name.starts_with('!') && !["meta", "br"].contains(&name) {
            open.push(name.to_owned());
        }
    }
    open
}

#[test]
fn the_page_holds_every_plot_and_needs_no_other_file() {
    // Catches a page that is empty, broken, or blank where the network is missing.
    let directory = tempfile::tempdir().expect("a directory");
    let (json, out) = (directory.path().join("out.json"), directory.path().join("made/here"));
    measured(&json);
    let printed = done(&["report", text(&json), "--out", text(&out)]);
    assert_eq!(printed.trim(), text(&out.join("index.html")));
    let page = fs::read_to_string(out.join("index.html")).expect("a page");
    assert_eq!(open_tags(&page), Vec::<String>::new());
    for outside in ["http://", "https://", "src=", "@import", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
    let mut plots = 0;
    for file in fs::read_dir(&out).expect("a directory").flatten().filter(|file| file.file_name() != "index.html") {
        let svg = fs::read_to_string(file.path()).expect("a plot");
        assert_eq!(open_tags(&svg), Vec::<String>::new(), "{file:?}");
        assert!(svg.starts_with("<svg xmlns=") && !svg.contains("NaN") && !svg.contains("inf"), "{file:?}");
        plots += 1;
    }
    assert_eq!(page.matches("<svg").count(), plots);
    for name in ["compared-insert", "growth-random-get", "threads-mixed"] {
        assert!(out.join(format!("{name}.svg")).is_file(), "{name}");
    }
    for said in
        ["<b>M10</b>", "not measured", "InlineSkipList", "How often writers met", "Not optimised", "memtable-batch"]
    {
        assert!(page.contains(said) || (said == "Not optimised" && !cfg!(debug_assertions)), "{said}");
    }
}

#[test]
fn the_readme_has_its_table_from_the_same_file() {
    // Catches a table that is not the bench's own output.
    let directory = tempfile::tempdir().expect("a directory");
    let json = directory.path().join("out.json");
    measured(&json);
    let table = done(&["report", "--readme", text(&json)]);
    assert!(table.starts_with("| ns per operation | fastskip | memtable |"), "{table}");
    for row in ["| insert |", "| get, 256 at a time |", "| delete |", "800 entries, random keys"] {
        assert!(table.contains(row), "{row}: {table}");
    }
}

#[test]
fn scaling_prints_what_is_shared_and_how_threads_fare() {
    // Catches a table of sources that does not belong to the run, and a run that `report` cannot read.
    let directory = tempfile::tempdir().expect("a directory");
    let json = directory.path().join("out.json");
    let subjects = "memtable,memtable-batch,crossbeam-skiplist";
    let printed =
        done(&["scaling", "--entries", "500", "--rounds", "1", "--subjects", subjects, "--json", text(&json)]);
    for said in ["insert hot", "seed of heights and length", "16 thr.", "Millions of operations a second", "failed CAS"]
    {
        assert!(printed.contains(said), "{said}: {printed}");
    }
    done(&["report", "--readme", text(&json)]);
}

#[test]
fn files_that_are_none_are_refused_with_2_before_anything_is_written() {
    // Catches a page about nothing, and a script that takes it for one.
    let directory = tempfile::tempdir().expect("a directory");
    let file = |name: &str, bytes: &[u8]| {
        let path = directory.path().join(name);
        fs::write(&path, bytes).expect("written");
        text(&path).to_owned()
    };
    let good = directory.path().join("good.json");
    measured(&good);
    let good_text = fs::read_to_string(&good).expect("read");
    let out = text(&directory.path().join("out")).to_owned();
    for (wrong, message) in [
        (text(&directory.path().join("missing.json")).to_owned(), "cannot read"),
        (text(directory.path()).to_owned(), "cannot read"),
        (file("binary.json", &[0xff, 0xfe, 0]), "cannot read"),
        (file("empty.json", b""), "EOF"),
        (file("half.json", &good_text.as_bytes()[..good_text.len() / 2]), "EOF"),
        (file("other.json", b"{\"benchmark\": 7}"), "is no result of memtable --json: invalid type"),
        (file("list.json", b"[]"), "is no result"),
        (file("subject.json", good_text.replace("btreemap", "rocksdb").as_bytes()), "unknown variant `rocksdb`"),
        (file("text.json", good_text.replace("\"entries\": 200", "\"entries\": \"many\"").as_bytes()), "invalid type"),
    ] {
        // Behind a file that is right: all are read before anything is written.
        let ran = bench(&["report", text(&good), &wrong, "--out", &out]);
        let said = String::from_utf8_lossy(&ran.stderr);
        assert_eq!((ran.status.code(), &*ran.stdout), (Some(2), &b""[..]), "{wrong}: {said}");
        assert!(said.contains(message), "{wrong}: {said}");
        assert!(!Path::new(&out).exists(), "{wrong}");
    }
}

#[test]
fn wrong_use_is_refused_with_2() {
    // Catches a report that silently does nothing, and hours of measuring towards a file that cannot be written.
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("good.json");
    measured(&file);
    let file = text(&file);
    for (arguments, message) in [
        (&["report", file][..], "--out"),
        (&["report", "--readme"], "IN.json"),
        (&["report", file, "--readme", "--out", "x"], "cannot be used with"),
        (&["report", file, "--out", file], "it is not a directory"),
        (&["scaling", "--rounds", "0"], "0 is not in 1.."),
        (&["scaling", "--entries", "10"], "at most as many threads as entries"),
        (&["scaling", "--entries", "9000000000000M"], "do not fit in memory"),
        (&["scaling", "--subjects", "rocksdb"], "rocksdb"),
        (&["scaling", "--json", "/dev/null/out.json"], "is not a directory"),
    ] {
        let ran = bench(arguments);
        let said = String::from_utf8_lossy(&ran.stderr);
        assert_eq!((ran.status.code(), &*ran.stdout), (Some(2), &b""[..]), "{arguments:?}: {said}");
        assert!(said.contains(message), "{arguments:?}: {said}");
    }
}
