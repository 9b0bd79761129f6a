//! Tests of the simulated disks themselves: crash tests are worthless if power cuts lose too little, or lose durable bytes.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use mini_engine::fs::{File, FileSystem};
use proof::disk::{Disk, Fault, FaultFs, Losses, MemFs, Repeat, Step};

const SEEDS: std::ops::Range<u64> = 0..400;

fn file() -> (MemFs, Arc<dyn File>) {
    let fs = MemFs::default();
    let file = fs.create_new(Path::new("/f")).expect("created");
    fs.sync_dir(Path::new("/")).expect("synced");
    (fs, file)
}

/// The content of `/f` after each of many power cuts.
fn outcomes(fs: &MemFs) -> BTreeSet<Vec<u8>> {
    let disk = fs.disk();
    SEEDS.map(|seed| disk.after_power_cut(seed).0.read(Path::new("/f")).expect("its name is synced").to_vec()).collect()
}

fn names_in(disk: &Disk, dir: &str) -> std::io::Result<Vec<OsString>> {
    MemFs::on(disk.clone()).read_dir(Path::new(dir))
}

fn names(disk: &Disk) -> Vec<String> {
    names_in(disk, "/").expect("the root").into_iter().map(|name| name.into_string().expect("text")).collect()
}

#[test]
fn what_was_synced_survives_and_what_was_not_may_be_lost_kept_or_of_a_moment_between() {
    // Catches a model in which a sync does nothing, and one in which it makes too much durable.
    let (fs, file) = file();
    file.write_all_at(b"synced", 0).expect("written");
    file.sync().expect("synced");
    assert_eq!(outcomes(&fs), BTreeSet::from([b"synced".to_vec()]));
    assert!(fs.disk().is_durable());
    file.write_all_at(b"S", 0).expect("written");
    file.write_all_at(b"D", 5).expect("written");
    let found = outcomes(&fs);
    assert_eq!(found, [&b"synced"[..], b"Synced", b"SynceD"].map(<[u8]>::to_vec).into());
    let kept = MemFs::on(fs.disk()).disk();
    assert_eq!(kept.read(Path::new("/f")).expect("there"), b"SynceD", "a kill keeps all");
}

#[test]
fn growth_may_be_cut_at_any_byte_and_leave_holes_and_torn_blocks() {
    // Catches a model that persists pages only in order, or only as a whole.
    let (fs, file) = file();
    let bytes: Vec<u8> = (0..20_000u32).map(|i| 1 + (i % 250) as u8).collect();
    for (chunk, at) in bytes.chunks(1500).zip((0..).step_by(1500)) {
        file.write_all_at(chunk, at).expect("written");
    }
    let disk = fs.disk();
    let (mut odd_lengths, mut sum) = (BTreeSet::new(), Losses::default());
    for seed in SEEDS {
        let (left, losses) = disk.after_power_cut(seed);
        let found = left.read(Path::new("/f")).expect("there");
        assert!(found.iter().zip(&bytes).all(|(found, byte)| found == byte || *found == 0), "bytes from nowhere");
        let hole = found.chunks(4096).zip(bytes.chunks(4096)).map(|(found, bytes)| found == &bytes[..found.len()]);
        let whole: Vec<bool> = hole.collect();
        let expected = whole.iter().skip_while(|whole| **whole).any(|whole| *whole);
        assert_eq!(losses.holes > 0, expected, "seed {seed}: {whole:?}");
        if found.len() % 1500 != 0 {
            odd_lengths.insert(found.len());
        }
        sum.holes += losses.holes;
        sum.torn_blocks += losses.torn_blocks;
        sum.lost_blocks += losses.lost_blocks;
    }
    assert!(odd_lengths.len() > 50, "{} lengths", odd_lengths.len());
    assert!(sum.holes > 20 && sum.torn_blocks > 20 && sum.lost_blocks > 20, "{sum:?}");
}

#[test]
fn a_sector_is_of_one_moment() {
    // Catches tears that no device makes, which would fail tests without reason.
    let (fs, file) = file();
    file.write_all_at(&[1; 4096], 0).expect("written");
    file.sync().expect("synced");
    file.write_all_at(&[2; 4096], 0).expect("written");
    let mut torn = 0;
    for found in outcomes(&fs) {
        assert!(found.len() == 4096 && found.chunks(512).all(|sector| sector.iter().all(|byte| *byte == sector[0])));
        torn += u32::from(found.contains(&1) && found.contains(&2));
    }
    assert!(torn > 20, "{torn}");
}

