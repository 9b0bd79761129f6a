//! `--keyspace`: the same commands in another set of keys.

use std::path::Path;

use serde_json::Value;

use crate::support::{Room, check_says, names, run};

#[test]
fn every_command_works_in_the_keyspace_that_it_is_given_and_in_no_other() {
    // Catches a command that ignores the option, one that makes a keyspace for a mistyped name, and a list that has the default keyspace or a
    // dropped one.
    let room = Room::holding("k\tdefault\nother\tdefault\n");
    room.prints(&[
        ("keyspaces", ""),
        ("put --keyspace users k ada", ""),
        ("put --keyspace users 'a b' grace", ""),
        ("put --keyspace 'a b' k v", ""),
        ("keyspaces", "a b\nusers\n"),
        ("get --keyspace users k", "ada\n"),
        ("get k", "default\n"),
        ("count --keyspace users", "2\n"),
        ("scan --keyspace users", "a b\tgrace\nk\tada\n"),
        ("scan --keyspace users --skip-damaged --prefix a", "a b\tgrace\n"),
        ("delete --keyspace users k", ""),
        ("scan --keyspace users --keys-only --reverse", "a b\n"),
        ("scan --keys-only", "k\nother\n"),
    ]);
    room.run("compact --keyspace users").text();
    room.run("delete --keyspace users --prefix a").refused(0);
    room.prints(&[("count --keyspace users", "0\n"), ("count", "2\n")]);
    let unknown = ["get k", "count", "delete k", "compact", "scan --skip-damaged"];
    for line in unknown.map(|line| format!("{line} --keyspace user")) {
        room.refuses(2, &[(&line, "there is no keyspace \"user\"")]);
    }
    room.refuses(2, &[("delete --drop", "--keyspace")]);
    room.prints(&[("delete --keyspace users --drop", ""), ("keyspaces", "a b\n")]);
    let dropped = ["count --keyspace users", "delete --keyspace users --drop"];
    room.refuses(2, &dropped.map(|line| (line, "there is no keyspace \"users\"")));
}

#[test]
fn an_import_fills_a_keyspace_and_stats_dump_and_repair_show_it() {
    // Catches a keyspace that a report omits, and keys that are printed with their internal prefix.
    let room = Room::new();
    let input: String = (0..2000).map(|n| format!("key {n:04}\tvalue {n}\n")).collect();
    room.import("--keyspace 'many users' -", input.as_bytes()).refused(0);
    room.prints(&[("put k v", ""), ("count --keyspace 'many users'", "2000\n"), ("count", "1\n")]);
    let stats = room.run("stats").text();
    let line = stats.lines().find(|line| line.contains("many users")).unwrap_or_default();
    check_says(line, " KiB");
    let stats: Value = serde_json::from_str(&room.run("stats --json").text()).expect("JSON");
    let size = &stats["keyspaces"][0];
    let entries = size["entries"].as_u64().expect("a number");
    assert!(size["name"] == "many users" && (1800..2200).contains(&entries), "{size}");
    let mut tables = names(&room.database()).into_iter().filter(|name| name.to_string_lossy().ends_with(".sst"));
    let table = room.database().join(tables.next().expect("a table"));
    let dump = |file: &Path, args: &str| run(&format!("dump '{}' {args}", file.display())).text();
    check_says(&dump(&room.file("MANIFEST"), ""), "keyspace 1: \"many users\"");
    check_says(&dump(&table, ""), "\n  \"key 0007\" of keyspace 1 at ");
    check_says(&dump(&table, "--json"), ",\"keyspace\":1,\"key\":\"key 0007\",\"value\":\"value 7\"}\n");
    room.run("repair new").text();
    room.with("new").prints(&[("get --keyspace 'many users' 'key 1999'", "value 1999\n"), ("get k", "v\n")]);
}

#[test]
fn an_export_of_all_keyspaces_is_imported_as_it_was() {
    // Catches a keyspace that is left out or merged with another one, bytes or times that are lost, and a batch that ends with its keyspace.
    let room = Room::new();
    room.import("- --hex", b"00ff\t0a\n61\t31\n").refused(0);
    room.import("- --hex --keyspace 'a \"b\" \u{e4}'", b"ff\t09\n").refused(0);
    room.run("put --keyspace users a ada --expire-at 4800000000123").text();
    let exported = room.run("export").text();
    let expected = [
        r#"{"key_hex":"00ff","value":"\n"}"#,
        r#"{"key":"a","value":"1"}"#,
        r#"{"keyspace":"a \"b\" ä","key_hex":"ff","value":"\t"}"#,
        r#"{"keyspace":"users","key":"a","value":"ada","expires_at":4800000000123}"#,
    ];
    assert_eq!(exported.lines().collect::<Vec<_>>(), expected);
    for args in ["- --json", "- --json --batch 1", "- --json --synced --batch 3"] {
        let copy = Room::new();
        copy.import(args, exported.as_bytes()).ended(0);
        copy.prints(&[("export", &exported), ("count", "2\n")]);
    }
    // A record without a name goes to the keyspace of the option.
    let copy = Room::new();
    copy.import("- --json --keyspace other", exported.as_bytes()).refused(0);
    copy.prints(&[("count --keyspace other", "2\n"), ("count", "0\n"), ("ttl --keyspace other a", "-1\n")]);
    let refused = r#"{"keyspace":"","key":"k","value":"v"}
{"keyspace":7,"key":"k","value":"v"}"#;
    let said = copy.import("- --json", refused.as_bytes()).refused(2);
    check_says(&said, "line 1: expected 1 to 255 bytes|line 2: expected a string");
    copy.prints(&[("keyspaces", "a \"b\" ä\nother\nusers\n")]);
}
