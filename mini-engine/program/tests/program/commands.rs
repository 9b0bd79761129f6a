//! `get`, `put`, `delete`, `count`, `stats`, `verify`, `completions`, help: results and exit codes.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::Value;

use crate::process::{Ran, Room, importing, program, run_with};

const COMMANDS: &[&str] = &[
    "import",
    "get",
    "put",
    "delete",
    "scan",
    "count",
    "stats",
    "compact",
    "verify",
    "checkpoint",
    "quarantine",
    "dump",
    "serve",
    "bench",
    "completions",
];

fn run(args: &[&str]) -> Ran {
    let mut program = program();
    program.args(args);
    run_with(program, b"")
}

#[test]
fn put_get_and_delete_tell_by_exit_code_what_is_there() {
    // Catches an absent key that prints something or exits with 0, and a delete that does not last.
    let room = Room::new();
    assert_eq!(room.run("put", &["milk", "2 litres"]).text(), "");
    assert_eq!(room.run("get", &["milk"]).text(), "2 litres\n");
    assert_eq!(room.run("put", &["milk", ""]).text(), "");
    assert_eq!(room.run("get", &["milk"]).text(), "\n");
    assert_eq!(room.run("get", &["mil"]).refusal(1), "");
    assert_eq!(room.run("delete", &["milk"]).text(), "");
    assert_eq!(room.run("get", &["milk"]).refusal(1), "");
    assert_eq!(room.run("delete", &["milk"]).text(), "");
}

#[test]
fn delete_removes_what_a_prefix_or_a_range_names_and_says_so() {
    // Catches a bound that belongs to the other side, a prefix taken for a key, and options that are mixed.
    let room = Room::new();
    for key in ["a", "a/1", "a/2", "a0", "b", "c", "d"] {
        room.run("put", &[key, ""]).text();
    }
    let keys = || room.run("scan", &["--keys-only"]).text();
    let said = |args: &[&str], words: &str| {
        let ran = room.run("delete", args);
        assert_eq!((ran.code, &*ran.stdout), (Some(0), &b""[..]), "{args:?}");
        assert_eq!(ran.stderr, format!("removed {words}\n"), "{args:?}");
    };
    said(&["--prefix", "a/"], "all keys that begin with a/");
    assert_eq!(keys(), "a\na0\nb\nc\nd\n");
    said(&["--from", "b", "--to", "c"], "all keys from b to before c");
    assert_eq!(keys(), "a\na0\nc\nd\n");
    said(&["--hex", "--to", "6130"], "all keys from the first to before 6130");
    assert_eq!(keys(), "a0\nc\nd\n");
    said(&["--from", "d"], "all keys from d to the last");
    said(&["--from", "c", "--to", "a"], "nothing: the range ends before it begins");
    assert_eq!(keys(), "a0\nc\n");
    room.run::<&str>("compact", &[]).text();
    assert_eq!(keys(), "a0\nc\n");
    for wrong in [&[][..], &["a0", "--prefix", "a"], &["a0", "--from", "a"], &["--prefix", "a", "--to", "c"]] {
        room.run("delete", wrong).refusal(2);
    }
    assert_eq!(keys(), "a0\nc\n");
}

#[test]
fn empty_keys_and_keys_that_begin_with_a_dash_are_keys() {
    // Catches arguments that the command line takes for options, and an empty key taken for none.
    let room = Room::new();
    assert_eq!(room.run("put", &["", "nameless"]).text(), "");
    assert_eq!(room.run("put", &["--", "-v", "-5"]).text(), "");
    assert_eq!(room.run("get", &[""]).text(), "nameless\n");
    assert_eq!(room.run("get", &["--", "-v"]).text(), "-5\n");
}

#[test]
fn hexadecimal_arguments_reach_every_byte() {
    // Catches `--hex` that one of the commands ignores, in its arguments or in what it prints.
    let room = Room::new();
    assert_eq!(room.run("put", &["--hex", "00ff", "0A09"]).text(), "");
    assert_eq!(room.run("get", &["--hex", "00FF"]).text(), "0a09\n");
    assert_eq!(room.run("count", &["--hex", "--prefix", "00"]).text(), "1\n");
    assert_eq!(room.run("count", &["--hex", "--prefix", "ff"]).text(), "0\n");
    assert_eq!(room.run("delete", &["--hex", "00ff"]).text(), "");
    assert_eq!(room.run("get", &["--hex", "00ff"]).refusal(1), "");
    let odd = room.run("get", &["--hex", "00f"]).refusal(2);
    assert!(odd.contains("key") && odd.contains("found 3"), "{odd}");
}

