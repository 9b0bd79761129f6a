//! Logs that are written, synced and read back: `damage` for damaged bytes, `failure` for failing file systems, `mapped` for the use of a mapping,
//! `recycled` for files that other logs used before.

mod damage;
mod failure;
mod mapped;
mod recycled;

use std::fs as std_fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::format::{FIRST_FRAME, HEADER_LEN};
use super::*;
use crate::disk::MemFs;
use crate::error::Result;
use crate::fs::{FileSystem, StdFs};
use crate::metrics::Counters;
use crate::types::{Durability, SeqNo};
use proof::TempDir;

type Batch = (SeqNo, u32, Vec<u8>);

fn dir() -> TempDir {
    TempDir::new().expect("a temporary directory")
}

fn create(dir: &TempDir, number: u64, previous: Option<&Writer>) -> Writer {
    create_in(&StdFs, dir, number, previous)
}

fn create_in(fs: &dyn FileSystem, dir: &TempDir, number: u64, previous: Option<&Writer>) -> Writer {
    let writer = Writer::create(fs, dir.path(), number, Arc::default()).expect("a new log");
    previous.into_iter().for_each(|previous| writer.segment().set_previous(Arc::clone(previous.segment())));
    writer
}

/// A log whose operations are counted.
fn counted(dir: &TempDir) -> (Writer, Arc<Counters>) {
    let counters = Arc::new(Counters::default());
    (Writer::create(&StdFs, dir.path(), 1, Arc::clone(&counters)).expect("a new log"), counters)
}

/// Appends a batch. Returns the end of its frame.
fn append(writer: &mut Writer, seqno: SeqNo, payload: &[u8]) -> u64 {
    writer.append(seqno, 1, payload).expect("appended")
}

fn sync(writer: &Writer) {
    writer.segment().sync().expect("synced");
}

/// The bytes of log `number`.
fn bytes_of(dir: &TempDir, number: u64) -> Vec<u8> {
    std_fs::read(path(dir, number)).expect("the log")
}

/// Replaces the contents of log `number` by `bytes`.
fn put(dir: &TempDir, number: u64, bytes: impl AsRef<[u8]>) {
    std_fs::write(path(dir, number), bytes).expect("written");
}

fn sync_record(dir: &TempDir, number: u64) -> Position {
    newest_sync_record(&StdFs, &path(dir, number), number).expect("sound").expect("frames")
}

fn path(dir: &TempDir, number: u64) -> PathBuf {
    dir.path().join(file_name(number))
}

fn read(dir: &TempDir, number: u64) -> Result<(Vec<Batch>, Tail)> {
    let mut batches = Vec::new();
    let tail = replay(&StdFs, &path(dir, number), number, |frame| {
        batches.push((frame.first_seqno, frame.count, frame.payload.to_vec()));
        Ok(())
    })?;
    Ok((batches, tail))
}

/// Batches of every length up to two words and some longer ones, so that frames end at every alignment.
fn batches() -> Vec<Batch> {
    let lengths = (0..17).chain([100, 4096, 5000]);
    let mut seqno = 1;
    lengths
        .map(|len| {
            let batch = (seqno, 1 + len as u32 % 3, (0..len).map(|i| (i * 7 + len) as u8).collect());
            seqno += u64::from(batch.1);
            batch
        })
        .collect()
}

/// Appends all batches. Returns the end of each frame.
fn append_all(writer: &mut Writer, batches: &[Batch]) -> Vec<u64> {
    batches.iter().map(|(seqno, count, payload)| writer.append(*seqno, *count, payload).expect("appended")).collect()
}

#[test]
fn syncing_a_log_syncs_the_unsynced_ones_before_it() {
    // Catches a synced write in log 3 that a power failure loses because log 1, which precedes it, is missing.
    let dir = dir();
    let mut logs = vec![create(&dir, 1, None)];
    for number in 2..=3 {
        let next = create(&dir, number, logs.last());
        logs.push(next);
    }
    logs[0].append(1, 1, b"a").expect("appended");
    logs[1].append(2, 1, b"b").expect("appended");
    logs[2].append(3, 1, b"c").expect("appended");
    let record = |number| sync_record(&dir, number);
    assert_eq!(record(3).log, 1, "nothing after log 1 is synced as long as log 1 is not");
    logs[2].segment().sync().expect("synced");
    for log in &logs {
        assert_eq!(log.segment().synced(), log.end(), "log {}", log.segment().number());
    }
    logs[2].append(4, 1, b"d").expect("appended");
    assert_eq!(record(3).log, 3);
}

