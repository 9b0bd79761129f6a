//! Logs that are cut, flipped, forged and random.

use std::fs as std_fs;

use proptest::prelude::*;

use super::*;
use crate::error::Error;
use crate::types::{Durability, MAX_SEQNO};
use crate::wal::format::{FIRST_FRAME, FRAME_HEADER_LEN, FrameHeader, Identity, SegmentHeader};

fn header_of(log: Identity) -> Vec<u8> {
    SegmentHeader { log, previous_generation: None }.encode()
}

#[test]
fn a_cut_at_every_byte_leaves_a_clean_prefix_of_whole_frames() {
    // Catches a frame handed out although its end is missing, and a tear taken for corruption.
    let dir = dir();
    let mut writer = create(&dir, 1, None);
    let batches = &batches()[..18];
    let ends = append_all(&mut writer, batches);
    let whole = std_fs::read(path(&dir, 1)).expect("the log");
    for cut in 0..=whole.len() {
        std_fs::write(path(&dir, 1), &whole[..cut]).expect("cut");
        let (found, tail) = read(&dir, 1).unwrap_or_else(|error| panic!("cut at {cut}: {error}"));
        let kept = ends.iter().filter(|&&end| end <= cut as u64).count();
        assert_eq!(found, batches[..kept], "cut at {cut}");
        let stop = match kept {
            0 if cut < HEADER_LEN => 0,
            0 => FIRST_FRAME,
            kept => ends[kept - 1],
        };
        let zeros = cut >= HEADER_LEN && whole[stop as usize..cut].iter().all(|&byte| byte == 0);
        let dropped_bytes = cut as u64 - stop;
        let expected = if zeros { Tail::Clean { end: stop } } else { Tail::Torn { offset: stop, dropped_bytes } };
        assert_eq!(tail, expected, "cut at {cut}");
    }
}

#[test]
fn a_flipped_bit_anywhere_never_alters_a_frame() {
    // Catches a byte that no checksum covers: header, payload and padding are all tried.
    let dir = dir();
    let mut writer = create(&dir, 1, None);
    let batches: Vec<Batch> = (0..6).map(|i| (1 + i, 1, vec![i as u8; 3 * i as usize])).collect();
    let ends = append_all(&mut writer, &batches);
    let whole = std_fs::read(path(&dir, 1)).expect("the log");
    for at in 0..whole.len() {
        for bit in 0..8 {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << bit;
            std_fs::write(path(&dir, 1), &bytes).expect("flipped");
            let result = read(&dir, 1);
            if at < HEADER_LEN {
                assert!(
                    matches!(&result, Err(Error::Corruption { offset, .. }) if *offset < FIRST_FRAME),
                    "{at}.{bit}: {result:?}"
                );
                continue;
            }
            let (found, tail) = result.expect("nothing was synced, so nothing proves damage");
            let kept = ends.iter().filter(|&&end| end <= at as u64).count();
            assert_eq!(found, batches[..kept], "byte {at}, bit {bit}");
            assert!(matches!(tail, Tail::Torn { .. }), "byte {at}, bit {bit}: {tail:?}");
        }
    }
}

/// A log of four frames; synced after the `synced`-th if given. Its ends.
fn four_frames(dir: &TempDir, synced: Option<usize>) -> Vec<u64> {
    let mut writer = create(dir, 1, None);
    let mut ends = Vec::new();
    for i in 0..4 {
        ends.push(writer.append(1 + i as u64, 1, &[i as u8; 20]).expect("appended"));
        if synced == Some(i) {
            writer.segment().sync().expect("synced");
        }
    }
    ends
}

fn damage(dir: &TempDir, number: u64, at: u64) {
    let mut bytes = std_fs::read(path(dir, number)).expect("the log");
    bytes[at as usize] ^= 0x40;
    std_fs::write(path(dir, number), bytes).expect("damaged");
}