#[test]
fn a_cut_that_was_not_synced_may_be_undone() {
    // Catches a truncation that counts as durable by itself.
    let (fs, file) = file();
    file.write_all_at(b"head tail", 0).expect("written");
    file.sync().expect("synced");
    file.truncate(4).expect("cut");
    let found = outcomes(&fs);
    assert!(found.contains(&b"head"[..]) && found.contains(&b"head tail"[..]), "{found:?}");
    file.sync().expect("synced");
    assert_eq!(outcomes(&fs), BTreeSet::from([b"head".to_vec()]));
}

#[test]
fn entries_need_a_sync_of_their_directory_and_come_in_any_order() {
    // Catches a file sync that makes the name durable, and entries that survive only in order.
    let fs = MemFs::default();
    for name in ["a", "b"] {
        fs.create_new(&Path::new("/").join(name)).expect("created").sync().expect("synced");
    }
    let seen: BTreeSet<_> = SEEDS.map(|seed| names(&fs.disk().after_power_cut(seed).0)).collect();
    let all = [vec![], vec!["a"], vec!["b"], vec!["a", "b"]];
    assert_eq!(seen, all.into_iter().map(|names| names.into_iter().map(str::to_owned).collect()).collect());
    fs.sync_dir(Path::new("/")).expect("synced");
    fs.remove(Path::new("/a")).expect("removed");
    let seen: BTreeSet<_> = SEEDS.map(|seed| names(&fs.disk().after_power_cut(seed).0)).collect();
    assert_eq!(seen, BTreeSet::from([vec!["a".to_owned(), "b".to_owned()], vec!["b".to_owned()]]));
}

#[test]
fn a_rename_takes_place_whole_or_not_at_all() {
    // Catches a rename whose target is removed but not replaced.
    let fs = MemFs::default();
    for (name, bytes) in [("/old", b"old"), ("/new", b"new")] {
        let file = fs.create_new(Path::new(name)).expect("created");
        file.write_all_at(bytes, 0).expect("written");
        file.sync().expect("synced");
    }
    fs.sync_dir(Path::new("/")).expect("synced");
    fs.rename(Path::new("/new"), Path::new("/old")).expect("renamed");
    let seen: BTreeSet<_> = SEEDS
        .map(|seed| {
            let disk = fs.disk().after_power_cut(seed).0;
            (names(&disk).len(), disk.read(Path::new("/old")).expect("always there").to_vec())
        })
        .collect();
    assert_eq!(seen, BTreeSet::from([(1, b"new".to_vec()), (2, b"old".to_vec())]));
}

#[test]
fn a_directory_whose_name_is_lost_is_lost_with_all_in_it() {
    // Catches files that are durable in a directory that is not.
    let fs = MemFs::default();
    fs.create_dir_all(Path::new("/a/b")).expect("created");
    fs.create_new(Path::new("/a/b/f")).expect("created").sync().expect("synced");
    fs.sync_dir(Path::new("/a/b")).expect("synced");
    fs.sync_dir(Path::new("/a")).expect("synced");
    let there = |seed| fs.disk().after_power_cut(seed).0.read(Path::new("/a/b/f")).is_ok();
    assert_eq!(SEEDS.map(there).collect::<BTreeSet<_>>(), BTreeSet::from([false, true]));
    fs.sync_dir(Path::new("/")).expect("synced");
    assert_eq!(SEEDS.map(there).collect::<BTreeSet<_>>(), BTreeSet::from([true]));
}

#[test]
fn a_failed_sync_leaves_bytes_that_no_later_sync_makes_durable() {
    // Catches a model in which a second sync repairs a failed one.
    let (fs, file) = file();
    file.write_all_at(b"lost", 0).expect("written");
    fs.fail_sync(fs.syncs());
    file.sync().expect_err("refused");
    let mut buf = [0; 4];
    file.read_exact_at(&mut buf, 0).expect("readable");
    assert_eq!(&buf, b"lost");
    file.write_all_at(b"late", 4).expect("written");
    file.sync().expect("the next one succeeds");
    let found = outcomes(&fs);
    assert!(found.contains(&b"\0\0\0\0late"[..]) && found.contains(&b"lostlate"[..]), "{found:?}");
    assert!(found.iter().all(|bytes| bytes.ends_with(b"late")), "{found:?}");
}

