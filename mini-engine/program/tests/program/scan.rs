//! `scan`: which records, in which order, in which form; and its reader going away.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::process::Room;

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
    // Catches an upper bound off by one: the prefix itself belongs to it, its successor does not.
    let room = Room::holding("ap\t1\napple\t2\naq\t3\na\t4\nap\u{10ffff}\t5\n");
    assert_eq!(room.run("scan", &["--prefix", "ap"]).text(), "ap\t1\napple\t2\nap\u{10ffff}\t5\n");
    assert_eq!(room.run("scan", &["--prefix", "ap", "--reverse", "--limit", "1"]).text(), "ap\u{10ffff}\t5\n");
    assert_eq!(room.run("scan", &["--prefix", "b"]).text(), "");
    assert_eq!(room.run("scan", &["--prefix", ""]).text(), room.records());
}

#[test]
fn a_range_holds_its_first_key_and_not_its_last() {
    // Catches inclusive upper and exclusive lower bounds, in both directions.
    let room = fruit();
    assert_eq!(room.run("scan", &["--from", "apricot", "--to", "plum"]).text(), "apricot\torange\nbanana\tyellow\n");
    let reversed = room.run("scan", &["--from", "apricot", "--to", "plum", "--reverse"]).text();
    assert_eq!(reversed, "banana\tyellow\napricot\torange\n");
    assert_eq!(room.run("scan", &["--from", "b", "--keys-only"]).text(), "banana\nplum\n");
    assert_eq!(room.run("scan", &["--to", "b", "--keys-only"]).text(), "apple\napricot\n");
    assert_eq!(room.run("scan", &["--from", "p", "--to", "a"]).text(), "");
    let both = room.run("scan", &["--from", "a", "--prefix", "a"]).refusal(2);
    assert!(both.contains("--prefix") && both.contains("--from"), "{both}");
}

#[test]
fn limits_count_records_from_the_end_that_was_asked_for() {
    // Catches a limit that is applied before the direction.
    let room = fruit();
    assert_eq!(room.run("scan", &["--limit", "2", "--keys-only"]).text(), "apple\napricot\n");
    assert_eq!(room.run("scan", &["--limit", "2", "--keys-only", "--reverse"]).text(), "plum\nbanana\n");
    assert_eq!(room.run("scan", &["--limit", "0"]).text(), "");
    assert_eq!(room.run("scan", &["--limit", "9"]).text(), room.records());
}

#[test]
fn json_and_hexadecimal_scans_can_be_imported_again() {
    // Catches bytes that are lost on the way: newlines, tabs, quotes, what is not UTF-8.
    let room = Room::new();
    let hex = "00\tff0a09\n0a\t\n22\t5c22\n6b09\t76\nc3a4\tc3bc\n";
    assert_eq!(room.import(&["-", "--hex"], hex.as_bytes()).refusal(0), "imported 5 lines, rejected 0\n");
    assert_eq!(room.run("scan", &["--hex"]).text(), hex);
    for form in [&["--json"][..], &["--json", "--hex"]] {
        let printed = room.run("scan", form).text();
        let copy = Room::new();
        assert_eq!(copy.import(&["-", "--json"], printed.as_bytes()).refusal(0), "imported 5 lines, rejected 0\n");
        assert_eq!(copy.run("scan", &["--hex"]).text(), hex, "{printed}");
    }
    let keys = room.run("scan", &["--json", "--keys-only", "--limit", "3"]).text();
    assert_eq!(keys, "{\"key\":\"\\u0000\"}\n{\"key\":\"\\n\"}\n{\"key\":\"\\\"\"}\n");
    assert_eq!(room.run("scan", &["--hex", "--prefix", "c3", "--keys-only"]).text(), "c3a4\n");
    assert_eq!(room.run("scan", &["--hex", "--from", "0a", "--to", "22", "--keys-only"]).text(), "0a\n");
}

#[test]
fn a_reader_that_goes_away_ends_the_scan_quietly() {
    // Catches a broken pipe that is reported as an error, or panics.
    let lines: String = (0..20_000).map(|n| format!("key {n:06}\t{}\n", "v".repeat(50))).collect();
    let room = Room::holding(&lines);
    let mut command = room.command::<&str>("scan", &[]);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("spawn");
    let mut first = String::new();
    let mut reader = BufReader::new(child.stdout.take().expect("piped"));
    reader.read_line(&mut first).expect("a line");
    assert!(first.starts_with("key 000000\t"), "{first}");
    drop(reader);
    let output = child.wait_with_output().expect("wait");
    assert_eq!((output.status.code(), &*output.stderr), (Some(0), &b""[..]), "{output:?}");
}
