//! `dump`: what single files hold, and what is wrong with them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use mini_engine::{Db, Durability, WriteBatch};

use crate::process::{Ran, Room, names, program};

fn dump(file: &Path) -> Ran {
    program().arg("dump").arg(file).stdin(Stdio::null()).output().expect("run").into()
}

fn file(room: &Room, end: &str) -> PathBuf {
    let name = names(&room.database()).into_iter().rfind(|name| name.to_string_lossy().contains(end)).expect("a file");
    room.database().join(name)
}

/// A database with two batches in a table, and two more in a log.
fn filled() -> Room {
    let room = Room::new();
    let db = Db::builder(room.database()).log_compression(true).open().expect("open");
    let write = |key: &str, value: &str| {
        let mut batch = WriteBatch::new();
        batch.insert(key, value).expect("short");
        batch.remove("gone").expect("short");
        db.write(batch, Durability::Synced).expect("write");
    };
    write("apple", "red");
    write("plum\n", "blue");
    db.flush().expect("flush");
    write("cherry", "dark");
    write("long", &"value ".repeat(200));
    drop(db);
    room
}

#[test]
fn a_log_is_dumped_frame_by_frame() {
    // Catches an operation left out, a wrong number, and a compressed batch shown as it is stored.
    let room = filled();
    let text = dump(&file(&room, ".log")).text();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 7, "{text}");
    assert!(lines[0].starts_with("frame at 56: 2 operations from seqno 5, "), "{text}");
    assert_eq!(lines[1..3], ["  5 \"cherry\" = \"dark\"", "  6 \"gone\" removed"]);
    assert!(lines[3].contains("2 operations from seqno 7, ") && lines[3].contains(", compressed"), "{text}");
    assert!(lines[4].starts_with("  7 \"long\" = \"value value") && lines[4].ends_with("\".. (1200 bytes)"), "{text}");
    assert!(lines[6].starts_with("end at ") && lines[6].ends_with(": clean"), "{text}");
}

#[test]
fn removed_ranges_are_dumped_wherever_they_are() {
    // Catches a range tombstone that only the engine can see: the keys that it hides would be gone for no reason.
    let room = Room::new();
    let db = Db::builder(room.database()).open().expect("open");
    db.insert("a", "1").expect("write");
    db.remove_range("b".."d").expect("write");
    db.flush().expect("flush");
    db.remove_range("c"..="d").expect("write");
    db.remove_range("x"..).expect("write");
    drop(db);
    let text = dump(&file(&room, ".sst")).text();
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].contains(", 1 range tombstones, seqnos 1 to 2, keys \"a\" to \"b\""), "{text}");
    assert_eq!(lines[1], "range \"b\" to before \"b\\x00\" removed at 2");
    let text = dump(&file(&room, "MANIFEST")).text();
    assert!(text.contains(" 1 range tombstones, seqnos 1 to 2, "), "{text}");
    let text = dump(&file(&room, ".log")).text();
    assert!(text.contains("\n  3 \"c\" to before \"d\\x00\" removed\n"), "{text}");
    assert!(text.contains("\n  4 \"x\" and above removed\n"), "{text}");
}

#[test]
fn a_table_is_dumped_block_by_block_and_a_manifest_edit_by_edit() {
    // Catches an entry left out, and a line break in a key that looks like another line.
    let room = filled();
    let text = dump(&file(&room, ".sst")).text();
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].contains(" 1 partitions, 3 entries of 3 keys, 1 of them tombstones, seqnos 1 to 4"), "{text}");
    assert_eq!(lines[1], "partition 0: 1 data blocks, filter of 65 bytes, fence \"plum\\n\" at seqno 0");
    assert!(lines[2].starts_with("data block 0 at 0: "), "{text}");
    assert_eq!(lines[3..], ["  \"apple\" at 1 = \"red\"", "  \"gone\" at 4 removed", "  \"plum\\n\" at 3 = \"blue\""]);

    let text = dump(&file(&room, "MANIFEST")).text();
    assert!(text.starts_with("edit at 32: 0 tables added, 0 removed, replay from log "), "{text}");
    let added = text.lines().find(|line| line.contains("added to level 0: table ")).expect("the flush");
    assert!(
        added.contains(" 3 entries, 1 of them tombstones") && added.ends_with("keys \"apple\" to \"plum\\n\""),
        "{text}"
    );
    assert!(text.lines().last().is_some_and(|line| line.ends_with(": clean")), "{text}");
}

