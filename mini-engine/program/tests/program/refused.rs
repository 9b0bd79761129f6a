//! What the program refuses, and that a refusal loses and creates nothing: paths that are no database, newer formats, locks,
//! damage, missing permission, full disks.

use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;
use std::process::Stdio;

use crate::process::{Room, importing, names};

/// Each command that does not create a database, with arguments that it could work with.
const READERS: [&[&str]; 9] = [
    &["get", "k"],
    &["delete", "k"],
    &["scan"],
    &["count"],
    &["stats"],
    &["stats", "--json"],
    &["verify"],
    &["checkpoint", "copy"],
    &["quarantine"],
];

fn thousand_records() -> Room {
    let lines: String = (0..1000).map(|n| format!("key {n:04}\tvalue {n} {}\n", "v".repeat(90))).collect();
    Room::holding(&lines)
}

fn table_of(room: &Room) -> PathBuf {
    let is_table = |name: &OsStr| PathBuf::from(name).extension() == Some(OsStr::new("sst"));
    let name = names(&room.database()).into_iter().find(|name| is_table(name)).expect("a table");
    room.database().join(name)
}

#[test]
fn commands_that_read_create_no_database() {
    // Catches a mistyped path that becomes an empty database and an empty answer.
    for args in READERS {
        let room = Room::new();
        let said = room.run(args[0], &args[1..]).refusal(2);
        assert!(said.contains(&room.database().display().to_string()), "{said}");
        assert!(!room.database().exists(), "{args:?} created the database");

        fs::create_dir(room.database()).expect("create");
        let said = room.run(args[0], &args[1..]).refusal(2);
        assert!(said.contains("not a database"), "{said}");
        assert_eq!(names(&room.database()), [""; 0], "{args:?} left something behind");
    }
}

#[test]
fn a_directory_of_other_files_is_not_made_a_database() {
    // Catches an open that adds its files to somebody's home directory, by a command that writes or one that reads.
    let room = Room::new();
    fs::create_dir(room.database()).expect("create");
    fs::write(room.database().join("letter.txt"), "dear").expect("write");
    let writers: [&[&str]; 2] = [&["put", "k", "v"], &["import", "-"]];
    for args in READERS.iter().chain(&writers) {
        let said = room.run(args[0], &args[1..]).refusal(2);
        assert!(said.contains("not a database"), "{said}");
        assert_eq!(names(&room.database()), ["letter.txt"], "{args:?} left something behind");
    }
}

#[test]
fn a_file_is_not_a_database() {
    // Catches an open that replaces or truncates a file of the same name.
    let room = Room::new();
    fs::write(room.database(), "dear").expect("write");
    for args in READERS.iter().chain(&[&["put", "k", "v"][..]]) {
        let said = room.run(args[0], &args[1..]).refusal(2);
        assert!(said.contains("not a database") && said.contains("found a file"), "{said}");
    }
    assert_eq!(fs::read(room.database()).expect("read"), b"dear");
}

#[test]
fn a_missing_input_creates_no_database() {
    // Catches a database that is opened before its input.
    let room = Room::new();
    for input in ["missing.tsv", "."] {
        let said = room.import(&[input], b"").refusal(4);
        assert!(said.contains(&format!("cannot read {input}: ")), "{said}");
        assert!(!room.database().exists());
    }
}

#[test]
fn a_newer_format_is_named_and_left_alone() {
    // Catches a newer database that is taken for damage, or opened with half an understanding.
    let room = thousand_records();
    let current = room.database().join("CURRENT");
    let pointer = fs::read_to_string(&current).expect("read");
    let newer = pointer.replacen("mini-engine 1 ", "mini-engine 2 ", 1);
    assert_ne!(newer, pointer);
    fs::write(&current, &newer).expect("write");
    // A version that its checksum does not vouch for is damage.
    assert!(room.run::<&str>("count", &[]).refusal(3).contains("CURRENT"));
    let text = newer.rsplit_once(' ').expect("a checksum").0;
    let newer = format!("{text} {:016x}\n", xxhash_rust::xxh3::xxh3_64(text.as_bytes()));
    fs::write(&current, &newer).expect("write");
    for args in READERS.iter().chain(&[&["put", "k", "v"][..]]) {
        let said = room.run(args[0], &args[1..]).refusal(2);
        assert!(said.contains("CURRENT") && said.contains("version 2") && said.contains("up to 1"), "{said}");
    }
    assert_eq!(fs::read_to_string(&current).expect("read"), newer);
    fs::write(&current, pointer).expect("write");
    assert_eq!(room.run::<&str>("count", &[]).text(), "1000\n");
}

