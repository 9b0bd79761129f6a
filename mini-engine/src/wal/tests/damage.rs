//! Logs that are truncated, have flipped bits, are forged or random.

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
    // Catches a frame that is returned although its end is missing, and a torn end that is treated as corruption.
    let dir = dir();
    let mut writer = create(&dir, 1, None);
    let batches = &batches()[..18];
    let ends = append_all(&mut writer, batches);
    let whole = bytes_of(&dir, 1);
    for cut in 0..=whole.len() {
        put(&dir, 1, &whole[..cut]);
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

/// A log of four frames, which is synced after the first `synced` of them, if given. Returns the ends of the frames.
fn four_frames(dir: &TempDir, synced: Option<usize>) -> Vec<u64> {
    let mut writer = create(dir, 1, None);
    let mut ends = Vec::new();
    for i in 0..4 {
        ends.push(writer.append(1 + i as u64, 1, &[i as u8; 20]).expect("appended"));
        if synced == Some(i) {
            sync(&writer);
        }
    }
    ends
}

fn damage(dir: &TempDir, number: u64, at: u64) {
    let mut bytes = bytes_of(dir, number);
    bytes[at as usize] ^= 0x40;
    put(dir, number, bytes);
}

#[test]
fn torn_wal_tail_is_dropped_but_torn_middle_is_corruption() {
    // Catches synced frames that are dropped as a torn tail, and an unsynced hole after a crash that is reported as corruption.
    for damaged in 0..4usize {
        for synced in [None, Some(0), Some(1), Some(2), Some(3)] {
            let dir = dir();
            let ends = four_frames(&dir, synced);
            let start = if damaged == 0 { FIRST_FRAME } else { ends[damaged - 1] };
            damage(&dir, 1, start + FRAME_HEADER_LEN as u64 + 2);
            // A frame after the hole records the sync if the frame was written after the sync.
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
    // Catches a hole in log 1 that is accepted as torn although log 2 was acknowledged as synced after it.
    for sync_second in [false, true] {
        let dir = dir();
        let mut first = create(&dir, 1, None);
        let end = append(&mut first, 1, b"first");
        let mut second = create(&dir, 2, Some(&first));
        append(&mut second, 2, b"second");
        if sync_second {
            sync(&second);
        }
        append(&mut second, 3, b"third");
        damage(&dir, 1, end - 1);
        let (_, tail) = read(&dir, 1).expect("its own frames prove nothing");
        let record = sync_record(&dir, 2);
        let contradiction = tail.contradicted_by(&path(&dir, 1), 1, record);
        assert_eq!(contradiction.is_some(), sync_second, "{record:?}");
        let clean = Tail::Clean { end };
        assert!(clean.contradicted_by(&path(&dir, 1), 1, record).is_none(), "{record:?}");
    }
}

#[test]
fn a_record_beyond_a_clean_end_is_corruption() {
    // Catches a log that was cut exactly between two synced frames, so that it looks clean by itself.
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
fn only_frames_of_this_log_place_and_life_with_possible_seqnos_are_taken() {
    // Catches a checksum without number, salt or offset: an old frame would be replayed as a new write. Also catches a sequence number that overflows
    // when the operations of the frame are numbered, and a last number within the limit that a writer acknowledges but replay rejects.
    let own = Identity { number: 5, salt: 99 };
    let (offset, synced) = (FIRST_FRAME, Position { log: 0, offset: 0 });
    let dir = dir();
    for (log, at, seqnos, is_taken) in [
        (own, offset, (1, 1), true),
        (Identity { number: 4, ..own }, offset, (1, 1), false),
        (Identity { salt: 98, ..own }, offset, (1, 1), false),
        (own, offset + 8, (1, 1), false),
        (own, 0, (1, 1), false),
        (own, offset, (MAX_SEQNO - 2, 3), true),
        (own, offset, (MAX_SEQNO - 1, 3), false),
        (own, offset, (u64::MAX, 3), false),
        (own, offset, (u64::MAX - 3, 3), false),
    ] {
        let frame = FrameHeader::encode(log.log_seed(), at, seqnos, synced, Payload::Raw(b"payload"));
        put(&dir, 5, [&header_of(own)[..], &frame, b"payload\0"].concat());
        let (found, tail) = read(&dir, 5).expect("no proof of damage");
        assert_eq!(found.len(), usize::from(is_taken), "{log:?} at {at}: {seqnos:?}");
        assert_eq!(matches!(tail, Tail::Torn { .. }), !is_taken, "{log:?} at {at}: {seqnos:?}");
    }
}

#[test]
fn frames_inside_values_are_never_taken() {
    // Catches a scan past a hole that accepts the frames of a log stored as a value, with their sync records.
    let dir = dir();
    let mut inner = create(&dir, 1, None);
    for i in 0..10 {
        append(&mut inner, i, b"inner");
        sync(&inner);
    }
    let log = bytes_of(&dir, 1);
    std_fs::remove_file(path(&dir, 1)).expect("removed");
    // The number and the offsets of the frames are the same: only the salt differs.
    let mut outer = create(&dir, 1, None);
    let payload = &log[HEADER_LEN + FRAME_HEADER_LEN..];
    append(&mut outer, 1, payload);
    assert_eq!(read(&dir, 1).expect("sound").0.len(), 1);
    damage(&dir, 1, FIRST_FRAME + 1);
    let (found, tail) = read(&dir, 1).expect("no proof of damage");
    assert_eq!(found.len(), 0);
    assert!(matches!(tail, Tail::Torn { offset: FIRST_FRAME, .. }), "{tail:?}");
}

#[test]
fn unused_zeroed_space_is_a_clean_end_and_zeros_before_frames_are_not() {
    // Catches zeros that are treated as the end although frames follow, and preallocated space that is treated as torn.
    let dir = dir();
    let ends = four_frames(&dir, Some(2));
    let whole = bytes_of(&dir, 1);
    let mut grown = whole.clone();
    grown.resize(whole.len() + 100_000, 0);
    put(&dir, 1, &grown);
    assert_eq!(read(&dir, 1).expect("sound").1, Tail::Clean { end: ends[3] });
    let mut hole = whole;
    hole[ends[0] as usize..ends[1] as usize].fill(0);
    put(&dir, 1, &hole);
    assert!(matches!(read(&dir, 1), Err(Error::Corruption { offset, .. }) if offset == ends[0]));
}

#[test]
fn a_log_whose_header_was_never_written_is_torn_at_its_start() {
    // Catches a crash between the creation of a log and its sync that keeps the database from opening.
    let dir = dir();
    for bytes in [Vec::new(), vec![0; 56], vec![0; 10_000], header_of(Identity { number: 1, salt: 3 })[..55].to_vec()] {
        let dropped_bytes = bytes.len() as u64;
        put(&dir, 1, bytes);
        let (found, tail) = read(&dir, 1).expect("torn");
        assert_eq!((found.len(), tail), (0, Tail::Torn { offset: 0, dropped_bytes }));
        assert_eq!(newest_sync_record(&StdFs, &path(&dir, 1), 1).expect("torn"), None);
    }
}

#[test]
fn a_newer_format_and_another_number_are_told_apart_from_damage() {
    // Catches a newer log that is reported as corrupt, and a renamed log that is replayed.
    let dir = dir();
    let mut header = header_of(Identity { number: 1, salt: 3 });
    put(&dir, 2, &header);
    assert!(matches!(read(&dir, 2), Err(Error::Corruption { offset: 16, .. })));
    let mut reseal_with = |at: usize, byte: u8| {
        header[at] = byte;
        let checksum = crate::codec::checksum(&header[..48], 0);
        header[48..].copy_from_slice(&checksum.to_le_bytes());
        put(&dir, 1, &header);
    };
    reseal_with(12, 1);
    assert!(matches!(read(&dir, 1), Err(Error::Corruption { offset: 0, .. })), "a field that must be zero");
    reseal_with(8, 2);
    assert!(matches!(read(&dir, 1), Err(Error::UnsupportedVersion { found: 2, supported: 1, .. })));
}

#[test]
fn a_truncated_tear_is_gone() {
    // Catches a tail that is accepted but not removed: the next open would find it before newer logs.
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
        bytes in prop_oneof![
            7 => prop::collection::vec(any::<u8>(), 0..2000),
            1 => (0..2000_usize).prop_map(|len| vec![0; len]),
        ],
    ) {
        // Catches a length or count that is used before its checksum was verified, and unused space that is treated as damage.
        let dir = dir();
        let mut log = header_of(Identity { number: 1, salt: 7 });
        log.extend_from_slice(&bytes);
        put(&dir, 1, log);
        let (found, tail) = read(&dir, 1).expect("no proof of damage");
        prop_assert!(found.is_empty());
        let zeros = bytes.iter().all(|&byte| byte == 0);
        prop_assert_eq!(tail == Tail::Clean { end: FIRST_FRAME }, zeros);
        prop_assert_eq!(newest_sync_record(&StdFs, &path(&dir, 1), 1).expect("readable"), None);
    }
}

#[test]
fn zeros_behind_a_torn_tail_are_no_part_of_it() {
    // Catches a report, after a kill in the middle of a frame, that all the allocated space is lost, and a copy of that space.
    let dir = dir();
    let mut writer = create(&dir, 1, None);
    writer.reserve(3_000_000, Durability::Buffered).expect("reserved");
    let start = append(&mut writer, 1, b"whole");
    writer.append(2, 1, &[7; 100]).expect("appended");
    let mut bytes = bytes_of(&dir, 1);
    // The last bytes of the frame are missing.
    let cut = start as usize + FRAME_HEADER_LEN + 50;
    bytes[cut..].fill(0);
    put(&dir, 1, &bytes);
    // The tail extends to the end of the page.
    let end = cut.next_multiple_of(4096);
    let torn = Tail::Torn { offset: start, dropped_bytes: end as u64 - start };
    assert_eq!(read(&dir, 1).expect("no proof of damage").1, torn);
    // The remains of an interrupted attempt may be longer.
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
    // Catches a search that skips a frame on its way through unused space, at each distance from its next step.
    for zeros in
        (0..200).chain([4088, 65_480, 65_488, 65_528, 65_536, 65_600, 200_000]).map(|zeros: usize| zeros / 8 * 8)
    {
        let dir = dir();
        let mut writer = create(&dir, 1, None);
        append(&mut writer, 1, b"whole");
        let hole = writer.append(2, 1, &vec![0; zeros]).expect("appended") as usize;
        sync(&writer);
        append(&mut writer, 3, b"records the sync");
        let mut bytes = bytes_of(&dir, 1);
        let start = hole - zeros - FRAME_HEADER_LEN;
        bytes[start..hole].fill(0);
        bytes[start] = 1;
        put(&dir, 1, &bytes);
        assert!(matches!(read(&dir, 1), Err(Error::Corruption { .. })), "{zeros} zeros");
    }
}