#[cfg(unix)]
#[test]
fn arguments_that_are_not_text_are_taken_as_bytes() {
    // Catches a lossy conversion, which would store replacement characters.
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let room = Room::new();
    let bytes = OsStr::from_bytes(b"\xff\xfe");
    assert_eq!(room.run("put", &[bytes, bytes]).text(), "");
    assert_eq!(room.run("get", &["--hex", "fffe"]).text(), "fffe\n");
    assert_eq!(room.run("get", &[bytes]).stdout, b"\xff\xfe\n");
}

#[test]
fn count_is_the_bare_number_of_live_keys() {
    // Catches a count of versions instead of keys, of deleted keys, or decorated with words.
    let room = Room::holding("a/1\tx\na/2\tx\na/1\ty\nb\tx\n");
    assert_eq!(room.run::<&str>("count", &[]).text(), "3\n");
    assert_eq!(room.run("count", &["--prefix", "a/"]).text(), "2\n");
    assert_eq!(room.run("count", &["--prefix", "c"]).text(), "0\n");
    assert_eq!(room.run("count", &["--from", "a/2", "--to", "b"]).text(), "1\n");
    assert_eq!(room.run("count", &["--from", "b"]).text(), "1\n");
    assert_eq!(room.run("delete", &["a/2"]).text(), "");
    assert_eq!(room.run::<&str>("count", &[]).text(), "2\n");
}

#[test]
fn stats_shows_the_tables_that_were_written() {
    // Catches a drawing that does not come from the database, and JSON that cannot be read.
    let lines: String = (0..3000).map(|n| format!("key {n:05}\t{}\n", "value".repeat(20))).collect();
    let room = Room::holding(&lines);
    let json: Value = serde_json::from_str(&room.run("stats", &["--json"]).text()).expect("JSON");
    let levels = json["levels"].as_array().expect("levels");
    let sum = |name: &str| levels.iter().map(|level| level[name].as_u64().expect("a number")).sum::<u64>();
    assert!(sum("tables") >= 1, "{json}");
    assert!(sum("bytes") > 3000, "{json}");
    assert_eq!(json["recovery"]["last_seqno"], 3000);
    assert!(json["counters"]["block_reads"].is_u64(), "{json}");

    let drawing = room.run::<&str>("stats", &[]).text();
    let level = drawing.lines().find(|line| line.starts_with("L0")).expect("a line for level 0");
    assert!(level.contains(&"█".repeat(21)), "{drawing}");
    assert!(drawing.contains("last seqno") && drawing.contains("leveled compaction"), "{drawing}");
    assert!(!drawing.contains("wal syncs") && json["counters"]["wal_syncs"] == 0, "a zero is shown: {drawing}");
    assert!(drawing.lines().all(|line| line.chars().count() <= 80), "{drawing}");
    let (_, ever) = drawing.split_once("counted since it was created\n").expect("a section");
    assert!(ever.starts_with("  flushed user bytes") && json["counters"]["flushed_user_bytes"] != 0, "{drawing}");
    // Of another process, so out of the database itself.
    assert!(json["amplification"]["write"].as_f64().expect("a number") > 0.5, "{json}");
    assert_eq!((&json["amplification"]["read"], &json["compaction"]), (&Value::from(1), &Value::from("leveled")));
}

#[test]
fn compact_leaves_out_what_is_obsolete_within_its_range() {
    // Catches a command that reports success and merges nothing, or the wrong keys.
    let lines: String = (0..600).map(|n| format!("key {:03}\tvalue {n}\n", n % 200)).collect();
    let room = Room::holding(&lines);
    for n in 0..100 {
        room.run("delete", &[format!("key {n:03}")]).text();
    }
    let entries = || {
        let text = room.run::<&str>("verify", &[]).text();
        let words: Vec<&str> = text.split_whitespace().collect();
        let at = words.iter().position(|word| word.starts_with("entr")).expect("a number of entries");
        words[at - 1].parse::<u64>().expect("a number")
    };
    let text = room.run("compact", &["--from", "key 050", "--to", "key 060"]).text();
    assert!(text.contains("in tables before"), "{text}");
    room.run::<&str>("compact", &[]).text();
    assert_eq!(entries(), 100);
    assert_eq!(room.run::<&str>("count", &[]).text(), "100\n");
    assert!(room.run("compact", &["--from"]).refusal(2).contains("--from"));
}

#[test]
fn verify_says_what_was_checked() {
    // Catches a verification that reports success without having read anything.
    let room = Room::holding("a\t1\nb\t2\nc\t3\n");
    let text = room.run::<&str>("verify", &[]).text();
    assert!(
        text.contains("1 table with 3 entries in ")
            && text.contains("obsolete versions and 0 tombstones among them")
            && text.ends_with(": no damage\n"),
        "{text}"
    );
}

