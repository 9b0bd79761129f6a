//! Commands that only read: they do not change the directory, may run at the same time, also beside a process that writes, and work on a read-only
//! file system.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::time::SystemTime;

use crate::support::{Room, check_says, finished, kill, names, piped, run};

/// The commands that only read, with arguments for the database of [`room_with_tables_and_a_log`].
const READERS: [&str; 7] =
    ["get key0001", "scan --limit 3", "scan --reverse", "count", "stats", "stats --json", "verify"];

/// A database as a killed process leaves it: tables, and a log whose writes are in no table.
fn room_with_tables_and_a_log() -> Room {
    let room = Room::of_a_thousand();
    room.killed_import(&["logged\t1", "key0001\tnewer"]);
    room
}

/// Every file with its bytes and the time of its last change.
fn state(directory: &Path) -> Vec<(String, Vec<u8>, SystemTime)> {
    let file = |name: std::ffi::OsString| {
        let path = directory.join(&name);
        let changed = fs::metadata(&path).and_then(|metadata| metadata.modified()).expect("a time");
        (name.to_string_lossy().into_owned(), fs::read(path).expect("read"), changed)
    };
    names(directory).into_iter().map(file).collect()
}

/// Runs each command that reads: it prints something to stdout, and nothing to stderr.
#[track_caller]
fn read_all(room: &Room) {
    for line in READERS {
        let (printed, said) = room.run(line).ended(0);
        assert!(!printed.is_empty() && said.is_empty(), "{line}: {said}");
    }
}

#[test]
fn commands_that_read_leave_every_byte_name_and_time_as_it_was() {
    // Catches a reading command that rewrites the database: a new log, a new manifest, and a replay into tables.
    let room = room_with_tables_and_a_log();
    let before = state(&room.database());
    read_all(&room);
    for name in [".log", ".sst", "MANIFEST"] {
        run(&format!("dump '{}'", room.file(name).display())).ended(0);
    }
    room.prints(&[("get key0001", "newer\n"), ("get --quarantine logged", "1\n"), ("count", "1001\n")]);
    assert_eq!(room.run("get missing").refused(1), "");
    check_says(&room.run("verify").text(), "the manifest, 1 log with 2 operations and 1 table");
    assert_eq!(state(&room.database()), before);
}

#[test]
fn commands_that_read_run_beside_each_other_and_shut_writers_out() {
    // Catches a reader that waits for another reader or is refused because of it, and a writer that removes files that a reader needs.
    let room = room_with_tables_and_a_log();
    // More output than a pipe holds, so that the scan is still running when the test reads.
    let mut scan = piped(room.command("scan"));
    let mut output = scan.stdout.take().expect("piped");
    output.read_exact(&mut [0; 8]).expect("a record");
    read_all(&room);
    let writers = ["put k v", "delete k", "compact", "quarantine"];
    room.refuses(4, &writers.map(|line| (line, "LOCK is locked")));
    room.prints(&[("checkpoint copy", "")]);
    let mut rest = String::new();
    output.read_to_string(&mut rest).expect("text");
    finished(scan).ended(0);
    assert_eq!(rest.lines().count(), 1001);
    room.prints(&[("put k v", "")]);
}

#[test]
fn commands_that_read_run_beside_a_writer_whichever_of_them_is_killed() {
    // Catches a reader that misses an acknowledged line, that waits for the writer, or that stops or damages it.
    let room = room_with_tables_and_a_log();
    let (mut holder, mut stdin, mut acks) = room.begin_import("--batch 1 --memtable-bytes 4K");
    let mut scans = Vec::new();
    for n in 0..60 {
        writeln!(stdin, "more{n:02}\t{}", "v".repeat(200)).expect("write");
        acks.next().expect("an ack");
        if n % 20 == 0 {
            read_all(&room);
            room.prints(&[
                ("count", &format!("{}\n", 1002 + n)),
                ("get key0001", "newer\n"),
                ("count --prefix more", &format!("{}\n", n + 1)),
                (&format!("checkpoint copy{n}"), ""),
                (&format!("scan --prefix more{n:02} --keys-only"), &format!("more{n:02}\n")),
            ]);
            let refused = ["get key0001 --wait=0", "get key0001 --quarantine"];
            room.refuses(4, &refused.map(|line| (line, "LOCK is locked")));
            // Its output fills the pipe, so it reads until the end of the test.
            let mut scan = piped(room.command("scan"));
            scan.stdout.as_mut().expect("piped").read_exact(&mut [0; 8]).expect("a record");
            scans.push(scan);
        }
    }
    assert!(holder.try_wait().expect("wait").is_none());
    kill(scans.pop().expect("a scan"));
    kill(holder);
    let mut found = scans.into_iter().map(|scan| finished(scan).text().lines().count());
    assert_eq!([found.next(), found.next(), found.next()], [Some(1002), Some(1022), None]);
    room.prints(&[("count", "1061\n"), ("put k v", ""), ("count", "1062\n")]);
    check_says(&room.run("verify").text(), "no damage");
    room.with("copy40").prints(&[("count", "1042\n")]);
}

#[cfg(target_os = "linux")]
#[test]
fn commands_that_read_work_on_a_read_only_mount_and_on_a_full_disk() {
    // Catches a reader that needs to write a lock or a log, and results that differ without these files.
    use crate::support::mount::Mount;

    let name = "commands_that_read_work_on_a_read_only_mount_and_on_a_full_disk";
    let source = room_with_tables_and_a_log();
    let Some(mount) = Mount::new(2 << 20, name) else { return };
    let room = Room::within(mount.path("."));
    fs::create_dir(room.database()).expect("create");
    for (name, bytes, _) in state(&source.database()) {
        fs::write(room.database().join(name), bytes).expect("copy");
    }
    // A write that fails for lack of space has filled the disk.
    assert!(fs::write(room.path("filler"), vec![7; 4 << 20]).is_err());
    for is_read_only in [false, true] {
        if is_read_only {
            // The LOCK file keeps the name of the process.
            mount.make_read_only();
            room.refuses(4, &[("put k v", "Read-only file system")]);
        }
        let before = state(&room.database());
        read_all(&room);
        // The output of stats contains the path.
        for line in READERS.into_iter().filter(|line| !line.starts_with("stats")) {
            assert_eq!(room.run(line).text(), source.run(line).text());
        }
        assert_eq!(state(&room.database()), before);
    }
}