#[test]
fn a_database_that_is_open_elsewhere_is_locked() {
    // Catches two processes that write to the same files.
    let room = thousand_records();
    let (mut holder, stdin) = importing(&room, &["one more\tvalue"]);
    let by = format!("(process {})", holder.id());
    for args in READERS.iter().chain(&[&["put", "k", "v"][..]]) {
        let said = room.run(args[0], &args[1..]).refusal(4);
        assert!(said.contains("locked") && said.contains(&by), "{said}");
    }
    // Without its lock file too.
    fs::remove_file(room.database().join("LOCK")).expect("remove");
    for args in READERS.iter().chain(&[&["put", "k", "v"][..]]) {
        let said = room.run(args[0], &args[1..]).refusal(4);
        assert!(said.contains("locked"), "{said}");
    }
    drop(stdin);
    assert!(holder.wait().expect("wait").success());
    assert_eq!(room.run::<&str>("count", &[]).text(), "1001\n");
}

#[test]
fn a_damaged_table_is_corruption_with_its_file_and_offset() {
    // Catches damage that is printed as data, reported without its place, or that hides behind exit code 0.
    let room = thousand_records();
    let table = table_of(&room);
    let mut bytes = fs::read(&table).expect("read");
    bytes[100] ^= 0x10;
    fs::write(&table, bytes).expect("write");
    let name = table.file_name().expect("a name").to_string_lossy().into_owned();

    let verified = room.run::<&str>("verify", &[]);
    assert_eq!(verified.code, Some(3), "{verified:?}");
    assert!(verified.stderr.contains(&name) && verified.stderr.contains("offset"), "{verified:?}");
    for (command, args) in [("get", &["key 0000"][..]), ("scan", &[]), ("count", &[])] {
        let ran = room.run(command, args);
        assert_eq!(ran.code, Some(3), "{ran:?}");
        assert!(ran.stderr.contains(&name) && ran.stderr.contains("offset"), "{ran:?}");
    }
    // The last block is not the damaged one: what can be read is read.
    let last = room.run("get", &["key 0999"]).text();
    assert!(last.starts_with("value 999 "), "{last}");
}

#[test]
fn a_damaged_or_missing_manifest_is_corruption_and_not_an_empty_database() {
    // Catches a database that starts anew over files that it does not understand.
    let room = thousand_records();
    let before = names(&room.database());
    let manifest = before.iter().find(|name| name.to_string_lossy().starts_with("MANIFEST-")).expect("a manifest");
    let manifest = room.database().join(manifest);
    let whole = fs::read(&manifest).expect("read");
    let mut damaged = whole.clone();
    damaged[40] ^= 1;
    fs::write(&manifest, damaged).expect("write");
    let said = room.run::<&str>("count", &[]).refusal(3);
    assert!(said.contains("MANIFEST-"), "{said}");
    fs::remove_file(&manifest).expect("remove");
    let said = room.run("put", &["k", "v"]).refusal(3);
    assert!(said.contains("MANIFEST-") && said.contains("found no such file"), "{said}");
    fs::write(&manifest, whole).expect("write");
    assert_eq!(room.run::<&str>("count", &[]).text(), "1000\n");
    assert!(!names(&room.database()).is_empty());
}

