//! Refusals of the program, which lose no data and create no files: paths without a database, newer formats, locks, damage, missing permission.

use std::fs;

use crate::support::{Room, check_says, finished, flip, names, run};

/// The commands that do not create a database, with valid arguments.
const READERS: &str =
    "get k|ttl k|delete k|scan|export|count|keyspaces|stats|stats --json|verify|checkpoint copy|quarantine";
const PUT: &str = "put k v";

/// Runs each command that does not create a database, and the lines in `more`. All must be refused with `code` and a message that contains `words`.
#[track_caller]
fn refuses(room: &Room, code: i32, more: &[&str], words: &str) {
    for line in READERS.split('|').chain(more.iter().copied()) {
        room.refuses(code, &[(line, words)]);
    }
}

#[test]
fn an_empty_path_or_address_is_refused_by_its_name() {
    // Catches messages such as "could not find : " and "cannot reach the node at : ", which lack the name.
    for (line, name) in [
        ("get '' k", "<DB>"),
        ("import '' -", "<DB>"),
        ("import db ''", "<FILE>"),
        ("checkpoint db ''", "<DIR>"),
        ("repair db ''", "<NEW>"),
        ("dump ''", "<FILE>"),
        ("bench fillseq --db ''", "--db <DIR>"),
        ("put db k --input ''", "--input <FILE>"),
        ("get db k --output ''", "--output <FILE>"),
        ("serve db --listen ''", "--listen <ADDR>"),
        ("serve db --metrics ''", "--metrics <ADDR>"),
        ("cluster init ''", "<ADDR>"),
        ("cluster add '' --to h:1", "<ADDR>"),
        ("cluster add h:1 --to ''", "--to <ADDR>"),
        ("cluster status ''", "<ADDR>"),
    ] {
        // A program without clusters has no arguments of `cluster`.
        if line.starts_with("cluster") && cfg!(not(feature = "cluster")) {
            continue;
        }
        check_says(&run(line).refused(2), &format!("a value is required for '{name}"));
    }
}

#[test]
fn commands_that_read_create_no_database() {
    // Catches a mistyped path that becomes an empty database with an empty result.
    let room = Room::new();
    refuses(&room, 2, &[], &room.database().display().to_string());
    room.refuses(2, &[("repair new", "not a database")]);
    assert_eq!(names(&room.path(".")), [""; 0], "something is left behind");
    fs::create_dir(room.database()).expect("create");
    refuses(&room, 2, &["repair new"], "not a database");
    assert_eq!(names(&room.database()), [""; 0], "something is left behind");
    assert_eq!(names(&room.path(".")), ["db"], "something is left behind");
}

#[test]
fn what_is_there_is_not_made_a_database() {
    // Catches a command that adds its files to another directory, such as a home directory, or that replaces or truncates a file of the same name.
    let room = Room::new();
    fs::create_dir(room.database()).expect("create");
    fs::write(room.path("db/letter.txt"), "dear").expect("write");
    refuses(&room, 2, &[PUT, "import -"], "not a database");
    assert_eq!(names(&room.database()), ["letter.txt"], "something is left behind");
    let file = room.with("db/letter.txt");
    refuses(&file, 2, &[PUT], "not a database|found a file");
    assert_eq!(fs::read(file.database()).expect("read"), b"dear");
}

#[test]
fn an_input_that_cannot_be_read_creates_no_database() {
    // Catches a database that is opened before its input, and a read error taken for the end of the input. On Linux, the last file opens, but
    // cannot be read.
    let (room, memory) = (Room::new(), "/proc/self/mem");
    assert!(fs::File::open(memory).is_ok() || cfg!(not(target_os = "linux")));
    for name in ["missing.tsv", ".", memory] {
        room.refuses(4, &[(&format!("import {name}"), &format!("cannot read {name}: "))]);
    }
    assert!(!room.database().exists());
}

#[test]
fn a_newer_format_is_named_and_left_alone() {
    // Catches a database of a newer format that is reported as damage, or is opened although its format is unknown.
    let room = Room::of_a_thousand();
    let current = room.database().join("CURRENT");
    let pointer = fs::read_to_string(&current).expect("read");
    let newer = pointer.replacen("mini-engine 1 ", "mini-engine 2 ", 1);
    assert_ne!(newer, pointer);
    fs::write(&current, &newer).expect("write");
    // A version with a wrong checksum is damage.
    room.refuses(3, &[("count", "CURRENT")]);
    let text = newer.rsplit_once(' ').expect("a checksum").0;
    let newer = format!("{text} {:016x}\n", xxhash_rust::xxh3::xxh3_64(text.as_bytes()));
    fs::write(&current, &newer).expect("write");
    refuses(&room, 2, &[PUT], "CURRENT|version 2|reads version 1");
    assert_eq!(fs::read_to_string(&current).expect("read"), newer);
    fs::write(&current, pointer).expect("write");
    room.prints(&[("count", "1000\n")]);
}

