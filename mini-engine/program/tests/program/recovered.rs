//! What the program says of a database that was not left in order.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;

use crate::process::{Room, importing, names};

/// The newest file of the database whose name contains `part`.
fn newest(database: &Path, part: &str) -> PathBuf {
    let name = names(database).into_iter().rfind(|name| name.to_string_lossy().contains(part)).expect("a file");
    database.join(name)
}

fn kill(mut child: Child) {
    child.kill().expect("kill");
    child.wait().expect("wait");
}

fn cut(path: &Path, bytes: u64) {
    let file = fs::File::options().write(true).open(path).expect("open");
    file.set_len(file.metadata().expect("metadata").len() - bytes).expect("cut");
}

/// What a command that writes says of it, once. Before that, `count` prints the records and says what was found, each time; and
/// nothing any more after it.
#[track_caller]
fn said_once(room: &Room, records: &str) -> String {
    let count = || {
        let ran = room.run::<&str>("count", &[]);
        assert_eq!((ran.code, &*ran.stdout), (Some(0), records.as_bytes()), "{ran:?}");
        ran.stderr
    };
    let found = count();
    assert_eq!(count(), found);
    let ran = room.run("delete", &["absent"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(count(), "");
    // Told first by both; then that nothing was changed, or where it is kept.
    assert!(ran.stderr.starts_with(found.lines().next().unwrap_or_default()), "{found}{}", ran.stderr);
    assert_eq!(found.contains("opened read-only"), !found.is_empty());
    ran.stderr
}

#[test]
fn a_clean_open_says_nothing() {
    // Catches words on stderr that scripts take for an error.
    let room = Room::holding("a\t1\n");
    assert_eq!(room.run::<&str>("count", &[]).stderr, "");
    // A replay that lost nothing is nothing to speak of.
    let (child, _stdin) = importing(&room, &["b\t2"]);
    kill(child);
    assert_eq!(room.run::<&str>("count", &[]).stderr, "");
    assert_eq!(said_once(&room, "2\n"), "");
}

#[test]
fn a_torn_log_is_told_with_its_place_and_size() {
    // Catches writes that vanish without a word.
    let room = Room::new();
    let (child, _stdin) = importing(&room, &["a\tvalue", "b\tvalue"]);
    kill(child);
    let log = newest(&room.database(), ".log");
    let len = fs::metadata(&log).expect("metadata").len();
    cut(&log, 3);
    let said = said_once(&room, "1\n");
    let offset = said.split("at offset ").nth(1).and_then(|rest| rest.split(',').next()).expect("an offset");
    let dropped = len - 3 - offset.parse::<u64>().expect("a number");
    assert!(said.starts_with(&log.display().to_string()) && said.lines().count() == 1, "{said}");
    assert!(said.contains(&format!("dropped {dropped} bytes")), "{said}");
    let kept = said.trim_end().rsplit_once("; kept in ").expect("a path").1;
    assert_eq!(kept, format!("{}.tail.aside", log.display()));
    assert_eq!(fs::metadata(kept).expect("kept").len(), len - 3);
}

#[test]
fn an_end_that_may_be_damage_is_not_called_sound() {
    // Catches words that promise synced writes which damage has taken: the last frame was synced, and nothing behind it says so.
    let room = Room::new();
    let (child, _stdin) = importing(&room, &["a\tvalue", "b\tvalue"]);
    kill(child);
    let log = newest(&room.database(), ".log");
    let mut bytes = fs::read(&log).expect("read");
    let last = bytes.iter().rposition(|&byte| byte != 0).expect("frames");
    bytes[last] ^= 1;
    fs::write(&log, bytes).expect("write");
    let ran = room.run::<&str>("verify", &[]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let said = String::from_utf8_lossy(&ran.stdout).into_owned() + &ran.stderr;
    assert!(said.contains("damage to the last writes looks the same") && said.contains("may be damage"), "{said}");
    assert!(!said.contains("all there") && !said.contains("no damage"), "{said}");
    // An open for writing cuts it off and keeps it; what is left is sound.
    let said = said_once(&room, "1\n");
    assert!(said.contains("synced ones may be among them") && said.contains(".tail.aside"), "{said}");
    assert!(room.run::<&str>("verify", &[]).text().contains("no damage"));
}

#[test]
fn a_torn_manifest_and_what_is_set_aside_are_told() {
    // Catches a file that is renamed behind the back of who looks after the database.
    let room = Room::new();
    let (mut child, stdin) = importing(&room, &["a\t1"]);
    let log = newest(&room.database(), ".log");
    let held = fs::read(&log).expect("read");
    drop(stdin);
    assert!(child.wait().expect("wait").success());
    // As if the log had stayed and the edit that replaces it had been cut short.
    fs::write(&log, held).expect("write");
    cut(&newest(&room.database(), "MANIFEST"), 1);
    let table = newest(&room.database(), ".sst");
    // One that can be read is removed: the log has all that it holds.
    cut(&table, 1);
    let said = said_once(&room, "1\n");
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 2, "{said}");
    assert!(lines[0].starts_with(&room.database().display().to_string()) && lines[0].contains(" bytes"), "{said}");
    assert!(lines[1].starts_with(&format!("{}.aside: ", table.display())), "{said}");
    assert!(lines[1].contains("keep it until"), "{said}");
}

#[test]
fn a_damaged_table_is_set_aside_on_request_listed_and_dropped() {
    // Catches a flag without effect, a loss without words, and a way in that has no way out.
    let room = Room::holding("a\t1\nb\t2\n");
    let table = newest(&room.database(), ".sst");
    assert_eq!(room.run("put", &["c", "3"]).text(), "");
    let mut bytes = fs::read(&table).expect("read");
    bytes[3] ^= 1;
    fs::write(&table, bytes).expect("write");
    // A command that reads goes on without it, and leaves it where it is.
    let ran = room.run("get", &["--quarantine", "c"]);
    assert_eq!((ran.code, &*ran.stdout), (Some(0), &b"3\n"[..]), "{ran:?}");
    assert!(ran.stderr.contains(&table.display().to_string()) && ran.stderr.contains("opened read-only"), "{ran:?}");
    assert!(table.exists() && !ran.stderr.contains(".aside"), "{ran:?}");
    let ran = room.run("quarantine", &["--quarantine"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let aside = format!("{}.aside", table.display());
    assert!(ran.stderr.contains(&aside) && ran.stderr.contains("quarantine --drop"), "{ran:?}");
    assert_eq!(room.run("get", &["a"]).code, Some(3));
    let listed = room.run::<&str>("quarantine", &[]).text();
    let fields: Vec<&str> = listed.trim_end().split('\t').collect();
    assert_eq!(fields[1..], [&*aside, "a", "b", "2"]);
    let said = room.run("quarantine", &["--drop", "999"]);
    assert!(said.code == Some(2) && said.stderr.contains("999"), "{said:?}");
    assert_eq!(room.run("quarantine", &["--drop", fields[0], "--lose-entries"]).text(), "");
    let ran = room.run::<&str>("scan", &[]);
    assert_eq!((&*ran.stdout, &*ran.stderr), (&b"c\t3\n"[..], ""), "{ran:?}");
    assert!(fs::metadata(aside).is_ok());
}

#[test]
fn stats_lists_the_files_set_aside() {
    // Catches leftovers that no command knows.
    let room = Room::new();
    let (child, _stdin) = importing(&room, &["a\tvalue", "b\tvalue"]);
    kill(child);
    cut(&newest(&room.database(), ".log"), 3);
    assert!(!room.run::<&str>("stats", &[]).text().contains("\nset aside"));
    assert_eq!(room.run("delete", &["absent"]).code, Some(0));
    let aside = newest(&room.database(), ".aside");
    let len = fs::metadata(&aside).expect("kept").len();
    let told = room.run::<&str>("stats", &[]).text();
    assert!(told.contains("\nset aside") && told.contains(&format!("  {}: {len} bytes\n", aside.display())), "{told}");
    let json = room.run("stats", &["--json"]).text();
    assert!(json.contains(&format!("\"bytes\":{len},")) && json.contains("\"quarantined\":false"), "{json}");
}