#[test]
fn a_missing_pointer_beside_other_files_is_corruption_for_every_command() {
    // Catches a lost CURRENT that some commands call damage and others no database, and words that lead nowhere.
    let room = thousand_records();
    fs::remove_file(room.database().join("CURRENT")).expect("remove");
    let before = names(&room.database());
    for args in READERS.iter().chain(&[&["put", "k", "v"][..], &["compact"]]) {
        let said = room.run(args[0], &args[1..]).refusal(3);
        assert!(said.contains("CURRENT") && said.contains("table") && said.contains("exists"), "{said}");
        let next = said.lines().last().expect("a line");
        let db = room.database().display().to_string();
        assert!(next.starts_with(&format!("next: `mini-engine repair {db} NEW`")), "{said}");
        assert_eq!(names(&room.database()), before, "{args:?}");
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::io::Read;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::os::unix::process::CommandExt;
    use std::path::Path;
    use std::process::Command;

    use super::*;
    use crate::process::{program, run_with, skipped};

    /// A user without rights of its own, on every system that has root.
    const NOBODY: u32 = 65_534;

    /// Whether tests run as root, whom no permission stops.
    fn is_root(room: &Room) -> bool {
        fs::metadata(room.path(".")).expect("metadata").uid() == 0
    }

    /// Makes `command` run as somebody whom permissions stop; false, said aloud, where that cannot be.
    fn stoppable(room: &Room, command: &mut Command, test: &str) -> bool {
        if !is_root(room) {
            return true;
        }
        let help = program().arg("--version").uid(NOBODY).stdout(Stdio::null()).status();
        if let Err(error) = help {
            skipped(test, format_args!("root can read anything, and nobody cannot start the program: {error}"));
            return false;
        }
        command.uid(NOBODY);
        true
    }

    #[test]
    fn missing_permission_is_an_io_error_that_names_the_path() {
        // Catches a directory that cannot be read taken for one that holds no database.
        let room = thousand_records();
        let open = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("chmod");
        open(&room.path("."), 0o755);
        for mode in [0o000, 0o444] {
            let mut command = room.command::<&str>("count", &[]);
            if !stoppable(&room, &mut command, "missing_permission_is_an_io_error_that_names_the_path") {
                return;
            }
            open(&room.database(), mode);
            let said = run_with(command, b"").refusal(4);
            open(&room.database(), 0o755);
            assert!(said.contains(&room.database().display().to_string()), "{said}");
            assert!(said.contains("ermission denied"), "{said}");
        }
        assert_eq!(room.run::<&str>("count", &[]).text(), "1000\n");
    }

    /// A file system of a few MiB, for as long as this lives.
    struct SmallDisk {
        at: PathBuf,
    }

    impl SmallDisk {
        fn mount(at: PathBuf, options: &str) -> Result<Self, String> {
            fs::create_dir_all(&at).map_err(|error| error.to_string())?;
            run_mount(&at, options)?;
            Ok(Self { at })
        }

        fn grow(&self, options: &str) -> Result<(), String> {
            run_mount(&self.at, &format!("remount,{options}"))
        }
    }

    fn run_mount(at: &Path, options: &str) -> Result<(), String> {
        let mount = Command::new("mount").args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(at).output();
        let mount = mount.map_err(|error| error.to_string())?;
        if mount.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&mount.stderr).into_owned()) }
    }

    impl Drop for SmallDisk {
        fn drop(&mut self) {
            let status = Command::new("umount").arg(&self.at).status().expect("umount");
            assert!(status.success() || std::thread::panicking(), "umount: {status}");
        }
    }

    #[test]
    fn a_full_disk_is_an_io_error_and_loses_no_acknowledged_line() {
        // Catches an import that waits for ever, panics or reports success when the disk is full, and a log cut into what
        // was acknowledged. Which of log and table meets the end of the space depends on the size and on the threads.
        let noise = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let line = |n: u64| format!("key {n:06}\t{:x}{:x}{:x}\n", noise(n), noise(n + 1) / 3, noise(n + 2) / 5);
        let input: String = (0..100_000).map(line).collect();
        for size in ["1000k", "2100k", "3500k"] {
            let room = Room::new();
            match SmallDisk::mount(room.database(), &format!("size={size}")) {
                Ok(disk) => fills_up(&room, &disk, &input),
                Err(why) => return skipped("a_full_disk_is_an_io_error_and_loses_no_acknowledged_line", why),
            }
        }
    }

    fn fills_up(room: &Room, disk: &SmallDisk, input: &str) {
        let options = ["-", "--synced", "--batch", "500", "--memtable-bytes", "1048576"];
        let ran = room.import(&options, input.as_bytes());
        assert_eq!(ran.code, Some(4), "{}", ran.stderr);
        assert!(ran.stderr.contains("No space left"), "{}", ran.stderr);
        let acks = String::from_utf8(ran.stdout).expect("text");
        let acked: usize = acks.lines().last().map_or(0, |line| line["acked ".len()..].parse().expect("a number"));
        assert!(acked > 0, "nothing was acknowledged before the disk was full");

        disk.grow("size=64m").expect("remount");
        let records = room.records();
        assert!(input.starts_with(&records), "what is there is not the beginning of the input");
        let found = records.lines().count();
        assert!(found >= acked && found < 100_000, "{found} records, {acked} acknowledged");
        assert_eq!(room.import(&options, input.as_bytes()).code, Some(0));
        assert!(room.records() == input, "the scan differs from the input");
    }

    #[test]
    fn an_input_that_cannot_be_read_to_its_end_keeps_what_was_read() {
        // Catches a read error taken for the end of the input.
        let room = Room::new();
        let mut own_memory = fs::File::open("/proc/self/mem").expect("open");
        assert!(own_memory.read(&mut [0]).is_err(), "expected a file that opens and cannot be read");
        let said = room.import(&["/proc/self/mem"], b"").refusal(4);
        assert!(said.contains("cannot read /proc/self/mem: "), "{said}");
        assert_eq!(room.run::<&str>("count", &[]).text(), "0\n");
    }
}