#[test]
fn torn_wal_tail_is_dropped_but_torn_middle_is_corruption() {
    // Catches synced frames dropped as a torn tail, and a crash's unsynced hole called corruption.
    for damaged in 0..4usize {
        for synced in [None, Some(0), Some(1), Some(2), Some(3)] {
            let dir = dir();
            let ends = four_frames(&dir, synced);
            let start = if damaged == 0 { FIRST_FRAME } else { ends[damaged - 1] };
            damage(&dir, 1, start + FRAME_HEADER_LEN as u64 + 2);
            // A frame after the hole carries the record if it was written after the sync.
            let proven = synced.is_some_and(|synced| damaged <= synced && synced < 3);
            match read(&dir, 1) {
                Err(Error::Corruption { offset, what, file }) => {
                    assert!(proven, "damaged {damaged}, synced {synced:?}: {what}");
                    assert_eq!((offset, file), (start, path(&dir, 1)));
                }
                Ok((found, Tail::Torn { offset, .. })) => {
                    assert!(!proven, "damaged {damaged}, synced {synced:?}");
                    assert_eq!((found.len(), offset), (damaged, start));
                }
                other => panic!("damaged {damaged}, synced {synced:?}: {other:?}"),
            }
        }
    }
}

#[test]
fn a_later_log_proves_that_an_earlier_one_was_synced() {
    // Catches a hole in log 1 accepted as a tear although log 2 was acknowledged as synced after it.
    for sync_second in [false, true] {
        let dir = dir();
        let mut first = create(&dir, 1, None);
        let end = first.append(1, 1, b"first").expect("appended");
        let mut second = create(&dir, 2, Some(&first));
        second.append(2, 1, b"second").expect("appended");
        if sync_second {
            second.segment().sync().expect("synced");
        }
        second.append(3, 1, b"third").expect("appended");
        damage(&dir, 1, end - 1);
        let (_, tail) = read(&dir, 1).expect("its own frames prove nothing");
        let record = newest_sync_record(&StdFs, &path(&dir, 2), 2).expect("sound").expect("frames");
        let contradiction = tail.contradicted_by(&path(&dir, 1), 1, record);
        assert_eq!(contradiction.is_some(), sync_second, "{record:?}");
        let clean = Tail::Clean { end };
        assert!(clean.contradicted_by(&path(&dir, 1), 1, record).is_none(), "{record:?}");
    }
}

#[test]
fn a_record_beyond_a_clean_end_is_corruption() {
    // Catches a log cut exactly between two synced frames, which looks clean by itself.
    let at = |log, offset| Position { log, offset };
    let contradicts = |tail: Tail, synced| tail.contradicted_by(&PathBuf::from("000003.log"), 3, synced).is_some();
    let clean = Tail::Clean { end: 100 };
    let torn = Tail::Torn { offset: 100, dropped_bytes: 8 };
    for (synced, by_clean, by_torn) in
        [(at(2, 500), false, false), (at(3, 100), false, false), (at(3, 101), true, true), (at(4, 40), false, true)]
    {
        assert_eq!((contradicts(clean, synced), contradicts(torn, synced)), (by_clean, by_torn), "{synced:?}");
    }
}

#[test]
fn frames_of_another_log_place_or_life_are_never_taken() {
    // Catches a checksum without number, salt or offset: an old frame would be replayed as a new write.
    let own = Identity { number: 5, salt: 99 };
    let offset = FIRST_FRAME;
    let synced = Position { log: 0, offset: 0 };
    let frame_of = |log: Identity, at: u64| {
        let header = FrameHeader::encode(log, at, (1, 1), synced, Payload::Raw(b"payload"));
        [&header[..], b"payload\0"].concat()
    };
    let foreign = [
        frame_of(Identity { number: 4, ..own }, offset),
        frame_of(Identity { salt: 98, ..own }, offset),
        frame_of(own, offset + 8),
        frame_of(own, 0),
    ];
    let dir = dir();
    for (i, frame) in foreign.into_iter().chain([frame_of(own, offset)]).enumerate() {
        let mut bytes = header_of(own);
        bytes.extend_from_slice(&frame);
        std_fs::write(path(&dir, 5), bytes).expect("written");
        let (found, tail) = read(&dir, 5).expect("no proof of damage");
        if i < 4 {
            assert!(found.is_empty() && matches!(tail, Tail::Torn { .. }), "foreign frame {i}: {found:?}");
        } else {
            assert_eq!(found.len(), 1, "the frame of this log at this offset is taken");
        }
    }
}

