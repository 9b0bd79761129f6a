//! `get`, `put`, `delete`, `count`, `stats`, `verify`, `completions`, help: results and exit codes.

use std::io::{BufRead, BufReader};
use std::time::{Duration, SystemTime};

use mini_engine::Db;
use proof::Clock;
use serde_json::Value;

use crate::support::{Ran, Room, check_says, finished, piped, run, run_with};

const COMMANDS: &str = "import export get put ttl delete scan count keyspaces stats compact verify repair checkpoint quarantine dump serve cluster bench shell completions";

#[test]
fn put_get_and_delete_tell_by_exit_code_what_is_there() {
    // Catches an absent key that prints something or exits with 0, and a delete that does not last.
    let room = Room::new();
    room.prints(&[("put milk '2 litres'", ""), ("get milk", "2 litres\n"), ("put milk ''", ""), ("get milk", "\n")]);
    room.refuses(1, &[("get mil", "")]);
    room.prints(&[("delete milk", "")]);
    assert_eq!(room.run("get milk").refused(1), "");
    room.prints(&[("delete milk", "")]);
}

#[test]
fn a_key_that_has_expired_is_not_there_and_the_time_of_the_others_is_carried_along() {
    // Catches a time in another unit, and one that is lost by a later put, by JSON lines or by a repair.
    let room = Room::new();
    room.prints(&[
        ("put gone v --expire-at 1500000000000", ""),
        ("put here v --expire-at 4800000000123", ""),
        ("put soon v --expire-in 1000d", ""),
        ("put stays v --expire-in 1h", ""),
        ("put stays v", ""),
        ("get here", "v\n"),
        ("count", "3\n"),
        ("scan", "here\tv\nsoon\tv\nstays\tv\n"),
    ]);
    room.refuses(1, &[("get gone", "")]);
    let wrong = [
        ("put k v --expire-in soon", "90, 500ms"),
        ("put k v --expire-in 1s --expire-at 1", "--expire-at|--expire-in"),
    ];
    room.refuses(2, &wrong);
    let (here, stays) = (r#"{"key":"here","value":"v","expires_at":4800000000123}"#, r#"{"key":"stays","value":"v"}"#);
    let printed = room.run("scan --json").text();
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!((lines.len(), lines[0], lines[2]), (3, here, stays));
    assert!(lines[1].starts_with(r#"{"key":"soon","value":"v","expires_at":"#));
    let copy = Room::new();
    let expired = format!("{printed}{}\n", r#"{"key":"gone","value":"v","expires_at":1500000000000}"#);
    assert_eq!(copy.import("- --json", expired.as_bytes()).refused(0), "imported 4 lines, rejected 0\n");
    copy.prints(&[("scan --json", &printed), ("scan --json --skip-damaged", &printed)]);
    let backward: Vec<&str> = lines.iter().rev().copied().collect();
    copy.prints(&[("scan --json --reverse", &(backward.join("\n") + "\n"))]);
}

#[test]
fn ttl_prints_the_seconds_that_are_left() {
    // Catches milliseconds, a rest that is rounded down to 0 while the key is there, and an expired key that has a time.
    let room = Room::new();
    room.prints(&[
        ("put stays v", ""),
        ("put year v --expire-in 365d", ""),
        ("put gone v --expire-at 1500000000000", ""),
        ("ttl stays", "-1\n"),
        ("put --keyspace users year v", ""),
        ("ttl --keyspace users year", "-1\n"),
    ]);
    let left: u64 = room.run("ttl --hex 79656172").text().trim_end().parse().expect("a number");
    assert!(((364 * 86_400)..=(365 * 86_400)).contains(&left), "{left}");
    room.refuses(1, &[("ttl gone", ""), ("ttl absent", "")]);
}

#[test]
fn several_keys_are_printed_with_their_values_in_the_given_order() {
    // Catches sorted or repeated keys, and a missing key that prints an empty value or hides behind exit code 0.
    let room = Room::holding("a\t1\nb\t2\nc\t\n");
    room.prints(&[("get c a a", "c\t\na\t1\na\t1\n"), ("get --hex 62 61", "62\t32\n61\t31\n")]);
    assert_eq!(room.run("get b absent a").ended(1).0, "b\t2\na\t1\n");
    room.refuses(1, &[("get absent none", "")]);
    room.refuses(2, &[("get a b --raw", "one key"), ("get a b --output out", "one key"), ("get", "<KEY>...")]);
    assert!(!room.path("out").exists());
}

#[test]
fn a_span_counts_from_the_databases_clock_while_the_systems_is_behind() {
    // Catches a key for an hour that expires at once because the clock was set back, and a clock difference that is not reported.
    let (room, hour) = (Room::new(), Duration::from_secs(3600));
    let clock = Clock::at(SystemTime::now() + 1000 * hour);
    let db = Db::builder(room.database()).time_source(clock.source()).open().expect("open");
    db.insert_with_expiry("other", "v", db.now() + 1000 * hour).expect("insert");
    db.close().expect("close");
    let (_, said) = room.run("put k v --expire-in 1h -v").ended(0);
    check_says(&said, "the system's clock is |ms behind the database's, which never goes back");
    assert_eq!(room.run("get k").ended(0).0, "v\n");
    let json: Value = serde_json::from_str(&room.run("stats --json").ended(0).0).expect("JSON");
    let ahead = json["counters"]["clock_ahead_nanos"].as_u64().expect("a number");
    assert!(Duration::from_nanos(ahead) > 999 * hour, "{ahead}");
}

#[test]
fn delete_removes_what_a_prefix_or_a_range_names_and_says_so() {
    // Catches swapped inclusive and exclusive bounds, a prefix taken for a key, and contradictory options that are accepted.
    let room = Room::holding("a\t\na/1\t\na/2\t\na0\t\nb\t\nc\t\nd\t\n");
    for (args, said, left) in [
        ("--prefix a/", "all keys that begin with a/", "a\na0\nb\nc\nd\n"),
        ("--from b --to c", "all keys from b to before c", "a\na0\nc\nd\n"),
        ("--hex --to 6130", "all keys from the first to before 6130", "a0\nc\nd\n"),
        ("--from d", "all keys from d to the last", "a0\nc\n"),
        ("--from c --to a", "nothing: the range ends before it begins", "a0\nc\n"),
    ] {
        assert_eq!(room.run(&format!("delete {args}")).refused(0), format!("removed {said}\n"), "{args}");
        room.prints(&[("scan --keys-only", left)]);
    }
    room.run("compact").text();
    let wrong = ["delete", "delete a0 --prefix a", "delete a0 --from a", "delete --prefix a --to c"];
    room.refuses(2, &wrong.map(|line| (line, "Usage")));
    room.prints(&[("scan --keys-only", "a0\nc\n")]);
}

#[test]
fn keys_may_be_empty_begin_with_a_dash_or_be_numbers() {
    // Catches keys that the command line takes for options, an empty key taken for a missing one, and an error for a limit that
    // is only "invalid digit".
    let room = Room::new();
    room.prints(&[("put '' nameless", ""), ("put -- -v -5", ""), ("get ''", "nameless\n"), ("get -- -v", "-5\n")]);
    room.prints(&[("put -1 -2.5", ""), ("get -1", "-2.5\n")]);
    let negative = [("scan --limit -1", "--limit"), ("import --skip -1", "--skip"), ("import --batch -1", "--batch")];
    for (line, option) in negative {
        room.refuses(2, &[(line, &format!("{option}|expected a whole number|or more"))]);
    }
    check_says(&run("bench fillseq --num 0").refused(2), "expected a whole number, 1 or more");
}

#[test]
fn hexadecimal_arguments_reach_every_byte() {
    // Catches a command that ignores `--hex` in its arguments or in its output.
    let room = Room::new();
    room.prints(&[
        ("put --hex 00ff 0A09", ""),
        ("get --hex 00FF", "0a09\n"),
        ("count --hex --prefix 00", "1\n"),
        ("count --hex --prefix ff", "0\n"),
        ("delete --hex 00ff", ""),
    ]);
    room.refuses(1, &[("get --hex 00ff", "")]);
    room.refuses(2, &[("get --hex 00f", "key|found 3")]);
}

#[cfg(unix)]
#[test]
fn arguments_that_are_not_text_are_taken_as_bytes() {
    // Catches a lossy conversion, which would store replacement characters.
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let room = Room::new();
    let bytes = OsStr::from_bytes(b"\xff\xfe");
    let with_bytes = |line, count| {
        let mut command = room.command(line);
        command.args([bytes; 2].iter().take(count));
        run_with(command, b"").stdout
    };
    assert_eq!(with_bytes("put", 2), b"");
    room.prints(&[("get --hex fffe", "fffe\n")]);
    assert_eq!(with_bytes("get", 1), b"\xff\xfe\n");
}

#[test]
fn count_is_the_bare_number_of_live_keys() {
    // Catches a count of versions instead of keys, a count that includes deleted keys, and a count with words around it.
    Room::holding("a/1\tx\na/2\tx\na/1\ty\nb\tx\n").prints(&[
        ("count", "3\n"),
        ("count --prefix a/", "2\n"),
        ("count --prefix c", "0\n"),
        ("count --from a/2 --to b", "1\n"),
        ("count --from b", "1\n"),
        ("delete a/2", ""),
        ("count", "2\n"),
    ]);
}

#[test]
fn stats_shows_the_tables_that_were_written() {
    // Catches a drawing that does not come from the database, and JSON that cannot be read.
    let lines: String = (0..3000).map(|n| format!("key {n:05}\t{}\n", "value".repeat(20))).collect();
    let room = Room::holding(&lines);
    let json: Value = serde_json::from_str(&room.run("stats --json").text()).expect("JSON");
    let levels = json["levels"].as_array().expect("levels");
    let sum = |name: &str| levels.iter().map(|level| level[name].as_u64().expect("a number")).sum::<u64>();
    assert!(sum("tables") >= 1 && sum("bytes") > 3000, "{json}");
    assert_eq!(json["recovery"]["last_seqno"], 3000);
    assert!(json["counters"]["block_reads"].is_u64(), "{json}");

    let drawing = room.run("stats").text();
    let level = drawing.lines().find(|line| line.starts_with("L0")).expect("a line for level 0");
    assert!(level.contains(&"█".repeat(21)), "{drawing}");
    check_says(&drawing, "last seqno|leveled compaction");
    assert!(!drawing.contains("wal syncs") && json["counters"]["wal_syncs"] == 0, "a zero is shown: {drawing}");
    assert!(drawing.lines().all(|line| line.chars().count() <= 80), "{drawing}");
    let (_, ever) = drawing.split_once("counted since it was created\n").expect("a section");
    assert!(ever.starts_with("  flushed user bytes") && json["counters"]["flushed_user_bytes"] != 0, "{drawing}");
    // Another process wrote the data, so the figures come from the database itself.
    assert!(json["amplification"]["write"].as_f64().expect("a number") > 0.5, "{json}");
    assert_eq!((&json["amplification"]["read"], &json["compaction"]), (&Value::from(1), &Value::from("leveled")));
}

#[test]
fn compact_leaves_out_what_is_obsolete_within_its_range() {
    // Catches a command that reports success and compacts nothing, or the wrong keys.
    let lines: String = (0..600).map(|n| format!("key {:03}\tvalue {n}\n", n % 200)).collect();
    let room = Room::holding(&lines);
    room.run("delete --to 'key 100'").refused(0);
    check_says(&room.run("compact --from 'key 050' --to 'key 060'").text(), "in tables before");
    room.run("compact").text();
    check_says(&room.run("verify").text(), " with 100 entries in ");
    room.prints(&[("count", "100\n")]);
    room.refuses(2, &[("compact --from", "--from")]);
}

#[test]
fn verify_says_what_was_checked() {
    // Catches a verification that reports success without having read anything.
    let room = Room::holding("a\t1\nb\t2\nc\t3\n");
    check_says(&room.run("verify").text(), "1 log with 3 operations and 0 tables with 0 entries");
    room.run("compact").text();
    let text = room.run("verify").text();
    check_says(&text, "1 table with 3 entries in |obsolete versions and 0 tombstones among them");
    assert!(text.ends_with(": no damage\n"), "{text}");
}

#[test]
fn a_checkpoint_is_a_database_that_goes_its_own_way() {
    // Catches a copy that shares more than tables, and one that overwrites existing files.
    let room = Room::holding("a\t1\nb\t2\n");
    room.prints(&[("checkpoint copy", ""), ("delete a", ""), ("scan", "b\t2\n")]);
    room.refuses(2, &[("checkpoint copy", "copy exists"), ("checkpoint mistyped/copy", "there is no directory")]);
    let copy = room.with("copy");
    assert!(copy.run("verify").text().ends_with(": no damage\n") && !room.path("mistyped").exists());
    copy.prints(&[("scan", "a\t1\nb\t2\n")]);
}

#[test]
fn values_come_from_files_and_go_to_files_as_they_are() {
    // Catches an added or removed newline, a value that is converted to text, and a file made for an absent key.
    let room = Room::new();
    let bytes = [&b"\0\xff\n"[..], &[7; 100_000]].concat();
    std::fs::write(room.path("in"), &bytes).expect("write");
    room.prints(&[("put file --input in", "")]);
    run_with(room.command("put stdin --input -"), b"no newline").refused(0);
    room.prints(&[("get stdin --raw", "no newline"), ("get file --output out", "")]);
    assert_eq!(std::fs::read(room.path("out")).expect("read"), bytes);
    for line in ["get file --raw", "get --hex 66696c65 --output -"] {
        assert_eq!(room.run(line).stdout, bytes);
    }
    room.refuses(1, &[("get absent --output none", "")]);
    assert!(!room.path("-").exists() && !room.path("none").exists());
    room.refuses(4, &[("put k --input absent", "absent")]);
    // None of its 6 GiB is read, since the length is checked first.
    std::fs::File::create(room.path("long")).and_then(|file| file.set_len(6 << 30)).expect("a sparse file");
    let too_long = "long: expected a value of at most 1073741824 bytes, found 6442450944";
    room.refuses(2, &[("put k", "VALUE"), ("put k --input long", too_long)]);
}

#[test]
fn sizes_are_typed_as_people_write_them() {
    // Catches an ignored unit: the second memtable would have a thousandth of the requested size, and be refused.
    let room = Room::new();
    room.prints(&[("put k v --memtable-bytes 1M", ""), ("put k v --memtable-bytes 64KiB", "")]);
    room.refuses(2, &[("put k v --memtable-bytes '64 fathoms'", "64M"), ("put k v --memtable-bytes 1", "memtable")]);
}

#[test]
fn a_command_waits_for_the_lock_if_it_is_asked_to() {
    // Catches a wait that never tries again, and one that does not end.
    let room = Room::new();
    let (child, stdin) = room.importing(&["a\t1"]);
    let locked = "is locked";
    room.refuses(4, &[("put a 2", locked), ("get a --wait=0", locked)]);
    let waiting = ["get a --wait", "scan --skip-damaged --wait"].map(|line| {
        let mut waiting = piped(room.command(line));
        let mut said = String::new();
        BufReader::new(waiting.stderr.take().expect("piped")).read_line(&mut said).expect("text");
        assert!(said.ends_with(": waiting\n"), "{said}");
        waiting
    });
    drop(stdin);
    finished(child).ended(0);
    assert_eq!(waiting.map(|waiting| finished(waiting).text()), ["1\n", "a\t1\n"]);
}

#[test]
fn how_long_to_wait_is_written_as_people_write_it() {
    // Catches a number of seconds that is taken for a key, and a key that is taken for seconds.
    let room = Room::holding("a\t1\n5\t2\n");
    for line in ["get a --wait 5", "get --wait 5 a", "get --wait=5 a", "get --wait forever a", "get a --wait"] {
        room.prints(&[(line, "1\n")]);
    }
    room.prints(&[("get --wait -- 5", "2\n")]);
    room.refuses(2, &[("get --wait 5", "<KEY>"), ("get --wait a", "'a'|expected a number of seconds, or forever")]);
}

#[test]
fn wrong_use_exits_with_2_and_names_the_argument() {
    // Catches an exit code of clap for errors that differs from the documented one.
    for (line, parts) in [
        ("fetch db", "Usage"),
        ("get db", "Usage"),
        ("scan", "Usage"),
        ("", "Usage"),
        ("scan db --limit many", "--limit|many"),
    ] {
        check_says(&run(line).refused(2), parts);
    }
}

#[test]
fn every_command_has_help_with_examples_and_completions() {
    // Catches a command added without an example, help that goes to stderr, and an empty script.
    let help = run("--help").text();
    let shells =
        ["bash", "zsh", "fish", "elvish", "powershell"].map(|shell| run(&format!("completions {shell}")).text());
    for command in COMMANDS.split(' ') {
        // A program without clusters says only that.
        let examples = if command != "cluster" || cfg!(feature = "cluster") { "Examples:|" } else { "" };
        check_says(&run(&format!("{command} --help")).text(), &format!("{examples}mini-engine {command}"));
        check_says(&help, &format!("\n  {command} "));
        shells.iter().for_each(|script| check_says(script, command));
    }
    assert!(run("--version").text().starts_with("mini-engine "));
    check_says(&run("completions cmd").refused(2), "cmd");
}

#[test]
fn a_shell_runs_its_lines_as_commands_on_its_database() {
    // Catches a command without the database, one that gets a database it has no argument for, and an error that ends the shell.
    let room = Room::new();
    let lines = "put milk '2 litres'\n\nput a 1 # a comment\nget milk\nget absent\nscan --count\nfetch a\nget 'a\n";
    let ran = run_with(room.command("shell"), lines.as_bytes());
    let (printed, said) = ran.ended(2);
    assert_eq!(printed, "2 litres\n2\n");
    check_says(&said, "unrecognized subcommand 'fetch'|expected a closing quote");
    for (lines, code) in [("get absent\n", 1), ("get absent\nexit\nfetch\n", 1), ("get none\nget milk", 0), ("", 0)] {
        run_with(room.command("shell"), lines.as_bytes()).ended(code);
    }
    check_says(&run_with(room.command("shell"), b"completions fish").text(), "complete -c mini-engine");
    // The data behind such a command must not run as commands.
    let (printed, said) = run_with(room.command("shell"), b"import -\ndelete\tmilk\n").ended(2);
    assert_eq!((&*printed, room.run("get milk").text().trim_end()), ("", "2 litres"));
    check_says(&said, "cannot read stdin");
}

#[test]
fn help_fits_a_narrow_terminal_and_shows_options_where_they_matter() {
    // Catches help with line breaks of its own, which a narrow terminal breaks once more.
    for command in COMMANDS.split(' ').chain([""]) {
        let mut program = crate::support::program();
        program.args(command.split_whitespace()).arg("--help").env("COLUMNS", "40");
        let help = run_with(program, b"").text();
        let prose = help.split("\nExamples:").next().expect("a part");
        // A usage line and an option's name are not broken.
        let may_break = |line: &&str| !line.starts_with("Usage: ") && !line.trim_start().starts_with('-');
        let too_long = prose.lines().filter(may_break).find(|line| line.chars().count() > 40);
        assert!(too_long.is_none_or(|line| !line.trim().contains(' ')), "{command}: {too_long:?}");
        assert!(prose.lines().any(|line| (30..=40).contains(&line.chars().count())), "{command}: {help}");
        let is_shown = ["import", "serve", "bench"].contains(&command);
        assert_eq!(help.contains("--memtable-bytes"), is_shown, "{command}");
    }
}

#[test]
fn verbose_traces_go_to_stderr_and_leave_stdout_alone() {
    // Catches traces among the results, and a switch that does nothing.
    let room = Room::holding("k\tv\n");
    assert_eq!(room.run("get k").ended(0), ("v\n".into(), String::new()));
    let (printed, traced) = room.run("get -vvv k").ended(0);
    assert!(printed == "v\n" && !traced.is_empty());
}

#[cfg(target_os = "linux")]
#[test]
fn a_result_that_cannot_be_written_is_an_io_error() {
    // Catches an ignored error of the last flush of stdout.
    let room = Room::holding("k\tv\n");
    for line in ["get k", "scan", "count", "verify", "stats"] {
        let full = std::fs::File::options().write(true).open("/dev/full").expect("/dev/full");
        let ran: Ran = room.command(line).stdout(full).output().expect("run").into();
        check_says(&ran.refused(4), "stdout|No space");
    }
}
