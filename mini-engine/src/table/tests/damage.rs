//! Tables that are truncated, have flipped bits, are forged or random.

use std::fs as std_fs;

use proptest::prelude::*;

use super::*;
use crate::table::block::frame::{Block, BlockLocation};
use crate::table::format::footer::{FOOTER_LEN, Handle};

/// Reads a block with a valid checksum and these stored bytes, this tag and this length of the contents.
fn decode(stored: &[u8], tag: u8, len: u32) -> Result<Block> {
    let mut bytes = [stored, &[tag]].concat();
    codec::put_u32(&mut bytes, len);
    let checksum = codec::checksum(&bytes, codec::seed([1, 0]));
    codec::put_u64(&mut bytes, checksum);
    let handle = Handle { offset: 0, len: bytes.len() as u64 };
    BlockLocation { path: Path::new("000001.sst"), number: 1, handle }.decode(&bytes)
}

proptest! {
    #[test]
    fn random_bytes_as_a_table_are_corruption(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        // Catches a footer that is read beyond the file's start, and handles that are used without a check.
        let dir = dir();
        std_fs::write(dir.path().join(file_name(1)), bytes).expect("written");
        let corrupt = matches!(open(dir.path(), 1), Err(Error::Corruption { .. }));
        prop_assert!(corrupt);
    }

    #[test]
    fn random_bytes_as_a_block_never_panic_or_ask_for_much(
        body in prop::collection::vec(any::<u8>(), 0..100), tag in 0u8..4, len in prop_oneof![any::<u32>(), 0u32..4000],
    ) {
        // Catches memory allocated for a length to which the stored bytes cannot decompress, although the checksum is valid.
        match decode(&body, tag, len) {
            Ok(block) => {
                prop_assert_eq!(block.contents().len(), len as usize);
                prop_assert!(u64::from(len) <= (body.len() as u64 + 1) << 15);
            }
            Err(Error::Corruption { offset: 0, .. }) => {}
            Err(Error::Unsupported { found: 3, .. }) => prop_assert_eq!(tag, 3),
            Err(other) => prop_assert!(false, "{}", other),
        }
    }
}

#[test]
fn a_length_that_the_stored_bytes_cannot_have_is_refused_before_memory_is_taken() {
    // Catches an allocation of 4 GiB for a block of 20 bytes.
    for tag in [1, 2] {
        let error = decode(&[0; 20], tag, u32::MAX).expect_err("forged");
        assert!(error.to_string().contains("decompressed length: expected at most"), "{error}");
    }
}

fn assert_corruption(result: Result<Vec<Entry>>, path: &Path, size: u64, location: &str) {
    match result {
        Err(Error::Corruption { file, offset, .. }) => {
            assert!(file == path && offset <= size, "{location}: {} at {offset}", file.display());
        }
        other => panic!("{location}: {:?}", other.map(|all| all.len())),
    }
}

#[test]
fn a_flipped_bit_anywhere_is_a_typed_error_with_file_and_offset() {
    // Catches a byte that no checksum covers, and damage that panics or returns a wrong value.
    for compression in [Compression::None, Compression::Lz4, Compression::Zstd { level: 3 }] {
        let dir = dir();
        let path = dir.path().join(file_name(1));
        let all = sample(40);
        let options = small_blocks().compression(compression).partition_bytes(128);
        build(dir.path(), 1, &options, &all).expect("built");
        assert_eq!(read_all(dir.path(), &all).expect("sound"), all);
        let whole = std_fs::read(&path).expect("the table");
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << (at % 8);
            std_fs::write(&path, &bytes).expect("flipped");
            let what = format!("{compression:?}, byte {at}");
            assert_corruption(read_all(dir.path(), &all), &path, whole.len() as u64, &what);
        }
    }
}

