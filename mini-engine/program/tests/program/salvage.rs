//! `repair` and `scan --skip-damaged`: the readable rest of a damaged database, and the report about the lost part.

use std::fs;

use mini_engine::{Db, Durability};

use crate::support::{Ran, Room, check_says, flip, names, piped, run};

fn repair(room: &Room, args: &str) -> Ran {
    room.run(&format!("repair new {args}"))
}

/// The contents of the new database.
#[track_caller]
fn repaired(room: &Room) -> String {
    room.with("new").records()
}

/// The lines of `all` that are not in `found`; all of `found` are in `all`.
#[track_caller]
fn lost<'a>(all: &'a str, found: &str) -> Vec<&'a str> {
    let lost: Vec<&str> = all.lines().filter(|line| !found.lines().any(|found| found == *line)).collect();
    let kept = all.lines().count() - lost.len();
    assert!((1..60).contains(&lost.len()) && found.lines().count() == kept, "{} lost", lost.len());
    lost
}

#[test]
fn a_database_without_its_pointer_or_with_a_damaged_manifest_is_repaired() {
    // Catches a database that is lost through one wrong bit in a small file.
    let room = Room::of_a_thousand();
    let all = room.records();
    fs::remove_file(room.database().join("CURRENT")).expect("remove");
    let before = names(&room.database());
    let (kept, said) = repair(&room, "").ended(0);
    check_says(&kept, "kept 1000 keys of 1 table");
    check_says(&said, "CURRENT|no such file");
    assert_eq!((repaired(&room), names(&room.database())), (all.clone(), before));

    let room = Room::of_a_thousand();
    flip(&room.file("MANIFEST"), 40);
    room.run("count").ended(3);
    check_says(&repair(&room, "").ended(3).1, "MANIFEST|unknown: without a manifest");
    assert_eq!(repaired(&room), all);
    // An existing directory, and one within the database.
    room.refuses(2, &[("repair new", "expected a name that is free"), ("repair db/new", "outside of")]);
}

#[test]
fn a_damaged_block_costs_its_keys_and_is_told_by_scan_and_repair() {
    // Catches a scan that ends at the first damage, and one that goes on without a message.
    let room = Room::of_a_thousand();
    let all = room.records();
    flip(&room.file(".sst"), 20_000);
    room.run("scan").ended(3);
    let (found, said) = room.run("scan --skip-damaged").ended(3);
    let lost = lost(&all, &found);
    let before = all.lines().take_while(|line| *line != lost[0]).last().expect("a line before");
    let before = before.split('\t').next().expect("a key");
    check_says(&said, &format!("keys after \"{before}\" to \""));
    // Outside of the damage, a scan must report no problem.
    assert_eq!(room.run(&format!("scan --skip-damaged --from key0000 --to {before}")).ended(0).1, "");
    let last = format!("{}\n", all.lines().last().expect("a line"));
    room.prints(&[("scan --skip-damaged --prefix key0999", &last)]);
    // The text and the JSON of repair report the same ranges.
    let (report, _) = repair(&room, "--json").ended(3);
    let keys = 1000 - lost.len();
    check_says(&report, &format!("\"from\":\"{before}\",\"from_is_included\":false|\"keys\":{keys}"));
    assert_eq!(repaired(&room), found);
}