#[test]
fn a_record_makes_every_state_again() {
    // Catches an operation that changes the disk and is not recorded, or not correctly.
    let fs = MemFs::default();
    fs.record();
    fs.create_dir_all(Path::new("/d")).expect("created");
    let file = fs.create_new(Path::new("/d/f")).expect("created");
    file.write_all_at(b"bytes", 3).expect("written");
    fs.note(7);
    file.truncate(6).expect("cut");
    fs.rename(Path::new("/d/f"), Path::new("/d/g")).expect("renamed");
    drop(fs.lock(Path::new("/d/LOCK")).expect("free"));
    file.sync().expect("synced");
    assert!(fs.open(Path::new("/d/f")).is_err());
    fs.sync_dir(Path::new("/d")).expect("synced");
    fs.remove(Path::new("/d/g")).expect("removed");
    let record = fs.take_record();
    let mut again = Disk::default();
    let mut notes = Vec::new();
    for step in &record {
        match step {
            Step::Operation(operation) => again.apply(operation).expect("possible again"),
            Step::Note(word) => notes.push((*word, again.read(Path::new("/d/f")).expect("there").to_vec())),
        }
    }
    assert_eq!(notes, [(7, b"\0\0\0bytes".to_vec())]);
    assert_eq!(format!("{again:?}"), format!("{:?}", fs.disk()));
    assert!(fs.take_record().is_empty());
}

#[test]
fn a_power_cut_is_determined_by_its_seed() {
    // Catches a failure that cannot be reproduced.
    let (fs, file) = file();
    file.write_all_at(&[7; 30_000], 0).expect("written");
    for seed in SEEDS.take(20) {
        let cut = || format!("{:?}", fs.disk().after_power_cut(seed));
        assert_eq!(cut(), cut());
    }
}

#[test]
fn every_spelling_of_a_path_leads_to_the_same_place() {
    // Catches a root directory without a parent: the engine syncs the parent of its directory.
    let fs = MemFs::default();
    fs.create_dir_all(Path::new("a/./b")).expect("created");
    fs.create_new(Path::new("/a/b/../f")).expect("created");
    assert!(fs.exists(Path::new("a/f")).expect("known") && fs.exists(Path::new("/a/b/.")).expect("known"));
    fs.sync_dir(Path::new("/..")).expect("the root is above itself");
    fs.sync_dir(Path::new(".")).expect("the root is where we are");
}

#[test]
fn a_link_is_one_file_under_two_names_each_durable_by_its_own_directory() {
    // Catches a link that copies, one that a power cut tears into two contents, and one that is durable by itself.
    let fs = MemFs::default();
    let file = fs.create_new(Path::new("/a")).expect("created");
    fs.create_dir_all(Path::new("/d")).expect("created");
    fs.sync_dir(Path::new("/")).expect("synced");
    fs.link(Path::new("/a"), Path::new("/d/b")).expect("linked");
    assert_eq!(fs.link(Path::new("/a"), Path::new("/d/b")).unwrap_err().kind(), ErrorKind::AlreadyExists);
    file.write_all_at(&[7; 20_000], 0).expect("written");
    assert_eq!(fs.disk().read(Path::new("/d/b")).expect("there").len(), 20_000);
    let (mut both, mut one) = (BTreeSet::new(), 0);
    for seed in SEEDS {
        let (left, _) = fs.disk().after_power_cut(seed);
        let first = left.read(Path::new("/a")).expect("its name is synced").to_vec();
        match left.read(Path::new("/d/b")) {
            Ok(second) => {
                assert_eq!(first, second, "seed {seed}");
                both.insert(first);
            }
            Err(_) => one += 1,
        }
    }
    assert!(both.len() > 5 && one > 20, "{} contents, {one} without the link", both.len());
    fs.sync_dir(Path::new("/d")).expect("synced");
    fs.remove(Path::new("/a")).expect("removed");
    assert!(SEEDS.clone().all(|seed| fs.disk().after_power_cut(seed).0.read(Path::new("/d/b")).is_ok()));
}

