//! Tests of the cost of reads, measured in steps and searches.

use super::*;
use crate::index::{Probe, Ties};
use crate::node::Target;

const HIDDEN: u64 = 100_000;

/// A table in which `b` has many versions, the oldest numbered 10, and `a` and `c` have one each.
fn with_many_versions() -> Memtable {
    let memtable = Memtable::builder().shards(1).build();
    (10..10 + HIDDEN).for_each(|seqno| assert!(memtable.put(b"b", seqno, b"v").is_ok()));
    [b"a", b"c"].into_iter().for_each(|key| assert!(memtable.put(key, 1, b"v").is_ok()));
    memtable
}

/// Catches a visible range whose cost grows with the number of versions that it hides: newer ones, older ones, or both, from either end.
#[test]
fn ranges_search_past_hidden_versions() {
    let memtable = with_many_versions();
    for seqno in [1, 9, 10, 11, 500, HIDDEN / 2, 9 + HIDDEN, u64::MAX] {
        let is_visible = seqno >= 10;
        let keys: &[&[u8]] = if is_visible { &[b"a", b"b", b"c"] } else { &[b"a", b"c"] };
        let mut forward = memtable.range(.., seqno);
        assert!(forward.by_ref().map(|version| version.key).eq(keys.iter().copied()));
        let mut back = memtable.range(.., seqno);
        assert!(back.by_ref().rev().map(|version| version.key).eq(keys.iter().rev().copied()));
        for moves in [forward.moves(), back.moves()] {
            assert!(moves <= 40, "{moves} moves at {seqno}");
        }
        let mut one = memtable.range(b"b"..=b"b", seqno);
        let mut other = one.clone();
        assert_eq!((one.next().is_some(), other.next_back().is_some()), (is_visible, is_visible));
        assert!(one.moves() <= 20 && other.moves() <= 20, "at {seqno}");
    }
}

/// Catches a cursor that visits all versions of each key on the way to the next key.
#[test]
fn cursors_go_from_key_to_key_without_their_versions() {
    let memtable = with_many_versions();
    let mut cursor = memtable.cursor();
    let forward: Vec<_> =
        core::iter::from_fn(|| cursor.next_key()).map(|version| (version.key, version.seqno)).collect();
    let newest = [(&b"a"[..], 1), (b"b", 9 + HIDDEN), (b"c", 1)];
    assert_eq!(forward, newest);
    let back = core::iter::from_fn(|| cursor.prev_key()).map(|version| (version.key, version.seqno));
    assert!(back.eq(newest.into_iter().rev()));
    assert!(cursor.moves() <= 60, "{} moves", cursor.moves());
}

/// Catches a search where steps would be enough: a few versions of a key are passed one by one.
#[test]
fn few_hidden_versions_cost_a_step_each() {
    let memtable = Memtable::builder().shards(1).build();
    for key in 0..100_u32 {
        (1..=3).for_each(|seqno| assert!(memtable.put(&key.to_be_bytes(), seqno, b"v").is_ok()));
    }
    let mut range = memtable.range(.., 2);
    assert_eq!(range.by_ref().count(), 100);
    assert_eq!(range.moves(), 301, "a search, and a step from each version to the next");
}

/// Catches a lookup that returns an older version instead of the newest one, because an index that is being changed leads it between two versions. A
/// link cannot show how many bytes keys share beyond 255.
#[test]
fn a_hint_between_two_versions_is_not_the_answer() {
    for len in [1, 255, 256, 300] {
        let key = vec![b'k'; len];
        let memtable = Memtable::builder().shards(1).build();
        [3, 5].into_iter().for_each(|seqno| assert!(memtable.put(&key, seqno, b"v").is_ok()));
        let list = memtable.list.made().unwrap();
        let [old, new] = [3, 5].map(|version| list.index.lower_bound(Target { key: &key, version }).first.unwrap());
        let target = Target { key: &key, version: 10 };
        let probe = list.index.probe(target, Ties::Settle, &mut ()).unwrap();
        let probe = Probe { hint: Some(old.into()), before: Some(new.into()), ..probe };
        assert!(list.index.hit_of(Some(&probe), &target).is_none(), "{len} bytes");
        assert_eq!(list.index.lower_bound_of(Some(&probe), &target).first, Some(new), "{len} bytes");
    }
}
