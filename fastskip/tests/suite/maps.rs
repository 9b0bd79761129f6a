//! Compares both tables with ordinary maps, with random operations.

use std::env;
use std::sync::Arc;

use fastskip::{ConcurrentSkipList, Memtable};
use proptest::prelude::*;

use crate::models::list::skiplist_ops;
use crate::models::memtable::memtable_ops;
use crate::models::moves::{self, compare_moves};

/// Slow machines set proptest's variable `PROPTEST_CASES`.
fn config() -> ProptestConfig {
    if env::var_os("PROPTEST_CASES").is_some() { ProptestConfig::default() } else { ProptestConfig::with_cases(1024) }
}

proptest! {
    #![proptest_config(config())]

    /// Catches any read or write method that differs from a map, with limits, freezes, and snapshots held over later writes.
    #[test]
    fn list_behaves_as_a_map(input in prop::collection::vec(any::<u8>(), 5..400)) {
        skiplist_ops(&input);
    }

    /// Catches any read or write method that differs from a map of versions, live and frozen.
    #[test]
    fn memtable_behaves_as_a_map_of_versions(input in prop::collection::vec(any::<u8>(), 5..400)) {
        memtable_ops(&input);
    }
}

/// Catches a search for a key of the greatest possible bytes that follows the link at the end of a level as if it led to a node.
#[test]
fn keys_that_look_like_the_end_of_a_level_are_found() {
    let list = ConcurrentSkipList::with_shards(1);
    let keys: Vec<_> = (0..300).map(|len| vec![0xff; len]).collect();
    for key in keys.iter().rev().chain(&keys) {
        assert_eq!(list.get(key).is_some(), list.contains_key(key));
        list.insert(key, &[key.len() as u8]);
        assert_eq!(list.get(key), Some((&[key.len() as u8][..], false)));
    }
    assert!(list.iter().map(|entry| entry.key).eq(keys.iter().map(Vec::as_slice)));
    list.validate();
}

/// Catches a key that both ends of a range yield, because a newer version of the key arrives in between.
#[test]
fn a_key_comes_from_one_end_though_a_newer_version_arrives() {
    for is_back_first in [false, true] {
        let memtable = Memtable::builder().shards(1).build();
        memtable.put(b"k", 1, b"").unwrap();
        let (mut range, mut owned) = (memtable.range(.., 9), memtable.owned_range(.., 9));
        let first = if is_back_first { (range.next_back(), owned.next_back()) } else { (range.next(), owned.next()) };
        assert_eq!((first.0.map(|version| version.seqno), first.1.map(|version| version.seqno())), (Some(1), Some(1)));
        memtable.put(b"k", 2, b"").unwrap();
        let second = if is_back_first { (range.next(), owned.next()) } else { (range.next_back(), owned.next_back()) };
        assert_eq!(second, (None, None), "the back first: {is_back_first}");
    }
}

/// Catches a step by key that stops at an old version. Cursors of all kinds start at either end, beyond it, or at an entry that a search
/// found or a step yielded.
#[test]
fn steps_by_key_stop_at_the_newest_version_from_every_position() {
    let memtable = Memtable::builder().shards(1).build();
    let mut cursor = memtable.cursor();
    for (key, seqno) in [(b"a", 1), (b"a", 2), (b"b", 3), (b"b", 4), (b"b", 5), (b"d", 6)] {
        memtable.put(key, seqno, b"").unwrap();
    }
    assert!(cursor.seek_to_last() && cursor.prev().is_some() && cursor.seek_before(b"d", 6));
    let seqnos: Vec<_> = std::iter::from_fn(|| cursor.prev_key()).map(|version| version.seqno).collect();
    assert_eq!(seqnos, [5, 2]);
    let list = Arc::new(ConcurrentSkipList::with_shards(1));
    ["a", "b", "d"].into_iter().for_each(|key| assert!(list.insert(key.as_bytes(), b"")));
    let (snapshot, owned_snapshot) = (list.snapshot(), list.owned_snapshot());
    assert!(list.insert(b"c", b""));
    let frozen = memtable.freeze();
    let versions: Vec<_> = memtable.all_versions().map(moves::version).collect();
    let entries: Vec<_> = list.iter().map(moves::entry).collect();
    let before: Vec<_> = snapshot.iter().map(moves::entry).collect();
    for (key, seqno) in
        [&b""[..], b"a", b"b", b"c", b"d", b"e"].into_iter().flat_map(|key| (0..7).map(move |seqno| (key, seqno)))
    {
        for back in [false, true] {
            compare_moves(memtable.cursor(), &versions, (key, seqno), back);
            compare_moves(frozen.cursor(), &versions, (key, seqno), back);
            compare_moves(frozen.owned_cursor(), &versions, (key, seqno), back);
            let visible: Vec<_> = memtable.iter(seqno).map(moves::version).collect();
            compare_moves(memtable.cursor().visible_at(seqno), &visible, (key, seqno), back);
            compare_moves(memtable.owned_cursor().visible_at(seqno), &visible, (key, seqno), back);
            compare_moves(list.cursor(), &entries, (key, 0), back);
            compare_moves(list.owned_cursor(), &entries, (key, 0), back);
            compare_moves(snapshot.cursor(), &before, (key, 0), back);
            compare_moves(owned_snapshot.cursor(), &before, (key, 0), back);
        }
    }
}