#[test]
fn a_damaged_table_is_set_aside_on_request_repaired_first_and_dropped_only_if_its_entries_may_be_lost() {
    // Catches a `--quarantine` without effect, advice to drop a table of a thousand entries for one damaged block, a loss without a message, a
    // database that later opens only with the flag, and a later repair that reports no loss.
    let room = Room::of_a_thousand();
    let table = room.file(".sst");
    room.prints(&[("put c 3", "")]);
    let all = room.records();
    flip(&table, 20_000);
    // A reading command ignores the damaged file, and leaves it in place.
    let (value, said) = room.run("get --quarantine c").ended(0);
    check_says(&said, &format!("{}|opened read-only", table.display()));
    assert!(value == "3\n" && table.exists() && !said.contains(".aside"), "{said}");
    let aside = format!("{}.aside", table.display());
    let (_, said) = room.run("quarantine --quarantine").ended(0);
    check_says(&said, &format!("{aside}|1000 entries"));
    let advice = ["repair", "quarantine --drop"].map(|command| said.find(command));
    assert!(advice[0].is_some() && advice[0] < advice[1], "{said}");
    check_says(&room.run("get key0001").ended(3).1, "next: `mini-engine repair");
    let listed = room.run("quarantine").text();
    let fields: Vec<&str> = listed.trim_end().split('\t').collect();
    assert_eq!(fields[1..], [&*aside, "key0000", "key0999", "1000"]);
    let drop = format!("quarantine --drop {}", fields[0]);
    let loss = "nothing was dropped|1000 entries|key0000|key0999|mini-engine repair|--lose-entries";
    room.refuses(2, &[("quarantine --drop 999", "999"), (&drop, loss)]);
    room.prints(&[("quarantine", &listed)]);
    check_says(&room.run(&format!("{drop} --lose-entries")).refused(0), "1000 entries");
    assert_eq!(room.run("scan").ended(0), ("c\t3\n".into(), String::new()));
    assert!(fs::metadata(aside).is_ok());
    check_says(&repair(&room, "").ended(3).1, "lost: versions of keys");
    lost(&all, &repaired(&room));
}

#[test]
fn a_repair_or_a_checkpoint_that_is_killed_does_not_stand_in_the_way_of_the_next() {
    // Catches a partial copy under the final name, one that blocks the next try, and one that is reported as damage.
    let room = Room::new();
    let value = "v".repeat(1000);
    let db = Db::open(room.database()).expect("open");
    db.ingest((0..60_000).map(|n| (format!("key{n:06}"), &value))).expect("ingest");
    db.close().expect("close");
    for command in ["repair", "checkpoint"] {
        let (new, left) = (room.path("new"), room.path("new.incomplete"));
        let line = format!("{command} new");
        let killed_midway = |_| {
            let mut child = piped(room.command(&line));
            while child.try_wait().expect("wait").is_none() && !left.join("INCOMPLETE").exists() {}
            crate::support::kill(child);
            fs::remove_dir_all(&new).ok();
            left.exists()
        };
        if command == "checkpoint" {
            // A checkpoint only makes links and ends at once, so the test itself makes the leftover of a killed one.
            fs::create_dir(&left).expect("create");
            ["INCOMPLETE", "LOCK", "000001.sst"].iter().for_each(|name| fs::write(left.join(name), "").expect("write"));
        } else {
            assert!((0..100).any(killed_midway));
        }
        room.with("new.incomplete").refuses(2, &[("count", "an interrupted checkpoint or repair has left it")]);
        room.run(&line).ended(0);
        room.with("new").prints(&[("count", "60000\n")]);
        assert!(!left.exists());
        fs::remove_dir_all(new).expect("remove");
    }
}

#[test]
fn frames_behind_damage_are_listed_and_repaired() {
    // Catches writes behind a damaged frame that cannot be restored, cut values, and an import of dumped writes that would store old versions
    // as new ones.
    let room = Room::new();
    let long = "long ".repeat(100);
    {
        let db = Db::open(room.database()).expect("open");
        ["a", "b", "c"].iter().for_each(|key| db.insert(key, &long).expect("write"));
        db.remove("a").expect("write");
        db.persist(Durability::Synced).expect("sync");
    }
    let log = room.file(".log");
    let dump = || run(&format!("dump '{}' --json", log.display()));
    assert_eq!(dump().text().lines().count(), 4);
    let second = 56 + (48 + 5 + long.len()).next_multiple_of(8);
    flip(&log, second + 60);
    let (lines, said) = dump().ended(3);
    check_says(&said, &format!("at offset {second}"));
    let expected = format!(
        "{{\"seqno\":1,\"key\":\"a\",\"value\":\"{long}\"}}\n\
         {{\"seqno\":3,\"key\":\"c\",\"value\":\"{long}\",\"behind_damage\":true}}\n\
         {{\"seqno\":4,\"key\":\"a\",\"removed\":true,\"behind_damage\":true}}\n"
    );
    assert_eq!(lines, expected);
    let said = Room::new().import("- --json", lines.as_bytes()).refused(2);
    check_says(&said, "expected the fields key and value, found \"seqno\"");
    check_says(&repair(&room, "").ended(3).1, "sequence numbers 2 to 2");
    assert_eq!(repaired(&room), format!("c\t{long}\n"));
}
