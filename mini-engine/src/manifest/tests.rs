use std::fs as std_fs;

use super::load::Loaded;
use super::test_tables::table;
use super::*;
use crate::disk::{Fault, FaultFs, Repeat};
use crate::fs::StdFs;
use crate::options::Compaction;
use crate::types::SeqNo;
use proof::TempDir;

fn adding(number: u64, min: SeqNo, max: SeqNo) -> VersionEdit {
    VersionEdit {
        added: vec![(RunId::LEVEL_0, table(number, min, max))],
        last_seqno: Some(max),
        ..VersionEdit::default()
    }
}

fn numbers() -> Arc<FileNumbers> {
    Arc::new(FileNumbers::starting_at(1))
}

fn create(fs: Arc<dyn FileSystem>, dir: &Path) -> Result<Manifest> {
    Manifest::create(fs, dir, numbers(), ManifestState::default())
}

/// A manifest on a disk that fails on demand.
fn faulty() -> (TempDir, FaultFs, Manifest) {
    let (dir, faults) = (TempDir::new().unwrap(), FaultFs::new(Arc::new(StdFs)));
    let manifest = create(Arc::new(faults.clone()), dir.path()).unwrap();
    (dir, faults, manifest)
}

fn sound() -> (TempDir, Manifest) {
    let dir = TempDir::new().unwrap();
    let manifest = create(Arc::new(StdFs), dir.path()).unwrap();
    (dir, manifest)
}

fn reload(dir: &Path) -> Loaded {
    load(&StdFs, dir).unwrap().expect("a manifest")
}

#[test]
fn edits_add_up_after_a_reload() {
    // Catches an edit that is applied differently in memory and when it is read from disk.
    let (dir, mut manifest) = sound();
    manifest.append(adding(10, 1, 5)).unwrap();
    manifest.append(VersionEdit { log_number: Some(4), ..adding(11, 6, 9) }).unwrap();
    let compaction = VersionEdit {
        removed: vec![(0, 10), (0, 11)],
        added: vec![(RunId::LEVEL_0, table(12, 1, 9))],
        ..VersionEdit::default()
    };
    manifest.append(compaction).unwrap();
    let loaded = reload(dir.path());
    assert_eq!(&loaded.state, manifest.state());
    assert_eq!((loaded.state.log_number, loaded.state.last_seqno, loaded.tail_bytes), (4, 9, 0));
    assert_eq!(loaded.state.version.tables().map(|t| t.number).collect::<Vec<_>>(), [12]);
}

#[test]
fn rule_1_every_flipped_bit_of_a_manifest_is_noticed_or_harmless() {
    // Catches a field outside every checksum, and a decoder that panics.
    let (dir, mut manifest) = sound();
    manifest.append(adding(10, 1, 5)).unwrap();
    let before_last = reload(dir.path()).state;
    manifest.append(adding(11, 6, 9)).unwrap();
    let whole = reload(dir.path()).state;
    let path = manifest.path();
    let good = std_fs::read(&path).unwrap();
    for at in 0..good.len() {
        let mut damaged = good.clone();
        damaged[at] ^= 1 << (at % 8);
        std_fs::write(&path, &damaged).unwrap();
        match load(&StdFs, dir.path()) {
            // Padding is harmless; damage to the last edit cannot be distinguished from a tear, and is reported as one.
            Ok(Some(loaded)) => {
                assert!(loaded.state == whole || loaded.tail_bytes > 0 && loaded.state == before_last, "byte {at}")
            }
            Ok(None) => panic!("byte {at}: no manifest"),
            Err(error) => assert!(
                matches!(error, Error::Corruption { .. } | Error::UnsupportedVersion { .. }),
                "byte {at}: {error}"
            ),
        }
    }
}

#[test]
fn rule_7_nothing_is_appended_after_a_failed_append() {
    // Catches a manifest that continues after damaged bytes: the next load would drop the acknowledged edits after them.
    for fault in [Fault::Device, Fault::StorageFull, Fault::ShortWrite] {
        // The first step is the append's write, the second its sync.
        for step in 0..2 {
            // If space is lacking for the write, the bytes written so far are cut off, unless that fails too.
            let repeat = if fault == Fault::Device { Repeat::Once } else { Repeat::FromThenOn };
            let (_dir, faults, mut manifest) = faulty();
            faults.fail_mutation(faults.mutations() + step, fault, repeat);
            manifest.append(adding(10, 1, 5)).unwrap_err();
            faults.heal();
            let operations = faults.mutations();
            let again = manifest.append(adding(11, 6, 9)).unwrap_err();
            assert!(matches!(again, Error::ReadOnly { .. }), "{again}");
            assert_eq!(faults.mutations(), operations, "an operation after the failure");
        }
    }
}