#[test]
fn a_checkpoint_is_a_database_that_goes_its_own_way() {
    // Catches a copy that shares more than tables, and one over something that is there.
    let room = Room::holding("a\t1\nb\t2\n");
    assert_eq!(room.run("checkpoint", &["copy"]).text(), "");
    assert_eq!(room.run("delete", &["a"]).text(), "");
    let copy = room.path("copy");
    let copy = copy.to_str().expect("text");
    assert_eq!(run(&["scan", copy]).text(), "a\t1\nb\t2\n");
    assert!(run(&["verify", copy]).text().ends_with(": no damage\n"));
    assert_eq!(room.records(), "b\t2\n");
    let said = room.run("checkpoint", &["copy"]).refusal(2);
    assert!(said.contains("copy exists"), "{said}");
    assert_eq!(run(&["count", copy]).text(), "2\n");
    let said = room.run("checkpoint", &["mistyped/copy"]).refusal(2);
    assert!(said.contains("there is no directory") && !room.path("mistyped").exists(), "{said}");
}

#[test]
fn values_come_from_files_and_go_to_files_as_they_are() {
    // Catches a newline added or taken, a value through a text, and a file made for a key that is not there.
    let room = Room::new();
    let bytes = [&b"\0\xff\n"[..], &[7; 100_000]].concat();
    std::fs::write(room.path("in"), &bytes).expect("write");
    assert_eq!(room.run("put", &["file", "--input", "in"]).text(), "");
    let put = run_with(room.command("put", &["stdin", "--input", "-"]), b"no newline");
    assert_eq!(put.code, Some(0), "{put:?}");
    assert_eq!(room.run("get", &["stdin", "--raw"]).text(), "no newline");
    assert_eq!(room.run("get", &["file", "--output", "out"]).text(), "");
    assert_eq!(std::fs::read(room.path("out")).expect("read"), bytes);
    assert_eq!(room.run("get", &["file", "--raw"]).stdout, bytes);
    assert_eq!(room.run("get", &["--hex", "66696c65", "--output", "-"]).stdout, bytes);
    assert!(!room.path("-").exists());
    assert_eq!(room.run("get", &["absent", "--output", "none"]).refusal(1), "");
    assert!(!room.path("none").exists());
    assert!(room.run("put", &["k", "--input", "absent"]).refusal(4).contains("absent"));
    assert!(room.run("put", &["k"]).refusal(2).contains("VALUE"));
    // Of its 6 GiB nothing is read: how many there are is known before.
    std::fs::File::create(room.path("long")).and_then(|file| file.set_len(6 << 30)).expect("a sparse file");
    let long = room.run("put", &["k", "--input", "long"]).refusal(2);
    assert!(long.contains("long: expected a value of at most 1073741824 bytes, found 6442450944"), "{long}");
}

#[test]
fn sizes_are_typed_as_people_write_them() {
    // Catches a unit that is ignored: the second memtable would be a thousandth of what was asked for, and refused.
    let room = Room::new();
    assert_eq!(room.run("put", &["k", "v", "--memtable-bytes", "1M"]).text(), "");
    assert_eq!(room.run("put", &["k", "v", "--memtable-bytes", "64KiB"]).text(), "");
    let said = room.run("put", &["k", "v", "--memtable-bytes", "64 fathoms"]).refusal(2);
    assert!(said.contains("64M"), "{said}");
}

#[test]
fn a_command_waits_for_the_lock_if_it_is_asked_to() {
    // Catches a wait that never looks again, and one that does not end.
    let room = Room::new();
    let (mut child, stdin) = importing(&room, &["a\t1"]);
    assert!(room.run("get", &["a"]).refusal(4).contains("has the database open"));
    assert!(room.run("get", &["a", "--wait=0"]).refusal(4).contains("has the database open"));
    let wait = |command, args: &[&str]| {
        let mut command = room.command(command, args);
        let mut waiting = command.stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("spawn");
        let mut said = BufReader::new(waiting.stderr.take().expect("piped")).lines();
        let said = said.next().expect("a line").expect("text");
        assert!(said.ends_with(": waiting"), "{said}");
        waiting
    };
    let waiting = [wait("get", &["a", "--wait"]), wait("scan", &["--skip-damaged", "--wait"])];
    drop(stdin);
    assert_eq!(child.wait().expect("wait").code(), Some(0));
    let ran = waiting.map(|waiting| waiting.wait_with_output().expect("wait"));
    let ran = ran.map(|ran| (ran.status.code(), ran.stdout));
    assert_eq!(ran, [(Some(0), b"1\n".to_vec()), (Some(0), b"a\t1\n".to_vec())]);
}