#[test]
fn a_frame_whose_seqnos_pass_their_limit_is_not_taken() {
    // Catches a sequence number that overflows when the operations of the frame are numbered, and a last one within its limit
    // that a writer acknowledges and replay does not take.
    let log = Identity { number: 5, salt: 99 };
    let dir = dir();
    for (first_seqno, valid) in
        [(MAX_SEQNO - 2, true), (MAX_SEQNO - 1, false), (u64::MAX, false), (u64::MAX - 3, false)]
    {
        let mut bytes = header_of(log);
        let synced = Position { log: 5, offset: 0 };
        let (offset, payload) = (FIRST_FRAME, Payload::Raw(b"payload"));
        bytes.extend_from_slice(&FrameHeader::encode(log, offset, (first_seqno, 3), synced, payload));
        bytes.extend_from_slice(b"payload\0");
        std_fs::write(path(&dir, 5), bytes).expect("written");
        assert_eq!(read(&dir, 5).expect("no proof of damage").0.len(), usize::from(valid), "{first_seqno}");
    }
}

#[test]
fn frames_inside_values_are_never_taken() {
    // Catches a scan past a hole that believes a log stored as a value, with its sync records.
    let dir = dir();
    let mut inner = create(&dir, 1, None);
    for i in 0..10 {
        inner.append(i, 1, b"inner").expect("appended");
        inner.segment().sync().expect("synced");
    }
    let log = std_fs::read(path(&dir, 1)).expect("the log");
    std_fs::remove_file(path(&dir, 1)).expect("removed");
    // Same number and frames at the same offsets: only the salt is another.
    let mut outer = create(&dir, 1, None);
    let payload = &log[HEADER_LEN + FRAME_HEADER_LEN..];
    outer.append(1, 1, payload).expect("appended");
    assert_eq!(read(&dir, 1).expect("sound").0.len(), 1);
    damage(&dir, 1, FIRST_FRAME + 1);
    let (found, tail) = read(&dir, 1).expect("no proof of damage");
    assert_eq!(found.len(), 0);
    assert!(matches!(tail, Tail::Torn { offset: FIRST_FRAME, .. }), "{tail:?}");
}

#[test]
fn unused_zeroed_space_is_a_clean_end_and_zeros_before_frames_are_not() {
    // Catches zeros taken for the end although frames follow, and preallocated space taken for a tear.
    let dir = dir();
    let ends = four_frames(&dir, Some(2));
    let whole = std_fs::read(path(&dir, 1)).expect("the log");
    let mut grown = whole.clone();
    grown.resize(whole.len() + 100_000, 0);
    std_fs::write(path(&dir, 1), &grown).expect("grown");
    assert_eq!(read(&dir, 1).expect("sound").1, Tail::Clean { end: ends[3] });
    let mut hole = whole;
    hole[ends[0] as usize..ends[1] as usize].fill(0);
    std_fs::write(path(&dir, 1), &hole).expect("holed");
    assert!(matches!(read(&dir, 1), Err(Error::Corruption { offset, .. }) if offset == ends[0]));
}

#[test]
fn a_log_whose_header_was_never_written_is_torn_at_its_start() {
    // Catches a crash between creating a log and syncing it that keeps the database from opening.
    let dir = dir();
    for bytes in [Vec::new(), vec![0; 56], vec![0; 10_000], header_of(Identity { number: 1, salt: 3 })[..55].to_vec()] {
        let dropped_bytes = bytes.len() as u64;
        std_fs::write(path(&dir, 1), bytes).expect("written");
        let (found, tail) = read(&dir, 1).expect("torn");
        assert_eq!((found.len(), tail), (0, Tail::Torn { offset: 0, dropped_bytes }));
        assert_eq!(newest_sync_record(&StdFs, &path(&dir, 1), 1).expect("torn"), None);
    }
}

#[test]
fn a_newer_format_and_another_number_are_told_apart_from_damage() {
    // Catches a newer log that is called corrupt, and a renamed log that is replayed.
    let dir = dir();
    let mut header = header_of(Identity { number: 1, salt: 3 });
    std_fs::write(path(&dir, 2), &header).expect("written");
    assert!(matches!(read(&dir, 2), Err(Error::Corruption { offset: 16, .. })));
    let mut reseal_with = |at: usize, byte: u8| {
        header[at] = byte;
        let checksum = crate::codec::checksum(&header[..48], 0);
        header[48..].copy_from_slice(&checksum.to_le_bytes());
        std_fs::write(path(&dir, 1), &header).expect("written");
    };
    reseal_with(12, 1);
    assert!(matches!(read(&dir, 1), Err(Error::Corruption { offset: 16, .. })), "a field that must be zero");
    reseal_with(8, 2);
    assert!(matches!(read(&dir, 1), Err(Error::UnsupportedVersion { found: 2, supported: 1, .. })));
}

