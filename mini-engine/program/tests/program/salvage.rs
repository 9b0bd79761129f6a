//! `repair` and `scan --skip-damaged`: what is left of a damaged database, and what is said of the rest.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;

use mini_engine::{Db, Durability};

use crate::process::{Ran, Room, names, program};

/// A thousand records in one table of many blocks, and the key of the `n`-th.
fn thousand() -> Room {
    let lines: String = (0..1000).map(|n| format!("{}\tvalue {n} {}\n", key(n), "v".repeat(90))).collect();
    Room::holding(&lines)
}

fn key(n: usize) -> String {
    format!("key{n:04}")
}

fn file(room: &Room, part: &str) -> PathBuf {
    let name = names(&room.database()).into_iter().rfind(|name| name.to_string_lossy().contains(part)).expect("a file");
    room.database().join(name)
}

fn flip(path: &PathBuf, at: usize) {
    let mut bytes = fs::read(path).expect("read");
    bytes[at] ^= 1;
    fs::write(path, bytes).expect("write");
}

fn repair(room: &Room, args: &[&str]) -> Ran {
    room.run("repair", &[&[room.path("new").to_str().expect("text")], args].concat())
}

/// What the new database holds.
#[track_caller]
fn repaired(room: &Room) -> String {
    let ran: Ran = program().arg("scan").arg(room.path("new")).output().expect("run").into();
    ran.text()
}