#[test]
fn a_released_log_is_not_waited_for() {
    // Catches a chain of logs that are synced again or kept open for ever although they are already in tables.
    let dir = dir();
    let mut first = create(&dir, 1, None);
    append(&mut first, 1, b"a");
    let mut second = create(&dir, 2, Some(&first));
    let weak = Arc::downgrade(first.segment());
    drop(first.segment().release());
    drop(first);
    append(&mut second, 2, b"b");
    // The append holds the write lock, and closing and unmapping a file would take long.
    assert!(weak.upgrade().is_some(), "an append has closed the first log's file");
    drop(second.segment().take_settled());
    assert!(weak.upgrade().is_none(), "the first log's file is still open");
    assert_eq!(sync_record(&dir, 2), Position { log: 2, offset: FIRST_FRAME });
}

#[test]
fn syncing_a_log_leaves_a_released_one_before_it_alone() {
    // Catches a sync of a file that is about to be unlinked, for which every synced write after a flush would wait.
    let dir = dir();
    let (mut first, counters) = counted(&dir);
    append(&mut first, 1, b"a");
    let mut second = create(&dir, 2, Some(&first));
    append(&mut second, 2, b"b");
    drop(first.segment().release());
    sync(&second);
    assert_eq!(counters.wal_syncs.get(), 0);
}

#[test]
fn an_empty_log_does_not_hide_an_unsynced_one_before_it() {
    // Catches a frame of log 3 that records log 1 as synced because log 2 has nothing to sync.
    let dir = dir();
    let mut first = create(&dir, 1, None);
    append(&mut first, 1, b"a");
    let second = create(&dir, 2, Some(&first));
    let mut third = create(&dir, 3, Some(&second));
    first.finish();
    second.finish();
    append(&mut third, 2, b"b");
    assert_eq!(sync_record(&dir, 3), Position { log: 1, offset: FIRST_FRAME });
}

#[test]
fn syncs_are_counted_and_not_repeated_for_nothing() {
    // Catches a device sync for each waiting writer although the first sync covered all of them.
    let dir = dir();
    let (mut writer, counters) = counted(&dir);
    append(&mut writer, 1, b"a");
    for _ in 0..3 {
        sync(&writer);
    }
    assert_eq!(counters.wal_syncs.get(), 1);
}

#[test]
fn bytes_of_frames_and_of_zeros_are_counted_apart() {
    // Catches a write amplification of the log that depends on the space that it got in advance.
    for reserved in [0, 10_000] {
        let dir = dir();
        let (mut writer, counters) = counted(&dir);
        writer.reserve(reserved, Durability::Buffered).expect("reserved");
        for (seqno, len) in [(1, 5), (2, 50_000), (3, 8)] {
            writer.append(seqno, 1, &vec![7; len]).expect("appended");
        }
        let len = std_fs::metadata(path(&dir, 1)).expect("the log").len();
        assert!(len >= writer.end() && (len < 50_300 || reserved > 0), "{} of {len}", writer.end());
        let metrics = counters.snapshot();
        assert_eq!(metrics.wal_bytes, writer.end(), "{reserved} ahead");
        assert!(metrics.wal_zero_bytes >= reserved.saturating_sub(FIRST_FRAME));
        assert!(reserved > 0 || metrics.wal_zero_bytes < 16, "{} zeros", metrics.wal_zero_bytes);
    }
}

#[test]
fn a_sync_makes_each_complete_frame_durable_and_claims_no_other() {
    // Catches a sync that covers less than it reports, and one that covers a frame that was never reported as whole.
    let (fs, dir) = (MemFs::default(), Path::new("/db"));
    fs.create_dir_all(dir).expect("a directory");
    fs.sync_dir(Path::new("/")).expect("a durable one");
    let mut writer = Writer::create(&fs, dir, 1, Arc::default()).expect("a new log");
    let batch = [7; 3000];
    for seqno in 1..=20 {
        append(&mut writer, seqno, &batch);
    }
    let end = writer.end();
    sync(&writer);
    let claim = writer.claim((21, 1), Payload::Raw(&batch)).expect("a place");
    writer.segment().sync().expect("nothing to sync");
    assert_eq!((fs.syncs(), writer.segment().synced()), (2, end));
    writer.segment().fill(&claim, Payload::Raw(&batch));
    append(&mut writer, 22, &batch);
    let mut lost = 0;
    for seed in 0..50 {
        let left = MemFs::on(fs.disk().after_power_cut(seed).0);
        let mut found = 0;
        replay(&left, &dir.join(file_name(1)), 1, |_| {
            found += 1;
            Ok(())
        })
        .expect("nothing that was synced is damaged");
        assert!(found >= 20, "{found} frames, seed {seed}");
        lost += u64::from(found < 22);
    }
    assert!(lost > 0, "the disk has kept all");
}
