//! The use of a log's mapping.

use std::collections::HashSet;
use std::io::Result as IoResult;
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::fs::{File, FileSystem, Mapping};
use crate::types::Durability;
use crate::wal::format::{Identity, SegmentHeader};
use crate::wal::segment::Segment;

/// The operations on a file, in bytes.
#[derive(Debug, Default)]
struct Counts {
    written: AtomicU64,
    filled: AtomicU64,
    populated: AtomicU64,
    /// No byte at or after this offset can be written; 0 for no limit.
    full_at: AtomicU64,
}

/// A file that can be mapped.
#[derive(Clone, Debug)]
struct Watched(Arc<dyn File>, Arc<Counts>);

impl File for Watched {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> IoResult<usize> {
        self.0.read_at(buf, offset)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> IoResult<usize> {
        let full_at = self.1.full_at.load(Ordering::Relaxed);
        if full_at > 0 && offset + buf.len() as u64 > full_at {
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        self.1.written.fetch_add(buf.len() as u64, Ordering::Relaxed);
        self.0.write_at(buf, offset)
    }

    fn sync(&self) -> IoResult<()> {
        self.0.sync()
    }

    fn truncate(&self, len: u64) -> IoResult<()> {
        self.0.truncate(len)
    }

    fn len(&self) -> IoResult<u64> {
        self.0.len()
    }

    fn map_mut(&self, _: u64) -> IoResult<Box<dyn Mapping>> {
        Ok(Box::new(self.clone()))
    }
}

impl Mapping for Watched {
    fn write(&self, bytes: &[u8], offset: u64) {
        self.1.filled.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        self.0.write_all_at(bytes, offset).expect("there is space");
    }

    fn populate(&self, _: u64, len: u64) {
        self.1.populated.fetch_add(len, Ordering::Relaxed);
    }
}

/// A log whose file can be mapped.
fn watched(dir: &TempDir) -> (Writer, Arc<Counts>) {
    let counts = Arc::default();
    let file = Watched(StdFs.create_new(&path(dir, 1)).expect("a new file"), Arc::clone(&counts));
    let log = Identity { number: 1, salt: 1 };
    let header = SegmentHeader { log, previous_generation: None };
    file.0.write_all_at(&header.encode(), 0).expect("written");
    let segment = Segment::new(Arc::new(file), path(dir, 1), log, Arc::default());
    (Writer::at_start(segment, None), counts)
}

#[test]
fn pages_are_populated_only_where_no_sync_would_write_them_for_nothing() {
    // Catches a first sync that writes all of a recycled log to the device, because populated pages are dirty.
    for (durability, expected) in [(Durability::Buffered, 100_000), (Durability::Synced, 0)] {
        let dir = dir();
        let (mut writer, counts) = watched(&dir);
        writer.reserve(100_000, durability).expect("reserved");
        assert_eq!(counts.populated.load(Ordering::Relaxed), expected, "{durability:?}");
    }
}

#[test]
fn frames_that_are_synced_one_by_one_are_written_by_calls_into_space_that_is_there() {
    // Catches a page fault for each synced frame, and a file that grows with each frame, so that each sync has to write its length.
    for reserved in [0, 100_000] {
        let dir = dir();
        let (mut writer, counts) = watched(&dir);
        writer.reserve(reserved, Durability::Synced).expect("reserved");
        let mut lengths = HashSet::new();
        let batches: Vec<Batch> = (1..=100).map(|seqno| (seqno, 1, vec![7; 100])).collect();
        for batch in &batches {
            append_all(&mut writer, std::slice::from_ref(batch));
            sync(&writer);
            lengths.insert(std_fs::metadata(path(&dir, 1)).expect("the log").len());
        }
        // The first frame may belong to a stream that is never synced.
        let filled = counts.filled.load(Ordering::Relaxed);
        assert!(filled <= 200 && lengths.len() <= 2, "{filled} filled, {lengths:?}");
        // Frames that are never synced go into the mapping, if there is one.
        append_all(&mut writer, &[(101, 1, vec![7; 100]), (102, 1, vec![7; 100])]);
        let by_mapping = counts.filled.load(Ordering::Relaxed) - filled;
        assert_eq!(by_mapping > 100, reserved > 0, "{by_mapping} filled");
        assert_eq!(read(&dir, 1).expect("sound").1, Tail::Clean { end: writer.end() });
    }
}

#[test]
fn a_frame_far_longer_than_the_space_is_written_once() {
    // Catches zeros that the holder of the write lock writes for a frame that could have been written in their place.
    let dir = dir();
    let (mut writer, counts) = watched(&dir);
    writer.reserve(100_000, Durability::Buffered).expect("reserved");
    let lengths = [1000, 8 << 20, 1000, 0, 3 << 20, 50];
    let batches: Vec<Batch> = (1..).zip(lengths).map(|(seqno, len)| (seqno, 1, vec![7; len])).collect();
    append_all(&mut writer, &batches);
    let (written, filled) = (counts.written.load(Ordering::Relaxed), counts.filled.load(Ordering::Relaxed));
    // The long frames are written by system calls, with a step of space after them.
    assert!((2000..10_000).contains(&filled) && written < 14 << 20, "{written} written, {filled} filled");
    let (found, tail) = read(&dir, 1).expect("sound");
    assert_eq!((found.len(), tail), (batches.len(), Tail::Clean { end: writer.end() }));
    assert!(found == batches);
}

#[test]
fn space_of_which_a_log_gets_only_a_part_is_given_back() {
    // Catches zeros that stay on a full disk although their log does not use them.
    let dir = dir();
    let (mut writer, counts) = watched(&dir);
    let space = 1 << 20;
    writer.reserve(space, Durability::Buffered).expect("reserved");
    counts.full_at.store(space + 200_000, Ordering::Relaxed);
    let batches: Vec<Batch> = (1..=10).map(|seqno| (seqno, 1, vec![7; 100_000])).collect();
    append_all(&mut writer, &batches);
    assert!(writer.append(11, 1, &[7; 100_000]).expect_err("no space").is_want_of_space());
    assert!(writer.is_closed());
    assert_eq!(std_fs::metadata(path(&dir, 1)).expect("the log").len(), writer.end());
    let (found, tail) = read(&dir, 1).expect("sound");
    assert_eq!((found.len(), tail), (10, Tail::Clean { end: writer.end() }));
}