#[test]
fn a_database_without_its_pointer_or_with_a_damaged_manifest_is_repaired() {
    // Catches a database that one bit of a small file makes unreachable.
    let lost_pointer = |room: &Room| fs::remove_file(room.database().join("CURRENT")).expect("remove");
    let room = thousand();
    let all = room.records();
    lost_pointer(&room);
    let before = names(&room.database());
    let ran = repair(&room, &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(String::from_utf8_lossy(&ran.stdout).contains("kept 1000 keys of 1 table"), "{ran:?}");
    assert!(ran.stderr.contains("CURRENT") && ran.stderr.contains("no such file"), "{ran:?}");
    assert_eq!((repaired(&room), names(&room.database())), (all.clone(), before));

    let room = thousand();
    flip(&file(&room, "MANIFEST"), 40);
    assert_eq!(room.run::<&str>("count", &[]).code, Some(3));
    let ran = repair(&room, &[]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.stderr.contains("MANIFEST") && ran.stderr.contains("unknown: without a manifest"), "{ran:?}");
    assert_eq!(repaired(&room), all);
    // A name that is taken, and one within.
    assert!(repair(&room, &[]).refusal(2).contains("expected a name that is free"));
    let within = room.database().join("new");
    let ran = room.run("repair", &[within.to_str().expect("text")]).refusal(2);
    assert!(ran.contains("outside of"), "{ran}");
}

#[test]
fn a_damaged_block_costs_its_keys_and_is_told_by_scan_and_repair() {
    // Catches a scan that ends at the first damage, and one that goes on without a word.
    let room = thousand();
    let all = room.records();
    flip(&file(&room, ".sst"), 20_000);
    let ran = room.run::<&str>("scan", &[]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let ran = room.run("scan", &["--skip-damaged"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let found = String::from_utf8(ran.stdout).expect("text");
    let lost: Vec<&str> = all.lines().filter(|line| !found.lines().any(|found| found == *line)).collect();
    assert!((1..60).contains(&lost.len()), "{} lost", lost.len());
    assert_eq!(found.lines().count() + lost.len(), 1000);
    let key_of = |line: &str| line.split('\t').next().expect("a key").to_owned();
    let before = all.lines().take_while(|line| *line != lost[0]).last().expect("a line before");
    assert!(ran.stderr.contains(&format!("keys after \"{}\" to \"", key_of(before))), "{}", ran.stderr);
    // Outside of the damage nothing is wrong.
    let ran = room.run("scan", &["--skip-damaged", "--from", &key(0), "--to", &key_of(before)]);
    assert_eq!((ran.code, &*ran.stderr), (Some(0), ""), "{ran:?}");
    assert_eq!(
        room.run("scan", &["--skip-damaged", "--prefix", &key(999)]).text(),
        format!("{}\n", all.lines().last().expect("a line"))
    );
    // As repair has it, in words and for scripts.
    let ran = repair(&room, &["--json"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let report = String::from_utf8(ran.stdout).expect("text");
    assert!(report.contains(&format!("\"from\":\"{}\",\"from_is_included\":false", key_of(before))), "{report}");
    assert!(report.contains(&format!("\"keys\":{}", 1000 - lost.len())), "{report}");
    assert_eq!(repaired(&room), found);
}

#[test]
fn a_damaged_table_is_repaired_first_and_dropped_only_on_request() {
    // Catches a message that gives up a table of a thousand entries for one block of it, and a repair after that which finds no loss.
    let room = thousand();
    let all = room.records();
    flip(&file(&room, ".sst"), 20_000);
    let said = room.run("quarantine", &["--quarantine"]).text_and_words().1;
    let before = |said: &str| said.find("repair").expect("repair") < said.find("--drop").expect("drop");
    assert!(before(&said) && said.contains("1000 entries"), "{said}");
    let ran = room.run("get", &[&key(1)]);
    assert!(ran.code == Some(3) && ran.stderr.contains("next: `mini-engine repair"), "{ran:?}");
    let listed = room.run::<&str>("quarantine", &[]).text_and_words().0;
    let number = listed.split('\t').next().expect("a number").to_owned();
    assert!(listed.ends_with("\t1000\n"), "{listed}");
    let said = room.run("quarantine", &["--drop", &number]).refusal(2);
    for part in ["nothing was dropped", "1000 entries", "key0000", "key0999", "mini-engine repair", "--lose-entries"] {
        assert!(said.contains(part), "{part} in {said}");
    }
    assert_eq!(room.run::<&str>("quarantine", &[]).text_and_words().0, listed);
    let (listed, said) = room.run("quarantine", &["--drop", &number, "--lose-entries"]).text_and_words();
    assert!(listed.is_empty() && said.contains("1000 entries"), "{said}");
    assert_eq!(room.records(), "");
    let ran = repair(&room, &[]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let found = repaired(&room);
    let lost = all.lines().filter(|line| !found.lines().any(|found| found == *line)).count();
    assert!((1..60).contains(&lost) && found.lines().count() + lost == 1000, "{lost} lost");
    assert!(ran.stderr.contains("lost: versions of keys"), "{ran:?}");
}

#[test]
fn a_repair_or_a_checkpoint_that_is_killed_does_not_stand_in_the_way_of_the_next() {
    // Catches a leftover that has the name of the whole, that blocks the next try, and that is called damage.
    let room = Room::new();
    let value = "v".repeat(1000);
    let db = Db::open(room.database()).expect("open");
    db.ingest((0..60_000).map(|n| (format!("key{n:06}"), &value))).expect("ingest");
    db.close().expect("close");
    for command in ["repair", "checkpoint"] {
        let (new, left) = (room.path(command), room.path(&format!("{command}.incomplete")));
        let args = [new.to_str().expect("text")];
        // A checkpoint links: it is over at once, so that one that was killed is made here.
        let killed = command == "checkpoint"
            || (0..100).any(|_| {
                let mut child =
                    room.command(command, &args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("spawn");
                while child.try_wait().expect("wait").is_none() && !left.join("INCOMPLETE").exists() {}
                child.kill().expect("kill");
                child.wait().expect("wait");
                if new.exists() {
                    fs::remove_dir_all(&new).expect("remove");
                }
                left.exists()
            });
        if command == "checkpoint" {
            fs::create_dir(&left).expect("create");
            ["INCOMPLETE", "LOCK", "000001.sst"].iter().for_each(|name| fs::write(left.join(name), "").expect("write"));
        }
        assert!(killed && !new.exists(), "{command}");
        let opened: Ran = program().arg("count").arg(&left).output().expect("run").into();
        let said = opened.refusal(2);
        assert!(said.contains("an interrupted checkpoint or repair has left it"), "{said}");
        assert_eq!(room.run(command, &args).code, Some(0), "{command}");
        assert!(!left.exists());
        let counted: Ran = program().arg("count").arg(&new).output().expect("run").into();
        assert_eq!(counted.text(), "60000\n");
    }
}

#[test]
fn what_is_no_database_is_not_repaired() {
    // Catches an empty database made of a mistyped path.
    let room = Room::new();
    assert!(repair(&room, &[]).refusal(2).contains("not a database"));
    fs::create_dir(room.database()).expect("create");
    assert!(repair(&room, &[]).refusal(2).contains("not a database"));
    assert!(!room.path("new").exists() && names(&room.database()).is_empty());
}

#[test]
fn frames_behind_damage_are_listed_and_repaired() {
    // Catches writes behind a damaged frame that nothing can bring back, values that are cut, and an import of what is listed: it would
    // store old versions as new ones.
    let room = Room::new();
    let long = "long ".repeat(100);
    {
        let db = Db::open(room.database()).expect("open");
        for key in ["a", "b", "c"] {
            db.insert(key, &long).expect("write");
        }
        db.remove("a").expect("write");
        db.persist(Durability::Synced).expect("sync");
    }
    let log = file(&room, ".log");
    let dump = |args: &[&str]| -> Ran {
        program().arg("dump").arg(&log).args(args).stdin(Stdio::null()).output().expect("run").into()
    };
    let whole = dump(&["--json"]).text();
    assert_eq!(whole.lines().count(), 4, "{whole}");
    let second = 56 + (48 + 5 + long.len()).next_multiple_of(8);
    flip(&log, second + 60);
    let ran = dump(&["--json"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.stderr.contains(&format!("at offset {second}")), "{ran:?}");
    let lines = String::from_utf8(ran.stdout).expect("text");
    let expected = [
        format!("{{\"seqno\":1,\"key\":\"a\",\"value\":\"{long}\"}}"),
        format!("{{\"seqno\":3,\"key\":\"c\",\"value\":\"{long}\",\"behind_damage\":true}}"),
        "{\"seqno\":4,\"key\":\"a\",\"removed\":true,\"behind_damage\":true}".to_owned(),
    ];
    assert_eq!(lines.lines().collect::<Vec<_>>(), expected);
    let new = Room::new();
    let said = new.import(&["-", "--json"], lines.as_bytes()).refusal(2);
    assert!(said.contains("expected the fields key and value, found \"seqno\""), "{said}");
    let ran = repair(&room, &[]);
    assert!(ran.code == Some(3) && ran.stderr.contains("sequence numbers 2 to 2"), "{ran:?}");
    assert_eq!(repaired(&room), format!("c\t{long}\n"));
}
