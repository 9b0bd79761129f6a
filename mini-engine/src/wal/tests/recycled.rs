//! Logs in files that other logs used before.

use std::fs as std_fs;
use std::ops::ControlFlow;

use super::*;
use crate::disk::{Fault, FaultFs, Repeat};
use crate::error::Error;
use crate::fs::FileSystem;
use crate::wal::format::{FIRST_FRAME, Identity};

const START: u64 = FIRST_FRAME;

/// Ends log `old` and begins log `number` in its file.
fn recycle(dir: &TempDir, old: Writer, number: u64) -> Writer {
    let spare = retire(dir, old);
    Writer::create_on(spare, &StdFs, dir.path(), number, Arc::default()).expect("a log")
}

fn retire(dir: &TempDir, old: Writer) -> Spare {
    let segment = old.finish();
    drop(segment.release());
    let spare = segment.retire(u64::MAX).expect("synced frames");
    std_fs::rename(path(dir, segment.number()), dir.path().join(SPARE)).expect("renamed");
    spare
}

/// A log in a file that was used by another log of `batches`, which was in a recycled file itself: frames of these two start at the same offsets.
fn third_generation(dir: &TempDir, batches: &[Batch]) -> Writer {
    let mut log = create(dir, 1, None);
    for number in 2..=3 {
        append_all(&mut log, batches);
        sync(&log);
        log = recycle(dir, log, number);
    }
    log
}

/// The bytes of log 3 after each of the `batches`, and the ends of the frames.
fn stages(dir: &TempDir, log: &mut Writer, batches: &[Batch]) -> (Vec<Vec<u8>>, Vec<u64>) {
    let bytes = || bytes_of(dir, 3);
    let (mut stages, mut ends) = (vec![bytes()], vec![START]);
    for (seqno, count, payload) in batches {
        ends.push(log.append(*seqno, *count, payload).expect("appended"));
        stages.push(bytes());
    }
    (stages, ends)
}

#[test]
fn a_previous_generations_frames_are_never_taken_though_they_stand_at_the_same_places_with_the_same_batches() {
    // Catches a salt that is reused, and an old frame after the last new one that is replayed as a write.
    let (dir, batches) = (dir(), batches());
    let mut log = third_generation(&dir, &batches);
    let full = std_fs::metadata(path(&dir, 3)).expect("the log").len();
    for (done, (seqno, count, payload)) in batches.iter().enumerate() {
        let (found, tail) = read(&dir, 3).expect("sound");
        assert_eq!((&found[..], tail), (&batches[..done], Tail::Clean { end: log.end() }));
        log.append(*seqno, *count, payload).expect("appended");
        assert_eq!(std_fs::metadata(path(&dir, 3)).expect("the log").len(), full, "its space was there before");
    }
    let last = sync_record(&dir, 3);
    assert_eq!(last, Position { log: 3, offset: START }, "a sync of the previous generation is none of this one");
}

#[test]
fn an_end_within_a_previous_frame_is_clean_wherever_it_is() {
    // Catches the rest of a partly overwritten frame that is reported as a loss, on each start after a kill.
    let dir = dir();
    let long: Vec<Batch> = (0..40).map(|n| (1 + n, 1, vec![n as u8 | 1; 300 + 97 * n as usize])).collect();
    let short: Vec<Batch> = (0..400).map(|n| (1 + n, 1, vec![n as u8 | 1; (n * 37 % 450) as usize])).collect();
    let mut log = third_generation(&dir, &long);
    let (stages, ends) = stages(&dir, &mut log, &short);
    let kept = stages[0].len();
    let (mut over, mut beyond) = (0, 0);
    for (done, bytes) in stages.iter().enumerate() {
        put(&dir, 3, bytes);
        let (found, tail) = read(&dir, 3).expect("sound");
        assert_eq!((&found[..], tail), (&short[..done], Tail::Clean { end: ends[done] }));
        let rest = &bytes[ends[done] as usize..];
        over += usize::from(rest.first() == Some(&0) && rest.iter().any(|&byte| byte != 0));
        beyond += usize::from(bytes.len() > kept);
    }
    assert!(over > 100 && beyond > 10, "{over} ends within a previous frame, {beyond} behind the previous generation");
}

#[test]
fn own_frames_behind_a_hole_with_previous_frames_count_and_are_kept() {
    // Catches frames of the previous generation in a hole that are treated as the end, although a synced frame of this generation follows.
    let batches: Vec<Batch> = (0..60).map(|n| (1 + n, 1, vec![n as u8; 200])).collect();
    for is_synced in [false, true] {
        let dir = dir();
        let mut log = third_generation(&dir, &batches);
        let before = bytes_of(&dir, 3);
        let mut ends = append_all(&mut log, &batches[..20]);
        if is_synced {
            sync(&log);
        }
        ends.extend(append_all(&mut log, &batches[20..30]));
        let mut bytes = bytes_of(&dir, 3);
        // As if the bytes there had never reached the device.
        let hole = ends[4] as usize..ends[9] as usize;
        bytes[hole.clone()].copy_from_slice(&before[hole]);
        put(&dir, 3, &bytes);
        match (is_synced, read(&dir, 3)) {
            (true, Err(Error::Corruption { offset, .. })) => assert_eq!(offset, ends[4]),
            (false, Ok((found, Tail::Torn { offset, dropped_bytes }))) => {
                assert_eq!((found.len(), offset), (5, ends[4]));
                let kept_end = offset + dropped_bytes;
                assert!((ends[29]..ends[29] + 1000).contains(&kept_end), "{kept_end}, {}", ends[29]);
                let aside = dir.path().join("aside");
                // An interrupted recovery has kept more bytes, which a power failure has since removed from the log.
                std_fs::write(&aside, vec![1; kept_end as usize + 1000]).expect("written");
                keep_torn(&StdFs, &path(&dir, 3), 3, offset..kept_end, &aside).expect("kept");
                let mut whole = 0;
                let count = |part: Part<'_>| {
                    whole += usize::from(matches!(part, Part::Frame(_)));
                    Ok(ControlFlow::Continue(()))
                };
                walk(&StdFs, &aside, 3, Reading::Tail, count).expect("its header is there");
                assert_eq!(whole, 20, "those behind the hole");
                assert_eq!(std_fs::metadata(&aside).expect("the tail").len(), kept_end);
            }
            (_, other) => panic!("synced: {is_synced}: {other:?}"),
        }
    }
}