#[test]
fn an_edit_without_space_has_not_happened_and_the_next_one_begins_a_new_manifest() {
    // Catches a partial edit before a later one, an edit that reappears at the next load, and a manifest that is abandoned although space may return.
    for fault in [Fault::StorageFull, Fault::ShortWrite] {
        let (dir, faults, mut manifest) = faulty();
        manifest.append(adding(10, 1, 5)).unwrap();
        let before = manifest.state().clone();
        faults.fail_mutation(faults.mutations(), fault, Repeat::Once);
        manifest.append(adding(11, 6, 9)).unwrap_err();
        assert!(manifest.is_usable() && *manifest.state() == before);
        let loaded = reload(dir.path());
        assert_eq!((loaded.number, loaded.tail_bytes, &loaded.state), (manifest.number(), 0, &before));
        // A new manifest fails too: each step of its creation in turn.
        for step in 0..6 {
            faults.fail_mutation(faults.mutations() + step, fault, Repeat::Once);
            manifest.append(adding(12, 6, 9)).unwrap_err();
            assert!(manifest.is_usable(), "step {step}");
            assert_eq!(reload(dir.path()).state, before, "step {step}");
        }
        faults.heal();
        manifest.append(adding(13, 6, 9)).unwrap();
        let loaded = reload(dir.path());
        assert_eq!((loaded.number, &loaded.state), (manifest.number(), manifest.state()));
        assert_ne!(loaded.state, before);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
    }
}

#[test]
fn a_manifest_that_cannot_be_rolled_over_goes_on() {
    // Catches edits that fail because a new file gets no space or handle, although the old file would accept them.
    let (dir, faults, mut manifest) = faulty();
    manifest.rollover_at = 0;
    let number = manifest.number();
    for (n, fault) in [Fault::StorageFull, Fault::ShortWrite].into_iter().enumerate() {
        let n = n as u64;
        faults.fail_mutation(faults.mutations() + n, fault, Repeat::Once);
        manifest.append(adding(10 + n, 1 + 5 * n, 5 + 5 * n)).unwrap();
        let loaded = reload(dir.path());
        assert_eq!((loaded.number, &loaded.state), (number, manifest.state()));
    }
    manifest.append(adding(12, 11, 15)).unwrap();
    assert_ne!(manifest.number(), number);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
}

#[test]
fn an_edit_after_which_the_state_would_be_too_long_for_an_open_is_refused() {
    // Catches a database that accepts one table too many, and then cannot be opened: each open writes all tables in one edit.
    let (dir, mut manifest) = sound();
    manifest.max_edit_len = 8 << 10;
    let refused = (0..1000).find_map(|n| manifest.append(adding(10 + n, 1 + 5 * n, 5 + 5 * n)).err());
    assert!(matches!(refused, Some(Error::Full(_))), "{refused:?}");
    let len = edit::encode(&manifest.state().as_edit()).unwrap().len();
    assert!((6 << 10..8 << 10).contains(&len), "{len}");
    // The manifest still works: an edit that makes the state shorter is accepted.
    assert!(manifest.is_usable());
    manifest.append(VersionEdit { removed: vec![(0, 10)], ..VersionEdit::default() }).unwrap();
    assert_eq!(reload(dir.path()).state, *manifest.state());
}

#[test]
fn a_manifest_rolls_over_and_keeps_its_state() {
    // Catches a manifest that grows for ever, a rollover that loses tables, an old file that remains, amplification figures that restart with each
    // manifest, and a policy that is lost.
    let dir = TempDir::new().unwrap();
    let first = ManifestState { policy: Some(2), ..ManifestState::default() };
    let mut manifest = Manifest::create(Arc::new(StdFs), dir.path(), numbers(), first).unwrap();
    manifest.rollover_at = 400;
    for step in 1..=10 {
        let stats = CompactionStats::of_new(0, 100, 70);
        manifest.append(VersionEdit { stats, ..adding(100 + step, step * 10, step * 10 + 9) }).unwrap();
    }
    assert!(manifest.number() > 1);
    let loaded = reload(dir.path());
    assert_eq!(&loaded.state, manifest.state());
    assert_eq!(loaded.state.version.tables().count(), 10);
    let (policy, stats) = (loaded.state.policy, &loaded.state.stats);
    assert_eq!((policy, stats.user_bytes, stats.levels[0].written), (Some(2), 1000, 700));
    assert!(loaded.state.next_file_number > manifest.number());
    let mut names: Vec<_> = std_fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, [CURRENT.to_owned(), manifest_name(manifest.number())].map(std::ffi::OsString::from));
}

