//! `dump`: the contents of single files, and the damage in them.

use std::fs;
use std::path::Path;

use mini_engine::{Db, Durability, WriteBatch};

use crate::support::{Ran, Room, check_says, cut, flip, run};

fn dump(file: &Path) -> Ran {
    run(&format!("dump '{}'", file.display()))
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
    // Catches an omitted operation, a wrong sequence number, and a compressed batch that is printed in compressed form.
    let text = dump(&filled().file(".log")).text();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 7, "{text}");
    assert!(lines[0].starts_with("frame at 56: 2 operations from seqno 5, "), "{text}");
    assert_eq!(lines[1..3], ["  \"cherry\" at 5 = \"dark\"", "  \"gone\" at 6 removed"]);
    check_says(lines[3], "2 operations from seqno 7, |, compressed");
    assert!(
        lines[4].starts_with("  \"long\" at 7 = \"value value") && lines[4].ends_with("\".. (1200 bytes)"),
        "{text}"
    );
    assert!(lines[6].starts_with("end at ") && lines[6].ends_with(": clean"), "{text}");
}

#[test]
fn removed_ranges_are_dumped_wherever_they_are() {
    // Catches a dump without range tombstones: the keys that they hide would be missing for no visible reason.
    let room = Room::new();
    let db = Db::builder(room.database()).open().expect("open");
    db.insert("a", "1").expect("write");
    db.remove_range("b".."d").expect("write");
    db.flush().expect("flush");
    db.remove_range("c"..="d").expect("write");
    db.remove_range("x"..).expect("write");
    drop(db);
    let dumped = |file| dump(&room.file(file)).text();
    check_says(&dumped("MANIFEST"), " 1 range tombstones, seqnos 1 to 2, ");
    check_says(&dumped(".sst"), ", 1 range tombstones, seqnos 1 to 2, keys \"a\" to \"b\"");
    check_says(&dumped(".sst"), "\n  \"b\" to before \"b\\x00\" at 2 removed\n");
    check_says(&dumped(".log"), "\n  \"c\" to before \"d\\x00\" at 3 removed\n|\n  \"x\" and above at 4 removed\n");
}

#[test]
fn a_table_is_dumped_block_by_block_and_a_manifest_edit_by_edit() {
    // Catches an omitted entry, and a line break in a key that looks like another line.
    let room = filled();
    let text = dump(&room.file(".sst")).text();
    let lines: Vec<&str> = text.lines().collect();
    check_says(lines[0], " 3 entries, 1 of them tombstones, seqnos 1 to 4, |, 3 keys, 1 partitions");
    assert_eq!(lines[1], "partition 0: 1 data blocks, filter of 65 bytes, fence \"plum\\n\" at seqno 0");
    assert!(lines[2].starts_with("data block 0 at 0: "), "{text}");
    assert_eq!(lines[3..], ["  \"apple\" at 1 = \"red\"", "  \"gone\" at 4 removed", "  \"plum\\n\" at 3 = \"blue\""]);

    let text = dump(&room.file("MANIFEST")).text();
    assert!(text.starts_with("edit at 32: 0 tables added, 0 removed, replay from log "), "{text}");
    let added = text.lines().find(|line| line.contains("added to level 0: table ")).expect("the flush");
    check_says(added, " 3 entries, 1 of them tombstones");
    assert!(added.ends_with("keys \"apple\" to \"plum\\n\"") && text.ends_with(": clean\n"), "{text}");
}

#[test]
fn damage_is_told_with_its_offset_after_what_can_be_read() {
    // Catches a dump that ends at the first damage, and exit code 0 for a damaged file.
    let room = filled();
    for (name, at) in [(".log", 57), (".sst", 3), ("MANIFEST", 40), ("MANIFEST", 3)] {
        let path = room.file(name);
        flip(&path, at);
        let (text, said) = dump(&path).ended(3);
        check_says(&said, &format!("{}|at offset ", path.display()));
        assert!(name != ".sst" || text.starts_with("table ") && text.contains("data block 0 is damaged: "), "{text}");
        flip(&path, at);
    }
    // A crash leaves a torn tail, so the tail is reported, but is no error. Whole frames behind the tear are reported too.
    let path = room.file(".log");
    let torn = room.path("000012.log");
    fs::copy(&path, &torn).expect("copy");
    dump(&torn).ended(3);
    let good = fs::read(&path).expect("read");
    let end = good.iter().rposition(|&byte| byte != 0).expect("frames");
    cut(&path, (good.len() - end + 8) as u64);
    check_says(&dump(&path).text(), "\ntorn at |\"cherry\"");
}

#[test]
fn the_bytes_of_a_tear_are_counted_without_whole_frames_and_without_a_hole() {
    // Catches a count of a tear's bytes that includes whole frames behind the tear or, in a kept tail, the hole before the tear.
    let room = Room::new();
    {
        let db = Db::open(room.database()).expect("open");
        (0..8).for_each(|n| db.insert(format!("k{n}"), format!("value{n}")).expect("write"));
    }
    let log = room.file(".log");
    let bytes = fs::read(&log).expect("read");
    let end = bytes.iter().rposition(|&byte| byte != 0).expect("frames").next_multiple_of(8);
    cut(&log, (bytes.len() - end) as u64);
    flip(&log, bytes.windows(6).position(|part| part == b"value4").expect("the fifth"));
    let said = "torn at 312: 64 bytes that are no frame";
    let behind = "\nwhole frame behind the tear at 376: 1 operations from seqno 6, |\n  \"k5\" at 6 = \"value5\"\n";
    check_says(&dump(&log).text(), &format!("\n{said}|{behind}"));
    room.run("delete absent").ended(0);
    let tail = room.file(".tail.aside");
    let text = dump(&tail).text();
    assert!(text.starts_with(said), "{text}");
    check_says(&text, behind);
    let (_, said) = run(&format!("dump '{}' --json", tail.display())).ended(3);
    check_says(&said, "no whole batch in bytes 312 to 376");
}

#[test]
fn a_file_put_aside_is_dumped_and_other_names_are_refused() {
    // Catches a dump that cannot read files which recovery has set aside.
    let room = filled();
    let log = room.file(".log");
    let aside = room.path(&format!("{}.aside", log.file_name().expect("a name").display()));
    fs::copy(&log, &aside).expect("copy");
    check_says(&dump(&aside).text(), "\"cherry\"");
    let with_kind = |kind: &str| run(&format!("dump {kind} '{}'", log.display()));
    assert_eq!(with_kind("wal").text(), dump(&log).text(), "said twice");
    check_says(&with_kind("table").refused(2), "expected a name like");
    check_says(&with_kind("logs").refused(2), "logs");
    for name in ["log", "notes.log", "000007", "x.sst", "MANIFEST-", "CURRENT"] {
        let path = room.path(name);
        check_says(&dump(&path).refused(2), &format!("expected a name like|{}", path.display()));
    }
    check_says(&dump(&room.path("000001.log")).refused(4), "000001.log");
}
