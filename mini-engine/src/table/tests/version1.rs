//! Tables of format version 1, which are no longer written, are read for ever.

use super::*;
use crate::table::block::BlockBuilder;
use crate::table::filter::Filter;
use crate::table::format::{Footer, Handle};
use crate::table::frame;
use crate::table::properties::Properties;
use crate::table::version1;

/// Writes what version 1 wrote of these entries, two to a block, as table 1.
fn write(dir: &Path, entries: &[Entry], filter_bits: f64) {
    let (mut out, mut properties) = (Vec::new(), Properties::default());
    let mut put = |contents: &[u8], compression: Compression| {
        let offset = out.len() as u64;
        frame::encode(&mut out, contents, compression, 1, offset);
        Handle { offset, len: out.len() as u64 - offset }
    };
    let mut fences = Vec::new();
    for block in entries.chunks(2) {
        let mut builder = BlockBuilder::default();
        for entry in block {
            builder.add(&entry.key, entry.seqno, entry.kind, &entry.value);
            properties.count(&entry.key, entry.seqno, entry.kind);
        }
        let handle = builder.finish(|contents| put(contents, Compression::Lz4));
        let last = block.last().expect("an entry");
        codec::put_prefixed(&mut fences, &last.key);
        codec::put_varint(&mut fences, last.seqno);
        codec::put_varint(&mut fences, handle.len);
    }
    let mut index = (entries.len().div_ceil(2) as u32).to_le_bytes().to_vec();
    index.append(&mut fences);
    let hashes: Vec<u64> = entries.iter().map(|entry| codec::key_hash(&entry.key)).collect();
    let filter = Filter::build(&hashes, filter_bits);
    let filter = if filter.is_empty() { None } else { Some(put(&filter, Compression::None)) };
    let root = put(&index, Compression::Lz4);
    let properties = put(&properties.encode(), Compression::None);
    let partitions = filter.unwrap_or(Handle { offset: root.offset, len: 0 });
    let offset = out.len() as u64;
    Footer { partitions, root, properties, version: 1 }.encode(&mut out, 1, offset);
    std_fs::write(dir.join(file_name(1)), out).expect("written");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_table_of_version_1_holds_what_it_held(
        all in entries(80), bits in prop_oneof![Just(0.0), Just(10.0)], moves in moves(),
    ) {
        // Catches fences that are converted wrongly, and a filter that is lost or denies a key.
        prop_assume!(!all.is_empty());
        let mut model = SortedVec::new(all);
        let dir = dir();
        write(dir.path(), model.entries(), bits);
        prop_assert_eq!(&read_all(dir.path(), model.entries())?, model.entries());
        let table = open(dir.path(), 1)?;
        prop_assert_eq!(table.root()?.whole.as_ref().is_some_and(|whole| whole.filter().is_some()), bits > 0.0);
        assert_same(&mut table.iter(), &mut model.clone(), &moves);
        assert_same(&mut table.iter_uncached(), &mut model, &moves);
    }

    #[test]
    fn random_bytes_never_panic_the_conversion(
        filter in prop::collection::vec(any::<u8>(), 0..100), mut index in prop::collection::vec(any::<u8>(), 0..100),
        count in 0u32..4, data_len in 0u64..1000,
    ) {
        // Catches a count that is trusted before it is compared with the bytes there are, and lengths that overflow.
        index.splice(0..0, count.to_le_bytes());
        if version1::check_filter(&filter).is_ok()
            && let Ok((root, partition)) = version1::convert(&filter, &index, data_len)
        {
            prop_assert_eq!((root.len(), partition.start(), partition.end()), (1, 0, data_len));
            prop_assert!(partition.find(b"key", 1) <= partition.len() && partition.len() == count as usize);
        }
    }
}

#[test]
fn a_flipped_bit_anywhere_in_a_table_of_version_1_is_corruption() {
    // Catches a part of the older format that is no longer checked.
    let dir = dir();
    let all = sample(30);
    write(dir.path(), &all, 10.0);
    assert_eq!(read_all(dir.path(), &all).expect("sound"), all);
    let path = dir.path().join(file_name(1));
    let whole = std_fs::read(&path).expect("the table");
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        std_fs::write(&path, &bytes).expect("flipped");
        let result = read_all(dir.path(), &all);
        assert!(matches!(result, Err(Error::Corruption { .. })), "byte {at}: {result:?}");
    }
}

#[test]
fn an_index_of_version_1_that_lies_is_refused_when_the_table_is_opened() {
    // Catches a binary search over fences that are not sorted, and data blocks that no fence leads to.
    let index = |fences: &[(&[u8], u64)]| {
        let mut bytes = (fences.len() as u32).to_le_bytes().to_vec();
        for (key, len) in fences {
            codec::put_prefixed(&mut bytes, key);
            codec::put_varint(&mut bytes, 0);
            codec::put_varint(&mut bytes, *len);
        }
        bytes
    };
    assert!(version1::convert(&[], &index(&[(b"a", 20), (b"b", 30)]), 50).is_ok());
    let cases = [
        ("a fence after the one before it", index(&[(b"b", 20), (b"a", 30)])),
        ("a block that is longer than its trailer", index(&[(b"a", 12), (b"b", 38)])),
        ("a number of fences that fits the index", index(&[])),
        ("a block within the data blocks", index(&[(b"a", 20), (b"b", 31)])),
        ("a block within the data blocks", index(&[(&b""[..], (1 << 60) - 1); 17])),
        ("fences that cover the data blocks", index(&[(b"a", 20), (b"b", 29)])),
        ("a fence", u32::MAX.to_le_bytes().to_vec()),
        ("the end of the fences", [index(&[(b"a", 50)]), vec![0]].concat()),
    ];
    for (expected, index) in cases {
        let found = version1::convert(&[], &index, 50).map(drop).map_err(|error| error.expected);
        assert_eq!(found, Err(expected));
    }
}
