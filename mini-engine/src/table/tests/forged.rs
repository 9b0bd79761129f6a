//! Tables whose parts are each valid but do not agree with each other, which only `verify`, an open, or the read of a partition can detect.

use std::fs as std_fs;

use super::*;
use crate::columns::BlockBuilder;
use crate::table::block::frame;
use crate::table::format::footer::{Footer, Handle};
use crate::table::format::properties::Properties;
use crate::table::index::fences::IndexBuilder;
use crate::table::index::filter::Filter;
use crate::table::index::partition;

/// The parts of a table, which a test changes before the table is written.
struct Parts {
    blocks: Vec<Vec<Entry>>,
    /// For each block, the last entry and the next key from which its fence is made.
    fences: Vec<(Entry, Option<Vec<u8>>)>,
    /// The hashes of each partition, which has one block.
    hashes: Vec<Vec<u64>>,
    /// The amounts by which the starts of the groups in the partitions are moved.
    shift: [u64; 2],
    /// The first partition's fence in the root.
    root_fence: (Vec<u8>, SeqNo),
    properties: Properties,
    /// Whether the first block is marked as plain whatever it has.
    is_plain: bool,
    /// The number of bytes between the properties and the footer.
    gap: usize,
}

/// Two partitions with one block of two entries each, all in order.
fn sound() -> Parts {
    let blocks = vec![vec![value("b", 4, "1"), value("d", 3, "2")], vec![value("f", 2, "3"), value("h", 1, "4")]];
    let mut properties = Properties::default();
    blocks.iter().flatten().for_each(|entry| {
        properties.count(&entry.key, entry.seqno, entry.kind, &entry.value);
    });
    let hashes = |block: &Vec<Entry>| block.iter().map(|entry| codec::key_hash(&entry.key)).collect();
    let hashes = blocks.iter().map(hashes).collect();
    let fences = vec![(blocks[0][1].clone(), Some(b"f".to_vec())), (blocks[1][1].clone(), None)];
    let root_fence = (b"d".to_vec(), 0);
    Parts { blocks, fences, hashes, shift: [0; 2], root_fence, properties, is_plain: false, gap: 0 }
}

impl Parts {
    /// Gives the first block and the first partition the fence of a block that ends with `last` and is followed by `key`.
    fn fence(&mut self, last: Entry, key: &[u8]) {
        self.fences[0] = (last, None);
        self.root_fence.0 = key.to_vec();
    }
}

fn write(dir: &Path, parts: &Parts) {
    let mut out = Vec::new();
    let mut put = |contents: &[u8], gap: usize| {
        let offset = out.len() as u64;
        frame::encode(&mut out, contents, Compression::None, 1, offset);
        let len = out.len() as u64 - offset;
        out.resize(out.len() + gap, 0);
        Handle { offset, len }
    };
    let (mut handles, mut contents_of_partitions) = (Vec::new(), Vec::new());
    for (at, entries) in parts.blocks.iter().enumerate() {
        let mut block = BlockBuilder::default();
        entries.iter().for_each(|entry| block.add(&entry.key, entry.seqno, entry.kind, &entry.value));
        let mut contents = block.finish(<[u8]>::to_vec);
        let plain = contents.len() - 9;
        contents[plain] |= if parts.is_plain { 0x80 } else { 0 };
        let handle = put(&contents, 0);
        let (mut fences, (last, next)) = (IndexBuilder::default(), &parts.fences[at]);
        fences.push((&last.key, last.seqno), next.as_deref(), handle.len);
        let filter = Filter::build(&parts.hashes[at], 20.0);
        contents_of_partitions.push(partition::encode(filter, &mut fences, handle.offset + parts.shift[at]));
    }
    let mut root = IndexBuilder::default();
    for (at, contents) in contents_of_partitions.iter().enumerate() {
        let handle = put(contents, 0);
        let own = partition::last_fence(contents).expect("a fence");
        let fence = if at == 0 { (&parts.root_fence.0[..], parts.root_fence.1) } else { (&*own.0, own.1) };
        root.push_fence(fence, handle.len);
        handles.push(handle);
    }
    let partitions = Handle { offset: handles[0].offset, len: handles.iter().map(|handle| handle.len).sum() };
    let mut contents = Vec::new();
    root.finish(&mut contents);
    let root = put(&contents, 0);
    let properties = put(&parts.properties.encode(), parts.gap);
    let offset = out.len() as u64;
    Footer { partitions, root, properties }.encode(&mut out, 1, offset);
    std_fs::write(dir.join(file_name(1)), out).expect("written");
}

