//! `bench`: every workload runs, checks what it reads, and prints a figure.

use crate::support::{Ran, Room, check_says, names, program, run_with};

const NAMES: &str =
    "fillseq readrandom readmissing readseq readreverse seekrandom overwrite fillrandom readwhilewriting";

fn bench(room: &Room, args: &str) -> Ran {
    let mut command = program();
    command.arg("bench").args(args.split(' ')).env("TMPDIR", room.path(".")).current_dir(room.path("."));
    run_with(command, b"")
}

#[test]
fn every_name_has_a_figure_and_finds_what_was_written() {
    // Catches a name that runs no operations, reads that find no keys, and a database left among the temporary files.
    let room = Room::new();
    let text = bench(&room, &format!("{NAMES} --num 2000 --memtable-bytes 65536")).text();
    let (head, figures) = text.split_once('\n').expect("lines");
    check_says(head, "2000 keys of 16 bytes, values of 100 bytes");
    let figures: Vec<&str> = figures.lines().collect();
    let all: Vec<&str> = NAMES.split(' ').collect();
    assert_eq!(figures.len(), 2 * all.len(), "{text}");
    for (name, figures) in all.into_iter().zip(figures.chunks(2)) {
        assert!(figures[0].starts_with(name), "{text}");
        check_says(figures[0], " micros/op | ops/sec ");
        check_says(figures[1], "p50|p99|p99.9|max");
        match name {
            "readrandom" | "seekrandom" | "readwhilewriting" => check_says(figures[0], "(2000 of 2000 found)"),
            "readmissing" => check_says(figures[0], "(0 of 2000 found)"),
            _ => {}
        }
    }
    assert_eq!(names(&room.path(".")), [""; 0], "something is left");
}

#[test]
fn threads_share_the_operations() {
    // Catches a thread that runs all operations, keys that no thread writes, and reads without results that count as a measurement.
    let ran = bench(&Room::new(), "readrandom fillseq readrandom readmissing --num 1001 --threads 3");
    let (text, said) = ran.ended(0);
    assert!(said.starts_with("mini-engine: readrandom found nothing") && said.lines().count() == 1, "{said}");
    check_says(&text, "3 threads|(0 of 1001 found)|(1001 of 1001 found)");
}

#[test]
fn a_database_of_the_callers_is_kept_and_its_contents_are_checked() {
    // Catches a benchmark that deletes a database, and one that accepts wrong values.
    let room = Room::new();
    bench(&room, "fillseq --db db --num 500 --batch 50 --synced").text();
    room.prints(&[("count", "500\n")]);
    check_says(&bench(&room, "readseq --db db --num 500").text(), "readseq");
    let (_, said) = bench(&room, "readrandom --db db --num 500 --value-size 7").ended(3);
    check_says(&said, "expected its 7 bytes, found 100");
    room.prints(&[("put 'a key of ours' value", "")]);
    check_says(&bench(&room, "readreverse --db db").ended(3).1, "a key of ours");
    check_says(&bench(&room, "fillfast").refused(2), "fillfast");
}
