//! Commands that only read: they leave the directory as it is, run beside each other, and work where nothing can be written.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::SystemTime;

use crate::process::{Room, importing, names};

/// Each with arguments that fit [`room_with_tables_and_a_log`].
const READERS: [&[&str]; 7] = [
    &["get", "key 0001"],
    &["scan", "--limit", "3"],
    &["scan", "--reverse"],
    &["count"],
    &["stats"],
    &["stats", "--json"],
    &["verify"],
];

fn kill(mut child: Child) {
    child.kill().expect("kill");
    child.wait().expect("wait");
}

/// A database as a killed process leaves it: tables, and a log whose writes are in none.
fn room_with_tables_and_a_log() -> Room {
    let lines: String = (0..1000).map(|n| format!("key {n:04}\tvalue {n} {}\n", "v".repeat(90))).collect();
    let room = Room::holding(&lines);
    let (child, _stdin) = importing(&room, &["logged\t1", "key 0001\tnewer"]);
    kill(child);
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

/// A file of each kind, for `dump`.
fn dumped(room: &Room) -> [String; 3] {
    let name_of = |part: &str| {
        let name = names(&room.database()).into_iter().find(|name| name.to_string_lossy().contains(part));
        room.database().join(name.expect("a file")).display().to_string()
    };
    [".log", ".sst", "MANIFEST"].map(name_of)
}

#[test]
fn commands_that_read_leave_every_byte_name_and_time_as_it_was() {
    // Catches a question that rewrites the database: a new log and a new manifest, and a replay into tables, each time.
    let room = room_with_tables_and_a_log();
    let before = state(&room.database());
    for args in READERS {
        let ran = room.run(args[0], &args[1..]);
        assert_eq!((ran.code, &*ran.stderr), (Some(0), ""), "{ran:?}");
        assert!(!ran.stdout.is_empty());
        assert_eq!(state(&room.database()), before, "{args:?}");
    }
    for file in dumped(&room) {
        let ran = crate::process::program().arg("dump").arg(&file).output().expect("run");
        assert_eq!(ran.status.code(), Some(0), "{file}: {ran:?}");
        assert_eq!(state(&room.database()), before, "{file}");
    }
    assert_eq!(room.run("get", &["key 0001"]).text(), "newer\n");
    assert_eq!(room.run("get", &["missing"]).refusal(1), "");
    assert_eq!(room.run("get", &["--quarantine", "logged"]).text(), "1\n");
    assert_eq!(room.run::<&str>("count", &[]).text(), "1001\n");
    let verified = room.run::<&str>("verify", &[]).text();
    assert!(verified.contains("the manifest, 1 log with 2 operations and 1 table"), "{verified}");
    assert_eq!(state(&room.database()), before);
}

#[test]
fn commands_that_read_run_beside_each_other_and_shut_writers_out() {
    // Catches a reader that waits for another, or is refused for it, and a writer that removes what it reads.
    let room = room_with_tables_and_a_log();
    // More than a pipe takes, so that it has not ended before it is read.
    let mut scan = room.command::<&str>("scan", &[]).stdout(Stdio::piped()).spawn().expect("spawn");
    let mut output = scan.stdout.take().expect("piped");
    let mut first = [0; 8];
    output.read_exact(&mut first).expect("a record");
    for args in READERS {
        let ran = room.run(args[0], &args[1..]);
        assert_eq!((ran.code, &*ran.stderr), (Some(0), ""), "{ran:?}");
    }
    for args in [&["put", "k", "v"][..], &["delete", "k"], &["compact"], &["checkpoint", "copy"], &["quarantine"]] {
        let said = room.run(args[0], &args[1..]).refusal(4);
        assert!(said.contains("LOCK is locked"), "{said}");
    }
    let mut rest = String::new();
    output.read_to_string(&mut rest).expect("text");
    assert!(scan.wait().expect("wait").success());
    assert_eq!(rest.lines().count(), 1001);
    assert_eq!(room.run("put", &["k", "v"]).text(), "");

    let (holder, _stdin) = importing(&room, &["one more\tvalue"]);
    for args in READERS {
        let said = room.run(args[0], &args[1..]).refusal(4);
        assert!(said.contains("LOCK is locked: a writer has the database open"), "{said}");
    }
    kill(holder);
}

#[cfg(target_os = "linux")]
mod linux {
    use std::path::PathBuf;
    use std::process::Command;

    use super::*;
    use crate::process::skipped;

    fn mount(at: &Path, options: &str) -> Result<(), String> {
        let mount = Command::new("mount").args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(at).output();
        let mount = mount.map_err(|error| error.to_string())?;
        if mount.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&mount.stderr).into_owned()) }
    }

    /// Unmounts when dropped.
    struct Mounted(PathBuf);

    impl Drop for Mounted {
        fn drop(&mut self) {
            let status = Command::new("umount").arg(&self.0).status().expect("umount");
            assert!(status.success() || std::thread::panicking(), "umount: {status}");
        }
    }

    #[test]
    fn commands_that_read_work_on_a_read_only_mount_and_on_a_full_disk() {
        // Catches a lock, a log or a trace of the process that a reader needs, and an answer that depends on one.
        let name = "commands_that_read_work_on_a_read_only_mount_and_on_a_full_disk";
        let source = room_with_tables_and_a_log();
        let room = Room::new();
        fs::create_dir(room.database()).expect("create");
        if let Err(why) = mount(&room.database(), "size=2m") {
            return skipped(name, why);
        }
        let _mounted = Mounted(room.database());
        for (name, bytes, _) in state(&source.database()) {
            fs::write(room.database().join(name), bytes).expect("copy");
        }
        // A write that fails for want of space has taken what there was.
        assert!(fs::write(room.database().join("filler"), vec![7; 4 << 20]).is_err());
        let said = room.run("put", &["k", "v"]).refusal(4);
        assert!(said.contains("No space left"), "{said}");
        let before = state(&room.database());
        for read_only in [false, true] {
            if read_only {
                mount(&room.database(), "remount,ro").expect("remount");
                let said = room.run("put", &["k", "v"]).refusal(4);
                assert!(said.contains("Read-only file system"), "{said}");
            }
            for args in READERS {
                let (ran, expected) = (room.run(args[0], &args[1..]), source.run(args[0], &args[1..]));
                assert_eq!((ran.code, &*ran.stderr), (Some(0), ""), "{ran:?}");
                let is_about_the_path = args[0] == "stats";
                assert!(is_about_the_path || ran.stdout == expected.stdout, "{ran:?}");
            }
            assert_eq!(state(&room.database()), before);
        }
    }
}