#[test]
fn verify_sees_what_single_checksums_cannot() {
    // Catches a `verify` that only reads: it would accept a table whose keys cannot be found, or with wrong counts.
    type Change = fn(&mut Parts);
    let cases: [(&str, Change); 13] = [
        ("entry not after the one before it", |parts| parts.blocks[0].swap(0, 1)),
        ("entry not after the fence of the block before", |parts| parts.blocks[1][0].key = b"d".to_vec()),
        ("entry after its block's fence", |parts| parts.fence(value("c", 1, ""), b"c")),
        ("entry not after the fence of the block before", |parts| parts.fence(value("f", 2, ""), b"f")),
        ("entry whose key the filter denies", |parts| parts.hashes[1].truncate(1)),
        ("entry whose key the filter denies", |parts| {
            // A key whose versions continue in the next group.
            parts.blocks[0][1] = value("f", 3, "2");
            parts.fence(value("f", 3, "2"), b"f");
            (parts.fences[0].1, parts.root_fence.1) = (Some(b"f".to_vec()), 3);
            parts.hashes = vec![[b"b", b"f"].map(|key| codec::key_hash(key)).to_vec(), vec![codec::key_hash(b"h")]];
        }),
        ("expected one version of each key in a plain block", |parts| {
            parts.blocks[0][1].key = b"b".to_vec();
            (parts.is_plain, parts.properties.keys, parts.properties.largest) = (true, 3, b"h".to_vec());
            parts.fence(value("b", 3, ""), b"b");
            parts.hashes[0].truncate(1);
        }),
        ("expected the fence that the root has for the partition", |parts| parts.root_fence.0 = b"e".to_vec()),
        ("groups of data blocks without gaps", |parts| parts.shift[0] = 1),
        ("expected a group within the data blocks", |parts| parts.shift[1] = 1),
        ("properties: expected", |parts| parts.properties.tombstones = 1),
        ("properties: expected", |parts| parts.properties.keys = 3),
        ("properties: expected", |parts| parts.properties.largest = b"z".to_vec()),
    ];
    let dir = dir();
    write(dir.path(), &sound());
    assert_eq!(open(dir.path(), 1).expect("sound").verify(None).expect("sound").entries, 4);
    for (expected, change) in cases {
        let mut parts = sound();
        change(&mut parts);
        write(dir.path(), &parts);
        let error = open(dir.path(), 1).expect("each part is sound").verify(None).expect_err(expected);
        assert!(matches!(&error, Error::Corruption { what, .. } if what.starts_with(expected)), "{expected}: {error}");
    }
}

#[test]
fn bytes_that_belong_to_no_part_are_corruption() {
    // Catches a gap that no checksum covers and that no read would ever touch.
    let dir = dir();
    write(dir.path(), &Parts { gap: 8, ..sound() });
    let error = open(dir.path(), 1).expect_err("a gap before the footer");
    assert!(error.to_string().contains("expected them to meet"), "{error}");
}

#[test]
fn fences_out_of_order_are_corruption_when_the_table_is_opened() {
    // Catches a binary search over unsorted fences: stored keys would be reported as absent.
    let dir = dir();
    let mut parts = sound();
    parts.root_fence.0 = b"i".to_vec();
    write(dir.path(), &parts);
    let error = open(dir.path(), 1).expect_err("fences out of order");
    assert!(error.to_string().contains("a fence after the one before it"), "{error}");
}