#[test]
fn only_a_released_log_without_failure_is_retired_and_only_what_was_synced_of_it() {
    // Catches a file that is overwritten while its log is still needed, and a sync of obsolete bytes.
    let dir = dir();
    let fs = FaultFs::new(Arc::new(StdFs));
    let mut log = create_in(&fs, &dir, 1, None);
    let mut end = 0;
    for n in 0..20 {
        if n == 10 {
            sync(&log);
            end = log.segment().synced();
        }
        log.append(1 + n, 1, &[1; 300]).expect("appended");
    }
    let segment = log.finish();
    assert!(segment.retire(u64::MAX).is_none(), "not released");
    drop(segment.release());
    let spare = segment.retire(u64::MAX).expect("ten frames");
    let touched = fs.mutations();
    segment.sync().expect("nothing to do: tables have it");
    assert_eq!(fs.mutations(), touched, "the file may be another log's");
    std_fs::rename(path(&dir, 1), dir.path().join(SPARE)).expect("renamed");
    let log = Writer::create_on(spare, &fs, dir.path(), 2, Arc::default()).expect("a log");
    assert_eq!(std_fs::metadata(path(&dir, 2)).expect("the log").len(), end);
    assert_eq!(read(&dir, 2).expect("sound").1, Tail::Clean { end: START });
    drop(log);

    let mut unsynced = create(&dir, 3, None);
    append(&mut unsynced, 1, b"batch");
    let retired = |log: Writer| {
        let segment = log.finish();
        drop(segment.release());
        segment.retire(u64::MAX)
    };
    assert!(retired(unsynced).is_none(), "never synced");
    let mut failed = create_in(&fs, &dir, 4, None);
    append(&mut failed, 1, b"batch");
    sync(&failed);
    fs.fail_mutation(fs.mutations(), Fault::Device, Repeat::Once);
    failed.append(2, 1, b"batch").expect_err("refused");
    assert!(retired(failed).is_none(), "what is on the device is unknown");
}

#[test]
fn what_is_kept_ends_at_a_frame_within_the_limit_and_before_a_frame_too_long() {
    // Catches a spare file that keeps the space of one huge batch for ever, and a write that has to clear megabytes.
    let log = Identity { number: 1, salt: 1 };
    let kept = |starts: &[u64], synced, max| Spare::of(log, starts.to_vec(), synced, max).map(|spare| spare.rest.end);
    assert_eq!(kept(&[], 40, 1000), None);
    assert_eq!(kept(&[40], 40, 1000), None);
    assert_eq!(kept(&[40, 600, 1200], 1700, 10_000), Some(1700));
    assert_eq!(kept(&[40, 600, 1200], 1000, 10_000), Some(1000));
    assert_eq!(kept(&[40, 600, 1200], 1700, 1100), Some(600));
    assert_eq!(kept(&[40], 2 << 20, 10 << 20), None);
    assert_eq!(kept(&[40, 600, 2 << 20], 3 << 20, 10 << 20), Some(600));
}

#[test]
fn each_failing_step_of_taking_over_a_file_is_an_error_and_leaves_no_log_that_cannot_be_read() {
    // Catches a log that is used although its header or name may not be durable, and a log's name for a file with another log's header.
    for repeat in [Repeat::Once, Repeat::FromThenOn] {
        let mut index = 0;
        loop {
            let dir = dir();
            let mut old = create(&dir, 1, None);
            append_all(&mut old, &batches());
            sync(&old);
            let spare = retire(&dir, old);
            let fs = FaultFs::new(Arc::new(StdFs));
            fs.fail_mutation(index, Fault::ShortWrite, repeat);
            match Writer::create_on(spare, &fs, dir.path(), 2, Arc::default()) {
                Ok(_) => break,
                Err(error) => assert!(matches!(error, Error::Io { .. }), "{error:?}"),
            }
            let there = [dir.path().join(SPARE), path(&dir, 2)].map(|path| fs.exists(&path).expect("known"));
            assert!(repeat == Repeat::FromThenOn || there == [false, false], "operation {index}: {there:?}");
            if there[1] {
                assert_eq!(read(&dir, 2).expect("its own header").1, Tail::Clean { end: START });
            }
            index += 1;
        }
        assert_eq!(index, 4, "write, sync, rename, sync directory");
    }
}
