//! `import`: the meaning of a line, refused lines, and acknowledgements.

use std::io::Write;

use crate::support::{Room, check_says, finished, piped};

#[test]
fn a_line_is_split_at_its_first_tab_and_nothing_else_is_touched() {
    // Catches trimming, splitting at every tab, UTF-8 conversion, and a lost last line.
    let room = Room::new();
    let ran = room.import("-", b"a\tb\tc\nd\t\n e \t f \r\n\t\n\xff\t\xfe\nlast\tline");
    assert_eq!(ran.refused(0), "imported 6 lines, rejected 0\n");
    room.prints(&[
        ("get a", "b\tc\n"),
        ("get d", "\n"),
        ("get ' e '", " f \r\n"),
        ("get ''", "\n"),
        ("get --hex ff", "fe\n"),
        ("get last", "line\n"),
        ("count", "6\n"),
    ]);
}

#[test]
fn a_byte_order_mark_before_the_first_line_is_left_out_and_named() {
    // Catches a mark that becomes part of the first key, and the same bytes of a later line that are lost.
    let input = "\u{feff}a\t1\n\u{feff}b\t2\n";
    for (args, input) in [("-", input), ("- --json", "\u{feff}{\"key\":\"a\",\"value\":\"1\"}\n")] {
        let room = Room::new();
        let said = room.import(args, input.as_bytes()).refused(0);
        check_says(&said, "stdin line 1: left out the UTF-8 byte order mark|, rejected 0\n");
        room.prints(&[("get a", "1\n"), ("count", if args == "-" { "2\n" } else { "1\n" })]);
        assert_eq!(room.import("- --skip 1", input.as_bytes()).refused(0).lines().count(), 1);
    }
}

#[test]
fn a_file_is_imported_like_stdin_and_the_last_of_equal_keys_wins() {
    // Catches a batch whose operations are applied out of order, within and across batches.
    let room = Room::new();
    std::fs::write(room.path("input"), "k\t1\nk\t2\nl\t1\nk\t3\n").expect("write");
    for batch in ["1", "2", "3", "1000"] {
        let said = room.import(&format!("input --batch {batch}"), b"").refused(0);
        assert_eq!((said, room.records()), ("imported 4 lines, rejected 0\n".into(), "k\t3\nl\t1\n".into()));
    }
    assert_eq!(room.import("-", b"").refused(0), "imported 0 lines, rejected 0\n");
    assert_eq!(room.records(), "k\t3\nl\t1\n");
}

#[test]
fn lines_that_are_no_record_are_reported_by_number_and_the_rest_is_imported() {
    // Catches line numbers that start at 0 or count records only, a bad line that takes its batch with it, a JSON field taken by position, and
    // escapes left in place. `record.rs` has the other reasons.
    let tab = "a\t1\nno separator\nb\t2\n\nc\t3\n";
    let json = r#"{"value":"2\n","key":"\u00e4\t"}
{"key":"k"}
{"key_hex":"00","value_hex":"ff"}
["k","v"]
"#;
    let no_tab = "expected a tab between key and value, found none";
    let not_json = ["expected a field value, found none", "expected a JSON object, found another value"];
    for (args, input, [second, fourth], imported, stored) in [
        ("- --batch 1", tab, [no_tab; 2], 3, "61\t31\n62\t32\n63\t33\n"),
        ("- --batch 1000", tab, [no_tab; 2], 3, "61\t31\n62\t32\n63\t33\n"),
        ("- --json", json, not_json, 2, "00\tff\nc3a409\t320a\n"),
    ] {
        let room = Room::new();
        let expected =
            format!("stdin line 2: {second}\nstdin line 4: {fourth}\nimported {imported} lines, rejected 2\n");
        assert_eq!(room.import(args, input.as_bytes()).refused(5), expected);
        room.prints(&[("scan --hex", stored)]);
    }
    Room::new().refuses(2, &[("import - --json --hex", "--hex")]);
}

