//! `bench`: every name runs, checks what it reads, and tells a figure.

use std::process::Stdio;

use crate::process::{Ran, Room, names, program};

const NAMES: [&str; 9] = [
    "fillseq",
    "readrandom",
    "readmissing",
    "readseq",
    "readreverse",
    "seekrandom",
    "overwrite",
    "fillrandom",
    "readwhilewriting",
];

fn bench(room: &Room, args: &[&str]) -> Ran {
    let mut command = program();
    command.arg("bench").args(args).env("TMPDIR", room.path(".")).current_dir(room.path("."));
    command.stdin(Stdio::null()).output().expect("run").into()
}

#[test]
fn every_name_has_a_figure_and_finds_what_was_written() {
    // Catches a name that does nothing, reads that find nothing, and a database left among the temporary files.
    let room = Room::new();
    let text = bench(&room, &[&NAMES[..], &["--num", "2000", "--memtable-bytes", "65536"]].concat()).text();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2 * NAMES.len() + 1, "{text}");
    assert!(lines[0].contains("2000 keys of 16 bytes, values of 100 bytes"), "{text}");
    for (name, figures) in NAMES.iter().zip(lines[1..].chunks(2)) {
        let line = figures[0];
        assert!(["p50", "p99", "p99.9", "max"].iter().all(|name| figures[1].contains(name)), "{text}");
        assert!(line.starts_with(name) && line.contains(" micros/op ") && line.contains(" ops/sec "), "{line}");
        let found = match *name {
            "readrandom" | "seekrandom" | "readwhilewriting" => Some("(2000 of 2000 found)"),
            "readmissing" => Some("(0 of 2000 found)"),
            _ => None,
        };
        assert!(found.is_none_or(|found| line.ends_with(found)), "{line}");
    }
    assert_eq!(names(&room.path(".")), [""; 0], "something is left");
}

#[test]
fn threads_share_the_operations() {
    // Catches a thread that does all of them, keys that no thread writes, and a read of nothing that passes for a figure.
    let room = Room::new();
    let names = ["readrandom", "fillseq", "readrandom", "readmissing"];
    let ran = bench(&room, &[&names[..], &["--num", "1001", "--threads", "3"]].concat());
    assert!(ran.stderr.starts_with("mini-engine: readrandom found nothing"), "{ran:?}");
    assert_eq!(ran.stderr.lines().count(), 1, "{ran:?}");
    let text = ran.text();
    assert!(text.contains("3 threads") && text.contains("(0 of 1001 found)"), "{text}");
    assert!(text.contains("(1001 of 1001 found)"), "{text}");
}

#[test]
fn a_database_of_the_callers_is_kept_and_its_contents_are_checked() {
    // Catches a benchmark that deletes a database, and one that takes anything it reads for right.
    let room = Room::new();
    let db = ["--db", "db", "--num", "500", "--batch", "50", "--synced"];
    bench(&room, &[&["fillseq"][..], &db].concat()).text();
    assert_eq!(room.run::<&str>("count", &[]).text(), "500\n");
    assert!(bench(&room, &[&["readseq"][..], &db].concat()).text().contains("readseq"));
    let other = bench(&room, &["readrandom", "--db", "db", "--num", "500", "--value-size", "7"]);
    assert_eq!(other.code, Some(3), "{other:?}");
    assert!(other.stderr.contains("expected its 7 bytes, found 100"), "{other:?}");
    assert_eq!(room.run("put", &["a key of ours", "value"]).text(), "");
    let foreign = bench(&room, &["readreverse", "--db", "db"]);
    assert_eq!(foreign.code, Some(3), "{foreign:?}");
    assert!(foreign.stderr.contains("a key of ours"), "{foreign:?}");
    assert!(bench(&room, &["fillfast"]).refusal(2).contains("fillfast"));
}