#[test]
fn damage_is_told_with_its_offset_after_what_can_be_read() {
    // Catches a dump that stops being one where it is needed, and exit code 0 for a damaged file.
    let room = filled();
    for (end, at) in [(".log", 57), (".sst", 3), ("MANIFEST", 40), ("MANIFEST", 3)] {
        let path = file(&room, end);
        let good = fs::read(&path).expect("read");
        let mut bytes = good.clone();
        bytes[at] ^= 4;
        fs::write(&path, bytes).expect("write");
        let ran = dump(&path);
        assert_eq!(ran.code, Some(3), "{end}: {ran:?}");
        assert!(ran.stderr.contains(&path.display().to_string()) && ran.stderr.contains("at offset "), "{ran:?}");
        if end == ".sst" {
            let text = String::from_utf8_lossy(&ran.stdout).into_owned();
            assert!(text.contains("data block 0 is damaged: ") && text.starts_with("table "), "{text}");
        }
        fs::write(&path, good).expect("write");
    }
    // A tear is what a crash leaves: told, and no error. Whole frames behind it are told too.
    let path = file(&room, ".log");
    let good = fs::read(&path).expect("read");
    let torn = room.path("000012.log");
    fs::copy(&path, &torn).expect("copy");
    let ran = dump(&torn);
    assert_eq!(ran.code, Some(3), "another number: {ran:?}");
    let end = good.iter().rposition(|&byte| byte != 0).expect("frames");
    fs::write(&path, &good[..end - 8]).expect("cut");
    let text = dump(&path).text();
    assert!(text.contains("\ntorn at ") && text.contains("\"cherry\""), "{text}");
}

#[test]
fn the_bytes_of_a_tear_are_counted_without_whole_frames_and_without_a_hole() {
    // Catches a count that takes whole frames behind the tear for bytes that are none, and in a tail that was kept the log before it.
    let room = Room::new();
    {
        let db = Db::open(room.database()).expect("open");
        (0..8).for_each(|n| db.insert(format!("k{n}"), format!("value{n}")).expect("write"));
    }
    let log = file(&room, ".log");
    let mut bytes = fs::read(&log).expect("read");
    bytes.truncate(bytes.iter().rposition(|&byte| byte != 0).expect("frames").next_multiple_of(8));
    let at = bytes.windows(6).position(|part| part == b"value4").expect("the fifth");
    bytes[at] ^= 1;
    fs::write(&log, bytes).expect("write");
    let said = "torn at 312: 64 bytes that are no frame";
    let behind = "\nwhole frame behind the tear at 376: 1 operations from seqno 6\n";
    let text = dump(&log).text();
    assert!(text.contains(&format!("\n{said}")) && text.contains(behind), "{text}");
    assert_eq!(room.run("delete", &["absent"]).code, Some(0));
    let tail = file(&room, ".tail.aside");
    let text = dump(&tail).text();
    assert!(text.starts_with(said) && text.contains(behind), "{text}");
    let ran: Ran = program().arg("dump").arg(&tail).arg("--json").output().expect("run").into();
    assert!(ran.code == Some(3) && ran.stderr.contains("no whole batch in bytes 312 to 376"), "{ran:?}");
}

#[test]
fn a_file_put_aside_is_dumped_and_other_names_are_refused() {
    // Catches a dump that cannot look at what recovery has set aside, where it is needed most.
    let room = filled();
    let aside = room.path("000007.log.aside");
    let log = file(&room, ".log");
    let number = log.file_name().expect("a name").to_str().expect("text").to_owned();
    let aside = aside.with_file_name(format!("{number}.aside"));
    fs::copy(&log, &aside).expect("copy");
    assert!(dump(&aside).text().contains("\"cherry\""));
    let with_kind = |kind: &str| -> Ran { program().args(["dump", kind]).arg(&log).output().expect("run").into() };
    assert_eq!(with_kind("wal").text(), dump(&log).text(), "said twice");
    assert!(with_kind("table").refusal(2).contains("expected a name like"), "said otherwise");
    assert!(with_kind("logs").refusal(2).contains("logs"));
    let names = ["log", "notes.log", "000007", "x.sst", "MANIFEST-", "CURRENT"];
    for path in names.map(|name| room.path(name)) {
        let said = dump(&path).refusal(2);
        assert!(said.contains("expected a name like") && said.contains(&path.display().to_string()), "{said}");
    }
    assert!(dump(&room.path("000001.log")).refusal(4).contains("000001.log"));
}
