//! Databases that were not closed cleanly, and the program's messages about them.

use std::fs;

use crate::support::{Room, check_says, cut, finished, flip};

/// The messages of the first writing command. Checks that `count` prints the records and these messages each time before that command, and
/// no messages after it.
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
    // Both begin with the same message; then one states that nothing was changed, and the other where the file is kept.
    assert!(said.starts_with(found.lines().next().unwrap_or_default()), "{found}{said}");
    assert_eq!(found.contains("opened read-only"), !found.is_empty());
    said
}

#[test]
fn a_clean_open_says_nothing() {
    // Catches text on stderr that scripts take for an error.
    let room = Room::holding("a\t1\n");
    assert_eq!(room.run("count").ended(0).1, "");
    // A replay without a loss prints no message.
    room.killed_import(&["b\t2"]);
    assert_eq!(said_once(&room, "2\n"), "");
}

#[test]
fn a_torn_log_is_told_with_its_place_and_size_and_listed_by_stats() {
    // Catches lost writes without a message, and leftover files that no command lists.
    let room = Room::new();
    room.killed_import(&["a\tvalue", "b\tvalue"]);
    let log = room.file(".log");
    // The file may have preallocated space behind the frames.
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
    // Catches a message that promises that no synced write was lost: the last frame was synced, but no later frame records that.
    let room = Room::new();
    room.killed_import(&["a\tvalue", "b\tvalue"]);
    let log = room.file(".log");
    flip(&log, fs::read(&log).expect("read").iter().rposition(|&byte| byte != 0).expect("frames"));
    let (checked, said) = room.run("verify").ended(3);
    let said = checked + &said;
    check_says(&said, "damage to the last writes looks the same|may be damage");
    assert!(!said.contains("all there") && !said.contains("no damage"), "{said}");
    // An open for writing cuts the tail off and keeps it in a file; the rest is sound.
    check_says(&said_once(&room, "1\n"), "synced ones may be among them|.tail.aside");
    check_says(&room.run("verify").text(), "no damage");
}

#[test]
fn a_torn_manifest_and_what_is_set_aside_are_told() {
    // Catches a file that is renamed without a message to the operator.
    let room = Room::new();
    // A close flushes that much.
    let (child, stdin) = room.importing(&[&format!("a\t{}", "v".repeat(20_000))]);
    let log = room.file(".log");
    let held = fs::read(&log).expect("read");
    drop(stdin);
    finished(child).ended(0);
    // As if the log still existed and the edit that replaces it were torn.
    fs::write(&log, held).expect("write");
    cut(&room.file("MANIFEST"), 1);
    fs::remove_file(room.database().join("CLOSED")).expect("a note");
    let table = room.file(".sst");
    // A readable log is removed, since another log has all its entries.
    cut(&table, 1);
    let said = said_once(&room, "1\n");
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 2, "{said}");
    assert!(lines[0].starts_with(&room.database().display().to_string()) && lines[0].contains(" bytes"), "{said}");
    assert!(lines[1].starts_with(&format!("{}.aside: ", table.display())), "{said}");
    check_says(lines[1], "keep it until");
}
