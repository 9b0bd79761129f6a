//! `scan`: the selected records, their order and their form, and a reader that closes the pipe.

use std::io::{BufRead, BufReader};

use crate::support::{Room, finished, piped};

fn fruit() -> Room {
    Room::holding("plum\tblue\napple\tred\nbanana\tyellow\napricot\torange\n")
}

#[test]
fn records_come_in_the_order_of_their_keys() {
    // Catches the order of insertion, and locale-dependent orders: bytes decide.
    assert_eq!(fruit().records(), "apple\tred\napricot\torange\nbanana\tyellow\nplum\tblue\n");
    assert_eq!(Room::holding("b\t1\nB\t2\na\t3\n\t4\n").records(), "\t4\nB\t2\na\t3\nb\t1\n");
}

#[test]
fn a_prefix_selects_the_keys_that_begin_with_it() {
    // Catches an upper bound off by one: the range of a prefix includes the prefix itself, and excludes the prefix's successor.
    let room = Room::holding("ap\t1\napple\t2\naq\t3\na\t4\nap\u{10ffff}\t5\n");
    room.prints(&[
        ("scan --prefix ap", "ap\t1\napple\t2\nap\u{10ffff}\t5\n"),
        ("scan --prefix ap --reverse --limit 1", "ap\u{10ffff}\t5\n"),
        ("scan --prefix b", ""),
        ("scan --prefix ''", &room.records()),
    ]);
}

#[test]
fn ranges_and_limits_are_met_in_both_directions() {
    // Catches inclusive upper and exclusive lower bounds, and a limit that is applied before the direction.
    let room = fruit();
    room.prints(&[
        ("scan --from apricot --to plum", "apricot\torange\nbanana\tyellow\n"),
        ("scan --from apricot --to plum --reverse", "banana\tyellow\napricot\torange\n"),
        ("scan --from b --keys-only", "banana\nplum\n"),
        ("scan --to b --keys-only", "apple\napricot\n"),
        ("scan --from p --to a", ""),
        ("scan --limit 2 --keys-only", "apple\napricot\n"),
        ("scan --limit 2 --keys-only --reverse", "plum\nbanana\n"),
        ("scan --limit 0", ""),
        ("scan --limit 9", &room.records()),
    ]);
    room.refuses(2, &[("scan --from a --prefix a", "--prefix|--from")]);
}

#[test]
fn columns_are_left_out_and_added() {
    // Catches keys that are left out instead of values, a count that ignores the limit, and an expiry in another unit.
    let room = fruit();
    room.run("put fig purple --expire-at 4800000000123").text();
    room.prints(&[
        ("scan --values-only --limit 2", "red\norange\n"),
        ("scan --values-only --json --to apq", "{\"value\":\"red\"}\n"),
        ("scan --values-only --hex --from 70", "626c7565\n"),
        ("scan --expiry --from banana --to g", "banana\tyellow\t-\nfig\tpurple\t4800000000123\n"),
        ("scan --expiry --keys-only --prefix f", "fig\t4800000000123\n"),
        ("scan --expiry --keys-only --json --prefix f", "{\"key\":\"fig\",\"expires_at\":4800000000123}\n"),
        ("scan --count", "5\n"),
        ("scan --count --prefix ap --reverse", "2\n"),
        ("scan --count --limit 3 --skip-damaged", "3\n"),
        ("scan --count --limit 0", "0\n"),
    ]);
    let both = [("scan --keys-only --values-only", "--values-only"), ("scan --count --json", "--count")];
    room.refuses(2, &both);
}

#[test]
fn json_and_hexadecimal_scans_can_be_imported_again() {
    // Catches bytes that are lost in the output: newlines, tabs, quotes, bytes that are not UTF-8.
    let room = Room::new();
    let hex = "\t\n00\tff0a09\n0a\t\n22\t5c22\n6109620a63\t0a\n6b\t7609770d\nc3a4\tc3bc\nff00\t74657874\n";
    assert_eq!(room.import("- --hex", hex.as_bytes()).refused(0), "imported 8 lines, rejected 0\n");
    for form in ["scan --json", "scan --json --hex"] {
        let (printed, copy) = (room.run(form).text(), Room::new());
        assert_eq!(copy.import("- --json", printed.as_bytes()).refused(0), "imported 8 lines, rejected 0\n");
        copy.prints(&[("scan --hex", hex)]);
    }
    room.prints(&[
        ("scan --hex", hex),
        (
            "scan --json --keys-only --limit 4",
            "{\"key\":\"\"}\n{\"key\":\"\\u0000\"}\n{\"key\":\"\\n\"}\n{\"key\":\"\\\"\"}\n",
        ),
        ("scan --hex --prefix c3 --keys-only", "c3a4\n"),
        ("scan --hex --from 0a --to 22 --keys-only", "0a\n"),
    ]);
}

#[test]
fn a_reader_that_goes_away_ends_the_scan_quietly() {
    // Catches a broken pipe that is reported as an error, or panics.
    let lines: String = (0..20_000).map(|n| format!("key {n:06}\t{}\n", "v".repeat(50))).collect();
    let room = Room::holding(&lines);
    let mut scan = piped(room.command("scan"));
    let mut first = String::new();
    let mut reader = BufReader::new(scan.stdout.take().expect("piped"));
    reader.read_line(&mut first).expect("a line");
    assert!(first.starts_with("key 000000\t"), "{first}");
    drop(reader);
    assert_eq!(finished(scan).refused(0), "");
}
