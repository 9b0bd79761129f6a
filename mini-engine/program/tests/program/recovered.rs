//! Databases that were not closed cleanly, and the program's messages about them.

use std::fs;

use crate::support::{Room, check_says, cut, finished, flip};

/// The messages of a command that writes, printed once. Before that, `count` prints the records and these messages, each time; after it, no
/// messages.
#[track_caller]
fn said_once(room: &Room, records: &str) -> String {
    let count = || {
        let (counted, said) = room.run("count").ended(0);
        assert_eq!(counted, records, "{said}");
        said
    };
    let found = count();
    assert_eq!(count(), found);
    let (_, said) = room.run("delete absent").ended(0);
    assert_eq!(count(), "");
    // Told first by both; then that nothing was changed, or where it is kept.
    assert!(said.starts_with(found.lines().next().unwrap_or_default()), "{found}{said}");
    assert_eq!(found.contains("opened read-only"), !found.is_empty());
    said
}

#[test]
fn a_clean_open_says_nothing() {
    // Catches words on stderr that scripts take for an error.
    let room = Room::holding("a\t1\n");
    assert_eq!(room.run("count").ended(0).1, "");
    // A replay that lost nothing is nothing to speak of.
    room.killed_import(&["b\t2"]);
    assert_eq!(said_once(&room, "2\n"), "");
}

#[test]
fn a_torn_log_is_told_with_its_place_and_size_and_listed_by_stats() {
    // Catches writes that vanish without a word, and leftovers that no command knows.
    let room = Room::new();
    room.killed_import(&["a\tvalue", "b\tvalue"]);
    let log = room.file(".log");
    // Behind the frames there may be space for more.
    let bytes = fs::read(&log).expect("the log");
    let space = bytes.iter().rev().take_while(|byte| **byte == 0).count();
    let len = (bytes.len() - space) as u64;
    cut(&log, space as u64 + 3);
    assert!(!room.run("stats").text().contains("\nset aside"));
    let said = said_once(&room, "1\n");
    let offset = said.split("at offset ").nth(1).and_then(|rest| rest.split(',').next()).expect("an offset");
    let dropped = len - 3 - offset.parse::<u64>().expect("a number");
    assert!(said.starts_with(&log.display().to_string()) && said.lines().count() == 1, "{said}");
    let kept = format!("{}.tail.aside", log.display());
    check_says(&said, &format!("dropped {dropped} bytes|; kept in {kept}\n"));
    assert_eq!(fs::metadata(&kept).expect("kept").len(), len - 3);
    check_says(&room.run("stats").text(), &format!("\nset aside|  {kept}: {} bytes\n", len - 3));
    check_says(&room.run("stats --json").text(), &format!("\"bytes\":{},|\"quarantined\":false", len - 3));
}

#[test]
fn an_end_that_may_be_damage_is_not_called_sound() {
    // Catches words that promise synced writes which damage has taken: the last frame was synced, and nothing behind it says so.
    let room = Room::new();
    room.killed_import(&["a\tvalue", "b\tvalue"]);
    let log = room.file(".log");
    flip(&log, fs::read(&log).expect("read").iter().rposition(|&byte| byte != 0).expect("frames"));
    let (checked, said) = room.run("verify").ended(3);
    let said = checked + &said;
    check_says(&said, "damage to the last writes looks the same|may be damage");
    assert!(!said.contains("all there") && !said.contains("no damage"), "{said}");
    // An open for writing cuts it off and keeps it; the rest is sound.
    check_says(&said_once(&room, "1\n"), "synced ones may be among them|.tail.aside");
    check_says(&room.run("verify").text(), "no damage");
}

#[test]
fn a_torn_manifest_and_what_is_set_aside_are_told() {
    // Catches a file that is renamed without a message to the operator.
    let room = Room::new();
    let (child, stdin) = room.importing(&["a\t1"]);
    let log = room.file(".log");
    let held = fs::read(&log).expect("read");
    drop(stdin);
    finished(child).ended(0);
    // As if the log had stayed and the edit that replaces it had been cut short.
    fs::write(&log, held).expect("write");
    cut(&room.file("MANIFEST"), 1);
    let table = room.file(".sst");
    // A log that can be read is removed: another log has all its entries.
    cut(&table, 1);
    let said = said_once(&room, "1\n");
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 2, "{said}");
    assert!(lines[0].starts_with(&room.database().display().to_string()) && lines[0].contains(" bytes"), "{said}");
    assert!(lines[1].starts_with(&format!("{}.aside: ", table.display())), "{said}");
    check_says(lines[1], "keep it until");
}

#[test]
fn a_damaged_table_is_set_aside_on_request_listed_and_dropped() {
    // Catches a flag without effect, a loss without a message, and a flag after which the database cannot be opened without it.
    let room = Room::holding("a\t1\nb\t2\n");
    let table = room.file(".sst");
    room.prints(&[("put c 3", "")]);
    flip(&table, 3);
    // A command that reads goes on without it, and leaves it where it is.
    let (value, said) = room.run("get --quarantine c").ended(0);
    check_says(&said, &format!("{}|opened read-only", table.display()));
    assert!(value == "3\n" && table.exists() && !said.contains(".aside"), "{said}");
    let aside = format!("{}.aside", table.display());
    check_says(&room.run("quarantine --quarantine").ended(0).1, &format!("{aside}|quarantine --drop"));
    room.run("get a").ended(3);
    let listed = room.run("quarantine").text();
    let fields: Vec<&str> = listed.trim_end().split('\t').collect();
    assert_eq!(fields[1..], [&*aside, "a", "b", "2"]);
    room.refuses(2, &[("quarantine --drop 999", "999")]);
    room.prints(&[(&format!("quarantine --drop {} --lose-entries", fields[0]), "")]);
    assert_eq!(room.run("scan").ended(0), ("c\t3\n".into(), String::new()));
    assert!(fs::metadata(aside).is_ok());
}