#[test]
fn a_truncated_tear_is_gone() {
    // Catches a tail that is accepted and left: the next open would find it before newer logs.
    let dir = dir();
    let ends = four_frames(&dir, None);
    damage(&dir, 1, ends[1] + 5);
    let (_, Tail::Torn { offset, .. }) = read(&dir, 1).expect("torn") else { panic!("not torn") };
    truncate_torn(&StdFs, &path(&dir, 1), offset).expect("truncated");
    let (found, tail) = read(&dir, 1).expect("sound");
    assert_eq!((found.len(), tail), (2, Tail::Clean { end: ends[1] }));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn random_bytes_after_a_header_never_panic_and_are_never_frames(
        bytes in prop::collection::vec(any::<u8>(), 0..2000),
    ) {
        // Catches a length or count taken from bytes whose checksum was not checked.
        let dir = dir();
        let mut log = header_of(Identity { number: 1, salt: 7 });
        log.extend_from_slice(&bytes);
        std_fs::write(path(&dir, 1), log).expect("written");
        let (found, tail) = read(&dir, 1).expect("no proof of damage");
        prop_assert!(found.is_empty());
        let zeros = bytes.iter().all(|&byte| byte == 0);
        prop_assert_eq!(matches!(tail, Tail::Clean { end: 40 }), zeros);
        prop_assert_eq!(newest_sync_record(&StdFs, &path(&dir, 1), 1).expect("readable"), None);
    }

    #[test]
    fn random_files_never_panic_and_give_no_frames(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        // Catches indexing into a header that is shorter than it should be.
        let dir = dir();
        std_fs::write(path(&dir, 1), &bytes).expect("written");
        match read(&dir, 1) {
            Ok((found, Tail::Torn { offset: 0, .. })) => prop_assert!(found.is_empty()),
            Err(Error::Corruption { .. }) => {}
            other => prop_assert!(false, "{:?}", other),
        }
    }
}

#[test]
fn zeros_behind_a_torn_tail_are_no_part_of_it() {
    // Catches a process that was killed in the middle of a frame and is told that all the space ahead is lost, and a copy of it.
    let dir = dir();
    let mut writer = create(&dir, 1, None);
    writer.reserve(3_000_000, Durability::Buffered).expect("reserved");
    let start = writer.append(1, 1, b"whole").expect("appended");
    writer.append(2, 1, &[7; 100]).expect("appended");
    let mut bytes = std_fs::read(path(&dir, 1)).expect("the log");
    // The last bytes of the frame are missing.
    let cut = start as usize + FRAME_HEADER_LEN + 50;
    bytes[cut..].fill(0);
    std_fs::write(path(&dir, 1), &bytes).expect("written");
    // To the end of the page.
    let end = cut.next_multiple_of(4096);
    let torn = Tail::Torn { offset: start, dropped_bytes: end as u64 - start };
    assert_eq!(read(&dir, 1).expect("no proof of damage").1, torn);
    // What an interrupted try has left may be longer.
    let kept = dir.path().join("kept");
    for end in [bytes.len(), end] {
        keep_torn(&StdFs, &path(&dir, 1), 1, start..end as u64, &kept).expect("kept");
    }
    assert_eq!(
        std_fs::read(kept).expect("the copy"),
        [&bytes[..HEADER_LEN], &vec![0; start as usize - HEADER_LEN], &bytes[start as usize..end]].concat()
    );
}

#[test]
fn frames_behind_any_number_of_zeros_are_found() {
    // Catches a search that passes over a frame on its way through unused space, at each distance from where it looks next.
    for zeros in
        (0..200).chain([4088, 65_480, 65_488, 65_528, 65_536, 65_600, 200_000]).map(|zeros: usize| zeros / 8 * 8)
    {
        let dir = dir();
        let mut writer = create(&dir, 1, None);
        writer.append(1, 1, b"whole").expect("appended");
        let hole = writer.append(2, 1, &vec![0; zeros]).expect("appended") as usize;
        writer.segment().sync().expect("synced");
        writer.append(3, 1, b"records the sync").expect("appended");
        let mut bytes = std_fs::read(path(&dir, 1)).expect("the log");
        let start = hole - zeros - FRAME_HEADER_LEN;
        bytes[start..hole].fill(0);
        bytes[start] = 1;
        std_fs::write(path(&dir, 1), &bytes).expect("written");
        assert!(matches!(read(&dir, 1), Err(Error::Corruption { .. })), "{zeros} zeros");
    }
}