#[test]
fn only_an_empty_directory_is_removed_and_the_removal_may_be_lost() {
    // Catches a removal of a directory that is not empty, and a removed directory that returns with files in it.
    let fs = MemFs::default();
    let dir = Path::new("/d");
    fs.create_dir_all(dir).expect("created");
    fs.create_new(&dir.join("f")).expect("created");
    fs.sync_dir(dir).expect("synced");
    fs.sync_dir(Path::new("/")).expect("synced");
    assert_eq!(fs.remove_dir(dir).unwrap_err().kind(), ErrorKind::DirectoryNotEmpty);
    fs.remove(&dir.join("f")).expect("removed");
    fs.remove_dir(dir).expect("removed");
    assert!(!fs.exists(dir).expect("looked"));
    let left: Vec<MemFs> = SEEDS.map(|seed| MemFs::on(fs.disk().after_power_cut(seed).0)).collect();
    let back = left.iter().filter(|fs| fs.exists(dir).expect("looked")).count();
    assert!((1..left.len()).contains(&back), "{back}");
    assert!(left.iter().all(|fs| fs.read_dir(dir).unwrap_or_default().is_empty()));
}

#[test]
fn a_directory_is_renamed_with_all_in_it_or_not_at_all() {
    // Catches a rename of a directory that leaves its files behind, and a new name that is durable before the parent is synced.
    let fs = MemFs::default();
    fs.create_dir_all(Path::new("/old/below")).expect("created");
    let file = fs.create_new(Path::new("/old/f")).expect("created");
    fs.sync_dir(Path::new("/old")).expect("synced");
    fs.sync_dir(Path::new("/")).expect("synced");
    fs.create_dir_all(Path::new("/taken")).expect("created");
    assert_eq!(fs.rename(Path::new("/old"), Path::new("/taken")).unwrap_err().kind(), ErrorKind::AlreadyExists);
    fs.rename(Path::new("/old"), Path::new("/new")).expect("renamed");
    assert!(!fs.exists(Path::new("/old/f")).expect("looked") && fs.exists(Path::new("/new/below")).expect("looked"));
    // An open handle still refers to the same file.
    file.write_all_at(b"late", 0).expect("written");
    assert_eq!(fs.disk().read(Path::new("/new/f")).expect("there"), b"late");
    let whole = |disk: &Disk, dir: &str| names_in(disk, dir).is_ok_and(|names| names.len() == 2);
    let seen: BTreeSet<_> = SEEDS
        .map(|seed| fs.disk().after_power_cut(seed).0)
        .map(|disk| (whole(&disk, "/old"), whole(&disk, "/new")))
        .collect();
    assert_eq!(seen, BTreeSet::from([(true, false), (false, true)]));
}

#[test]
fn the_armed_operation_fails_and_no_other() {
    // Catches a fault at the wrong operation: tests that rely on it would show nothing.
    let dir = proof::TempDir::new().expect("a directory");
    let fs = FaultFs::of_system();
    let file = fs.create_new(&dir.path().join("f")).expect("operation 0");
    fs.fail_mutation(2, Fault::ShortWrite, Repeat::Once);
    file.write_all_at(b"abcd", 0).expect("operation 1");
    let error = file.write_all_at(b"efgh", 4).expect_err("operation 2");
    assert_eq!(error.kind(), ErrorKind::StorageFull);
    assert_eq!(file.len().expect("known"), 6);
    file.sync().expect("operation 3");
    assert_eq!(fs.mutations(), 4);

    fs.fail_mutation(5, Fault::Device, Repeat::FromThenOn);
    file.sync().expect("operation 4");
    assert!(file.sync().is_err() && fs.sync_dir(dir.path()).is_err());
    fs.heal();
    file.sync().expect("healed");

    fs.fail_read(fs.reads(), Fault::Device, Repeat::Once);
    assert!(file.read_exact_at(&mut [0; 2], 0).is_err());
    let mut buf = [0; 2];
    file.read_exact_at(&mut buf, 4).expect("only one read fails");
    assert_eq!(&buf, b"ef");
}