#[test]
fn a_database_that_is_open_elsewhere_is_locked() {
    // Catches two processes that write to the same files.
    let room = Room::of_a_thousand();
    let (holder, stdin) = room.importing(&["one more\tvalue"]);
    let writers = [PUT, "delete k", "compact", "quarantine"];
    let refused = |words: &str| room.refuses(4, &writers.map(|line| (line, words)));
    refused(&format!("locked|(process {})", holder.id()));
    // A second process is refused even without the lock file.
    fs::remove_file(room.database().join("LOCK")).expect("remove");
    refused("locked");
    drop(stdin);
    finished(holder).ended(0);
    room.prints(&[("count", "1001\n")]);
}

#[test]
fn a_damaged_table_is_corruption_with_its_file_and_offset() {
    // Catches damage that is printed as data, reported without its place, or that hides behind exit code 0.
    let room = Room::of_a_thousand();
    let table = room.file(".sst");
    flip(&table, 100);
    for line in ["verify", "get key0000", "scan", "count"] {
        check_says(&room.run(line).ended(3).1, &format!("{}|offset", table.display()));
    }
    // The last block is intact and must be readable.
    let last = room.run("get key0999").text();
    assert!(last.starts_with("value 999 "), "{last}");
}

#[test]
fn a_damaged_or_missing_manifest_is_corruption_and_not_an_empty_database() {
    // Catches a new empty database over existing files that cannot be interpreted.
    let room = Room::of_a_thousand();
    let manifest = room.file("MANIFEST-");
    flip(&manifest, 40);
    room.refuses(3, &[("count", "MANIFEST-")]);
    flip(&manifest, 40);
    fs::rename(&manifest, room.path("kept")).expect("rename");
    room.refuses(3, &[(PUT, "MANIFEST-|found no such file")]);
    fs::rename(room.path("kept"), &manifest).expect("rename");
    room.prints(&[("count", "1000\n")]);
}

#[test]
fn a_missing_pointer_beside_other_files_is_corruption_for_every_command() {
    // Catches a lost CURRENT that only some commands report as damage and others as a missing database, and a message without useful advice.
    let room = Room::of_a_thousand();
    fs::remove_file(room.database().join("CURRENT")).expect("remove");
    let before = names(&room.database());
    let next = format!("\nnext: `mini-engine repair {} NEW`", room.database().display());
    refuses(&room, 3, &[PUT, "compact"], &format!("CURRENT|since |exists|{next}"));
    assert_eq!(names(&room.database()), before);
}

#[cfg(target_os = "linux")]
#[test]
fn missing_permission_is_an_io_error_that_names_the_path() {
    // Catches an unreadable directory that is reported as one without a database.
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::os::unix::process::CommandExt;
    use std::path::Path;

    use crate::support::{program, run_with, skipped};

    // The user nobody, whom permissions stop; they do not stop root.
    const NOBODY: u32 = 65_534;
    let room = Room::of_a_thousand();
    let is_root = fs::metadata(room.path(".")).expect("metadata").uid() == 0;
    if is_root && let Err(error) = program().arg("--version").uid(NOBODY).output() {
        let why = format!("root can read anything, and nobody cannot start the program: {error}");
        return skipped("missing_permission_is_an_io_error_that_names_the_path", why);
    }
    let open = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("chmod");
    open(&room.path("."), 0o755);
    for mode in [0o000, 0o444] {
        let mut command = room.command("count");
        if is_root {
            command.uid(NOBODY);
        }
        open(&room.database(), mode);
        let said = run_with(command, b"").refused(4);
        open(&room.database(), 0o755);
        check_says(&said, &format!("{}|ermission denied", room.database().display()));
    }
    room.prints(&[("count", "1000\n")]);
}

#[cfg(not(feature = "cluster"))]
#[test]
fn a_program_without_clusters_says_how_to_get_them() {
    // Catches options of clusters that are reported as unknown, and a node that starts as a server outside of a cluster.
    let room = Room::new();
    for line in ["serve --cluster node --cluster-listen 127.0.0.1:0", "cluster init 127.0.0.1:17001", "cluster"] {
        let mut command = crate::support::program();
        command.current_dir(room.path(".")).args(line.split(' '));
        let said = crate::support::run_with(command, b"").refused(2);
        check_says(&said, "built without clusters|--features cluster");
    }
    assert!(!room.path("node").exists());
}
