//! Logs on file systems that fail.

use super::*;
use crate::disk::{Fault, FaultFs, Repeat};
use crate::error::Error;
use crate::fs::FileSystem;
use crate::types::Durability;

#[test]
fn after_a_failed_append_or_sync_the_log_refuses_everything() {
    // Catches a retried sync, which succeeds although the kernel has dropped the pages, and an append after a torn frame. An append that finds no
    // space closes the log instead: see the next test.
    let syncs = [Fault::Device, Fault::StorageFull, Fault::ShortWrite].map(|fault| (fault, true));
    for (fault, fail_sync) in syncs.into_iter().chain([(Fault::Device, false)]) {
        let dir = dir();
        let fs = FaultFs::new(Arc::new(StdFs));
        let mut writer = create_in(&fs, &dir, 1, None);
        append(&mut writer, 1, b"kept");
        if fail_sync {
            append(&mut writer, 2, b"not synced");
        }
        let written = writer.end();
        fs.fail_mutation(fs.mutations(), fault, Repeat::Once);
        let failed = if fail_sync { writer.segment().sync() } else { writer.append(2, 1, &[7; 100]).map(drop) };
        assert!(matches!(failed, Err(Error::Io { .. })), "{failed:?}");
        let mutations = fs.mutations();
        assert!(matches!(writer.append(3, 1, b"later"), Err(Error::ReadOnly { .. })));
        let Err(Error::ReadOnly { cause }) = writer.segment().sync() else { panic!("synced again") };
        assert!(cause.contains("000001.log"), "{cause}");
        assert_eq!(fs.mutations(), mutations, "the file was touched after its failure");
        assert_eq!(writer.end(), written);
        assert!(writer.segment().synced() < written);
        let (found, _) = read(&dir, 1).expect("a tear at most");
        assert_eq!(found.len(), if fail_sync { 2 } else { 1 });
    }
}

#[test]
fn an_append_without_space_is_cut_off_and_closes_the_log() {
    // Catches a part of a rejected frame that stays before a later log: that log's syncs would make it look like damage.
    for fault in [Fault::StorageFull, Fault::ShortWrite] {
        let dir = dir();
        let fs = FaultFs::new(Arc::new(StdFs));
        let mut writer = create_in(&fs, &dir, 1, None);
        let end = append(&mut writer, 1, b"kept");
        fs.fail_mutation(fs.mutations(), fault, Repeat::Once);
        let refused = writer.append(2, 1, &[7; 100]);
        assert!(matches!(refused, Err(Error::Io { op: "append to", .. })), "{refused:?}");
        assert!(writer.is_closed());
        let mut next = create_in(&fs, &dir, 2, None);
        next.segment().set_previous(Arc::clone(writer.segment()));
        append(&mut next, 2, b"next");
        sync(&next);
        append(&mut next, 3, b"records the sync");
        let (found, tail) = read(&dir, 1).expect("sound");
        assert_eq!((found.len(), tail), (1, Tail::Clean { end }));
        let (found, _) = read(&dir, 2).expect("sound");
        assert_eq!(found.len(), 2);
        let record = sync_record(&dir, 2);
        assert_eq!(tail.contradicted_by(&path(&dir, 1), 1, record).map(|error| error.to_string()), None);
    }
}

#[test]
fn space_that_is_reserved_ahead_is_no_tail_and_no_frame() {
    // Catches zeros after the last frame that are treated as torn, and frames that are not written over them.
    for durability in [Durability::Buffered, Durability::Synced] {
        let dir = dir();
        let mut writer = create(&dir, 1, None);
        writer.reserve(100_000, durability).expect("reserved");
        let len = || std::fs::metadata(path(&dir, 1)).expect("known").len();
        assert_eq!(len(), 100_000);
        let mut end = FIRST_FRAME;
        for n in 0..3 {
            let (found, tail) = read(&dir, 1).expect("sound");
            assert_eq!((found.len(), tail), (n, Tail::Clean { end }));
            end = writer.append(1 + n as u64, 1, &[7; 300]).expect("appended");
        }
        assert_eq!(len(), 100_000);
        writer.append(4, 1, &[7; 200_000]).expect("appended");
        assert_eq!(read(&dir, 1).expect("sound").0.len(), 4);
    }
}

#[test]
fn a_later_log_cannot_be_synced_past_an_earlier_failure() {
    // Catches a write in log 2 that is acknowledged as synced although log 1 may be lost.
    let dir = dir();
    let fs = FaultFs::new(Arc::new(StdFs));
    let mut first = create_in(&fs, &dir, 1, None);
    append(&mut first, 1, b"a");
    let mut second = create_in(&fs, &dir, 2, Some(&first));
    append(&mut second, 2, b"b");
    fs.fail_mutation(fs.mutations(), Fault::Device, Repeat::Once);
    assert!(matches!(second.segment().sync(), Err(Error::Io { .. })));
    assert!(matches!(second.segment().sync(), Err(Error::ReadOnly { .. })));
    assert!(matches!(second.append(3, 1, b"c"), Err(Error::ReadOnly { .. })));
    assert_eq!(second.segment().synced(), FIRST_FRAME);
}

#[test]
fn each_failing_step_of_creating_a_log_is_an_error() {
    // Catches a log that is used although its header or directory entry may not be durable.
    let mut index = 0;
    loop {
        let dir = dir();
        let fs = FaultFs::new(Arc::new(StdFs));
        fs.fail_mutation(index, Fault::ShortWrite, Repeat::FromThenOn);
        match Writer::create(&fs, dir.path(), 1, Arc::default()) {
            Ok(_) => break,
            Err(error) => assert!(matches!(error, Error::Io { .. }), "{error:?}"),
        }
        if fs.exists(&path(&dir, 1)).expect("known") {
            assert!(read(&dir, 1).expect("no frame and no damage").0.is_empty());
        }
        index += 1;
    }
    assert_eq!(index, 4, "create, write, sync, sync directory");
}

#[test]
fn a_log_that_cannot_be_read_is_an_error_and_not_an_end() {
    // Catches a failing device that is treated as a torn tail: the frames after it would be cut off and lost.
    let dir = dir();
    let mut writer = create(&dir, 1, None);
    let batches = [(1, 1, vec![1; 100]), (2, 1, vec![2; 3 << 20]), (3, 1, vec![3; 100])];
    append_all(&mut writer, &batches);
    let fs = FaultFs::new(Arc::new(StdFs));
    let read = |found: &mut usize| {
        replay(&fs, &path(&dir, 1), 1, |_| {
            *found += 1;
            Ok(())
        })
    };
    let mut all = 0;
    read(&mut all).expect("sound");
    let reads = fs.reads();
    assert!(all == 3 && reads > 4, "open, length and several chunks: {reads}");
    for index in 0..reads {
        fs.fail_read(fs.reads() + index, Fault::Device, Repeat::Once);
        let mut found = 0;
        let result = read(&mut found);
        assert!(matches!(result, Err(Error::Io { .. })), "read {index}: {result:?} after {found} frames");
    }
}

#[test]
fn each_failing_step_of_truncating_a_tear_is_an_error() {
    // Catches a torn tail that counts as removed although the cut was never synced.
    let dir = dir();
    let mut writer = create(&dir, 1, None);
    let end = append(&mut writer, 1, b"kept");
    for index in 0..2 {
        let fs = FaultFs::new(Arc::new(StdFs));
        fs.fail_mutation(index, Fault::Device, Repeat::Once);
        assert!(matches!(truncate_torn(&fs, &path(&dir, 1), end), Err(Error::Io { .. })), "operation {index}");
    }
}
