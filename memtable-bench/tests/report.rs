//! The commands `report` and `scaling`, run as a program.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

fn bench(arguments: &[&str]) -> Output {
    let mut bench = Command::new(env!("CARGO_BIN_EXE_memtable-bench"));
    bench.args(arguments).stdin(Stdio::null()).output().expect("run")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("text")
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

/// A directory with `out.json`: tables of 200 to 800 entries on one and two threads.
fn measured() -> TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    let subjects = "fastskip,fastskip-batch,memtable,memtable-batch,crossbeam-skiplist,btreemap,vec";
    let matrix = ["--entries", "200,400,800", "--threads", "1,2", "--rounds", "1", "--subjects", subjects];
    done(&[&["memtable", "--json", text(&directory.path().join("out.json"))], &matrix[..]].concat());
    directory
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
    // Catches a page that is empty, broken, or blank where the network is missing.
    let directory = measured();
    let out = directory.path().join("made/here");
    let printed = done(&["report", text(&directory.path().join("out.json")), "--out", text(&out)]);
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
    for said in
        ["<b>M10</b>", "<td>M10</td>", "not measured", "InlineSkipList", "How often writers met", "memtable-batch"]
    {
        assert!(page.contains(said), "{said}");
    }
    assert_eq!(page.contains("Not optimised"), cfg!(debug_assertions));
}

#[test]
fn the_readme_has_its_table_from_the_same_file() {
    // Catches a table that is not the bench's own output.
    let directory = measured();
    let table = done(&["report", "--readme", text(&directory.path().join("out.json"))]);
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
    let expected =
        ["insert, hot", "seed of heights and length", "16 thr.", "Millions of operations a second", "failed CAS"];
    assert!(expected.iter().all(|said| printed.contains(said)), "{printed}");
    done(&["report", "--readme", text(&json)]);
}

#[test]
fn wrong_use_is_refused_with_2_before_anything_is_written() {
    // Catches a page about nothing, a report that silently does nothing, and hours of measuring towards a file that cannot
    // be written.
    let directory = measured();
    let at = |name: &str| text(&directory.path().join(name)).to_owned();
    let file = |name: &str, bytes: &[u8]| {
        fs::write(at(name), bytes).expect("written");
        at(name)
    };
    let (good, out) = (at("out.json"), at("out"));
    let good_text = fs::read_to_string(&good).expect("read");
    for (wrong, message) in [
        (at("missing.json"), "cannot read"),
        (at(""), "cannot read"),
        (file("binary.json", &[0xff, 0xfe, 0]), "cannot read"),
        (file("empty.json", b""), "EOF"),
        (file("half.json", &good_text.as_bytes()[..good_text.len() / 2]), "EOF"),
        (file("other.json", b"{\"benchmark\": 7}"), "is no result of memtable --json: invalid type"),
        (file("list.json", b"[]"), "is no result"),
        (file("subject.json", good_text.replace("btreemap", "rocksdb").as_bytes()), "unknown variant `rocksdb`"),
        (file("text.json", good_text.replace("\"entries\":200", "\"entries\":\"many\"").as_bytes()), "invalid type"),
    ] {
        // Behind a file that is right: all are read before anything is written.
        refused(&["report", &good, &wrong, "--out", &out], message);
        assert!(!Path::new(&out).exists(), "{wrong}");
    }
    refused(&["report", &good], "--out");
    refused(&["report", "--readme"], "IN.json");
    refused(&["report", &good, "--readme", "--out", "x"], "cannot be used with");
    refused(&["report", &good, "--out", &good], "it is not a directory");
    refused(&["scaling", "--rounds", "0"], "0 is not in 1..");
    refused(&["scaling", "--entries", "10"], "at most as many threads as entries");
    refused(&["scaling", "--entries", "9000000000000M"], "do not fit in memory");
    refused(&["scaling", "--subjects", "rocksdb"], "rocksdb");
    refused(&["scaling", "--json", "/dev/null/out.json"], "is not a directory");
}