#[test]
fn a_rollover_that_fails_leaves_a_complete_manifest_at_every_step() {
    // Catches a pointer that is changed before its manifest is synced, and an append after a failed rollover.
    let count = rollover_operations();
    assert!(count >= 6, "only {count} operations");
    for step in 0..count {
        let (dir, faults, mut manifest) = faulty();
        manifest.append(adding(100, 1, 5)).unwrap();
        manifest.rollover_at = 0;
        faults.fail_mutation(faults.mutations() + step, Fault::Device, Repeat::FromThenOn);
        let result = manifest.append(adding(101, 6, 9));
        let tables = reload(dir.path()).state.version.tables().count();
        match result {
            // The last operation removes the old manifest: if it fails, nothing is lost.
            Ok(_) => assert!(step == count - 1 && tables == 2, "step {step}"),
            Err(_) => {
                assert!(tables == 1 || tables == 2, "step {step}: {tables} tables");
                assert!(matches!(manifest.append(adding(102, 10, 12)), Err(Error::ReadOnly { .. })), "step {step}");
            }
        }
    }
}

/// The number of mutating operations of one rollover.
fn rollover_operations() -> u64 {
    let (_dir, faults, mut manifest) = faulty();
    manifest.append(adding(100, 1, 5)).unwrap();
    manifest.rollover_at = 0;
    let before = faults.mutations();
    manifest.append(adding(101, 6, 9)).unwrap();
    faults.mutations() - before
}

#[test]
fn a_manifest_without_its_first_edit_is_corruption() {
    // Catches a manifest truncated to its header that is treated as torn, and so as an empty database.
    let (dir, manifest) = sound();
    let whole = std_fs::read(manifest.path()).unwrap();
    for len in 0..whole.len() {
        std_fs::write(manifest.path(), &whole[..len]).unwrap();
        assert!(matches!(load(&StdFs, dir.path()), Err(Error::Corruption { .. })), "{len} bytes");
    }
}

#[test]
fn edits_that_go_back_in_time_are_refused() {
    // Catches a flush that is recorded out of order, after which replay would repeat or miss writes.
    let (dir, mut manifest) = sound();
    manifest.append(VersionEdit { log_number: Some(9), ..adding(10, 1, 5) }).unwrap();
    assert!(manifest.append(VersionEdit { log_number: Some(8), ..VersionEdit::default() }).is_err());
    assert!(manifest.append(VersionEdit { last_seqno: Some(4), ..VersionEdit::default() }).is_err());
    // Nothing was written for the rejected edits, so the manifest is still usable.
    manifest.append(adding(11, 6, 9)).unwrap();
    assert_eq!(reload(dir.path()).state.last_seqno, 9);
}

#[test]
fn a_manifest_of_another_format_version_is_a_typed_error() {
    // Catches a newer manifest that is reported as corrupt, or read.
    let dir = TempDir::new().unwrap();
    for version in [0, 1, 3u32] {
        let mut bytes = frame::header(7);
        bytes[8..12].copy_from_slice(&version.to_le_bytes());
        let sum = crate::codec::checksum(&bytes[..24], 0);
        bytes[24..32].copy_from_slice(&sum.to_le_bytes());
        std_fs::write(dir.path().join(manifest_name(7)), bytes).unwrap();
        current::store(&StdFs, dir.path(), 7).unwrap();
        let loaded = load(&StdFs, dir.path());
        assert!(matches!(&loaded, Err(Error::UnsupportedVersion { found, supported: 2, .. }) if *found == version));
    }
}

#[test]
fn a_policy_of_a_newer_version_is_a_typed_error() {
    // Catches an unknown policy that is treated as damage, or as the default one, which may not know the rules of its runs.
    let dir = TempDir::new().unwrap();
    let newer = ManifestState { policy: Some(Compaction::ALL.len() as u64 + 1), ..ManifestState::default() };
    Manifest::create(Arc::new(StdFs), dir.path(), numbers(), newer).unwrap();
    let error = load(&StdFs, dir.path()).unwrap_err();
    let Error::Unsupported { what: "compaction policy", found, supported, .. } = error else { panic!("{error}") };
    assert_eq!((found, supported), (Compaction::ALL.len() as u32 + 1, Compaction::ALL.len() as u32));
}