#[test]
fn strict_stops_at_the_first_bad_line_and_keeps_those_before() {
    // Catches a strict import that goes on, exits with 0, or drops the unfinished batch.
    for batch in ["1", "2", "1000"] {
        let room = Room::new();
        let ran = room.import(&format!("- --strict --batch {batch}"), b"a\t1\nb\t2\nc\t3\nbad\nd\t4\n");
        check_says(&ran.refused(2), "stdin line 4: expected a tab|imported 3 lines");
        assert_eq!(room.records(), "a\t1\nb\t2\nc\t3\n");
    }
}

#[test]
fn an_input_without_records_is_refused_and_an_empty_one_is_not() {
    // Catches an import of a wrong file that reports success.
    let room = Room::new();
    let said = room.import("-", b"no record\nno record either\n").refused(2);
    check_says(&said, "imported 0 lines, rejected 2\n|no line of the input is a record");
    assert_eq!(room.import("-", b"").refused(0), "imported 0 lines, rejected 0\n");
    room.prints(&[("count", "0\n")]);
}

#[test]
fn a_refused_import_leaves_no_new_database() {
    // Catches a directory that is left after a mistyped name, a wrong file or a wrong argument, and an existing directory that is removed.
    let longest = format!("{}\tv\n", "k".repeat(65_536));
    for (args, input) in [
        ("-", "no record\n"),
        ("-", &longest),
        ("- --strict", "no record\na\t1\n"),
        ("- --skip 3", "a\t1\nb\t2\n"),
        ("- --json", "a\t1\n"),
        ("- --json --strict", r#"{"key":"k","key":"l","value":"v"}"#),
        ("- --keyspace ''", "a\t1\n"),
        ("- --memtable-bytes 1", "a\t1\n"),
    ] {
        let room = Room::new();
        room.import(args, input.as_bytes()).refused(2);
        assert!(!room.database().exists(), "{args}");
        std::fs::create_dir(room.database()).expect("create");
        room.import(args, input.as_bytes()).refused(2);
        assert_eq!(crate::support::names(&room.database()), [""; 0], "{args}");
    }
}

/// Sends a signal that ends a process.
#[cfg(unix)]
fn interrupt(child: &std::process::Child, signal: rustix::process::Signal) {
    rustix::process::kill_process(rustix::process::Pid::from_child(child), signal).expect("kill");
}

#[cfg(unix)]
#[test]
fn an_interrupted_import_says_how_to_go_on_and_going_on_imports_the_rest() {
    // Catches lines that are reported but not stored, half a line that is stored, and `--skip` off by one. The signal comes while the import
    // reads, or while it waits for input.
    for waits in [false, true] {
        let room = Room::new();
        let (child, mut stdin, mut acks) = room.begin_import("--batch 3");
        let line = |n: usize| format!("{n:09}\tvalue {n}\n");
        let mut sent: String = (0..7).map(line).collect();
        stdin.write_all((sent.clone() + "half").as_bytes()).expect("write");
        assert_eq!(acks.nth(1), Some(6));
        let reader = std::thread::spawn(move || acks.count());
        interrupt(&child, rustix::process::Signal::INT);
        if !waits {
            stdin.write_all(b"\tof a line\n").expect("write");
            sent += "half\tof a line\n";
            let mut more = (8..).map(line).inspect(|line| sent += line);
            // Writes until the import has ended.
            while stdin.write_all(more.next().expect("no end").as_bytes()).is_ok() {}
        }
        let (_, said) = finished(child).ended(130);
        reader.join().expect("a reader");
        let told = said.trim_end().rsplit(' ').next().expect("a word");
        check_says(&said, &format!("the first {told} lines of the input are in"));
        let of_first = |lines: usize| {
            let mut lines: Vec<_> = sent.split_inclusive('\n').take(lines).collect();
            lines.sort_unstable();
            lines.concat()
        };
        assert!(room.records() == of_first(told.parse().expect("a number")), "{said}");
        room.import(&format!("- --skip {told}"), sent.as_bytes()).ended(0);
        assert!(room.records() == of_first(usize::MAX), "the rest is not there");
    }
}

#[cfg(unix)]
#[test]
fn half_a_line_is_left_out_when_its_writer_is_interrupted_too() {
    // A terminal sends ^C to both the import and the writer of its input. Catches half a line that is stored, and an import that takes the end of the
    // interrupted writer for the end of the input. The import may run meanwhile, or all of its threads may be stopped and then find both the signal
    // and the end.
    use rustix::process::{Pid, Signal, WaitOptions, waitpid};
    for (line, is_stopped) in [(&b"half\tof a l"[..], false), (b"half\tof a l", true), (b"", false), (b"", true)] {
        let room = Room::new();
        for _ in 0..10 {
            let (child, mut stdin) = room.importing(&["a\t1"]);
            if is_stopped {
                interrupt(&child, Signal::STOP);
                waitpid(Some(Pid::from_child(&child)), WaitOptions::UNTRACED).expect("wait");
            }
            stdin.write_all(line).expect("write");
            interrupt(&child, Signal::INT);
            drop(stdin);
            if is_stopped {
                interrupt(&child, Signal::CONT);
            }
            finished(child).ended(130);
            assert_eq!(room.records(), "a\t1\n");
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn no_thread_but_one_is_given_a_signal() {
    // Catches unblocked signals in a thread to which the import sends no request: that thread might handle a signal too late.
    let room = Room::new();
    let (child, stdin) = room.importing(&["a\t1"]);
    let threads = std::fs::read_dir(format!("/proc/{}/task", child.id())).expect("threads");
    let of_thread = |thread: std::path::PathBuf, file| std::fs::read_to_string(thread.join(file)).expect("read");
    let (mut blocking, mut others) = (0, Vec::new());
    for thread in threads.map(|thread| thread.expect("a thread").path()) {
        let status = of_thread(thread.clone(), "status");
        let mask = status.lines().find_map(|line| line.strip_prefix("SigBlk:\t")).expect("a mask");
        // SIGINT and SIGTERM.
        let both = 1 << (2 - 1) | 1 << (15 - 1);
        match u64::from_str_radix(mask, 16).expect("digits") & both {
            mask if mask == both => blocking += 1,
            _ => others.push(of_thread(thread, "comm")),
        }
    }
    assert!(
        blocking > 1 && others.len() <= 1 && others.iter().all(|name| name == "signals\n"),
        "{blocking}, {others:?}"
    );
    drop(stdin);
    finished(child).ended(0);
}

#[test]
fn skip_means_lines_that_are_there_and_stored() {
    // Catches a `--skip` of more lines than the input has that is accepted, and a continued import that is refused because only bad lines are left.
    let room = Room::new();
    let import = |skip| room.import(&format!("- --skip {skip}"), b"a\t1\nb\t2\nno record\n");
    check_says(&import(4).refused(2), "the input has 3 lines");
    assert_eq!(import(3).refused(0), "imported 0 lines, rejected 0\n");
    check_says(&import(2).refused(5), "imported 0 lines, rejected 1\n");
}

#[cfg(unix)]
#[test]
fn an_interrupted_import_counts_the_lines_that_it_left_out() {
    // Catches advice to import lines again that are already stored.
    let room = Room::new();
    let (child, mut stdin, mut acks) = room.begin_import("--batch 1 --skip 3");
    stdin.write_all(b"a\t1\n").expect("write");
    assert_eq!(acks.next(), Some(1));
    interrupt(&child, rustix::process::Signal::TERM);
    let (_, said) = finished(child).ended(143);
    assert!(said.ends_with("with --skip 3\n"), "{said}");
}

#[test]
fn many_bad_lines_are_counted_and_only_the_first_are_printed() {
    // Catches a wrong input format that floods the terminal, and a count that stops at the cap.
    let said = Room::new().import("-", ("bad\n".repeat(500) + "a\t1\n").as_bytes()).refused(5);
    assert!(said.lines().count() == 22 && said.contains("stdin line 20: ") && !said.contains("line 21: "), "{said}");
    assert!(said.ends_with("480 more lines rejected\nimported 1 line, rejected 500\n"), "{said}");
}

#[cfg(target_os = "linux")]
#[test]
fn bad_lines_are_counted_also_when_the_import_fails() {
    // Catches a failure that omits the number of earlier bad lines that were not printed.
    let room = Room::new();
    std::fs::write(room.path("input"), "bad\n".repeat(30) + "a\t1\n").expect("write");
    let full = std::fs::File::options().write(true).open("/dev/full").expect("/dev/full");
    let ran = room.command("import input --synced --batch 31").stdout(full).output().expect("run");
    let said = crate::support::Ran::from(ran).refused(4);
    check_says(&said, "input: 10 more lines rejected\nimported 1 line, rejected 30\n");
}

#[test]
fn a_key_past_its_limit_is_a_bad_line_and_one_at_its_limit_is_not() {
    // Catches a limit off by one, a truncated length, and a batch that is damaged by the refused record.
    let room = Room::new();
    let longest = "k".repeat(65_535);
    let input = format!("a\t1\n{longest}\tv\n{longest}k\tv\nb\t2\n");
    let said = room.import("-", input.as_bytes()).refused(5);
    check_says(&said, "stdin line 3: |65536|65535|imported 3 lines, rejected 1\n");
    assert_eq!(room.records(), format!("a\t1\nb\t2\n{longest}\tv\n"));
}

#[test]
fn acknowledgements_count_input_lines_and_come_before_the_input_ends() {
    // Catches acknowledgements that stay in a buffer, count records instead of lines, or leave out the last batch.
    let room = Room::new();
    let (child, mut stdin, mut acks) = room.begin_import("--batch 2");
    stdin.write_all(b"a\t1\nbad\n").expect("write");
    assert_eq!(acks.next(), Some(2));
    stdin.write_all(b"bad\nbad\nb\t2\n").expect("write");
    assert_eq!(acks.next(), Some(4));
    drop(stdin);
    assert_eq!([acks.next(), acks.next()], [Some(5), None]);
    finished(child).ended(5);
    assert_eq!(room.records(), "a\t1\nb\t2\n");
}

#[test]
fn an_import_whose_acknowledgements_nobody_reads_goes_on() {
    // Catches an `import --synced | head -1` that imports only a part of the input and exits with 0.
    let room = Room::new();
    let mut child = piped(room.command("import - --synced --batch 1"));
    drop(child.stdout.take());
    child.stdin.take().expect("piped").write_all(b"a\t1\nb\t2\nc\t3\n").expect("write");
    finished(child).ended(0);
    assert_eq!(room.records(), "a\t1\nb\t2\nc\t3\n");
}

#[test]
fn memtables_smaller_than_the_input_or_one_value_lose_nothing() {
    // Catches a batch that is refused or split because it is larger than a memtable, and records lost between a full memtable, its flush, the
    // compactions of tables, and the next memtable.
    let room = Room::new();
    let mut lines: Vec<String> =
        (0..40_000).map(|n| format!("key {:05}\t{n} {}\n", n * 7919 % 30_011, "v".repeat(n % 90))).collect();
    lines.insert(20_000, format!("large\t{}\n", "v".repeat(3 << 20)));
    let newest: std::collections::BTreeMap<&str, &str> =
        lines.iter().map(|line| (line.split_once('\t').expect("a tab").0, &**line)).collect();
    let ran = room.import("- --memtable-bytes 262144", lines.concat().as_bytes());
    assert_eq!(ran.refused(0), "imported 40001 lines, rejected 0\n");
    assert!(room.records() == newest.into_values().collect::<String>(), "the scan differs from the input");
    room.run("verify").ended(0);
}