#[test]
fn how_long_to_wait_is_written_as_people_write_it() {
    // Catches seconds that are taken for a key, and a key that is taken for seconds.
    let room = Room::holding("a\t1\n5\t2\n");
    for args in [&["a", "--wait", "5"][..], &["--wait", "5", "a"], &["--wait=5", "a"], &["--wait", "forever", "a"]] {
        assert_eq!(room.run("get", args).text(), "1\n", "{args:?}");
    }
    assert_eq!(room.run("get", &["a", "--wait"]).text(), "1\n");
    assert_eq!(room.run("get", &["--wait", "--", "5"]).text(), "2\n");
    assert!(room.run("get", &["--wait", "5"]).refusal(2).contains("<KEY>"));
    let mistaken = room.run("get", &["--wait", "a"]).refusal(2);
    assert!(mistaken.contains("'a'") && mistaken.contains("expected a number of seconds, or forever"), "{mistaken}");
}

#[test]
fn a_negative_number_is_an_ordinary_argument() {
    // Catches one that is taken for an option that does not exist, and a limit that says no more than "invalid digit".
    let room = Room::new();
    assert_eq!(room.run("put", &["-1", "-2.5"]).text(), "");
    assert_eq!(room.run("get", &["-1"]).text(), "-2.5\n");
    for args in [["scan", "--limit", "-1"], ["import", "--skip", "-1"], ["import", "--batch", "-1"]] {
        let said = room.run(args[0], &args[1..]).refusal(2);
        assert!(
            said.contains(args[1]) && said.contains("expected a whole number") && said.contains("or more"),
            "{said}"
        );
    }
    assert!(run(&["bench", "fillseq", "--num", "0"]).refusal(2).contains("expected a whole number, 1 or more"));
}

#[test]
fn wrong_use_exits_with_2_and_names_the_argument() {
    // Catches clap's own exit code for errors, should it ever differ from the documented one.
    for args in [&["fetch", "db"][..], &["get", "db"], &["scan"], &[], &["scan", "db", "--limit", "many"]] {
        assert!(run(args).refusal(2).contains("Usage") || args.len() > 3, "{args:?}");
    }
    let limit = run(&["scan", "db", "--limit", "many"]).refusal(2);
    assert!(limit.contains("--limit") && limit.contains("many"), "{limit}");
    let room = Room::new();
    let range = room.run("put", &["k", "v", "--memtable-bytes", "1"]).refusal(2);
    assert!(range.contains("memtable"), "{range}");
}

#[test]
fn every_command_has_help_with_examples() {
    // Catches a command added without an example, and help that goes to stderr.
    for &command in COMMANDS {
        let help = run(&[command, "--help"]).text();
        assert!(help.contains("Examples:") && help.contains(&format!("mini-engine {command}")), "{help}");
    }
    let help = run(&["--help"]).text();
    for &command in COMMANDS {
        assert!(help.contains(&format!("\n  {command} ")), "{command} in {help}");
    }
    assert!(run(&["--version"]).text().starts_with("mini-engine "));
}

#[test]
fn completions_know_the_commands_of_each_shell() {
    // Catches an empty script.
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = run(&["completions", shell]).text();
        for &command in COMMANDS {
            assert!(script.contains(command), "{command} in {shell}");
        }
    }
    assert!(run(&["completions", "cmd"]).refusal(2).contains("cmd"));
}

#[test]
fn verbose_traces_go_to_stderr_and_leave_stdout_alone() {
    // Catches traces among the results, and a switch that does nothing.
    let room = Room::holding("k\tv\n");
    let plain = room.run("get", &["k"]);
    assert_eq!(plain.stderr, "");
    let traced = room.run("get", &["-vvv", "k"]);
    assert_eq!(traced.stdout, b"v\n");
    assert!(!traced.stderr.is_empty());
}

#[cfg(target_os = "linux")]
#[test]
fn a_result_that_cannot_be_written_is_an_io_error() {
    // Catches a last buffer that is dropped without a look at its error.
    let room = Room::holding("k\tv\n");
    for command in [&["get", "k"][..], &["scan"], &["count"], &["verify"], &["stats"]] {
        let full = std::fs::File::options().write(true).open("/dev/full").expect("/dev/full");
        let mut program = room.command(command[0], &command[1..]);
        let ran: Ran = program.stdin(Stdio::null()).stdout(full).output().expect("run").into();
        assert_eq!(ran.code, Some(4), "{ran:?}");
        assert!(ran.stderr.contains("stdout") && ran.stderr.contains("No space"), "{ran:?}");
    }
}