#[test]
fn damage_of_one_block_does_not_stop_reads_of_others() {
    // Catches an error of one block that makes the whole table fail from then on.
    let dir = dir();
    let path = dir.path().join(file_name(1));
    let all = sample(200);
    build(dir.path(), 1, &small_blocks(), &all).expect("built");
    flip(dir.path(), 10);
    let table = open(dir.path(), 1).expect("the damage is in a data block");
    let Err(Error::Corruption { file, offset: 0, what }) = get(&table, &all[0].key, MAX_SEQNO) else {
        panic!("the damage of the first block was not seen")
    };
    assert!(file == path && what.contains("checksum"), "{what}");
    let last = &all[all.len() - 2];
    assert_eq!(get(&table, &last.key, MAX_SEQNO).expect("sound").map(|found| found.1), Some(last.seqno));
    let mut iter = table.iter();
    assert!(iter.seek_to_first().is_err() && !iter.valid());
    iter.seek_to_last().expect("sound");
    assert!(iter.valid());
    let mut walked = Ok(());
    while walked.is_ok() && iter.valid() {
        walked = iter.prev();
    }
    assert!(matches!(walked, Err(Error::Corruption { offset: 0, .. })), "{walked:?}");
}

#[test]
fn a_table_cut_at_any_byte_is_corruption() {
    // Catches a truncated file whose last bytes are mistaken for a footer.
    let dir = dir();
    let path = dir.path().join(file_name(1));
    build(dir.path(), 1, &small_blocks(), &sample(30)).expect("built");
    let whole = std_fs::read(&path).expect("the table");
    for len in 0..whole.len() {
        std_fs::write(&path, &whole[..len]).expect("cut");
        assert_corruption(read_all(dir.path(), &[]), &path, len as u64, &format!("cut to {len}"));
    }
    for extra in [1, 8, FOOTER_LEN] {
        let mut grown = whole.clone();
        grown.extend_from_slice(&whole[whole.len() - extra..]);
        std_fs::write(&path, grown).expect("grown");
        assert_corruption(read_all(dir.path(), &[]), &path, (whole.len() + extra) as u64, &format!("grown by {extra}"));
    }
}

#[test]
fn a_table_under_another_number_is_corruption() {
    // Catches a file that was renamed or restored under another file's name.
    let dir = dir();
    build(dir.path(), 1, &small_blocks(), &sample(3)).expect("built");
    std_fs::rename(dir.path().join(file_name(1)), dir.path().join(file_name(2))).expect("renamed");
    assert!(matches!(open(dir.path(), 2), Err(Error::Corruption { .. })));
    assert!(matches!(open(dir.path(), 1), Err(Error::Io { .. })), "a missing file is an error");
}

#[test]
fn a_newer_format_version_is_told_apart_from_damage() {
    // Catches a newer table that is reported as corrupt.
    let dir = dir();
    let path = dir.path().join(file_name(1));
    build(dir.path(), 1, &small_blocks(), &sample(3)).expect("built");
    let mut bytes = std_fs::read(&path).expect("the table");
    let footer = bytes.len() - FOOTER_LEN;
    bytes[footer + 56] = 9;
    let checksum = codec::checksum(&bytes[footer..footer + 64], codec::seed([1, footer as u64]));
    bytes[footer + 64..footer + 72].copy_from_slice(&checksum.to_le_bytes());
    std_fs::write(&path, bytes).expect("written");
    let result = open(dir.path(), 1);
    assert!(matches!(result, Err(Error::UnsupportedVersion { found: 9, supported: 2, .. })), "{result:?}");
}

#[test]
fn a_compression_that_only_a_newer_version_knows_is_told_apart_from_damage() {
    // Catches a valid table of a newer version that is reported as corrupt.
    let error = decode(b"stored", 3, 6).expect_err("unknown");
    assert!(matches!(&error, Error::Unsupported { file, found: 3, supported: 2, .. } if file.ends_with("000001.sst")));
    assert_eq!(error.to_string(), "000001.sst uses block compression 3, this build knows up to 2");
}

#[test]
fn a_failed_read_is_an_io_error_that_the_next_read_does_not_inherit() {
    // Catches a read error that is reported as corruption, or returned again by later reads.
    let all = sample(3);
    let Counted { fs, table, .. } = &Counted::new(&small_blocks(), &all, 0);
    fs.fail_read(fs.reads(), Fault::Device, Repeat::Once);
    assert!(matches!(get(table, &all[0].key, MAX_SEQNO), Err(Error::Io { op: "read", .. })));
    assert!(get(table, &all[0].key, MAX_SEQNO).expect("sound").is_some());
}
